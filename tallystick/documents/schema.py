"""The JSON that other programs may rely on: an alert as it is sent, a run as `tallystick show --json` prints it and on
one line as `runs` and `watch` do, a break inside one and its story as `explain` tells it, a plan as `tallystick
compensation plan --json` prints it and DAGs get it, a key as `tallystick trace --json` tells it, and an asset event in
Airflow about a run. `python -m
tallystick.documents.schema` writes docs/schemas/.

A key that is added does not change a version; one that goes, or means something else, does.

One file, since a reader of the schemas finds every document, and what each key of it means, in one place.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from tallystick.alerting.alert import AlertAction
from tallystick.alerting.alert_json import SCHEMA_VERSION
from tallystick.compensation.plan import RepairKind
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tallystick.contract.reference_page import DescribedSchema
from tallystick.documents.plan import SCHEMA_VERSION as PLAN_VERSION
from tallystick.model.break_history import BreakState, HopState
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict

MoneyByCurrency = dict[str, int]
"""ISO 4217 code to money in its minor units."""

Count = Annotated[int, Field(ge=0)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class AlertDocument(_Document):
    """One alert, as webhooks and files get it."""

    schema_version: Literal[1]
    """Of this document."""
    action: AlertAction
    """What has become of the incident."""
    dedup_key: Annotated[str, Field(pattern=r"^tallystick/[a-z][a-z0-9_]*/[a-z_]+$")]
    """Of the incident: contract and class; the same until it is resolved, and when it comes again."""
    severity: Severity
    """How loudly on-call is told."""
    summary: str
    """One line for a person."""
    details: dict[str, Any]
    """Counts, money in minor units, times, break ids and links; which of them depends on the class."""


class BreakDocument(_Document):
    """One proven disagreement."""

    break_id: UUID
    """The same whenever this cut is read again; `tallystick explain` takes it."""
    break_class: Annotated[BreakClass, Field(alias="class")]
    """What is wrong, and on which side."""
    match_key: str
    """By which event and row pair."""
    transaction_key: str
    """Of the business transaction."""
    leg: str
    """Which expected record of it this is; may be empty."""
    amount_minor: int
    """Money at stake, in minor units of the currency, with the sign of the event or row."""
    currency: str
    """ISO 4217 code; may be empty where neither side has one."""
    copies: Count
    """How often it stands on the side that is wrong."""
    story: str
    """Why it is a break, in sentences."""
    evidence: dict[str, Any]
    """What proves it; which keys depends on the class."""


class DoubtDocument(_Document):
    """A reason why a run could not prove the books."""

    doubt: Doubt
    """Its name."""
    sentence: str
    """What could not be seen, and who holds it."""
    details: dict[str, Any]
    """Figures; which of them depends on the doubt."""


class NoticeDocument(_Document):
    """An observation that changes no verdict."""

    notice: Notice
    """Its name."""
    sentence: str
    """What was seen."""
    count: Count
    """How many."""
    pages: bool
    """Is on-call told?"""
    details: dict[str, Any]
    """Figures; which of them depends on the notice."""


class VerdictDocument(_Document):
    """One judged run."""

    run: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/\d+$")]
    """Contract and cut."""
    contract: str
    """Its name."""
    cut: Count
    """Its number; 0 is the baseline."""
    verdict: Verdict
    """MATCHED, INCONCLUSIVE or BROKEN."""
    sentence: str
    """The verdict for a person."""
    window_start_utc: datetime
    """First moment of the window; a label, not what was read."""
    window_end_utc: datetime
    """First moment after it."""
    money_at_stake_minor: MoneyByCurrency
    """Of this run's breaks, without signs."""
    negative_at_stake_minor: MoneyByCurrency
    """The part of it that amounts below zero make up."""
    doubts: list[DoubtDocument]
    """Why it is not proven; empty where it is."""
    notices: list[NoticeDocument]
    """What was seen besides."""
    legal_oddities: dict[str, Any]
    """Version of the list of what is legal though odd, and how often each was seen: null where the run read nothing."""
    breaks: list[BreakDocument]
    """What is proven to disagree."""
    topic_rows: Count | None
    """Committed events that were read; null where the run read nothing, so that nobody counted."""
    ledger_rows: Count | None
    """Rows that were read."""
    matched_rows: Count
    """Pairs."""
    matched_money_minor: MoneyByCurrency
    """Their money."""
    in_flight_items: Count | None
    """What waits for its partner, and may; null where the run read nothing, so that nobody counted."""
    in_flight_money_minor: MoneyByCurrency | None
    """Its money; null like it."""
    undecidable_items: Count | None
    """What nobody can decide any more; null like it."""
    unreadable_records: Count | None
    """Committed records that are not what the contract describes; null like it."""
    census: list[dict[str, Any]]
    """Per partition, what every offset is."""
    ledger_guarantee: str
    """By what the ledger was sliced, and how strong that is."""
    digest: str
    """Of all that was judged: the same whenever this cut is read again."""
    scheduler_run_id: str
    """The scheduler's name for the run."""
    attempt: Count
    """Which attempt stored it."""
    recorded_at: datetime
    """When."""


