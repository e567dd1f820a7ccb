"""Whoever approves reads what is done, what not and why, and nothing that acts on the reader."""

from dataclasses import replace

from tallystick.compensation import plan_text
from tallystick.kafka_cluster.state import ClusterState
from tests.unit.compensation.abort_plans import planned
from tests.unit.compensation.plans import DOUBLED, TAKES_BACK, candidate, contract, describe_plan, plan


def test_the_approver_reads_what_will_be_done_what_not_and_why() -> None:
    planned = replace(plan(candidate("a"), candidate("b", amount_minor=950), candidate("c")), dry_run=False)
    assert describe_plan(planned).splitlines() == [
        "**payouts**, cut 5. Will publish 2 events again from the ledger, each once, worth 2.00 EUR.",
        "",
        "| event | topic | amount | what is done | class |",
        "|---|---|---|---|---|",
        *(
            f"| {key} | billing.payouts | 1.00 EUR | publish from row row-{key} to billing.payouts "
            "| missing_in_topic_never_produced |"
            for key in ("a", "c")
        ),
        "",
        "Left out: 1 outstanding breaks.",
        "",
        "- 1: over the cap on EUR (b)",
        "",
        f"Plan hash: `{planned.plan_hash}`",
    ]


def test_a_dry_run_says_so() -> None:
    assert "Dry run, nothing is published: would publish 1 event" in describe_plan(plan(candidate("a")))
    empty = (
        "**payouts**, cut 5. Dry run, nothing is published: would publish 0 events again from the ledger, each once, "
    )
    assert describe_plan(plan()).splitlines()[:3] == [f"{empty}worth none.", "", "Nothing is to be published."]


def test_a_long_plan_shows_its_beginning_and_counts_the_rest() -> None:
    body = describe_plan(plan(*(candidate(f"{n:03}", amount_minor=1) for n in range(30)), max_items=25))
    assert "... and 5 more." in body
    assert "- 5: over the cap on the number of events (025, 026, 027, ...)" in body
    body = describe_plan(plan(*(candidate(f"{n:03}", amount_minor=1) for n in range(28)), max_items=25))
    assert "more." not in describe_plan(plan(*(candidate(f"{n:03}", amount_minor=1) for n in range(20)), max_items=25))
    assert "- 3: over the cap on the number of events (025, 026, 027)" in body
    body = describe_plan(plan(*(candidate(f"{n:03}", amount_minor=1) for n in range(29)), max_items=25))
    assert "- 4: over the cap on the number of events (025, 026, 027, ...)" in body


def test_a_key_that_nobody_may_see_is_not_shown_and_a_place_without_a_break_is() -> None:
    left_out = (*plan(candidate("a", currency="USD")).left_out, *planned(newest=ClusterState()).left_out)
    body = plan_text.describe_plan(replace(plan(), left_out=left_out), shown_key=lambda key: "hidden")
    assert "- 1: the contract sets no cap for USD (hidden)" in body
    assert "- 1: the newest run does not find it any more (billing.payouts:0 at offset 20)" in body


def test_a_key_is_shown_without_what_a_template_or_markdown_would_act_on() -> None:
    body = describe_plan(plan(candidate("{{ conf }}|`<b>")))
    assert "| ?? conf ?????b? |" in body


def test_the_approver_reads_how_a_copy_is_taken_back_and_only_where_one_is() -> None:
    doubled = plan(candidate("b", break_class=DOUBLED, at="topic:billing.payouts:1:17"), **TAKES_BACK)
    by_sign, by_header = (contract(**TAKES_BACK | {"reversal": how}).compensation for how in ("negated", "header"))
    assert (
        "\n\n`compensation.reversal` is negated: what takes another one back has the amount with the other sign.\n\n|"
        in describe_plan(doubled, allowed=by_sign)
    )
    assert "is header: what takes another one back is that event, byte by byte, with the same amount" in describe_plan(
        doubled, allowed=by_header
    )
    for silent in (
        describe_plan(plan(candidate("a"), **TAKES_BACK), allowed=by_sign),
        describe_plan(doubled, allowed=contract().compensation),
        describe_plan(doubled),
    ):
        assert "reversal" not in silent
