"""A run that could not look ends nothing by its silence; one that looked does, and at the same places."""

from typing import Any

import pytest

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.looked_for import not_looked_for
from tallystick.model.finding_names import Doubt, Notice
from tallystick.model.findings import DoubtFound, NoticeFound
from tallystick.model.verdict import Verdict
from tests.run_results import run_result
from tests.unit.alerting.run_alerts import alerts, fired

HANGING, GROWS = Doubt.HANGING_TRANSACTION, Notice.BACKLOG_GROWS
RISK, EXPIRES = Notice.PROMISE_AT_RISK, Notice.RETENTION_OVERTAKES


def at_risk(*topics: str) -> NoticeFound:
    lines = [{"scope": topic, "loses": True} for topic in topics]
    lines += [{"scope": "fees", "loses": False}]
    return NoticeFound(notice=RISK, sentence="Unclean.", count=len(lines), pages=True, details={"lines": lines})


def expiring(topic: str | None, partition: int | None, *, notice: Notice = EXPIRES) -> NoticeFound:
    where = {"topic": topic, "partition": partition}
    return NoticeFound(notice=notice, sentence="It expires.", pages=True, details=where)


def hangs(partition: int, producer_id: int | None = 7, *, doubt: Doubt = HANGING) -> DoubtFound:
    where = {"topic": "billing", "partition": partition, "producer_id": producer_id}
    return DoubtFound(doubt=doubt, sentence="It hangs.", details=where)


def held(partition: int, producer_id: int | None) -> DoubtFound:
    """A run that a transaction holds which a coordinator lists, or of which nobody is named."""
    return hangs(partition, producer_id, doubt=Doubt.HELD_BY_OPEN_TRANSACTION)


def run(*found: NoticeFound | DoubtFound, firing: tuple[Alert, ...] = (), **unseen: set[str]) -> dict[str, Alert]:
    """Return by name what a run says, after alerts that fire."""
    doubts = tuple(one for one in found if isinstance(one, DoubtFound))
    told = alerts(
        verdict=Verdict.INCONCLUSIVE if doubts else Verdict.MATCHED,
        doubts=doubts,
        notices=tuple(one for one in found if isinstance(one, NoticeFound)),
        firing={one.name: one for one in firing},
        unseen={name: frozenset(places) for name, places in unseen.items()},
    )
    return {one.name: one for one in told}


CASES: list[Any] = [
    pytest.param(at_risk("billing"), "billing", id="settings"),
    pytest.param(expiring("billing", 0), "billing[0]", id="retention"),
    pytest.param(hangs(0), "billing[0]", id="transactions"),
    pytest.param(expiring("billing", 0, notice=GROWS), "billing[0]", id="backlog of a topic"),
    pytest.param(expiring(None, None, notice=GROWS), "ledger", id="backlog of the ledger"),
]


@pytest.mark.parametrize(("found", "place"), CASES)
def test_what_a_run_could_not_look_at_stays_until_one_looks_and_finds_nothing(
    found: NoticeFound | DoubtFound, place: str
) -> None:
    (alert,) = run(found).values()
    assert alert.details["places"] == [place]
    assert run(firing=(alert,), **{alert.name: {place}}) == {}
    assert run(firing=(alert,))[alert.name].action is AlertAction.RESOLVE


@pytest.mark.parametrize(("found", "place"), CASES)
def test_what_was_never_told_of_keeps_nothing_firing_though_no_run_may_look_there(
    found: NoticeFound | DoubtFound, place: str
) -> None:
    (alert,) = run(found, **{str(HANGING): {"fees"}, str(RISK): {"fees"}}).values()
    for elsewhere in ({alert.name: {f"{place}, another"}}, {"host_clock_off": {place}}):
        assert run(firing=(alert,), **elsewhere)[alert.name].action is AlertAction.RESOLVE


def test_a_place_that_a_run_could_not_look_at_goes_on_with_the_incident_while_another_is_told() -> None:
    both = run(at_risk("billing", "refunds"))[RISK]
    one = run(at_risk("billing"), firing=(both,), promise_at_risk={"refunds"})[RISK]
    assert one.details["places"] == ["billing", "refunds"]
    assert run(firing=(one,), promise_at_risk={"refunds"}) == {}
    mended = run(at_risk("billing"), firing=(both,))[RISK]
    assert mended.details["places"] == ["billing"]


def test_an_alert_of_an_older_release_that_names_no_place_stays_while_any_is_unseen() -> None:
    old = fired(RISK, count=1)
    assert run(firing=(old,), promise_at_risk={"billing"}) == {}
    assert run(firing=(old,))[RISK].action is AlertAction.RESOLVE
    assert run(at_risk("billing"), firing=(old,), promise_at_risk={"fees"})[RISK].details["places"] == ["billing"]


def test_an_acknowledged_alert_is_told_again_where_as_much_is_seen_at_another_place() -> None:
    taken = fired(EXPIRES, by="Ada", count=1, places=["billing[0]"])
    assert run(expiring("billing", 0), firing=(taken,)) == {}
    assert run(expiring("billing", 1), firing=(taken,))[EXPIRES].action is AlertAction.TRIGGER


def test_only_what_fires_is_kept_by_a_run_that_could_not_look() -> None:
    blind = run_result("payouts", 5, unseen={RISK: frozenset({"billing"}), EXPIRES: frozenset({"billing[0]"})})
    assert not_looked_for(blind, {RISK: fired(RISK, places=["billing"]), GROWS: fired(GROWS)}) == {RISK}


@pytest.mark.parametrize(
    ("holder", "stays"),
    [
        pytest.param(held(0, 9), False, id="another producer"),
        pytest.param(held(0, 7), True, id="its own producer"),
        pytest.param(held(0, None), True, id="nobody is named"),
        pytest.param(held(1, 7), False, id="its own producer, elsewhere"),
    ],
)
def test_a_hanging_transaction_is_over_though_another_producer_holds_its_partition(
    holder: DoubtFound, stays: bool
) -> None:
    (alert,) = run(hangs(0)).values()
    said = run(holder, firing=(alert,))
    assert (HANGING not in said) is stays
    assert stays or said[HANGING].action is AlertAction.RESOLVE


def test_an_alert_of_an_older_release_that_names_no_producer_stays_while_anything_holds_its_partition() -> None:
    old = fired(HANGING, count=1, places=["billing[0]"])
    assert HANGING not in run(held(0, 9), firing=(old,))
    assert run(held(1, 9), firing=(old,))[HANGING].action is AlertAction.RESOLVE


def test_the_producer_of_a_place_that_could_not_be_looked_at_goes_on_with_the_incident() -> None:
    both = run(hangs(0), hangs(1, 8))[HANGING]
    one = run(hangs(1, 8), held(0, 7), firing=(both,))[HANGING]
    assert one.details["producers"] == ["billing 0 7", "billing 1 8"]
    assert HANGING not in run(held(0, 7), firing=(one,))
    mended = run(hangs(1, 8), held(0, 9), firing=(both,))[HANGING]
    assert (mended.details["places"], mended.details["producers"]) == (["billing[1]"], ["billing 1 8"])
