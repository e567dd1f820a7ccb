"""The rights that a contract needs in Kafka and in its ledger's database, and no more: ACLs and GRANTs, by role.

Roles: the *reader* makes cuts and runs; the *executor* carries repairs out, and reads again what it proves; the
*poster* writes into the ledger. Whoever administers the servers applies them: this module opens nothing.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tallystick.contract.compensation import ABOUT_EVENTS, POSTABLE, REPUBLISHABLE, REVERSIBLE, LedgerPost
from tallystick.contract.contract import Contract, ContractRefused
from tallystick.contract.sql_names import outermost
from tallystick.executor.effects.publish_events import transactional_id_of
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.kafka_cluster.open_transactions import COORDINATORS_LOG


class Resource(StrEnum):
    """The resource of an ACL, as kafka-acls.sh calls it."""

    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


@dataclass(frozen=True, kw_only=True)
class KafkaAcl:
    """Operations that a principal is allowed on one resource. name "*": all of that kind; of the cluster ""."""

    principal: str
    resource: Resource
    name: str
    operations: tuple[str, ...]
    why: str


def kafka_acls(contract: Contract, *, reader: str, executor: str, environment: str) -> tuple[KafkaAcl, ...]:
    """Return the ACLs for the cluster of kafka.connection; input topics are on that of ledger.connection. Operations
    that Kafka derives from another one are not stated: Read and Write imply Describe.
    """
    read = [_acl(reader, Resource.TOPIC, topic, "Read DescribeConfigs", _READ) for topic in _read_topics(contract)]
    looks = [
        _acl(reader, Resource.CLUSTER, "", "DescribeConfigs", "the brokers' settings, for the config check"),
        _acl(reader, Resource.TRANSACTIONAL_ID, "*", "Describe", "who holds a partition, and whether it hangs"),
        _acl(reader, Resource.TOPIC, COORDINATORS_LOG, "Describe", "whether every coordinator answers about that"),
    ]
    return (*read, *looks, *_executors(contract, executor, environment))


def _executors(contract: Contract, executor: str, environment: str) -> Iterator[KafkaAcl]:
    rules = contract.compensation
    if rules is None:
        return
    publishes = any(break_class in REPUBLISHABLE + REVERSIBLE for break_class in rules.classes)
    handed_over = rules.trigger.dags if rules.trigger else ()
    needs = {
        "what it publishes, and the proof of it": publishes,
        "the proof of what it posts": any(one in POSTABLE for one in rules.classes),
        "the proof of what a DAG is handed": any(one in ABOUT_EVENTS for one in handed_over),
        "what hangs there": rules.abort_hanging_transactions,
    }
    if reasons := [why for why, is_needed in needs.items() if is_needed]:
        for topic in contract.topics:
            operations = "Read Write" if publishes else "Read"
            yield _acl(executor, Resource.TOPIC, topic, operations, "; ".join(reasons))
    if publishes:
        progress, publisher = (
            progress_topic_name(contract.name),
            transactional_id_of(contract.name, environment),
        )
        yield _acl(executor, Resource.TOPIC, progress, "Create Read Write DescribeConfigs", "what was published")
        yield _acl(executor, Resource.TRANSACTIONAL_ID, publisher, "Write", "one executor fences the one before it")
    if rules.abort_hanging_transactions:
        yield _acl(executor, Resource.CLUSTER, "", "Alter DescribeConfigs", "ends a transaction; how old one may be")
        yield _acl(executor, Resource.TRANSACTIONAL_ID, "*", "Describe", "whether anybody will still end it")
        yield _acl(executor, Resource.TOPIC, COORDINATORS_LOG, "Describe", "whether every coordinator answers")


_READ = "its events and settings"


def _read_topics(contract: Contract) -> tuple[str, ...]:
    return (*contract.topics, *contract.kafka.stray_topics, *contract.input_topics)


def _acl(principal: str, resource: Resource, name: str, operations: str, why: str) -> KafkaAcl:
    return KafkaAcl(principal=principal, resource=resource, name=name, operations=tuple(operations.split()), why=why)


def kafka_commands(acls: Iterable[KafkaAcl]) -> Iterator[str]:
    """Return a command for each; the server, and the file with the administrator's own account, are to be filled in."""
    for acl in acls:
        named = f"--{acl.resource}" + (f" {shlex.quote(acl.name)}" if acl.name else "")
        allowed = " ".join(f"--operation {operation}" for operation in acl.operations)
        yield f"# {acl.why}"
        yield (
            f"kafka-acls.sh --bootstrap-server BROKER --command-config ADMIN.properties --add "
            f"--allow-principal {shlex.quote(f'User:{acl.principal}')} {allowed} {named}"
        )


def postgres_statements(contract: Contract, *, reader: str, poster: str) -> Iterator[str]:
    """Return SQL for a superuser, in the ledger's database; the roles exist already. Raises ContractRefused."""
    ledger = contract.ledger
    if ledger.kind not in ("postgres", "jdbc"):
        raise ContractRefused(
            f"{contract.name}: its ledger is of kind {ledger.kind}; expected one in a database, postgres or jdbc"
        )
    yield _on_database(reader)
    yield f"GRANT USAGE ON SCHEMA {_schema(ledger.table)} TO {_role(reader)};"
    yield f"GRANT SELECT ON {ledger.table} TO {_role(reader)};"
    if ledger.kind == "postgres":
        yield "-- whose transaction holds a row back, since when, and which are of Tallystick's own executors"
        yield f"GRANT pg_read_all_stats TO {_role(reader)};"
    if contract.compensation and contract.compensation.post:
        yield from _posters(contract, contract.compensation.post, poster)


def _posters(contract: Contract, post: LedgerPost, poster: str) -> Iterator[str]:
    """Return the poster's grants. It reads a key's rows before and after it writes, and writes the contract's columns
    only.
    """
    table, columns = contract.ledger.table, contract.ledger.columns
    constants = {column for rows in post.rows.values() for row in rows for column in row}
    named = {columns.action_id, columns.reverses if contract.compensation and contract.compensation.reversal else None}
    written = sorted({*post.columns, *constants, *filter(None, named)})
    yield _on_database(poster)
    for schema in sorted({_schema(table), _schema(post.actions_table)}):
        yield f"GRANT USAGE ON SCHEMA {schema} TO {_role(poster)};"
    yield f"GRANT SELECT, INSERT ({', '.join(written)}) ON {table} TO {_role(poster)};"
    yield f"GRANT SELECT, INSERT ON {post.actions_table} TO {_role(poster)};"
    yield _SEQUENCES.format(table=table, role=poster.replace("'", "''"))


_SEQUENCES = """\
DO $$  -- sequences that number the table's rows by a default; those of an identity column need no grant
DECLARE numbering regclass;
BEGIN
  FOR numbering IN SELECT s.seqrelid FROM pg_sequence s JOIN pg_depend d ON d.objid = s.seqrelid AND d.deptype = 'a'
    WHERE d.classid = 'pg_class'::regclass AND d.refobjid = '{table}'::regclass LOOP
    EXECUTE format('GRANT USAGE ON SEQUENCE %s TO %I', numbering, '{role}');
  END LOOP;
END $$;"""


def _on_database(role: str) -> str:
    text = role.replace("'", "''")
    return f"DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), '{text}'); END $$;"


def _schema(table: str) -> str:
    return outermost(table)


def _role(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'
