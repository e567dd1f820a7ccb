"""One reconciliation, as its owner writes it: a YAML file, validated whole before anything runs.

Decides what a contract may say. Does not open a connection: ids only.
"""

import json
from collections import Counter
from datetime import UTC, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from croniter import croniter
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tallystick.break_class import BreakClass
from tallystick.contract_faults import fault_lines
from tallystick.money_text import is_known_currency
from tallystick.yaml_document import DocumentUnreadable, read_mapping


class ContractRefused(ValueError):
    """The file is no valid contract. The message has one line per fault: file, path, value, expected."""


class Direction(StrEnum):
    """Which side is written first. The first side is captured last, so that the second cannot be ahead of it.

    topic_to_topic: the ledger's part is played by the input topics, which are written first.
    """

    LEDGER_TO_TOPIC = "ledger_to_topic"
    TOPIC_TO_LEDGER = "topic_to_ledger"
    TOPIC_TO_TOPIC = "topic_to_topic"

    @property
    def topic_follows(self) -> bool:
        """Is the topic of the legs written second?"""
        return self is not Direction.TOPIC_TO_LEDGER


class Severity(StrEnum):
    """How loudly on-call is told; the words of PagerDuty's Events API v2."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class PayloadKey(StrEnum):
    """What an event carries to be known by."""

    MATCH_KEY = "match_key"
    TRANSACTION_KEY = "transaction_key"
    ORDERING_KEY = "ordering_key"


PATTERNS = {
    r"^[a-z][a-z0-9_]{0,62}$": "a name in lower case letters, digits and _, beginning with a letter",
    r"^[a-zA-Z0-9._-]{1,249}$": "a Kafka topic name: letters, digits, '.', '_' and '-'",
    r"^[a-z_][a-z0-9_]{0,62}$": "a column name in lower case letters, digits and _",
    r"^[A-Za-z_][A-Za-z0-9_]{0,62}$": "a key of the JSON payload: letters, digits and _",
    r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$": "schema.table, such as ledger.posting",
    r"^[a-zA-Z0-9._-]{1,250}$": "a DAG's id: letters, digits, '.', '_' and '-'",
}
"""Each regular expression with its meaning, for the reference and for whoever breaks it."""

_NAME, _TOPIC, _COLUMN, _FIELD, _TABLE, _DAG = PATTERNS
_GRACE_CAP_SECONDS = 3600


def _is_currency(code: str) -> str:
    if not is_known_currency(code):
        raise ValueError("expected an ISO 4217 code, such as 'EUR'")
    return code


def _is_cron(expression: str) -> bool:
    return len(expression.split()) == 5 and croniter.is_valid(expression)


def _is_written_out(moment: Any) -> Any:
    if isinstance(moment, int | float):
        raise ValueError("expected a time with its zone, such as 2026-01-31T00:00:00Z")
    return moment


_Name = Annotated[str, Field(pattern=_NAME)]
_Topic = Annotated[str, Field(pattern=_TOPIC)]
_Column = Annotated[str, Field(pattern=_COLUMN)]
_Field = Annotated[str, Field(pattern=_FIELD)]
_Table = Annotated[str, Field(pattern=_TABLE)]
_DagId = Annotated[str, Field(pattern=_DAG)]
_Currency = Annotated[
    str, AfterValidator(_is_currency), WithJsonSchema({"type": "string", "format": "an ISO 4217 code"})
]
_MinorUnits = Annotated[int, Field(ge=0, strict=True)]
_Seconds = Annotated[int, Field(ge=0, strict=True)]
_AmountUnit = Literal["minor", "major"]
_Cron = Annotated[str, WithJsonSchema({"type": "string", "format": "a cron expression of five fields"})]
_Moment = Annotated[
    AwareDatetime, BeforeValidator(_is_written_out), AfterValidator(lambda moment: moment.astimezone(UTC))
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class KafkaSide(_Part):
    """Where the topics are."""

    connection: _Name
    """Id of the Airflow connection (type kafka; librdkafka settings in its extra)."""
    stray_topics: tuple[_Topic, ...] = ()
    """Topics of no leg that look-ups search too: an event committed only there is misrouted, not missing."""
    producers: Literal["any", "idempotent", "transactional"] = "any"
    """How the topics' producers must write; what they wrote otherwise is counted in the posture."""


