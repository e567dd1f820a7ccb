"""Whoever approves reads what is done, what not and why, and nothing that acts on the reader."""

from dataclasses import replace

from tests.unit.compensation.plans import candidate, describe_plan, plan


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
    assert "Nothing is to be published." in describe_plan(plan())


def test_a_long_plan_shows_its_beginning_and_counts_the_rest() -> None:
    body = describe_plan(plan(*(candidate(f"{n:03}", amount_minor=1) for n in range(30)), max_items=25))
    assert "... and 5 more." in body
    assert "- 5: over the cap on the number of events (025, 026, 027, ...)" in body


def test_a_key_is_shown_without_what_a_template_or_markdown_would_act_on() -> None:
    body = describe_plan(plan(candidate("{{ conf }}|`<b>")))
    assert "| ?? conf ?????b? |" in body
