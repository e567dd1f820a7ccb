"""Every leg of a break is marked as committed, aborted or nowhere."""

from dataclasses import replace

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import StoredRun
from tallystick.report.leg_marks import leg_marks
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import with_breaks


def test_every_leg_is_marked_as_committed_aborted_or_nowhere(broken_run: StoredRun, contract: Contract) -> None:
    legs = {"fee": "billing.fees", "payout": "billing.payouts", "tax": "billing.taxes"}
    payout, fee = "topic:billing.payouts:0:17", "topic:billing.fees:0:3"
    span = {"first_offset": 3, "marker": "abort", "marker_offset": 4, "marker_epoch": 1}
    torn = replace(
        broken_run.result.breaks[-1],
        leg="fee+tax",
        evidence={
            "seen_legs": {"payout": payout},
            "found_elsewhere": [
                {"at": fee, "place": "aborted"},
                {"at": "topic:billing.taxes:0:5", "place": "before_baseline"},
            ],
            "identities": {payout: {"at": payout, "producer_id": -1, "span": None}, fee: {"at": fee, "span": span}},
        },
    )
    three = contract.model_copy(update={"legs": legs})
    assert [(mark.leg, mark.state, mark.words) for mark in leg_marks(torn, legs)] == [
        ("fee", "aborted", "aborted at offset 3 of billing.fees[0], abort marker at 4"),
        ("payout", "committed", "committed at offset 17 of billing.payouts[0]"),
        ("tax", "absent", "not on the retained log"),
    ]
    html = render_report(with_breaks(broken_run, torn), three)
    for state in ("committed", "aborted", "absent"):
        assert html.count(f'<li class="{state}">') == 1
    assert leg_marks(broken_run.result.breaks[0], legs) == ()
