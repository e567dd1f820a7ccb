"""The limits of repairs, per plan and per day. Pure."""

from collections.abc import Mapping

from tallystick.compensation.plan import CapsExceeded, DailyUsage, Plan, rules_of
from tallystick.contract.compensation import CompensationRules
from tallystick.contract.contract import Contract


def refuse_over_caps(contract: Contract, plan: Plan, *, spent: DailyUsage = DailyUsage()) -> None:
    """Check an approved plan against the contract as it is now. Raises CompensationOff, CapsExceeded."""
    rules = rules_of(contract)
    room = CapBudget(rules, spent)
    for abort in plan.aborts:
        if reason := not_opted_in(rules) or room.refusal(abort.place, abort.moved_minor):
            raise CapsExceeded(f"{contract.name}: {abort.place}: {reason}")
        room.take(abort.place, abort.moved_minor)
    for item in plan.items:
        reason = room.refusal(item.match_key, item.moved_minor)
        dag_id = rules.dag_of(item.break_class)
        if dag_id != item.triggers if item.triggers else item.break_class not in rules.classes:
            reason = f"class {item.break_class} is not compensated by the contract"
        if reason:
            raise CapsExceeded(f"{contract.name}: break {item.break_id}: {reason}")
        room.take(item.match_key, item.moved_minor)


class CapBudget:
    """The rest that the caps still allow, and the events that the plan has already."""

    def __init__(self, rules: CompensationRules, spent: DailyUsage) -> None:
        self.items = rules.max_items
        self.money = dict(rules.max_amount_minor)
        self.items_today = None if rules.max_items_per_day is None else rules.max_items_per_day - spent.items
        self.money_today = {
            currency: cap - spent.moved_minor.get(currency, 0)
            for currency, cap in rules.max_amount_minor_per_day.items()
        }
        self.keys: set[str] = set()

    def refusal(self, key: str, money: Mapping[str, int]) -> str | None:
        """money: per currency in minor units, without signs; it must not be changed before `take`."""
        if key in self.keys:
            return "the plan has this event already"
        if self.items < 1:
            return "over the cap on the number of events"
        if self.items_today is not None and self.items_today < 1:
            return "over the day's cap on the number of events"
        for currency, amount_minor in sorted(money.items()):
            if currency not in self.money:
                return f"the contract sets no cap for {currency}"
            if amount_minor > self.money[currency]:
                return f"over the cap on {currency}"
            if amount_minor > self.money_today.get(currency, amount_minor):
                return f"over the day's cap on {currency}"
        return None

    def take(self, key: str, money: Mapping[str, int]) -> None:
        self.keys.add(key)
        self.items -= 1
        if self.items_today is not None:
            self.items_today -= 1
        for currency, amount_minor in money.items():
            self.money[currency] -= amount_minor
            if currency in self.money_today:
                self.money_today[currency] -= amount_minor


def not_opted_in(rules: CompensationRules) -> str | None:
    if rules.abort_hanging_transactions:
        return None
    return "compensation.abort_hanging_transactions is not true, so nothing is ended"
