"""One reconciliation, as its owner writes it: a YAML file, validated whole before anything runs.

Decides what a contract may say. Does not open a connection: ids only.

One file, since what its parts may not say together is checked where they come together.
"""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from tallystick.contract.alerts import AlertRules
from tallystick.contract.compare import Compare, compared_columns
from tallystick.contract.compensation import (
    COUNTERPOSTABLE,
    POSTABLE,
    REPUBLISHABLE,
    CompensationRules,
    refuse_columns_unfit_to_post,
)
from tallystick.contract.error_lines import fault_lines
from tallystick.contract.event import MAY_ASK_REGISTRY, EventFields, InputFields, PayloadKey
from tallystick.contract.field_path import names_of, refuse_fields_inside_fields
from tallystick.contract.field_types import (
    FROM_A_FILE,
    PATTERNS,
    ContractPart,
    CronExpression,
    LegConstant,
    ModuleName,
    Moment,
    Name,
    Seconds,
    TopicName,
    refuse_no_cron,
    refuse_no_firing,
)
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_condition import DIALECTS, EXPECTED, why_no_condition
from tallystick.host.yaml_file import DocumentUnreadable, read_mapping
from tallystick.model.direction import Direction
from tallystick.model.errors import TallystickError
from tallystick.model.open_item import ItemSide

_GRACE_CAP_SECONDS = 3600


class ContractRefused(TallystickError):
    """The file is no valid contract. The message has one line per fault: file, path, value, expected."""


class KafkaSide(ContractPart):
    """The cluster of the topics."""

    connection: Name
    """Id of the Airflow connection (type kafka; librdkafka settings in its extra)."""
    stray_topics: tuple[TopicName, ...] = ()
    """Topics of no leg that look-ups search too: an event committed only there is misrouted, not missing."""
    schema_registry: Name | None = None
    """Id of the connection to the registry of the events' schemas (type http; Confluent's names for TLS in its extra).
    For formats avro, protobuf and debezium."""
    producers: Literal["any", "idempotent", "transactional"] = "any"
    """How the topics' producers must write; what they wrote otherwise is counted in the config check."""


class MatchRules(ContractPart):
    """Rules for what belongs together by its match key."""

    many_to_one: Literal["events", "rows"] | None = None
    """events: several events of one match key add up to its one row. rows: several rows to its one event. Exact, per
    currency. Absent: one event and one row are a pair."""


