"""The contract's section on repairs: of which classes, how, and up to which caps."""

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tallystick.contract.field_types import (
    ContractPart,
    CronExpression,
    CurrencyCode,
    DagId,
    MinorUnits,
    Name,
    PayloadField,
    PersonName,
    PlainColumnName,
    PlainTableName,
    SomeSeconds,
    refuse_no_cron,
    refuse_no_firing,
)
from tallystick.contract.ledger import LedgerColumns
from tallystick.model.finding_names import BreakClass


class LedgerPost(ContractPart):
    """The rows of the ledger that an event becomes: columns only, no SQL."""

    connection: Name
    """Id of the Airflow connection (type postgres) whose role may SELECT and INSERT in both tables."""
    actions_table: PlainTableName
    """schema.table in the ledger's database, of ours, with action_id uuid PRIMARY KEY and plan_hash text. A row is
    written in the transaction that posts, so that an action posts once."""
    columns: dict[PlainColumnName, PayloadField] = Field(min_length=1)
    """Column to the field of the event's JSON payload that it is copied from. A row that takes another back copies them
    from that row."""
    rows: dict[Name, tuple[dict[PlainColumnName, str], ...]] = Field(min_length=1)
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


class DagTrigger(ContractPart):
    """The breaks that are passed to a DAG of yours, which can repair them."""

    connection: Name
    """Id of the connection (type http) to Airflow's REST API: its address, and login and password of an account that
    may start runs of these DAGs."""
    dags: dict[BreakClass, DagId] = Field(min_length=1)
    """Class to the id of the DAG that is started, once, for each of its breaks. The run's id is the action's; its conf
    is the plan with that break alone (docs/schemas/plan.v1.json), match key and money included."""


class CompensationRules(ContractPart):
    """The repairs that are allowed. Absent: none."""

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
    max_amount_minor: dict[CurrencyCode, MinorUnits] = Field(min_length=1)
    """Cap on the money of one plan per currency; a currency that is not named is not acted on."""
    max_items_per_day: Annotated[int, Field(gt=0, strict=True)] | None = None
    """Cap on the events of all plans that begin on one day, in UTC. Absent: none but each plan's own."""
    max_amount_minor_per_day: dict[CurrencyCode, MinorUnits] = Field(default_factory=dict)
    """Cap on the money of all plans that begin on one day, in UTC, per currency in minor units; a currency that is not
    named has none but each plan's own."""
    acting_minutes: CronExpression | None = None
    """The minutes, in UTC, in which a plan may be acted on: those that this cron expression matches, such as
    "* 6-17 * * 1-5". Absent: all."""
    four_eyes_above_minor: dict[CurrencyCode, MinorUnits] = Field(default_factory=dict)
    """Money of one plan, per currency in minor units, above which it needs two people: nobody who asked for the plan
    may approve it, and one that the reconciliation asked for needs two approvals. A currency that is
    not listed always needs two people."""
    approvers: tuple[PersonName, ...] = ()
    """Who may approve, by the names of Airflow's users and of signers, whatever their case. Absent: whoever Airflow
    lets answer, whose signature counts, and, where one person is enough, whoever acts on the command line."""
    approval_timeout_seconds: SomeSeconds = 86_400
    """How long an approval may stay unanswered. A time-out means no."""
    approval_valid_seconds: SomeSeconds = 86_400
    """How long a yes holds, in a run of the scheduler, from the moment at which the person answered. After that nothing
    more of its plan is written, whoever clears or retries its task: start a new run, which asks again."""

    @field_validator("acting_minutes")
    @classmethod
    def _minutes(cls, minutes: str | None, info: ValidationInfo) -> str | None:
        if minutes is not None:
            refuse_no_cron(minutes, such_as="* 6-17 * * 1-5")
            if info.context:
                refuse_no_firing(minutes)
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
MISSING_EVENTS = (*REPUBLISHABLE, BreakClass.LOST_ACKNOWLEDGED_WRITE)
"""Of a row without its event, whoever repairs it."""
ABOUT_EVENTS = MISSING_EVENTS + REVERSIBLE + POSTABLE
"""Of which the topics are read before anybody repairs them."""
_REPAIRABLE = REPUBLISHABLE + REVERSIBLE + POSTABLE + COUNTERPOSTABLE


def refuse_columns_unfit_to_post(rules: CompensationRules, columns: LedgerColumns) -> None:
    if quoted := next((one for one in columns.model_dump().values() if str(one).startswith('"')), None):
        raise ValueError(f"expected no column in quotes, as {quoted} is: a repair writes and reads plain names only")
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


def _one_of(names: tuple[BreakClass, ...]) -> str:
    return " or ".join(repr(str(name)) for name in names)
