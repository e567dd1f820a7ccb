"""One reconciliation, as its owner writes it: a YAML file, validated whole before anything runs.

Decides what a contract may say. Does not open a connection: ids only.
"""

import re
from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tallystick.break_class import BreakClass


class ContractRefused(ValueError):
    """The file is no valid contract. The message has one line per fault: file, path, value, expected."""


class Direction(StrEnum):
    """Which side is written first. The first side is captured last, so that the second cannot be ahead of it."""

    LEDGER_TO_TOPIC = "ledger_to_topic"
    TOPIC_TO_LEDGER = "topic_to_ledger"


class Severity(StrEnum):
    """How loudly on-call is told; the words of PagerDuty's Events API v2."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$", description="lower case letters, digits and _")]
_Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="a Kafka topic name")]
_Column = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$", description="an unquoted column name")]
_Field = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$", description="a key of the JSON payload")]
_Table = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$", description="schema.table; no view")]
_Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="an ISO 4217 code")]
_MinorUnits = Annotated[int, Field(ge=0, strict=True)]
_Seconds = Annotated[int, Field(ge=0, strict=True)]
_CRON = re.compile(r"^(\S+\s+){4}\S+$")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class KafkaSide(_Part):
    """Where the topics are."""

    connection: _Name
    """Id of the Airflow connection (type kafka; librdkafka settings in its extra)."""


class EventFields(_Part):
    """Which keys of the JSON payload carry what."""

    match_key: _Field = "event_id"
    """Identifies the event; pairs with the ledger's match_key. The compared fields are no part of it."""
    transaction_key: _Field = "payment_id"
    """Identifies the business transaction whose legs belong together."""
    leg: _Field = "leg"
    """Which expected record of the business transaction this is."""
    amount_minor: _Field = "amount_minor"
    """Money in integer minor units. Compared."""
    currency: _Field = "currency"
    """ISO 4217 code. Compared."""


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
    """Money in integer minor units. Compared."""
    currency: _Column = "currency"
    """ISO 4217 code. Compared."""
    occurred_at: _Column = "occurred_at"
    """When the business says it happened; copied into a republished event, never used to slice."""


class LedgerSide(_Part):
    """The source of truth: a base table in PostgreSQL."""

    connection: _Name
    """Id of the Airflow connection (type postgres; a read-only role is enough)."""
    table: _Table
    """schema.table. A view has no transaction ids and is refused when the cut is made."""
    where: str | None = None
    """SQL condition that picks the posting that pairs, e.g. side = 'credit'."""
    slice_by: Literal["xmin", "written_xid"] = "xmin"
    """xmin: append-only tables, guarded by a count of older rows. written_xid: a column the owner added; rows may be updated."""
    columns: LedgerColumns = LedgerColumns()
    """Column names, where they differ from the defaults."""