class Contract(ContractPart):
    """One reconciliation."""

    name: Annotated[Name, Field(alias="contract")]
    """Its name; also the name of its DAG, its lock and its alerts."""
    version: Annotated[int, Field(ge=1, strict=True)]
    """Raised by the owner with each change of meaning."""
    description: str = ""
    """One paragraph for the people who are paged."""
    owner: str = Field(min_length=1)
    """The team that answers for it."""
    direction: Direction
    """topic_to_ledger: a consumer posts events to the ledger. ledger_to_topic: an outbox publishes ledger rows.
    topic_to_topic: a service consumes, transforms and produces; its input plays the ledger's part."""
    schedule: CronExpression
    """Cron expression in UTC; each run covers the interval that ends at it."""
    start_date: Moment
    """First moment that may be scheduled."""
    kafka: KafkaSide
    """Where the topics are."""
    legs: dict[Name, TopicName] = Field(min_length=1)
    """Leg name to topic. A business transaction is whole when each leg was committed once."""
    compare: Compare = Field(default_factory=dict)
    """Columns that event and row must agree in besides their money: name to rule. exact: the same text.
    {exact: number}, {exact: time}: the same value, however it is written. {abs: 1}, {rel: 0.001}, {within: 2s}:
    numbers and times may differ by so much. ignore: looked at, and not compared. event, column: where it stands, if not
    under this name; shown: false hides what both sides say. What is absent or NULL equals nothing else."""
    event: Annotated[EventFields, Field(validate_default=True)] = EventFields()
    """Format and fields of the payload, where they differ from the defaults."""
    ledger: LedgerSection
    """Where the ledger is."""
    currency_case: Literal["exact", "ignored"] = "exact"
    """ignored: eur is EUR; pairs that write it differently are counted and told, and are no break."""
    match: MatchRules = MatchRules()
    """What belongs together by its match key."""
    timestamp_tolerance_seconds: Seconds = 3600
    """How far a record's timestamp may lie outside the window it was written in before it is counted and told."""
    partner_grace_seconds: Seconds = 60
    """How long the second side may lag behind the first before its absence is a break."""
    partner_grace_cap_seconds: Seconds | None = None
    """How long the grace may become by what was measured: p99.9 of the lag in clean runs, where
    ledger.columns.written_at is named. Absent: an hour, or partner_grace_seconds where that is longer."""
    settle_timeout_seconds: Seconds = 600
    """How long a run waits for both horizons before it goes on and says what it could not see."""
    verdict_within_seconds: Seconds = 3600
    """How long a verdict may take once the window has ended and settle_timeout is over; without one then, on-call is
    told."""
    empty: Literal["refused", "allowed"] = "refused"
    """May a window without any event or row be MATCHED? Refused: it is INCONCLUSIVE."""
    shown_keys: tuple[PayloadKey, ...] = (PayloadKey.MATCH_KEY, PayloadKey.TRANSACTION_KEY)
    """Which keys of an event people may see: on pages, in reports, plans, explanations, logs and the Parquet of
    breaks the others are masked. Place, leg, money and times are always shown; of the payload's other fields only
    those of compare are kept. For cuts that are made under it. A plan as JSON is for programs and has all."""
    expectations: ModuleName | None = None
    """A module of your own with suites of Great Expectations about the window's figures (docs/expectations.md). Their
    result is in the report and sends an alert; it changes no verdict."""
    alert: AlertRules = AlertRules()
    """Who hears of a break."""
    compensation: CompensationRules | None = None
    """What may be repaired."""

    @field_validator("partner_grace_cap_seconds")
    @classmethod
    def _caps_no_less(cls, cap: int | None, info: ValidationInfo) -> int | None:
        grace = info.data.get("partner_grace_seconds", 0)
        if cap is not None and cap < grace:
            raise ValueError(f"expected no less than partner_grace_seconds, which is {grace}")
        return cap

    @field_validator("schedule")
    @classmethod
    def _cron(cls, schedule: str, info: ValidationInfo) -> str:
        refuse_no_cron(schedule, such_as="0 * * * *")
        if info.context:
            refuse_no_firing(schedule)
        return schedule

    @field_validator("legs")
    @classmethod
    def _one_topic_each(cls, legs: dict[str, str]) -> dict[str, str]:
        shared = [topic for topic, count in Counter(legs.values()).items() if count > 1]
        if shared:
            raise ValueError(f"expected a topic of its own for each leg: {shared[0]!r} is named twice")
        return legs

    @field_validator("legs")
    @classmethod
    def _no_leg_strays(cls, legs: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        kafka = info.data.get("kafka")
        for leg, topic in legs.items():
            if kafka is not None and topic in kafka.stray_topics:
                raise ValueError(f"expected no leg on a stray topic: {topic!r} is that of {leg!r}")
        return legs

    @field_validator("event")
    @classmethod
    def _is_of_the_only_leg(cls, event: EventFields, info: ValidationInfo) -> EventFields:
        _refuse_other_leg(event.leg, info.data.get("legs", {}))
        return event

    @field_validator("event")
    @classmethod
    def _knows_its_registry(cls, event: EventFields, info: ValidationInfo) -> EventFields:
        kafka = info.data.get("kafka")
        return event.asking(kafka.schema_registry) if kafka is not None else event

    @field_validator("event")
    @classmethod
    def _reads_what_is_compared(cls, event: EventFields, info: ValidationInfo) -> EventFields:
        compared = compared_columns(info.data.get("compare", {}))
        event.refuse_to_compare(compared)
        return event.comparing(compared)

    @field_validator("ledger")
    @classmethod
    def _holds_what_is_compared(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        compared = compared_columns(info.data.get("compare", {}))
        if ledger.kind == "topic":
            named = next((name for name, rule in zip(compared.names, compared.rules, strict=True) if rule.column), None)
            if named is not None:
                raise ValueError(
                    f"expected no column in compare.{named} with kind topic: inputs have the events' fields"
                )
            return ledger
        return ledger.model_copy(update={"columns": ledger.columns.comparing(compared)})

    @field_validator("ledger")
    @classmethod
    def _its_side_is_of_the_only_leg(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        for leg in (ledger.columns.leg, ledger.event.leg):
            _refuse_other_leg(leg, info.data.get("legs", {}))
        return ledger

    @field_validator("ledger")
    @classmethod
    def _states_the_same(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        event, kafka = info.data.get("event"), info.data.get("kafka")
        if event is None or kafka is None:
            return ledger
        others = ledger.columns.constants
        if ledger.kind == "topic":
            several_legs = len(info.data.get("legs", ())) > 1
            others = _of_input(event, ledger, kafka.schema_registry, several_legs=several_legs).constants
        if ("amount_minor" in event.constants) != ("amount_minor" in others):
            raise ValueError("expected amount_minor {constant: 0} on both sides, or on neither: no amount equals none")
        said, other = event.constants.get("currency"), others.get("currency")
        if said and other and said != other:
            raise ValueError(f"expected one currency on both sides: got {{constant: {said}}} and {{constant: {other}}}")
        return ledger

    @field_validator("ledger")
    @classmethod
    def _registry_is_asked(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        kafka, event = info.data.get("kafka"), info.data.get("event")
        if kafka is None or event is None:
            return ledger
        formats = {event.format, ledger.event.format or event.format}
        if kafka.schema_registry and not formats & set(MAY_ASK_REGISTRY):
            raise ValueError(
                f"got kafka.schema_registry with event.format {event.format}; expected none, since only formats "
                f"{', '.join(MAY_ASK_REGISTRY)} ask it"
            )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _kind_fits(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        direction = info.data.get("direction")
        if direction is not None and (ledger.kind == "topic") != (direction is Direction.TOPIC_TO_TOPIC):
            raise ValueError(
                f"got kind {ledger.kind} with direction {direction}; expected kind topic with direction "
                "topic_to_topic, and with no other"
            )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _inputs_are_no_outputs(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        kafka = info.data.get("kafka")
        outputs = {*info.data.get("legs", {}).values(), *(kafka.stray_topics if kafka else ())}
        for topic in ledger.topics:
            if topic in outputs:
                raise ValueError(
                    f"expected input topics of other names than the legs' and the stray topics: {topic!r} is one of "
                    "them; also on another cluster, since a place is known by its topic's name"
                )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _inputs_fields_fit(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        event, kafka = info.data.get("event"), info.data.get("kafka")
        if event is not None and kafka is not None and ledger.kind == "topic":
            several_legs = len(info.data.get("legs", ())) > 1
            inputs = _of_input(event, ledger, kafka.schema_registry, several_legs=several_legs)
            refuse_fields_inside_fields(inputs.paths)
            inputs.refuse_to_compare(inputs.compared)
        return ledger

    @field_validator("ledger")
    @classmethod
    def _receipts_are_the_relays(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        if ledger.columns.receipt_offset and info.data.get("direction") is Direction.TOPIC_TO_LEDGER:
            raise ValueError("expected no receipt columns with direction topic_to_ledger: its rows are the consumer's")
        return ledger

    @field_validator("ledger")
    @classmethod
    def _takes_back_behind_the_topic(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        named = ledger.columns.reverses or ledger.columns.action_id
        if named and info.data.get("direction") is not Direction.TOPIC_TO_LEDGER:
            raise ValueError(
                "expected columns reverses and action_id with direction topic_to_ledger only: what an outbox holds is "
                "published"
            )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _has_a_consumer(cls, ledger: LedgerSection, info: ValidationInfo) -> LedgerSection:
        if ledger.consumer_isolation is not None and info.data.get("direction") is Direction.LEDGER_TO_TOPIC:
            raise ValueError(
                "expected no consumer_isolation with direction ledger_to_topic: no consumer writes the ledger"
            )
        return ledger

    @field_validator("match")
    @classmethod
    def _adds_up_money_alone(cls, match: MatchRules, info: ValidationInfo) -> MatchRules:
        if match.many_to_one is None:
            return match
        event, ledger = info.data.get("event", EventFields()), info.data.get("ledger")
        columns = ledger.columns if ledger is not None else None
        for is_there, what in (
            (info.data.get("direction") is Direction.TOPIC_TO_TOPIC, "direction topic_to_topic: it has no row"),
            (len(info.data.get("legs", ())) > 1, "several legs: a group is no business transaction"),
            (bool(info.data.get("compare")), "compare: parts are added up, and a sum says nothing else"),
            ("amount_minor" in event.constants, "amount_minor {constant: 0}: nothing would be added up"),
            (event.sequence is not None, "event.sequence: events are brought into their order one by one"),
            (
                info.data.get("currency_case") == "ignored",
                "currency_case ignored: a sum is of one currency, as written",
            ),
            (bool(columns and columns.written_at), "ledger.columns.written_at: a lag is that of a pair"),
            (bool(columns and columns.receipt_offset), "receipt columns: an offset is that of one event"),
            (
                bool(columns and (columns.reverses or columns.action_id)),
                "columns reverses or action_id: a group is not taken back row by row",
            ),
        ):
            if is_there:
                raise ValueError(f"expected no many_to_one with {what}")
        return match

    @field_validator("alert")
    @classmethod
    def _alerts_show_no_more(cls, alert: AlertRules, info: ValidationInfo) -> AlertRules:
        shown = info.data.get("shown_keys", ())
        if alert.match_keys == "shown" and not {PayloadKey.MATCH_KEY, PayloadKey.TRANSACTION_KEY} <= set(shown):
            raise ValueError(
                "expected match_keys: hidden, since shown_keys hides the match_key or the transaction_key, which is "
                "the match key of a torn transaction"
            )
        return alert

    @field_validator("compensation")
    @classmethod
    def _compensation_fits(cls, rules: CompensationRules | None, info: ValidationInfo) -> CompensationRules | None:
        if rules is None or not rules.classes:
            return rules
        if info.data.get("direction") is Direction.TOPIC_TO_TOPIC:
            raise ValueError(
                "expected none with direction topic_to_topic: what the service makes of an input, only the service "
                "knows; let it handle the input again"
            )
        posts = info.data.get("direction") is Direction.TOPIC_TO_LEDGER
        for one in rules.classes:
            if (one in POSTABLE + COUNTERPOSTABLE) != posts:
                raise ValueError(
                    f"expected no class {one} with direction {info.data.get('direction')}: only the side that is "
                    "written second is repaired"
                )
        ledger = info.data.get("ledger")
        if ledger is not None and ledger.kind != "postgres":
            raise ValueError(f"expected none with ledger.kind {ledger.kind}: it repairs from and in PostgreSQL only")
        if ledger is not None and ledger.primary_connection:
            raise ValueError(
                "expected none with ledger.primary_connection: a repair reads the ledger as it is now, and a standby "
                "shows an earlier state"
            )
        if posts and ledger is not None and ledger.amount_unit == "major":
            raise ValueError("expected none with ledger.amount_unit major: amounts are posted as the event has them")
        if ledger is not None and '"' in ledger.table:
            raise ValueError(f"expected none with a table in quotes, as {ledger.table} is: it repairs plain names only")
        if ledger is not None:
            refuse_columns_unfit_to_post(rules, ledger.columns)
        event = info.data.get("event", EventFields())
        if event.amount_unit == "major" or info.data.get("currency_case") == "ignored":
            raise ValueError(
                "expected none with event.amount_unit major or currency_case ignored: a republished event is written "
                "in minor units, with the currency as the scan compared it"
            )
        if event.format != "json":
            raise ValueError(
                f"expected none with event.format {event.format}: a repair publishes JSON and posts from JSON, and the "
                "topic's consumers read another format"
            )
        if event.sequence is not None:
            raise ValueError("expected none with event.sequence: a republished event would stand out of order")
        match = info.data.get("match")
        if match is not None and match.many_to_one:
            raise ValueError("expected none with match.many_to_one: which part is missing, no sum says")
        if event.compared:
            raise ValueError(
                f"expected none with compare: a repair would write no {event.compared.names[0]}, and be a break itself"
            )
        without_money = "amount_minor" in {**event.constants, **(ledger.columns.constants if ledger else {})}
        if ledger is not None and event.constants != ledger.columns.constants:
            raise ValueError(
                "expected none where event and ledger.columns do not state the same constants: what is repaired would "
                "be in the currency that one of them states, and not in its own"
            )
        if event.places or without_money:
            raise ValueError(
                "expected none where a field is a header, the record's key or no money: a repair writes and reads "
                "events whose fields stand in the payload"
            )
        nested = next((path for path in event.paths if len(names_of(path)) > 1), None)
        for one in rules.classes:
            if nested is not None and one in REPUBLISHABLE:
                raise ValueError(
                    f"expected no class {one} where a field is a path, as {nested} is: a republished event has the "
                    "contract's fields alone, and would lack the rest of the objects around them"
                )
        return rules

    @property
    def actions_table(self) -> str | None:
        """Return the table with the ids of actions that posted; None: it posts nothing."""
        post = self.compensation.post if self.compensation else None
        return post.actions_table if post else None

    @property
    def parts_side(self) -> ItemSide | None:
        """The side whose copies add up to the one of the other side; None: one of each is a pair."""
        if self.match.many_to_one is None:
            return None
        return ItemSide.TOPIC if self.match.many_to_one == "events" else ItemSide.LEDGER

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.legs.values()))

    @property
    def input_topics(self) -> tuple[str, ...]:
        """The topics that play the ledger's part; none where it is no topic."""
        return tuple(sorted(self.ledger.topics))

    @property
    def input_event(self) -> EventFields:
        """Keys of an input event. Where the contract has one leg, none is asked for: the input is of that one."""
        return _of_input(self.event, self.ledger, self.kafka.schema_registry, several_legs=len(self.legs) > 1)

    def event_on(self, topic: str) -> EventFields:
        """Keys of an event of this topic, be it an input or an output."""
        return self.input_event if topic in self.ledger.topics else self.event

    @property
    def rows_keep_sign(self) -> bool:
        """Return whether a row that takes one back has the same amount, without the other sign."""
        return self.compensation is not None and self.compensation.reversal == "column"

    @property
    def partner_grace(self) -> timedelta:
        """The least there is; `tallystick.matching.grace` says which is in force."""
        return timedelta(seconds=self.partner_grace_seconds)

    @property
    def grace_cap_seconds(self) -> int:
        if self.partner_grace_cap_seconds is not None:
            return self.partner_grace_cap_seconds
        return max(_GRACE_CAP_SECONDS, self.partner_grace_seconds)

    @property
    def longest_grace(self) -> timedelta:
        """Return the longest grace, where the contract lets it be measured."""
        seconds = self.grace_cap_seconds if self.ledger.columns.written_at else self.partner_grace_seconds
        return timedelta(seconds=seconds)

    @property
    def settle_timeout(self) -> timedelta:
        return timedelta(seconds=self.settle_timeout_seconds)

    @property
    def verdict_timeout(self) -> timedelta:
        """Return the time from a window's end to the moment its verdict is overdue."""
        return self.settle_timeout + timedelta(seconds=self.verdict_within_seconds)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the contract's meaning: the validated model as JSON, so comments and key order do not count.

        Keys are sorted, since a mapping such as `legs` keeps its file's order, and the store's JSON has another one.
        What a field says by default is left out, so that a field that a later release adds changes no fingerprint.
        """
        stated = self.model_dump(mode="json", exclude_defaults=True)
        document = json.dumps(stated, sort_keys=True, separators=(",", ":"))
        return sha256(document.encode()).hexdigest()


def _refuse_other_leg(leg: object, legs: Mapping[str, str]) -> None:
    """Raise ValueError where a leg that is stated for all is not the only one."""
    if isinstance(leg, LegConstant) and legs and list(legs) != [leg.constant]:
        raise ValueError(
            f"got leg {{constant: {leg.constant}}} with legs {', '.join(sorted(legs))}; expected the name of a field "
            "that tells them apart, or a constant that is the only leg"
        )


def _of_input(event: EventFields, ledger: LedgerSection, registry: str | None, *, several_legs: bool) -> EventFields:
    """Return the fields of an input event: those of the output where the contract states no other."""
    plain = EventFields(
        **{name: getattr(event, name) for name in InputFields.model_fields}, amount_unit=ledger.amount_unit
    )
    stated = {name: one for name, one in ledger.event if one is not None}
    fields = plain.model_copy(update=stated).asking(registry).comparing(event.compared)
    return fields if several_legs else fields.model_copy(update={"leg": fields.match_key})


def load_contract(path: Path) -> Contract:
    """Read and validate one contract file. Raises ContractRefused with every fault found."""
    try:
        document = read_mapping(path)
    except DocumentUnreadable as error:
        raise ContractRefused(str(error)) from None
    return contract_of(document, path=path)


def contract_of(document: Mapping[str, Any], *, path: Path) -> Contract:
    """Validate what stands in a contract's file. path: named before each fault. Raises ContractRefused with all."""
    try:
        contract = Contract.model_validate(document, context=FROM_A_FILE)
    except ValidationError as error:
        faults = fault_lines(path, error, model=Contract, patterns=PATTERNS)
        raise ContractRefused("\n".join(faults)) from None
    _refuse_no_condition(path, contract.ledger)
    return contract


def _refuse_no_condition(path: Path, ledger: LedgerSection) -> None:
    """Here and not in the model, by which stored contracts of older versions are read too. Raises ContractRefused."""
    if ledger.where is None:
        return
    databases = ("postgresql",) if ledger.kind == "postgres" else DIALECTS  # of kind jdbc its connection says which
    if reason := why_no_condition(ledger.where, databases):
        raise ContractRefused(f"{path}: ledger.where: {reason}; {EXPECTED}")


def shared_name(path: Path, name: str, first_path: Path) -> str:
    """Return the fault of a file whose contract's name another file has."""
    return f"{path}: contract: got {name!r}; expected a name of its own, {first_path} has it too"


def other_endings(folder: Path) -> list[str]:
    """Return the fault of each *.yml of a folder: a file that nobody reads is a contract that nobody keeps."""
    return [f"{path}: got the ending .yml; expected .yaml" for path in sorted(folder.glob("*.yml"))]


def load_contracts(folder: Path) -> tuple[Contract, ...]:
    """Read every *.yaml of a folder, by name. Raises ContractRefused with the faults of all files together.

    Two files may not share a contract name. *.yml is refused.
    """
    if not folder.is_dir():
        raise ContractRefused(f"{folder}: no such folder; expected one with contracts in *.yaml")
    faults = other_endings(folder)
    paths_by_name: dict[str, Path] = {}
    contracts = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            contract = load_contract(path)
        except ContractRefused as refused:
            faults.append(str(refused))
            continue
        first_path = paths_by_name.setdefault(contract.name, path)
        if first_path != path:
            faults.append(shared_name(path, contract.name, first_path))
        contracts.append(contract)
    if faults:
        raise ContractRefused("\n".join(faults))
    return tuple(contracts)