class RunDocument(_Document):
    """One judged run on one line, as `tallystick runs --json` lists them and `watch --json` tells them."""

    run: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/\d+$")]
    """Contract and cut; `tallystick show` takes it."""
    contract: str
    """Its name."""
    cut: Count
    """Its number; 0 is the baseline."""
    verdict: Verdict
    """MATCHED, INCONCLUSIVE or BROKEN."""
    window_start_utc: datetime
    """First moment of the window; a label, not what was read."""
    window_end_utc: datetime
    """First moment after it."""
    breaks: Count
    """How many it found."""
    money_at_stake_minor: MoneyByCurrency
    """Of these breaks, without signs."""
    doubts: list[Doubt]
    """Why it is not proven; empty where it is."""
    read_whole_by_cut: Count | None
    """Where a side was held: the later cut that read what this one could not; null until there is one."""
    scheduler_run_id: str
    """The scheduler's name for the run that made the cut."""
    recorded_at: datetime
    """When the verdict was stored."""


class ParagraphDocument(_Document):
    """One part of a story."""

    heading: str
    """What it is about."""
    sentences: list[str]
    """What it says."""


class LifeStepDocument(_Document):
    """A change of an item of a break."""

    cut: Count
    """Whose run wrote it; for what a person did, the newest cut of then."""
    judged_as_of_utc: datetime
    """The moment that this cut was judged by."""
    item_id: str
    """Where the copy stands."""
    state: ItemState
    """What it was from then on."""
    reason: str
    """Why."""
    cleared_by: str
    """What cleared it; else empty."""
    written_off: dict[str, str] | None
    """By whom, why and when a person gave it up; else null."""


class StoryDocument(BreakDocument):
    """One break with its story and its life, as `tallystick explain --json` tells it."""

    run: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/\d+$")]
    """Contract and cut that found it."""
    title: str
    """Its class in words."""
    paragraphs: list[ParagraphDocument]
    """What each side says, who wrote it, what was ruled out, what to check."""
    life: list[LifeStepDocument]
    """What became of its items, oldest first."""


class VerdictEventDocument(_Document):
    """The extra of an asset event in Airflow: one verdict in figures."""

    run: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/\d+$")]
    """Contract and cut; `tallystick show` takes it."""
    contract: str
    """Its name."""
    cut: Count
    """Its number; 0 is the baseline."""
    verdict: Verdict
    """MATCHED, INCONCLUSIVE or BROKEN."""
    window_start_utc: datetime
    """First moment of the window."""
    window_end_utc: datetime
    """First moment after it."""
    breaks_by_class: dict[BreakClass, Count]
    """How many this run found of each; empty where none."""
    money_at_stake_minor: MoneyByCurrency
    """Of these breaks, without signs."""
    negative_at_stake_minor: MoneyByCurrency
    """The part of it that amounts below zero make up."""
    doubts: list[Doubt]
    """Why it is not proven; empty where it is."""
    matched_rows: Count
    """Pairs."""
    matched_money_minor: MoneyByCurrency
    """Their money."""
    in_flight_items: Count | None
    """What waits for its partner, and may; null where the run read nothing, so that nobody counted."""
    digest: str
    """Of all that was judged: the same whenever this cut is read again."""
    scheduler_run_id: str
    """The scheduler's name for the run that made the cut."""
    recorded_at: datetime
    """When the verdict was stored."""


class PlanItemDocument(_Document):
    """One break that is repaired, or handed to a DAG."""

    action_id: UUID
    """The same in every plan that repairs this break; also the id of its DAG's run."""
    break_id: UUID
    """`tallystick explain` takes it."""
    break_class: BreakClass
    """What is wrong, and on which side."""
    kind: RepairKind
    """What is done about it."""
    match_key: str
    """By which event and row pair."""
    transaction_key: str
    """Of the business transaction."""
    leg: str
    """Which expected record of it this is; may be empty."""
    amount_minor: int
    """Money, in minor units of the currency."""
    currency: str
    """ISO 4217 code; may be empty where neither side has one."""
    occurred_at: str
    """When the business says it happened; empty where no ledger row says it."""
    row_id: str
    """Of the ledger row that an event is made from; empty where none is."""
    topic: str
    """Of its leg; may be empty for what is handed to a DAG."""
    reverses: str
    """Item id of the copy that is taken back; else empty."""
    posts: str
    """Item id of the event whose rows are posted; else empty."""
    triggers: str
    """Id of the DAG that is started; else empty."""