class AlertSink(_Part):
    """Where an alert is delivered."""

    kind: Literal["webhook", "file"]
    """webhook: HTTP POST of JSON. file: one JSON line appended."""
    connection: _Name | None = None
    """webhook only: id of the Airflow connection (type http) that holds the address."""
    path: str | None = None
    """file only: the file, relative to the artifacts folder."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "webhook" and not (self.connection and self.path is None):
            raise ValueError("a webhook sink has a connection and no path")
        if self.kind == "file" and not (self.path and self.connection is None):
            raise ValueError("a file sink has a path and no connection")
        return self


class AlertRules(_Part):
    """Who hears of a break, and how loudly."""

    sinks: tuple[AlertSink, ...] = Field(default=(), max_length=8)
    """Every sink gets every alert."""
    critical_at_minor: dict[_Currency, _MinorUnits] = Field(default_factory=dict)
    """Money at stake, per currency in minor units, from which a break is critical; below it is an error."""
    severity_by_class: dict[BreakClass, Severity] = Field(default_factory=dict)
    """Overrides for single classes."""


class CompensationRules(_Part):
    """What may be repaired. Absent: nothing."""

    classes: tuple[BreakClass, ...] = Field(min_length=1)
    """Only these classes are planned; today those that republishing repairs."""
    max_items: Annotated[int, Field(gt=0, le=100_000, strict=True)] = 100
    """Cap on the events of one plan; what is over it is left out and named."""
    max_amount_minor: dict[_Currency, _MinorUnits] = Field(min_length=1)
    """Cap on the money of one plan per currency; a currency that is not named is not acted on."""
    approval_timeout_seconds: Annotated[int, Field(gt=0, strict=True)] = 86_400
    """How long an approval may stay unanswered. A time-out means no."""

    @field_validator("classes")
    @classmethod
    def _repairable(cls, classes: tuple[BreakClass, ...]) -> tuple[BreakClass, ...]:
        for break_class in classes:
            if break_class not in REPUBLISHABLE:
                raise ValueError(f"{break_class} is not repaired by republishing; expected {_one_of(REPUBLISHABLE)}")
        return classes


REPUBLISHABLE = (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY)


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
    """topic_to_ledger: a consumer posts events into the ledger. ledger_to_topic: an outbox publishes the ledger's rows."""
    schedule: str
    """Cron expression in UTC; each run covers the interval that ends at it."""
    start_date: AwareDatetime
    """First moment that may be scheduled."""
    kafka: KafkaSide
    """Where the topics are."""
    legs: dict[_Name, _Topic] = Field(min_length=1)
    """Leg name to topic. A business transaction is whole when each leg was committed once."""
    event: EventFields = EventFields()
    """Keys of the JSON payload, where they differ from the defaults."""
    ledger: LedgerSide
    """Where the ledger is."""
    partner_grace_seconds: _Seconds = 60
    """How long the second side may lag behind the first before its absence is a break."""
    settle_timeout_seconds: _Seconds = 600
    """How long a run waits for both horizons before it goes on and says what it could not see."""
    empty: Literal["refused", "allowed"] = "refused"
    """May a window without any event or row be MATCHED? Refused: it is INCONCLUSIVE."""
    alert: AlertRules = AlertRules()
    """Who hears of a break."""
    compensation: CompensationRules | None = None
    """What may be repaired."""

    @field_validator("direction", mode="before")
    @classmethod
    def _built(cls, direction: Any) -> Any:
        if direction == "topic_to_topic":
            raise ValueError("topic_to_topic is not built yet; expected 'ledger_to_topic' or 'topic_to_ledger'")
        return direction

    @field_validator("schedule")
    @classmethod
    def _cron(cls, schedule: str) -> str:
        if not _CRON.match(schedule):
            raise ValueError("expected a cron expression of five fields, in UTC, such as '0 * * * *'")
        return schedule

    @field_validator("legs")
    @classmethod
    def _one_topic_each(cls, legs: dict[str, str]) -> dict[str, str]:
        shared = [topic for topic, count in Counter(legs.values()).items() if count > 1]
        if shared:
            raise ValueError(f"each leg has a topic of its own; {shared[0]!r} is named twice")
        return legs

    @model_validator(mode="after")
    def _compensation_fits(self) -> Self:
        if self.compensation and self.direction is not Direction.LEDGER_TO_TOPIC:
            raise ValueError("compensation republishes from the ledger, so it needs direction ledger_to_topic")
        return self

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.legs.values()))

    @property
    def partner_grace(self) -> timedelta:
        return timedelta(seconds=self.partner_grace_seconds)

    @property
    def settle_timeout(self) -> timedelta:
        return timedelta(seconds=self.settle_timeout_seconds)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the contract's meaning: the validated model as JSON, so comments and key order do not count."""
        return sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def first_run_utc(self) -> datetime:
        return self.start_date


def load_contract(path: Path) -> Contract:
    """Read and validate one contract file. Raises ContractRefused with every fault found."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ContractRefused(f"{path}: no such file; expected a contract in YAML") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ContractRefused(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(document, dict):
        raise ContractRefused(f"{path}: got {type(document).__name__}; expected a mapping that begins with 'contract:'")
    try:
        return Contract.model_validate(document)
    except ValidationError as error:
        faults = "\n".join(_fault_line(path, fault) for fault in error.errors())
        raise ContractRefused(faults) from None


def load_contracts(folder: Path) -> tuple[Contract, ...]:
    """Read every *.yaml of a folder, by name. Raises ContractRefused, also when two files share a contract name."""
    contracts: dict[str, Path] = {}
    loaded = []
    for path in sorted(folder.glob("*.yaml")):
        contract = load_contract(path)
        if contract.contract in contracts:
            raise ContractRefused(
                f"{path}: contract: got {contract.contract!r}; expected a name of its own, "
                f"{contracts[contract.contract]} has it too"
            )
        contracts[contract.contract] = path
        loaded.append(contract)
    return tuple(loaded)


def _fault_line(path: Path, fault: Any) -> str:
    where = ".".join(str(part) for part in fault["loc"] if part != "[key]") or "(whole file)"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        return f"{path}: {where}: unknown key; expected one of the keys in the contract reference"
    if fault["type"] == "missing":
        return f"{path}: {where}: missing; expected a value"
    return f"{path}: {where}: got {fault['input']!r}; {message[0].lower()}{message[1:]}"


def _one_of(names: tuple[BreakClass, ...]) -> str:
    return " or ".join(repr(str(name)) for name in names)
