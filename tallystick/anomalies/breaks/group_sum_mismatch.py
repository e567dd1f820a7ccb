"""X1, many to one: the parts that are there add up to another sum than their whole says.

One break tells of the group: which copy is the whole, which are its parts, and what is missing or too much. Amounts
are added up as integers in minor units, of one currency; with a part of another currency, or without an amount, there
is no sum. A whole without an amount has nothing that its parts could add up to.
"""

from collections.abc import Iterator

from tallystick.anomalies.breaks.make_break import NAMED_OF_A_SIDE_MAX, break_of, money_json
from tallystick.contract.contract import Contract
from tallystick.contract.equality import LONG_MAX, LONG_MIN, NO_MONEY, Money
from tallystick.matching.evidence import UnmatchedItems
from tallystick.matching.match_case import MatchStatus, WholeAndParts
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, total_money
from tallystick.model.open_item import ItemSide


def group_sum_mismatch(contract: Contract, unmatched: UnmatchedItems) -> Iterator[Break]:
    """Yield a break for each group. At stake: the difference, as far as a bigint holds it; without a sum, the whole; in
    the currency of the whole, also where the break is about a part. Of a whole that says no money: the parts.
    """
    for side in (ItemSide.TOPIC, ItemSide.LEDGER):
        for residue in unmatched.of(MatchStatus.SUM_DIFFERS, side):
            assert residue.group is not None
            whole, sum_minor = residue.group.whole, residue.group.sum_minor
            missing_minor = None if sum_minor is None else whole.amount_minor - sum_minor
            at_stake = _at_stake(residue.group, missing_minor)
            yield break_of(
                contract,
                residue,
                BreakClass.GROUP_SUM_MISMATCH,
                _story(residue.group, missing_minor),
                amount_minor=at_stake.amount_minor,
                currency=at_stake.currency,
                evidence={
                    "whole": money_json(whole),
                    "parts": [money_json(part) for part in residue.group.parts[:NAMED_OF_A_SIDE_MAX]],
                    "parts_count": len(residue.group.parts),
                    "sum_minor": sum_minor,
                    "missing_minor": missing_minor,
                },
            )


def _at_stake(group: WholeAndParts, missing_minor: int | None) -> Money:
    """Return one amount in one currency: of a whole that says no money, what its parts of the first one's add up to."""
    whole = group.whole
    if missing_minor is not None:
        return Money(min(abs(missing_minor), LONG_MAX), whole.currency)
    if whole.money != NO_MONEY:
        return whole.money
    currency = group.parts[0].currency
    return Money(max(LONG_MIN, min(_money_of_parts(group)[currency], LONG_MAX)), currency)


def _money_of_parts(group: WholeAndParts) -> dict[str, int]:
    return total_money((part.currency, part.amount_minor) for part in group.parts)


def _story(group: WholeAndParts, missing_minor: int | None) -> str:
    whole, count = group.whole, len(group.parts)
    parts = "its 1 part is" if count == 1 else f"its {count:,} parts are"
    if whole.money == NO_MONEY:
        of_parts = _money_of_parts(group)
        says = f"{whole.item_id} says no whole amount of a currency, and {parts}"
        if len(of_parts) > 1:
            return f"{says} of {len(of_parts):,} currencies: there is no sum."
        ((currency, sum_minor),) = of_parts.items()
        return f"{says} {sum_minor} {currency} together (minor units)."
    says = f"{whole.item_id} says {whole.amount_minor} {whole.currency}".rstrip()
    if missing_minor is None:
        return f"{says}, and {parts} not all of that currency: there is no sum."
    is_short = missing_minor * (whole.amount_minor or 1) > 0  # of the sign of the whole: a refund lacks refunds
    wrong = f"{abs(missing_minor)} {'missing' if is_short else 'too much'}"
    return f"{says}, and {parts} {group.sum_minor} together: {wrong} (minor units)."