class AbortDocument(_Document):
    """One hanging transaction that is ended by an ABORT marker."""

    action_id: UUID
    """The same in every plan that ends this transaction."""
    topic: str
    """Where it hangs."""
    partition: Count
    """On this partition alone."""
    producer_id: int
    """Whose it is."""
    producer_epoch: int
    """Of that producer."""
    kafka_offset_start: Count
    """Of its first record."""
    coordinator_epoch: int
    """Of the coordinator that ordered this producer's last marker there; -1: none has."""
    transactional_id: str
    """Under which a coordinator knows the producer; may be empty."""
    first_seen_utc: str
    """By a run of this contract."""
    age_seconds: Count
    """From then to the run that the plan is drawn from."""
    own_events: Count
    """Its records, which will count as aborted."""
    own_money_minor: MoneyByCurrency
    """Their money."""
    waiting_events: Count
    """What merely stands behind it."""
    waiting_money_minor: MoneyByCurrency
    """Its money."""


class LeftOutDocument(_Document):
    """A break that the plan leaves out."""

    break_id: UUID | None
    """null: a hanging transaction."""
    match_key: str
    """Of the break; or where the transaction begins."""
    reason: str
    """Why."""


class PlanDocument(_Document):
    """The actions that one approval allows; as a DAG's conf, the part of it that is about one break."""

    schema_version: Literal[1]
    """Of this document."""
    plan_id: UUID
    """Of the plan that was approved."""
    plan_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of what that plan does, all of it."""
    sentence: str
    """What it does, for a person."""
    money_minor: MoneyByCurrency
    """What the items are worth."""
    contract: str
    """Its name."""
    contract_fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the contract that it was drawn under."""
    cut_n: Count
    """Of what was found up to this cut."""
    dry_run: bool
    """Proves everything and changes nothing."""
    items: list[PlanItemDocument]
    """Breaks it acts on."""
    left_out: list[LeftOutDocument]
    """What it does nothing about, and why; empty in a DAG's conf."""
    aborts: list[AbortDocument]
    """Hanging transactions it ends; empty in a DAG's conf."""


class StatementDocument(_Document):
    """One thing that is known of a key at one contract."""

    state: HopState
    """What it says."""
    sentence: str
    """The same for a person."""
    run: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*/\d+$")] | None
    """Contract and cut whose run says so; null where none does."""
    scheduler_run_id: str | None
    """The scheduler's name for the run that made the cut."""
    window_start_utc: datetime | None
    """First moment of its window."""
    window_end_utc: datetime | None
    """First moment after it."""
    verdict: Verdict | None
    """Of that run; null where there is none yet."""
    places: list[str]
    """Item ids: topic, partition and offset of an event, or the id of a row; keys masked as the contract asks."""
    break_id: UUID | None
    """`tallystick explain` takes it."""
    break_class: BreakClass | None
    """What is wrong."""
    break_state: BreakState | None
    """What has become of the break."""


class HopDocument(_Document):
    """One contract of a chain."""

    contract: str
    """Its name."""
    direction: Direction
    """Which side is written first."""
    topics: list[str]
    """Of its legs."""
    ledger: str
    """Table, folder or input topics."""
    state: HopState
    """The gravest of its statements."""
    statements: list[StatementDocument]
    """All that is known, with its evidence."""


class ChainDocument(_Document):
    """Contracts that share topics or ledgers, in the order of the event's way."""

    sentence: str
    """Which contract lost the key first, or what else is known."""
    lost_at: str | None
    """The first contract that has a break of it which stands; null: no run has found one."""
    hops: list[HopDocument]
    """Each contract."""


class TraceDocument(_Document):
    """The way of one key's event, as `tallystick trace --json` tells it. The key itself is not in it."""

    schema_version: Literal[1]
    """Of this document."""
    chains: list[ChainDocument]
    """Each group of contracts that share something; one that shares nothing is a chain of its own."""


SCHEMAS: Mapping[str, type[BaseModel]] = {
    f"alert.v{SCHEMA_VERSION}.json": AlertDocument,
    "break.v1.json": BreakDocument,
    "contract.v1.json": Contract,
    f"plan.v{PLAN_VERSION}.json": PlanDocument,
    "run.v1.json": RunDocument,
    "story.v1.json": StoryDocument,
    "trace.v1.json": TraceDocument,
    "verdict.v1.json": VerdictDocument,
    "verdict_event.v1.json": VerdictEventDocument,
}
"""File name, with its version, to what it describes."""


def schema_text(name: str) -> str:
    """One of SCHEMAS as JSON Schema 2020-12."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name}
    return json.dumps(schema | SCHEMAS[name].model_json_schema(schema_generator=DescribedSchema), indent=2) + "\n"


if __name__ == "__main__":
    folder = Path("docs/schemas")
    folder.mkdir(parents=True, exist_ok=True)
    for file_name in SCHEMAS:
        (folder / file_name).write_text(schema_text(file_name))