class EventFields(_Part):
    """Which keys of the JSON payload carry what."""

    match_key: _Field = "event_id"
    """Identifies the event; pairs with the ledger's match_key. The compared fields are no part of it."""
    transaction_key: _Field = "payment_id"
    """Identifies the business transaction whose legs belong together."""
    leg: _Field = "leg"
    """Which expected record of the business transaction this is."""
    amount_minor: _Field = "amount_minor"
    """Money, in the unit of event.amount_unit. Compared."""
    currency: _Field = "currency"
    """ISO 4217 code. Compared."""
    amount_unit: _AmountUnit = "minor"
    """minor: a JSON integer. major: a JSON number or text such as "12.50", without exponent; one that is no whole
    number of its currency's minor units (ISO 4217) is unreadable."""
    ordering_key: _Field | None = None
    """Events with the same value here keep their order on their partition; named together with sequence."""
    sequence: _Field | None = None
    """A JSON integer that grows with the offset within one ordering key and partition."""

    @model_validator(mode="after")
    def _ordered_by_both(self) -> Self:
        if (self.ordering_key is None) != (self.sequence is None):
            raise ValueError("expected ordering_key and sequence together, or neither")
        others = (self.match_key, self.transaction_key, self.leg, self.amount_minor, self.currency, self.ordering_key)
        if self.sequence is not None and self.sequence in others:
            raise ValueError(f"expected a key of its own for sequence: {self.sequence!r} is named twice")
        return self

    origin_header: Annotated[str, Field(min_length=1)] | None = None
    """Record header that names the service which wrote the event. Goes with known_origins."""
    known_origins: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Values of origin_header that may write here. An unpaired event of another one, or of none, is foreign."""

    @model_validator(mode="after")
    def _origins_complete(self) -> Self:
        if bool(self.origin_header) != bool(self.known_origins):
            raise ValueError("expected origin_header and known_origins together, or neither")
        return self


class LedgerColumns(_Part):
    """Which columns of the ledger's table carry what; same words as the event's fields."""

    row_id: _Column = "entry_id"
    """The table's own key, shown as evidence."""
    match_key: _Column = "event_id"
    """Pairs with the event's match_key."""
    transaction_key: _Column = "payment_id"
    """Identifies the business transaction."""
    leg: _Column = "leg"
    """Which expected record of the business transaction this is."""
    amount_minor: _Column = "amount_minor"
    """Money, in the unit of ledger.amount_unit. Compared."""
    currency: _Column = "currency"
    """ISO 4217 code. Compared."""
    occurred_at: _Column = "occurred_at"
    """When the business says it happened; copied into a republished event, never used to slice."""
    written_at: _Column | None = None
    """A timestamptz, set once, when the row is written: measures how late partners come. Never used to slice."""
    receipt_partition: _Column | None = None
    """Partition of the broker's acknowledgement that the producer stored in the row. Goes with receipt_offset."""
    receipt_offset: _Column | None = None
    """Offset of that acknowledgement, on the topic of the row's leg; empty or negative: none was stored."""
    reverses: _Column | None = None
    """Row id of the row that this one takes back; empty in all others. topic_to_ledger only."""
    action_id: _Column | None = None
    """Id of the compensation that wrote the row; empty in all others. With it, a row that its consumer posts behind
    ours is told apart from any other duplicate. topic_to_ledger only."""

    @model_validator(mode="after")
    def _receipt_complete(self) -> Self:
        if (self.receipt_partition is None) != (self.receipt_offset is None):
            raise ValueError("expected receipt_partition and receipt_offset together, or neither")
        return self


class InputFields(_Part):
    """Which keys of an input event carry what, where they differ from the output's (`event`)."""

    match_key: _Field | None = None
    """Pairs with the output's match_key."""
    transaction_key: _Field | None = None
    """Identifies the business transaction."""
    leg: _Field | None = None
    """Which leg the input becomes; asked only where the contract has several."""
    amount_minor: _Field | None = None
    """Money, in the unit of ledger.amount_unit. Compared."""
    currency: _Field | None = None
    """ISO 4217 code. Compared."""


