"""The text of a plan for the person who approves it, in sentences and a table. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tallystick.compensation.abort_plan import AbortItem, abort_words
from tallystick.compensation.plan import ExcludedBreak, Plan, PlanItem, RepairKind
from tallystick.contract.compensation import CompensationRules
from tallystick.model.findings import total_at_stake, total_money
from tallystick.text.money import format_minor, format_money
from tallystick.text.plain import printed_text
from tallystick.text.verdict_sentence import counted

_SHOWN = 20
"""Events that a person is shown; the plan itself has them all."""


@dataclass(frozen=True, kw_only=True)
class KindWords:
    """The words for the items of a kind: intent with {count} of noun, and the words behind the money, "" where there
    are none.
    """

    intent: str
    noun: str
    remark: str = ""


KIND_WORDS = {
    RepairKind.REPUBLISH: KindWords(intent="publish {count} again from the ledger, each once", noun="event"),
    RepairKind.REVERSE: KindWords(
        intent="take back {count}, each by one event that names it", noun="copy", remark="; no record is deleted"
    ),
    RepairKind.POST: KindWords(intent="write the rows of {count} into the ledger, each once", noun="event"),
    RepairKind.COUNTERPOST: KindWords(
        intent="take back {count} of the ledger, each by one compensating entry that names it",
        noun="row",
        remark="; no row is changed or deleted",
    ),
    RepairKind.TRIGGER: KindWords(
        intent="hand {count} to DAGs, each in one run",
        noun="break",
        remark="; what those do is not seen from here, the next window says whether it helped",
    ),
}


_REVERSAL_WORDS = {
    "negated": "has the amount with the other sign",
    "header": "is that event, byte by byte, with the same amount; consumers must know the header",
    "column": "has the same amount; whoever sums must know the column",
}


def describe_plan(plan: Plan, *, shown_key: Callable[[str], str], allowed: CompensationRules | None = None) -> str:
    """Return Markdown for the person who approves. A key shows "?" where Markdown, HTML or Jinja would act on it.

    shown_key: what people see of a match key, by the contract. allowed: the contract's compensation; it says how a copy
    or a row is taken back.
    """
    lines = [
        f"**{plain_markdown(plan.contract)}**, cut {plan.cut_n}. {plan_sentence(plan)}",
        "",
        *_reversal_lines(plan, allowed),
        *_abort_lines(plan.aborts),
        *([] if plan.aborts and not plan.items else _item_lines(plan.items, shown_key)),
        "",
        *_left_out_lines(plan.left_out, shown_key),
        "",
        f"Plan hash: `{plan.plan_hash}`",
    ]
    return printed_text("\n".join(lines))


def plan_sentence(plan: Plan) -> str:
    """Say what the plan will do: how many items and how much money, kind by kind."""
    intents = []
    if plan.aborts:
        money = format_money(total_money(pair for abort in plan.aborts for pair in abort.own_money_minor.items()))
        intents.append(
            f"end {counted(len(plan.aborts), 'hanging transaction')} by an ABORT marker, each on its partition alone, "
            f"so that {counted(sum(abort.own_events for abort in plan.aborts), 'record')} worth "
            f"{money} will count as aborted; nothing else of their producers is touched, and no record is deleted"
        )
    for kind, words in KIND_WORDS.items():
        items = [item for item in plan.items if item.kind is kind]
        if items or (kind is RepairKind.REPUBLISH and not plan.actions):
            money = format_money(total_at_stake((item.currency, item.amount_minor) for item in items))
            intents.append(f"{words.intent.format(count=counted(len(items), words.noun))}, worth {money}{words.remark}")
    start = "Dry run, nothing is published: would " if plan.dry_run else "Will "
    return f"{start}{', and '.join(intents)}."


def _reversal_lines(plan: Plan, allowed: CompensationRules | None) -> list[str]:
    takes_back = any(item.kind in (RepairKind.REVERSE, RepairKind.COUNTERPOST) for item in plan.items)
    if not takes_back or allowed is None or allowed.reversal is None:
        return []
    words = _REVERSAL_WORDS[allowed.reversal]
    return [f"`compensation.reversal` is {allowed.reversal}: what takes another one back {words}.", ""]


def _abort_lines(aborts: Sequence[AbortItem]) -> list[str]:
    return [line for abort in aborts for line in (f"- End {abort_words(abort)}.", "")]


def action_label(item: PlanItem, place: Callable[[str], str]) -> str:
    """Say what is done for one break; text that others wrote is kept as it is. place: puts an item id into words."""
    if item.kind in (RepairKind.REVERSE, RepairKind.COUNTERPOST):
        return f"take back {place(item.reverses)}"
    if item.kind is RepairKind.POST:
        return f"post {place(item.posts)}"
    if item.kind is RepairKind.TRIGGER:
        return f"start {item.triggers}"
    return f"publish from row {item.row_id} to {item.topic}"


def _item_lines(items: Sequence[PlanItem], shown_key: Callable[[str], str]) -> list[str]:
    if not items:
        return ["Nothing is to be published."]
    rows = [
        f"| {plain_markdown(shown_key(item.match_key))} | {plain_markdown(item.topic)} "
        f"| {format_minor(item.amount_minor, item.currency)} | {plain_markdown(action_label(item, _bare_place))} "
        f"| {item.break_class} |"
        for item in items[:_SHOWN]
    ]
    more = [f"... and {len(items) - _SHOWN} more."] if len(items) > _SHOWN else []
    return ["| event | topic | amount | what is done | class |", "|---|---|---|---|---|", *rows, *more]


def _bare_place(item_id: str) -> str:
    return item_id.removeprefix("topic:").replace("ledger:", "row ")


def _left_out_lines(left_out: Sequence[ExcludedBreak], shown_key: Callable[[str], str]) -> list[str]:
    if not left_out:
        return ["No outstanding break is left out."]
    by_reason: dict[str, list[str]] = {}
    for excluded in left_out:
        by_reason.setdefault(excluded.reason, []).append(
            shown_key(excluded.match_key) if excluded.break_id else excluded.match_key
        )
    hanging = sum(excluded.break_id is None for excluded in left_out)
    breaks = [f"{len(left_out) - hanging} outstanding breaks"] if hanging < len(left_out) else []
    transactions = [counted(hanging, "hanging transaction")] if hanging else []
    return [
        f"Left out: {' and '.join([*breaks, *transactions])}.",
        "",
        *(f"- {len(keys)}: {plain_markdown(reason)} ({_some(keys)})" for reason, keys in sorted(by_reason.items())),
    ]


def _some(keys: Sequence[str]) -> str:
    return ", ".join(plain_markdown(key) for key in keys[:3]) + (", ..." if len(keys) > 3 else "")


def plain_markdown(text: str) -> str:
    """Escape text for Markdown: keys are written by others, and the body of an approval is a template."""
    return "".join(character if character.isalnum() or character in " .,:_-/+=@" else "?" for character in text)
