"""The keys of the payload that people may see, and the text in the place of the others. Pure.

Pairing needs every key, so the store keeps them; they are masked where stored values leave it: pages, reports, plans,
explanations, logs and the Parquet of breaks. Positions, money, legs and times are what the books are about, and are
always shown; of a payload's other fields only those that the contract compares are kept, and `shown: false` hides one.
Does not decide what an alert shows: `alert.match_keys`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tallystick.contract.contract import Contract
from tallystick.contract.event import PayloadKey
from tallystick.host.packed_json import unpacked_json
from tallystick.model.break_history import ToldBreak
from tallystick.model.findings import Break
from tallystick.model.item_reason import Reason
from tallystick.model.open_item import OpenItem
from tallystick.model.stored_run import StoredRun

if TYPE_CHECKING:  # whoever masks a window's breaks has no plan to load
    from tallystick.compensation.plan import PlanItem
    from tallystick.store.breaks.item_query_store import ListedItem
    from tallystick.store.plans.plan_life_store import PlanInShort

MASKED = "masked"
_Record = TypeVar("_Record", Break, OpenItem, "ListedItem", "PlanItem")


class Mask:
    """The hidden keys of one contract. Each method returns its argument with the hidden keys masked, wherever they
    stand.
    """

    def __init__(self, contract: Contract) -> None:
        hidden = set(PayloadKey) - set(contract.shown_keys)
        self._match_key = PayloadKey.MATCH_KEY in hidden
        self._transaction_key = PayloadKey.TRANSACTION_KEY in hidden
        self._ordering_key = PayloadKey.ORDERING_KEY in hidden
        compared = contract.event.compared
        self._columns = {name for name, rule in zip(compared.names, compared.rules, strict=True) if not rule.shown}

    @property
    def hides_events(self) -> bool:
        """Return whether one of the keys is hidden that people look an event up by."""
        return self._match_key or self._transaction_key

    def key(self, match_key: str) -> str:
        """A match key on its own. A break about legs has its transaction's key there, so either rule hides it."""
        return MASKED if match_key and self.hides_events else match_key

    def item_break(self, found: Break) -> Break:
        own = str(found.evidence.get("ordering_key") or "") if self._ordering_key else ""
        if self._columns and "columns" in found.evidence:
            columns = [self._column(one) for one in found.evidence["columns"]]
            found = replace(found, evidence={**found.evidence, "columns": columns})
        return self._masked(found, self._keys(found.match_key, found.transaction_key) | {own})

    def item(self, item: OpenItem) -> OpenItem:
        return self._masked(item, self._keys(item.match_key, item.transaction_key))

    def listed_item(self, row: "ListedItem") -> "ListedItem":
        return self._masked(row, self._keys(row.match_key, row.transaction_key))

    def told(self, told: ToldBreak) -> ToldBreak:
        """A break with its life."""
        life = tuple(replace(step, item=self.item(step.item)) for step in told.life)
        return replace(told, item_break=self.item_break(told.item_break), life=life)

    def run(self, run: StoredRun) -> StoredRun:
        """A run with its breaks and items."""
        breaks = tuple(map(self.item_break, run.result.breaks))
        return replace(run, result=replace(run.result, breaks=breaks, items=tuple(map(self.item, run.result.items))))

    def in_short(self, plan: "PlanInShort") -> "PlanInShort":
        left_out = tuple(
            replace(excluded, match_keys=tuple(map(self.key, excluded.match_keys))) for excluded in plan.left_out
        )
        return replace(plan, items=tuple(map(self._plan_item, plan.items)), left_out=left_out)

    def _column(self, said: Mapping[str, Any]) -> dict[str, Any]:
        hidden = dict.fromkeys(("topic", "ledger"), MASKED) if said["column"] in self._columns else {}
        return {**said, **hidden}

    def _plan_item(self, item: "PlanItem") -> "PlanItem":
        return self._masked(item, self._keys(item.match_key, item.transaction_key))

    def _keys(self, match_key: str, transaction_key: str) -> set[str]:
        return {match_key if self._match_key else "", transaction_key if self._transaction_key else ""}

    @staticmethod
    def _masked(record: _Record, keys: Iterable[str]) -> _Record:
        hidden = sorted(filter(None, keys), key=len, reverse=True)
        if not hidden:
            return record
        whole = re.compile("|".join(rf"(?<!\w){re.escape(key)}(?!\w)" for key in hidden))
        values = {one.name: getattr(record, one.name) for one in fields(record)}
        return replace(record, **{name: _without(whole, value) for name, value in values.items()})


def _without(keys: re.Pattern[str], value: Any) -> Any:
    """JSON values with each text's keys masked; what is no text stays."""
    if type(value) is str:
        return keys.sub(MASKED, value)
    if isinstance(value, Mapping):
        value = unpacked_json(value)
        return {_without(keys, name): _without(keys, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without(keys, member) for member in value)
    if isinstance(value, Reason):
        return replace(value, about=_without(keys, value.about))
    return value
