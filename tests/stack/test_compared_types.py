"""PostgreSQL gives each type of a compared column as JSON writes it, also where it is asked for a cast."""

import psycopg
import pytest

from lab.servers.stack import LabStack
from tallystick.contract.compare import compared_columns
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql

CAST = {
    "bigint": "-9223372036854775808",
    "boolean": "true",
    "integer": "-7",
    "numeric": "'NaN'",
    "numeric(12, 4)": "1.5",
    "numeric(40, 0)": "1e39",
    "smallint": "7",
    "text": "E'a\"b\\\\ \\n\\t\\x01\\x7f \u00e9 \U0001f600 \\\\u0041'",
    "uuid": "'00000000-0000-0000-0000-00000000000A'",
    "varchar(20)": "'at the end  '",
}
"""Column's type to a value that one of both could write otherwise."""
NOT_CAST = {
    "bytea": r"'\xff'",
    "char(9)": "'padded'",
    "date": "'2026-01-31'",
    "double precision": "1e23",
    "json": r"""'"a \u0041"'""",
    "jsonb": """'{"a": "b"}'""",
    "real": "0.1",
    "text[]": "'{a,NULL}'",
    "timestamp": "'2026-01-31 00:00:00.5'",
    "timestamptz": "'2026-01-31 00:00:00.5+00'",
}
WRITTEN_OTHERWISE = ("char(9)", "date", "json", "timestamp", "timestamptz")
"""What a cast would write otherwise than JSON does."""
LEDGER = LedgerSection(connection="ledger_billing", table="pg_temp.it")


def said_by(stack: LabStack, kind: str, expression: str) -> list[str | None]:
    """What an expression of a column says of its value, and of NULL."""
    with psycopg.connect(stack.ledger_owner_dsn) as owner:
        owner.execute("SET LOCAL DateStyle = 'SQL, DMY'")
        owner.execute(f"CREATE TEMPORARY TABLE it (said {kind}) ON COMMIT DROP")
        owner.execute(f"INSERT INTO it VALUES ({(CAST | NOT_CAST)[kind]}), (NULL)")
        return [row[0] for row in owner.execute(f"SELECT {expression} FROM it").fetchall()]


AS_JSON, AS_CAST = "to_json(said) #>> '{}'", "said::text"


@pytest.mark.parametrize("kind", [*CAST, *NOT_CAST])
def test_a_column_of_each_type_says_what_json_says_of_it(stack: LabStack, kind: str) -> None:
    columns = LEDGER.columns.comparing(compared_columns({"said": "exact"}))
    read = postgres_sql.compared_list(LEDGER.model_copy(update={"columns": columns})).removeprefix(", ")
    value, nothing = said_by(stack, kind, read)
    assert value is not None and nothing is None
    assert [value, nothing] == said_by(stack, kind, AS_JSON)


@pytest.mark.parametrize("kind", WRITTEN_OTHERWISE)
def test_these_types_cannot_be_cast(stack: LabStack, kind: str) -> None:
    assert said_by(stack, kind, AS_CAST)[0] != said_by(stack, kind, AS_JSON)[0]


def test_only_types_that_were_tried_are_cast() -> None:
    assert {kind.partition("(")[0] for kind in CAST} == set(postgres_sql.CAST_AS_JSON_SAYS)
