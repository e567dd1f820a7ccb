"""Before a DAG is handed a break, the topics have to prove it as they do before a repair of our own.

One file, since each case asks the same stand-in of log and store.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.plan import OffsetsUnread, PlanItem, RepairKind
from tallystick.contract.compensation import ABOUT_EVENTS, MISSING_EVENTS, POSTABLE, REVERSIBLE
from tallystick.contract.contract import Contract
from tallystick.executor import prove_handed_over, prove_repairs
from tallystick.kafka_log.committed_records import CommittedRecord, SettledTopics
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.finding_names import BreakClass
from tallystick.model.offsets import TopicPartition
from tests.planned_items import ITEM
from tests.unit.builders import contract_of

PLANNED_AT, READ_UP_TO, END = 4, 4, 9
"""The plan's cut, where its slice of each partition ends, and where all that runs have read does."""
MISSING = replace(ITEM, kind=RepairKind.TRIGGER, triggers="by_hand")
UNPOSTED = replace(MISSING, break_class=BreakClass.MISSING_IN_LEDGER)
SURPLUS = replace(MISSING, break_class=BreakClass.DUPLICATE_IN_TOPIC_ZOMBIE)
BODY = {"event_id": "ev-1", "payment_id": "pay-1", "leg": "payout", "amount_minor": 250, "currency": "EUR"}
OTHER = BODY | {"event_id": "ev-9", "payment_id": "pay-9"}
BEHIND = READ_UP_TO + 1
"""Nobody had read it when the plan was made."""


def record(offset: int, body: Any = OTHER, *, key: bytes = b"", topic: str = "payouts", **headers: str) -> Any:
    """A record under its payment's key, unless another one is given."""
    value = json.dumps(body).encode() if isinstance(body, dict) else body
    own = key or (body.get("payment_id", "") if isinstance(body, dict) else "").encode()
    said = {name.replace("_", "-") if name.startswith("tally") else name: one.encode() for name, one in headers.items()}
    return CommittedRecord(
        topic=topic,
        partition=0,
        kafka_offset=offset,
        key=own,
        value=value or b"",
        headers=said,
        written=SimpleNamespace(key=own or None, value=value, headers=tuple(said.items()), timestamp=-1),  # type: ignore[arg-type]
    )


