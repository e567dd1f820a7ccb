"""A plan's hash stands for all that would be done, and for nothing else."""

from dataclasses import replace

from tallystick.compensation.plan import INTO_LEDGER, RepairKind
from tests.unit.compensation.plans import DOUBLED, TAKES_BACK, candidate, plan


def test_the_hash_stands_for_all_that_would_be_done() -> None:
    planned = plan(candidate("a"), candidate("b"))
    item = planned.items[0]
    changed = [
        replace(planned, dry_run=False),
        replace(planned, cut_n=6),
        replace(planned, contract_fingerprint="other"),
        replace(planned, items=planned.items[::-1]),
        replace(planned, items=planned.items[:1]),
        *(
            replace(planned, items=(replace(item, **change), planned.items[1]))
            for change in (
                {"amount_minor": 101},
                {"currency": "USD"},
                {"topic": "other"},
                {"occurred_at": "2026-03-01T11:00:01+00:00"},
                {"row_id": "other"},
            )
        ),
    ]
    assert len({one.plan_hash for one in [planned, *changed]}) == len(changed) + 1
    assert len({one.plan_id for one in [planned, *changed]}) == len(changed) + 1


def test_what_is_left_out_may_change_while_an_approval_waits() -> None:
    assert plan(candidate("a")).plan_hash == plan(candidate("a"), candidate("z", currency="USD")).plan_hash


def test_the_hash_does_not_change_from_one_version_to_the_next() -> None:
    planned = replace(plan(candidate("a")), contract_fingerprint="f")
    assert planned.plan_hash == "293917edbcb7b1f4ec080071e4e6bec4e8785c35f260a57c3ea6f915ab268e16"
    assert str(planned.plan_id) == "130e5ce5-6658-50c6-8945-99b412ca8480"


def test_the_kinds_keep_the_names_under_which_they_are_stored() -> None:
    assert [str(kind) for kind in RepairKind] == ["republish", "reverse", "post", "counterpost", "trigger"]
    assert set(INTO_LEDGER) == {RepairKind.POST, RepairKind.COUNTERPOST}


def test_the_hash_stands_for_the_copy_that_is_taken_back() -> None:
    places = ("topic:billing.payouts:1:17", "topic:billing.payouts:1:18")
    hashes = {plan(candidate("b", break_class=DOUBLED, at=at), **TAKES_BACK).plan_hash for at in places}
    assert len(hashes) == 2