class LedgerSide(_Part):
    """The source of truth."""

    kind: Literal["postgres", "jdbc", "parquet", "topic"] = "postgres"
    """postgres: a base table in PostgreSQL, read by its transactions' horizon. jdbc: a table of any database, read by a
    column that grows, with an overlap. parquet: a folder of files, each read once, by path and modification. topic:
    with direction topic_to_topic, the topics that a service consumes and transforms."""
    connection: _Name
    """Id of the Airflow connection: type postgres; jdbc with an SQLAlchemy URL in its extra; parquet with a folder's
    address there; kafka for topic. Reading is enough."""
    table: Annotated[_Table, Field(validate_default=True)] = ""
    """schema.table. Not for kind topic. In SQLite main.table, of parquet the folder schema/table; kind postgres refuses
    a view, which has no transaction ids, when the cut is made."""
    order_by: _Column | None = None
    """jdbc only: the column that grows, an integer or a timestamp that each row gets once; in UTC where it has no
    zone."""
    overlap: Annotated[int, Field(ge=0, strict=True)] | None = None
    """jdbc only: how far behind the newest value a row may still come into sight; values of an integer, seconds of a
    timestamp, which also cover how far clocks differ. 0: rows are committed in the column's order."""
    quiet_seconds: _Seconds | None = None
    """parquet only: for how long a file must not have changed before a cut takes it."""
    topics: Annotated[tuple[_Topic, ...], Field(validate_default=True)] = ()
    """The input topics. For kind topic; each event there becomes one event on a topic of the legs."""
    event: InputFields = InputFields()
    """topic: keys of the input's JSON payload, where they differ from those of the output."""
    index_windows: Annotated[int, Field(gt=0, strict=True)] = 168
    """topic: how many windows back the index of keys is read; what is older is found only while the log retains it."""
    where: Annotated[str, Field(min_length=1)] | None = None
    """SQL condition that picks the posting that pairs, e.g. side = 'credit'."""
    slice_by: Literal["xmin", "written_xid"] = "xmin"
    """xmin: append-only tables, guarded by a count of older rows. written_xid: the owner's column; rows may change."""
    columns: LedgerColumns = LedgerColumns()
    """Column names, where they differ from the defaults."""
    amount_unit: _AmountUnit = "minor"
    """minor: whole minor units. major: a numeric or integer column, never floating point; an amount that is no whole
    number of its currency's minor units (ISO 4217) equals nothing."""
    consumer_isolation: Literal["read_committed", "read_uncommitted"] | None = None
    """topic_to_ledger only: the isolation.level of the consumer that writes the ledger, where its owner knows it."""

    @model_validator(mode="after")
    def _receipts_fit(self) -> Self:
        if self.columns.receipt_offset and self.by_xmin:
            raise ValueError(
                "expected slice_by: written_xid with receipt columns: storing a receipt updates the row, "
                "and an updated row has a new xmin"
            )
        return self

    @field_validator("table", mode="wrap")
    @classmethod
    def _table_unless_topics(cls, table: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
        if table or info.data.get("kind") != "topic":
            return str(check(_stated(table)))
        return ""

    @field_validator("topics", mode="wrap")
    @classmethod
    def _topics_of_topic(
        cls, topics: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> tuple[str, ...]:
        needed = info.data.get("kind") == "topic"
        checked: tuple[str, ...] = check(_stated(topics) if needed else topics)
        if len(set(checked)) < len(checked):
            raise ValueError("expected each input topic once")
        return checked

    @model_validator(mode="after")
    def _fields_of_its_kind(self) -> Self:
        for name in _FIELDS_OF_TABLES if self.kind == "topic" else _FIELDS_OF_INPUTS:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"expected no {name} with kind {self.kind}")
        return self

    @model_validator(mode="after")
    def _fields_of_one_kind(self) -> Self:
        for field, kind, why in _OF_ONE_KIND:
            stated = getattr(self, field) is not None
            if stated and self.kind != kind:
                raise ValueError(f"expected no {field} with kind {self.kind}: only {kind} is read by it")
            if not stated and self.kind == kind:
                raise ValueError(f"expected {field} with kind {kind}: {why}")
        if self.kind == "parquet" and (self.where or self.columns.receipt_offset):
            raise ValueError(
                "expected no where and no receipt columns with kind parquet: its files hold only the postings that "
                "pair, and are not changed"
            )
        if self.kind != "postgres" and (self.columns.reverses or self.columns.action_id):
            raise ValueError(
                f"expected no columns reverses and action_id with kind {self.kind}: only postgres has them"
            )
        if self.kind in ("jdbc", "parquet") and self.slice_by != "xmin":
            raise ValueError(f"expected no slice_by with kind {self.kind}: only postgres slices by transaction id")
        if self.kind in ("jdbc", "parquet") and self.amount_unit != "minor":
            raise ValueError(
                f"expected amount_unit minor with kind {self.kind}: major units are read from postgres only"
            )
        return self

    @property
    def place(self) -> str:
        """What is read there, in a word."""
        return self.table or ", ".join(self.topics)

    @property
    def by_xmin(self) -> bool:
        """Is a row's position 32 bits of the id of the transaction that wrote it last?"""
        return self.kind == "postgres" and self.slice_by == "xmin"

    @property
    def waits_by_rule(self) -> bool:
        """Is what waits behind the horizon held back by the contract's own rule, and by nobody's transaction?"""
        return self.kind in ("jdbc", "parquet")

    @property
    def overlap_text(self) -> str:
        """In words. Unit: values of an integer, seconds of a timestamp."""
        return f"{self.overlap} on {self.order_by}"

    @property
    def guarantee(self) -> str:
        """By what it is sliced and how strong that is, in short; the report says it in full."""
        return {
            "postgres": f"by horizon ({self.slice_by}): strong",
            "jdbc": f"by the column {self.order_by} with an overlap of {self.overlap}: weaker than a horizon",
            "parquet": f"by manifest of files left alone for {self.quiet_seconds} s: weaker than a horizon",
            "topic": f"by LSO, with an index of the keys of {self.index_windows} windows: strong within them",
        }[self.kind]

    @property
    def positions(self) -> str:
        """What the ledger's positions are, in words."""
        return {
            "postgres": "transaction ids",
            "jdbc": f"values of {self.order_by}",
            "parquet": "milliseconds of modification time",
            "topic": "offsets",
        }[self.kind]


_OF_ONE_KIND = (
    ("order_by", "jdbc", "the column that grows"),
    ("overlap", "jdbc", "how far behind the newest value a row may come into sight"),
    ("quiet_seconds", "parquet", "how long a file that is still being written must have been left alone"),
)
"""Fields that one kind of ledger needs and no other has, with what they say."""


def _stated(value: Any) -> Any:
    if not value:
        raise PydanticCustomError("missing", "Field required")
    return value


_FIELDS_OF_TABLES = ("table", "where", "slice_by", "columns", "consumer_isolation")
_FIELDS_OF_INPUTS = ("topics", "event", "index_windows")


class AlertSink(_Part):
    """Where an alert is delivered. Addresses and secrets stand in the connection only."""

    kind: Literal["webhook", "file", "pagerduty", "alertmanager", "slack", "email", "apprise"]
    """webhook: HTTP POST of JSON, signed where the connection has a secret. file: one JSON line appended. apprise:
    whatever that library can reach."""
    connection: _Name | None = None
    """Every kind but file: id of the Airflow connection that holds the address."""
    path: str | None = None
    """file only: the file, relative to the artifacts folder."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind != "file" and not (self.connection and self.path is None):
            raise ValueError(f"expected a connection and no path for {_article(self.kind)} sink")
        if self.kind == "file" and not (self.path and self.connection is None):
            raise ValueError("expected a path and no connection for a file sink")
        return self

    @field_validator("path")
    @classmethod
    def _inside_artifacts(cls, path: str | None) -> str | None:
        if path is not None and (PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts):
            raise ValueError("expected a path inside the artifacts folder, such as 'alerts/billing.jsonl'")
        return path


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind}"


class AlertRules(_Part):
    """Who hears of a break, and how loudly."""

    sinks: tuple[AlertSink, ...] = Field(default=(), max_length=8)
    """Every sink gets every alert."""
    critical_at_minor: dict[_Currency, _MinorUnits] = Field(default_factory=dict)
    """Money at stake, per currency in minor units, from which a break is critical; below it is an error."""
    severity_by_class: dict[BreakClass, Severity] = Field(default_factory=dict)
    """Overrides for single classes."""
    escalate_after_seconds: Annotated[int, Field(gt=0, strict=True)] | None = None
    """How long the oldest break of a class may stand until its alert gets the next severity and pages once more, unless
    it is acknowledged. Absent: it does not."""
    backfilled: Literal["lower", "same"] = "lower"
    """lower: what is found in a window that was caught up late pages one severity lower, though not below warning."""
    match_keys: Literal["hidden", "shown"] = "hidden"
    """shown: alerts name up to five events by match key too, beside the break's id. Only where keys are nobody's
    personal data."""


class LedgerPost(_Part):
    """How an event becomes rows of the ledger: columns only, no SQL."""

    connection: _Name
    """Id of the Airflow connection (type postgres) whose role may INSERT into ledger.table and into actions_table."""
    actions_table: _Table
    """schema.table in the ledger's database, of ours, with action_id uuid PRIMARY KEY and plan_hash text. A row is
    written in the transaction that posts, so that an action posts once."""
    columns: dict[_Column, _Field] = Field(min_length=1)
    """Column to the key of the event's JSON payload that it is copied from. A row that takes another back copies them
    from that row."""
    rows: dict[_Name, tuple[dict[_Column, str], ...]] = Field(min_length=1)
    """Leg to the rows that an event of it makes: for each, columns with their constant text, such as side: credit. As
    many take a row back. Of a leg that is not named nothing is posted."""

    @field_validator("rows")
    @classmethod
    def _rows_add_columns(
        cls, rows: dict[str, tuple[dict[str, str], ...]], info: ValidationInfo
    ) -> dict[str, tuple[dict[str, str], ...]]:
        for leg, constants in rows.items():
            if not constants:
                raise ValueError(f"expected at least one row for {leg}; {{}} is one without constants")
            twice = {column for row in constants for column in row} & set(info.data.get("columns", {}))
            if twice:
                raise ValueError(f"expected each column once: {sorted(twice)[0]!r} is copied from the event too")
        return rows


class DagTrigger(_Part):
    """Which breaks are handed to a DAG of yours, that knows how to repair them."""

    connection: _Name
    """Id of the connection (type http) to Airflow's REST API: its address, and login and password of an account that
    may start runs of these DAGs."""
    dags: dict[BreakClass, _DagId] = Field(min_length=1)
    """Class to the id of the DAG that is started, once, for each of its breaks. The run's id is the action's; its conf
    is the plan with that break alone (docs/schemas/plan.v1.json), match key and money included."""


class CompensationRules(_Part):
    """What may be repaired. Absent: nothing."""

    classes: tuple[BreakClass, ...] = ()
    """Only these classes are repaired; at least one, or trigger, or abort_hanging_transactions. What is missing in the
    topic is published again from the ledger; a copy that the topic has too many is taken back by an event of ours; what
    is missing in the ledger is posted from the topic; a row that the ledger has twice is taken back by rows of ours."""
    reversal: Literal["negated", "header", "column"] | None = None
    """Goes with classes of copies too many: how an event says that it takes one back, beside the header
    tallystick-reverses, which names topic, partition and offset; or a row, beside ledger.columns.reverses. negated: its
    amount has the other sign. header: it is that event, byte by byte; consumers must know the header. column: it has
    that row's amount; whoever sums must know the column."""
    post: LedgerPost | None = None
    """Goes with missing_in_ledger, duplicate_in_ledger and duplicate_in_ledger_compensated: how rows are written."""
    trigger: DagTrigger | None = None
    """Which other classes are handed to a DAG."""
    abort_hanging_transactions: Annotated[bool, Field(strict=True)] = False
    """true: a transaction that nobody will ever end may be ended by an ABORT marker, once every time-out that the
    brokers allow is over, on topics of the legs. Always with the approval of somebody else than who asked."""
    max_items: Annotated[int, Field(gt=0, le=100_000, strict=True)] = 100
    """Cap on the events of one plan; what is over it is left out and named."""
    max_amount_minor: dict[_Currency, _MinorUnits] = Field(min_length=1)
    """Cap on the money of one plan per currency; a currency that is not named is not acted on."""
    max_items_per_day: Annotated[int, Field(gt=0, strict=True)] | None = None
    """Cap on the events of all plans that begin on one day, in UTC. Absent: none but each plan's own."""
    max_amount_minor_per_day: dict[_Currency, _MinorUnits] = Field(default_factory=dict)
    """Cap on the money of all plans that begin on one day, in UTC, per currency in minor units; a currency that is not
    named has none but each plan's own."""
    acting_minutes: _Cron | None = None
    """The minutes, in UTC, in which a plan may be acted on: those that this cron expression matches, such as
    "* 6-17 * * 1-5". Absent: all."""
    four_eyes_above_minor: dict[_Currency, _MinorUnits] = Field(default_factory=dict)
    """Money of one plan, per currency in minor units, above which nobody who asked for the plan may approve it; in a
    currency that is not named, whatever it is."""
    approval_timeout_seconds: Annotated[int, Field(gt=0, strict=True)] = 86_400
    """How long an approval may stay unanswered. A time-out means no."""

    @field_validator("acting_minutes")
    @classmethod
    def _minutes(cls, minutes: str | None) -> str | None:
        if minutes is not None and not _is_cron(minutes):
            raise ValueError("expected a cron expression of five fields, in UTC, such as '* 6-17 * * 1-5'")
        return minutes

    @field_validator("classes")
    @classmethod
    def _repairable(cls, classes: tuple[BreakClass, ...]) -> tuple[BreakClass, ...]:
        for break_class in classes:
            if break_class not in _REPAIRABLE:
                expected = _one_of(_REPAIRABLE)
                raise ValueError(f"{break_class} is nothing that a compensation repairs: expected {expected}")
        return classes

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.classes and not self.trigger and not self.abort_hanging_transactions:
            raise ValueError("expected at least one of classes, or trigger, or abort_hanging_transactions")
        return self

    @model_validator(mode="after")
    def _one_repair_each(self) -> Self:
        for break_class in self.classes:
            if self.dag_of(break_class):
                raise ValueError(f"expected {break_class} in classes or in trigger.dags: a break is repaired once")
        return self

    @property
    def acted_on(self) -> tuple[BreakClass, ...]:
        """Classes that a plan does something about."""
        return (*self.classes, *(self.trigger.dags if self.trigger else ()))

    def dag_of(self, break_class: BreakClass) -> str | None:
        """Id of the DAG that breaks of this class are handed to."""
        return self.trigger.dags.get(break_class) if self.trigger else None

    @model_validator(mode="after")
    def _says_how(self) -> Self:
        if any(one in REVERSIBLE + COUNTERPOSTABLE for one in self.classes) != (self.reversal is not None):
            raise ValueError("expected reversal with classes of copies too many, and only with them")
        if any(one in POSTABLE + COUNTERPOSTABLE for one in self.classes) != (self.post is not None):
            raise ValueError("expected post with missing_in_ledger and classes of rows too many, and only with them")
        of_rows = any(one in COUNTERPOSTABLE for one in self.classes)
        if self.reversal == ("header" if of_rows else "column"):
            raise ValueError(
                f"expected no reversal {self.reversal} with these classes: a row has no header, and an event no column"
            )
        return self


REPUBLISHABLE = (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY)
POSTABLE = (BreakClass.MISSING_IN_LEDGER,)
REVERSIBLE = (
    BreakClass.DUPLICATE_IN_TOPIC_NO_IDEMPOTENCE,
    BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION,
    BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE,
    BreakClass.DUPLICATE_IN_TOPIC_REPROCESSED,
    BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED,
    BreakClass.DUPLICATE_IN_TOPIC_CAUSE_UNKNOWN,
    BreakClass.COMPENSATED_TWICE,
)
COUNTERPOSTABLE = (BreakClass.DUPLICATE_IN_LEDGER, BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED)
_REPAIRABLE = REPUBLISHABLE + REVERSIBLE + POSTABLE + COUNTERPOSTABLE


class Contract(_Part):
    """One reconciliation."""

    contract: _Name
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
    schedule: _Cron
    """Cron expression in UTC; each run covers the interval that ends at it."""
    start_date: _Moment
    """First moment that may be scheduled."""
    kafka: KafkaSide
    """Where the topics are."""
    legs: dict[_Name, _Topic] = Field(min_length=1)
    """Leg name to topic. A business transaction is whole when each leg was committed once."""
    event: EventFields = EventFields()
    """Keys of the JSON payload, where they differ from the defaults."""
    ledger: LedgerSide
    """Where the ledger is."""
    currency_case: Literal["exact", "ignored"] = "exact"
    """ignored: eur is EUR; pairs that write it differently are counted and told, and are no break."""
    timestamp_tolerance_seconds: _Seconds = 3600
    """How far a record's timestamp may lie outside the window it was written in before it is counted and told."""
    partner_grace_seconds: _Seconds = 60
    """How long the second side may lag behind the first before its absence is a break."""
    partner_grace_cap_seconds: _Seconds | None = None
    """How long the grace may become by what was measured: p99.9 of the lag in clean runs, where
    ledger.columns.written_at is named. Absent: an hour, or partner_grace_seconds where that is longer."""
    settle_timeout_seconds: _Seconds = 600
    """How long a run waits for both horizons before it goes on and says what it could not see."""
    verdict_within_seconds: _Seconds = 3600
    """How long a verdict may take once the window has ended and settle_timeout is over; without one then, on-call is
    told."""
    empty: Literal["refused", "allowed"] = "refused"
    """May a window without any event or row be MATCHED? Refused: it is INCONCLUSIVE."""
    shown_keys: tuple[PayloadKey, ...] = (PayloadKey.MATCH_KEY, PayloadKey.TRANSACTION_KEY)
    """Which keys of an event people may see: on pages, in reports, plans, explanations and logs the others are masked.
    Place, leg, money and times are always shown; of the payload's other fields nothing is kept. For cuts that are made
    under it. A plan as JSON, and the breaks as Parquet, are for programs and have all."""
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
    def _cron(cls, schedule: str) -> str:
        if not _is_cron(schedule):
            raise ValueError("expected a cron expression of five fields, in UTC, such as '0 * * * *'")
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

    @field_validator("ledger")
    @classmethod
    def _kind_fits(cls, ledger: LedgerSide, info: ValidationInfo) -> LedgerSide:
        direction = info.data.get("direction")
        if direction is not None and (ledger.kind == "topic") != (direction is Direction.TOPIC_TO_TOPIC):
            raise ValueError(
                f"got kind {ledger.kind} with direction {direction}; expected kind topic with direction "
                "topic_to_topic, and with no other"
            )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _inputs_are_no_outputs(cls, ledger: LedgerSide, info: ValidationInfo) -> LedgerSide:
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
    def _receipts_are_the_relays(cls, ledger: LedgerSide, info: ValidationInfo) -> LedgerSide:
        if ledger.columns.receipt_offset and info.data.get("direction") is Direction.TOPIC_TO_LEDGER:
            raise ValueError("expected no receipt columns with direction topic_to_ledger: its rows are the consumer's")
        return ledger

    @field_validator("ledger")
    @classmethod
    def _takes_back_behind_the_topic(cls, ledger: LedgerSide, info: ValidationInfo) -> LedgerSide:
        named = ledger.columns.reverses or ledger.columns.action_id
        if named and info.data.get("direction") is not Direction.TOPIC_TO_LEDGER:
            raise ValueError(
                "expected columns reverses and action_id with direction topic_to_ledger only: what an outbox holds is "
                "published"
            )
        return ledger

    @field_validator("ledger")
    @classmethod
    def _has_a_consumer(cls, ledger: LedgerSide, info: ValidationInfo) -> LedgerSide:
        if ledger.consumer_isolation is not None and info.data.get("direction") is Direction.LEDGER_TO_TOPIC:
            raise ValueError(
                "expected no consumer_isolation with direction ledger_to_topic: no consumer writes the ledger"
            )
        return ledger

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
        if posts and ledger is not None and ledger.amount_unit == "major":
            raise ValueError("expected none with ledger.amount_unit major: amounts are posted as the event has them")
        if ledger is not None:
            _refuse_columns_unfit_to_post(rules, ledger.columns)
        event = info.data.get("event", EventFields())
        if event.amount_unit == "major" or info.data.get("currency_case") == "ignored":
            raise ValueError(
                "expected none with event.amount_unit major or currency_case ignored: a republished event is written "
                "in minor units, with the currency as the scan compared it"
            )
        if event.sequence is not None:
            raise ValueError("expected none with event.sequence: a republished event would stand out of order")
        return rules

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
        stated = self.ledger.event.model_dump(exclude_none=True)
        plain = EventFields(
            **{name: getattr(self.event, name) for name in InputFields.model_fields},
            amount_unit=self.ledger.amount_unit,
        )
        fields = plain.model_copy(update=stated)
        return fields if len(self.legs) > 1 else fields.model_copy(update={"leg": fields.match_key})

    def event_on(self, topic: str) -> EventFields:
        """Keys of an event of this topic, be it an input or an output."""
        return self.input_event if topic in self.ledger.topics else self.event

    @property
    def rows_keep_sign(self) -> bool:
        """Does a row that takes one back have that one's amount, and not the same with the other sign?"""
        return self.compensation is not None and self.compensation.reversal == "column"

    @property
    def partner_grace(self) -> timedelta:
        """The least there is; `tallystick.lag` says which is in force."""
        return timedelta(seconds=self.partner_grace_seconds)

    @property
    def grace_cap_seconds(self) -> int:
        if self.partner_grace_cap_seconds is not None:
            return self.partner_grace_cap_seconds
        return max(_GRACE_CAP_SECONDS, self.partner_grace_seconds)

    @property
    def longest_grace(self) -> timedelta:
        """What the grace may become, where the contract lets it be measured."""
        seconds = self.grace_cap_seconds if self.ledger.columns.written_at else self.partner_grace_seconds
        return timedelta(seconds=seconds)

    @property
    def settle_timeout(self) -> timedelta:
        return timedelta(seconds=self.settle_timeout_seconds)

    @property
    def verdict_timeout(self) -> timedelta:
        """From a window's end to the moment its verdict is overdue."""
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


def _refuse_columns_unfit_to_post(rules: CompensationRules, columns: LedgerColumns) -> None:
    takes_back = any(one in COUNTERPOSTABLE for one in rules.classes)
    if takes_back and columns.reverses is None:
        raise ValueError("expected ledger.columns.reverses with classes of rows too many: it names the row taken back")
    if rules.post is None:
        return
    if takes_back and columns.amount_minor not in rules.post.columns:
        raise ValueError(
            f"expected {columns.amount_minor} in post.columns: a row that takes another back has its amount"
        )
    constants = {column for rows in rules.post.rows.values() for row in rows for column in row}
    ours = {columns.row_id, columns.reverses, columns.action_id} & (constants | set(rules.post.columns))
    if ours:
        raise ValueError(f"expected no {min(filter(None, ours))} in post: its value is the ledger's, or ours")


def load_contract(path: Path) -> Contract:
    """Read and validate one contract file. Raises ContractRefused with every fault found."""
    try:
        return Contract.model_validate(read_mapping(path))
    except DocumentUnreadable as error:
        raise ContractRefused(str(error)) from None
    except ValidationError as error:
        faults = fault_lines(path, error, model=Contract, patterns=PATTERNS)
        raise ContractRefused("\n".join(faults)) from None


def load_contracts(folder: Path) -> tuple[Contract, ...]:
    """Read every *.yaml of a folder, by name. Raises ContractRefused with the faults of all files together.

    Two files may not share a contract name. *.yml is refused: a file that nobody reads is a contract that nobody keeps.
    """
    if not folder.is_dir():
        raise ContractRefused(f"{folder}: no such folder; expected one with contracts in *.yaml")
    faults = [f"{path}: got the ending .yml; expected .yaml" for path in sorted(folder.glob("*.yml"))]
    paths_by_name: dict[str, Path] = {}
    contracts = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            contract = load_contract(path)
        except ContractRefused as refused:
            faults.append(str(refused))
            continue
        first_path = paths_by_name.setdefault(contract.contract, path)
        if first_path != path:
            faults.append(
                f"{path}: contract: got {contract.contract!r}; expected a name of its own, {first_path} has it too"
            )
        contracts.append(contract)
    if faults:
        raise ContractRefused("\n".join(faults))
    return tuple(contracts)


def _one_of(names: tuple[BreakClass, ...]) -> str:
    return " or ".join(repr(str(name)) for name in names)