@dataclass
class Log:
    """What the topics have, what runs have read of them, and what was asked. at: where the copy of the break stands.

    judged: where the copies of other breaks stand.
    """

    contract: Contract
    begins: int = 0
    topic_id: str = "t"
    at: str = "topic:payouts:0:3"
    outstanding: bool = True
    judged: Sequence[str] = ()
    held: frozenset[str] = frozenset()
    cleaned: frozenset[TopicPartition] = frozenset()
    unread: OffsetsUnread = OffsetsUnread()
    lost: dict[UUID, int] = field(default_factory=dict)
    taken_back: dict[UUID, frozenset[str]] = field(default_factory=dict)
    records: Sequence[CommittedRecord] = ()
    settled: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    asked: list[PlanItem] = field(default_factory=list)

    def settle_topics(self, _: str, topics: Iterable[str], *, wait_seconds: float) -> SettledTopics:
        self.settled = sorted(topics)
        parts = tuple(
            PartitionSnapshot(
                topic=topic,
                partition=0,
                topic_id=self.topic_id,
                leader_epoch=0,
                log_start=self.begins,
                lso=END,
                high_watermark=END,
            )
            for topic in self.settled
        )
        return SettledTopics(partitions=parts, held=self.held)

    def read_committed(self, _: str, partitions: Sequence[PartitionSnapshot]) -> Iterator[CommittedRecord]:
        self.read = [part.topic for part in partitions]
        return (one for one in self.records if one.topic in self.read and one.kafka_offset >= self.begins)

    def outstanding_breaks(self, *_: str) -> Sequence[Any]:
        found = [SimpleNamespace(break_id=ITEM.break_id, evidence={"at": self.at} if self.at else {})]
        found += [SimpleNamespace(break_id=UUID(int=50), evidence={"at": at}) for at in self.judged]
        return [SimpleNamespace(item_break=one) for one in found] if self.outstanding else []

    def read_cut(self, *_: Any) -> Any:
        offsets = [
            SimpleNamespace(topic_partition=TopicPartition(topic=topic, partition=0), kafka_offset_end=READ_UP_TO)
            for topic in self.contract.topics
        ]
        return SimpleNamespace(topic_slices=[SimpleNamespace(offsets=one) for one in offsets])

    def judged_parts(self, *_: str, planned_at: int) -> dict[TopicPartition, JudgedPart]:
        assert planned_at == PLANNED_AT
        return {
            TopicPartition(topic=topic, partition=0): JudgedPart(
                topic_id="t", leader_epoch=0, log_start=0, kafka_offset_end=READ_UP_TO
            )
            for topic in self.contract.topics
        }

    def cleaned_partitions(self, *_: Any) -> frozenset[TopicPartition]:
        return self.cleaned

    def last_cuts_with_offsets_unread(self, *_: Any, **__: Any) -> OffsetsUnread:
        return self.unread

    def unreadable_since(self, _: str, __: Contract, items: Sequence[PlanItem], ___: Any) -> dict[UUID, int]:
        self.asked = list(items)
        return self.lost


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Why an item is not handed over, beside some records."""

    def why(item: PlanItem, *records: CommittedRecord, log: Log | None = None, **about: Any) -> str | None:
        log = log or Log(contract=contract_of(legs={"payout": "payouts"}))
        for name, value in (about | {"records": records}).items():
            setattr(log, name, value)
        for name in ("settle_topics", "read_committed", "outstanding_breaks", "read_cut"):
            monkeypatch.setattr(prove_handed_over, name, getattr(log, name))
        for name in ("judged_parts", "cleaned_partitions", "last_cuts_with_offsets_unread", "unreadable_since"):
            monkeypatch.setattr(prove_repairs, name, getattr(log, name))
        work: Any = SimpleNamespace(
            contract=log.contract,
            connections=SimpleNamespace(kafka="kafka"),
            engine="engine",
            plan=SimpleNamespace(cut_n=PLANNED_AT),
            taken_back=log.taken_back,
        )
        (found,) = prove_handed_over.prove_handed_over(work, [item]).reasons.items()
        assert found[0] == item.action_id
        return found[1]

    return why


COPY, ORIGINAL = record(3, BODY), record(1, BODY)
ALL = [*(replace(MISSING, break_class=one) for one in ABOUT_EVENTS)]


def beside(item: PlanItem) -> tuple[CommittedRecord, ...]:
    """What stands where the break is sound."""
    return (record(0), *(() if item.break_class in MISSING_EVENTS else (ORIGINAL, COPY)))


@pytest.mark.parametrize("item", ALL, ids=ABOUT_EVENTS)
def test_what_the_topics_prove_is_handed_over_and_what_an_unreadable_record_may_be_about_is_not(
    said: Any, item: PlanItem
) -> None:
    assert said(item, *beside(item)) is None
    unreadable = "not provable: a record of its message key in payouts is unreadable"
    assert said(item, *beside(item), record(BEHIND, b"{", key=b"ev-1")) == unreadable
    assert said(item, *beside(item), record(BEHIND, b"{", key=b"ev-2")) is None
    assert said(item, *beside(item), record(BEHIND, None, key=b"pay-1")) == unreadable


@pytest.mark.parametrize("break_class", MISSING_EVENTS)
def test_a_missing_event_that_stands_by_now_or_may_be_a_record_of_any_key_is_not_handed_over(
    said: Any, break_class: BreakClass
) -> None:
    item = replace(MISSING, break_class=break_class)
    assert said(item, record(0), record(BEHIND, BODY)) == "its event stands: topic:payouts:0:5"
    untold = "not provable: a record in payouts is unreadable, and its message key does not tell of what"
    assert said(item, record(0), record(BEHIND, b"{")) == untold
    assert said(UNPOSTED, *beside(UNPOSTED), record(BEHIND, b"{")) is None


FORMATS = ("json", "json_schema", "avro", "protobuf", "debezium")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("item", ALL, ids=ABOUT_EVENTS)
def test_what_is_held_back_or_lost_hinders_whatever_the_format(said: Any, item: PlanItem, form: str) -> None:
    """Found by review: an event that came since the plan, and expired before a run read it, was paid once more."""
    contract = contract_of(legs={"payout": "payouts"})
    event = contract.event.model_copy(update={"format": form})

    def why(**about: Any) -> str | None:
        log = Log(contract=contract.model_copy(update={"event": event}))
        reason: str | None = said(item, *beside(item), log=log, **about)
        assert log.settled == ["payouts"]
        assert log.read == (["payouts"] if form == "json" else [])
        return reason

    assert why() is None
    assert why(held=frozenset({"payouts"})) == "not provable now: an open producer transaction holds payouts"
    assert why(topic_id="another") == "not provable: payouts was made anew since the newest run"
    cleaned = "not provable: a cleaner has taken records of payouts[0] that no run has read; the next run says which"
    assert why(cleaned=frozenset({TopicPartition(topic="payouts", partition=0)})) == cleaned
    gone = why(lost={ITEM.break_id: 3})
    assert gone is not None
    assert gone.startswith("not provable: since this was planned the log may have lost what cut 3 could not read")
    unread = OffsetsUnread(at=PLANNED_AT + 1, at_topic={"payouts": PLANNED_AT + 1})
    reason = why(unread=unread)
    assert reason is not None and "offsets were lost before cut 5 could read them" in reason
    assert why(unread=OffsetsUnread(at=PLANNED_AT, at_topic={"payouts": PLANNED_AT})) is None
    elsewhere = why(unread=OffsetsUnread(at=PLANNED_AT + 1, at_topic={"payouts": -1}))
    assert (elsewhere is None) is (item.break_class not in MISSING_EVENTS)
    if item.break_class in MISSING_EVENTS:
        expired = why(begins=READ_UP_TO + 1)
        assert expired is not None and "begins at 5 by now, and runs have read it up to 4" in expired
        assert why(begins=READ_UP_TO) is None


@pytest.mark.parametrize("form", FORMATS)
def test_what_has_left_the_log_is_not_handed_over(said: Any, form: str) -> None:
    contract = contract_of(legs={"payout": "payouts"})
    of_form = contract.model_copy(update={"event": contract.event.model_copy(update={"format": form})})
    for item in (UNPOSTED, SURPLUS):
        assert said(item, ORIGINAL, COPY, log=Log(contract=of_form), begins=1) is None
        reason = said(item, ORIGINAL, COPY, log=Log(contract=of_form), begins=4)
        assert reason is not None and "is not on the retained log any more" in reason
        assert said(UNPOSTED, COPY, log=Log(contract=of_form), begins=3) is None
        beyond = said(item, ORIGINAL, COPY, log=Log(contract=of_form, at="topic:payouts:0:9"))
        assert beyond is not None and "is not on the retained log any more" in beyond
        elsewhere = said(item, ORIGINAL, COPY, log=Log(contract=of_form, at="topic:payouts:1:3"))
        assert elsewhere is not None and "is not on the retained log any more" in elsewhere


DIFFER = "events of its key differ in money, transaction or leg: one may amend or cancel another"


@pytest.mark.parametrize("item", [UNPOSTED, SURPLUS])
@pytest.mark.parametrize("change", [{"amount_minor": 0}, {"currency": "USD"}, {"payment_id": "pay-2"}, {"leg": "fee"}])
def test_what_was_amended_since_the_plan_is_not_handed_over(said: Any, item: PlanItem, change: Any) -> None:
    amended = BODY | change
    assert said(item, ORIGINAL, COPY, record(BEHIND, amended)) == DIFFER
    assert said(item, ORIGINAL, COPY, record(BEHIND, BODY)) is None
    assert said(item, ORIGINAL, COPY, record(BEHIND, amended | {"event_id": "ev-2"})) is None
    assert said(item, ORIGINAL, record(2, amended), COPY) is None  # who agreed to the plan could see that


def test_a_copy_that_was_taken_back_or_is_the_last_one_is_not_handed_over(said: Any) -> None:
    back = record(BEHIND, BODY, tallystick_reverses="topic:payouts:0:3")
    assert said(UNPOSTED, ORIGINAL, COPY, back) == "the event was taken back"
    assert said(SURPLUS, ORIGINAL, COPY, back) == "it was taken back already: payouts[0] at 5"
    alone = "not provable: no other copy of the event is on the retained log any more"
    assert said(SURPLUS, COPY) == alone
    assert said(SURPLUS, ORIGINAL, COPY, record(BEHIND, BODY, tallystick_reverses="topic:payouts:0:1")) == alone
    taken = {ITEM.action_id: frozenset({"topic:payouts:0:1"})}
    both = "another plan takes every other copy of the event back, or has done so"
    assert said(SURPLUS, ORIGINAL, COPY, taken_back=taken) == both
    assert said(UNPOSTED, COPY, taken_back=taken) is None


@pytest.mark.parametrize("item", [UNPOSTED, SURPLUS])
def test_a_record_that_took_its_place_is_not_handed_over(said: Any, item: PlanItem) -> None:
    reason = said(item, ORIGINAL, record(3, BODY | {"amount_minor": 1}))
    assert reason in ("the event does not say what the run read", "the copy does not say what the run read")


def test_a_currency_that_a_run_compares_in_capitals_is_the_same_one(said: Any) -> None:
    contract = contract_of(legs={"payout": "payouts"}).model_copy(update={"currency_case": "ignored"})
    small = record(3, BODY | {"currency": "eur"})
    for item in (UNPOSTED, SURPLUS):
        assert said(item, ORIGINAL, small, log=Log(contract=contract)) is None
        assert (
            said(item, ORIGINAL, COPY, record(BEHIND, BODY | {"currency": "eur"}), log=Log(contract=contract)) is None
        )
        reason = said(item, ORIGINAL, small)
        assert reason is not None and "does not say what the run read" in reason


PLACED = {"match_key": {"header": "ce_id"}, "leg": {"header": "kind"}, "transaction_key": {"record": "key"}}
BY_KEY = {"match_key": {"record": "key"}}


@pytest.mark.parametrize(
    ("event", "own", "other"),
    [
        ({"match_key": PLACED["match_key"]}, b"pay-1", b"pay-9"),
        ({"leg": PLACED["leg"]}, b"pay-1", b"pay-9"),
        ({"transaction_key": PLACED["transaction_key"]}, b"pay-1", b"pay-9"),
        (BY_KEY, b"ev-1", b"ev-9"),
        (PLACED, b"pay-1", b"pay-9"),
    ],
    ids=["match key", "leg", "transaction key", "match key as record key", "all"],
)
def test_fields_that_stand_in_a_header_or_in_the_records_key_are_read_there(
    said: Any, event: Any, own: bytes, other: bytes
) -> None:
    """Found by review: each sound record counted as unreadable, and no missing event was ever handed over."""
    rules = {
        "trigger": {"connection": "airflow", "dags": {str(MISSING.break_class): "by_hand"}},
        "max_amount_minor": {"EUR": 1000},
    }
    contract = contract_of(legs={"payout": "payouts"}, event=event, compensation=rules)
    placed = {"match_key": "event_id", "leg": "leg", "transaction_key": "payment_id"}

    def written(offset: int, body: Any, key: bytes) -> CommittedRecord:
        inside = {name: one for name, one in body.items() if name not in {placed[field] for field in event}}
        found: CommittedRecord = record(offset, inside, key=key, ce_id=body["event_id"], kind=body["leg"])
        return found

    sound = written(0, OTHER, other)
    assert said(MISSING, sound, log=Log(contract=contract)) is None
    stands = "its event stands: topic:payouts:0:5"
    assert said(MISSING, sound, written(5, BODY, own), log=Log(contract=contract)) == stands
    tombstone = said(MISSING, sound, record(5, None, key=own), log=Log(contract=contract))
    assert tombstone == "not provable: a record of its message key in payouts is unreadable"
    copies = (written(1, BODY, own), written(3, BODY, own))
    for item in (UNPOSTED, SURPLUS):
        assert said(item, *copies, log=Log(contract=contract)) is None
        changed = written(5, BODY | {"amount_minor": 1}, own)
        assert said(item, *copies, changed, log=Log(contract=contract)) == DIFFER


def test_a_copy_on_another_topic_of_the_contract_is_looked_for_there_and_on_the_topic_of_its_leg(said: Any) -> None:
    def log(at: str) -> Log:
        return Log(contract=contract_of(legs={"payout": "payouts", "fee": "fees"}), at=at)

    astray, original = record(3, BODY, topic="fees"), record(1, BODY)
    there = log("topic:fees:0:3")
    assert said(SURPLUS, original, astray, log=there) is None
    assert there.settled == ["fees", "payouts"]
    assert {(one.topic, one.kind, one.reverses) for one in there.asked} == {
        (topic, RepairKind.REVERSE, "topic:fees:0:3") for topic in ("fees", "payouts")
    }
    gone = said(SURPLUS, original, log=log("topic:fees:0:3"))
    assert gone == "not provable: the copy is not on the retained log any more"
    unreadable = record(BEHIND, b"{", key=b"ev-1")
    reason = said(SURPLUS, original, astray, unreadable, log=log("topic:fees:0:3"))
    assert reason == "not provable: a record of its message key in payouts is unreadable"
    stray = log("topic:old:0:3")
    assert said(SURPLUS, original, log=stray) is None
    assert {one.topic for one in stray.asked} == {"payouts"}
    for nowhere in (log(""), log("ledger:7")):
        assert said(SURPLUS, original, log=nowhere) is None
        assert {one.topic for one in nowhere.asked} == {"payouts"}


def two_legs(**about: Any) -> Log:
    return Log(contract=contract_of(legs={"payout": "payouts", "fee": "fees"}), **about)


def test_a_copy_whose_original_came_first_on_another_legs_topic_is_handed_over(said: Any) -> None:
    """Found by review: it was called the last one, for ever."""
    original = record(1, BODY, topic="fees")
    assert said(SURPLUS, original, COPY, log=two_legs(judged=["topic:fees:0:1"])) is None
    alone = "not provable: no other copy of the event is on the retained log any more"
    assert said(SURPLUS, record(1, OTHER, topic="fees"), COPY, log=two_legs()) == alone


@pytest.mark.parametrize("break_class", MISSING_EVENTS)
def test_a_missing_event_that_came_on_another_legs_topic_is_not_handed_over(said: Any, break_class: BreakClass) -> None:
    """Found by review: the DAG paid it once more."""
    item = replace(MISSING, break_class=break_class)
    assert (
        said(item, record(0), record(BEHIND, BODY, topic="fees"), log=two_legs()) == "its event stands: topic:fees:0:5"
    )
    assert said(item, record(0), record(BEHIND, OTHER, topic="fees"), log=two_legs()) is None


@pytest.mark.parametrize("item", [UNPOSTED, SURPLUS])
def test_what_was_amended_since_on_another_legs_topic_is_not_handed_over(said: Any, item: PlanItem) -> None:
    amended = record(BEHIND, BODY | {"amount_minor": 0}, topic="fees")
    assert said(item, ORIGINAL, COPY, amended, log=two_legs()) == DIFFER
    assert said(item, ORIGINAL, COPY, replace(amended, kafka_offset=READ_UP_TO - 1), log=two_legs()) is None


@pytest.mark.parametrize("item", ALL, ids=ABOUT_EVENTS)
def test_the_trouble_of_another_legs_topic_hinders_nothing(said: Any, item: PlanItem) -> None:
    def why(*others: CommittedRecord, **about: Any) -> str | None:
        log = two_legs(**about)
        reason: str | None = said(item, *beside(item), *others, log=log)
        assert log.settled == log.read == ["fees", "payouts"]
        assert {one.topic for one in log.asked} == {"payouts"}
        return reason

    assert why(record(BEHIND, b"{", key=b"ev-1", topic="fees")) is None
    assert why(record(BEHIND, None, topic="fees")) is None
    assert why(held=frozenset({"fees"})) is None
    assert why(held=frozenset({"payouts"})) == "not provable now: an open producer transaction holds payouts"
    assert why(cleaned=frozenset({TopicPartition(topic="fees", partition=0)})) is None


@pytest.mark.parametrize("form", ["avro", "debezium"])
def test_of_another_format_only_the_topics_of_the_break_are_asked(said: Any, form: str) -> None:
    log = two_legs()
    log.contract = log.contract.model_copy(update={"event": log.contract.event.model_copy(update={"format": form})})
    assert said(UNPOSTED, log=log) is None
    assert (log.settled, log.read) == (["payouts"], [])


PRETENDER = "topic:payouts:0:2"


def test_what_a_run_judged_a_copy_too_many_takes_nothing_back(said: Any) -> None:
    """Found by review: such an event, and a copy beside one, were refused for ever."""
    pretender = record(2, BODY, tallystick_reverses="topic:payouts:0:3")
    for item, unjudged in (
        (UNPOSTED, "the event was taken back"),
        (SURPLUS, "it was taken back already: payouts[0] at 2"),
    ):
        assert said(item, ORIGINAL, pretender, COPY) == unjudged
        assert said(item, ORIGINAL, pretender, COPY, judged=[PRETENDER]) is None
        assert said(item, ORIGINAL, pretender, COPY, judged=["topic:payouts:1:2"]) == unjudged
        since = record(BEHIND, BODY, tallystick_reverses="topic:payouts:0:3")
        assert said(item, ORIGINAL, pretender, COPY, since, judged=[PRETENDER]) == unjudged.replace("at 2", "at 5")


def test_a_repeated_reversal_of_ours_is_handed_over(said: Any) -> None:
    """Found by review: it was refused for ever, since it takes another copy back itself."""
    copy = record(1, BODY)
    ours, again = (record(offset, BODY, tallystick_reverses="topic:payouts:0:1") for offset in (2, 3))
    first = record(0, BODY)
    assert said(SURPLUS, first, copy, ours, again) is None
    assert (
        said(SURPLUS, copy, ours, again) == "not provable: no other copy of the event is on the retained log any more"
    )


def test_of_a_break_that_is_over_no_topic_is_asked(said: Any) -> None:
    log = Log(contract=contract_of(legs={"payout": "payouts"}), outstanding=False)
    assert said(MISSING, log=log) == "its break is not outstanding any more"
    assert log.settled == []


@pytest.mark.parametrize(
    "item",
    [
        replace(MISSING, topic=""),
        *(replace(MISSING, break_class=one) for one in BreakClass if one not in ABOUT_EVENTS),
    ],
    ids=lambda item: f"{item.break_class} {item.topic}",
)
def test_nothing_is_read_of_a_leg_without_topic_and_of_other_classes(said: Any, item: PlanItem) -> None:
    log = Log(contract=contract_of(legs={"payout": "payouts"}))
    assert said(item, record(0, b"{", key=b"ev-1"), log=log, lost={ITEM.break_id: 3}) is None
    assert (log.settled, log.read) == ([], [])


def test_the_classes_that_are_read_are_these() -> None:
    assert set(ABOUT_EVENTS) == {*MISSING_EVENTS, *POSTABLE, *REVERSIBLE}
    assert BreakClass.LOST_ACKNOWLEDGED_WRITE in MISSING_EVENTS
