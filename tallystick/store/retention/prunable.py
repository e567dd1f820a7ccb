"""Says what of a contract's past is old, closed and needed by nobody: the one place of these rules (ADR 40).

Each statement gives the keys of what may go. The same statement counts, and picks what a batch deletes.

A run is pruned with all runs before it, since an item lives from one to a later one. Nothing of a run that is kept
reads what goes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import Connection, Table, text

from tallystick.store.schema import (
    alert,
    alert_delivery,
    expectations_outcome,
    item_break,
    item_life,
    open_item,
    sample,
)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Bounds of one contract.

    older_than_utc: what is younger stays. kept_from_cut_n: the first cut whose run stays whole.
    """

    contract: str
    older_than_utc: datetime
    kept_from_cut_n: int

    def parameters(self) -> dict[str, object]:
        return {"contract": self.contract, "older": self.older_than_utc, "kept_from": self.kept_from_cut_n}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of what goes. keys: a statement without its end, that gives a column `key`; key_type: of it.

    deleted_from: tables in the order of their deletion, and the column that has the key.
    """

    name: str
    keys: str
    key_type: str
    deleted_from: Mapping[Table, str]


_KEPT_FROM = """
select least(
    (select min(c.n) from tallystick.cut as c
        join tallystick.verdict as v on v.contract = c.contract and v.cut_n = c.n
        where c.contract = :contract and (c.window_end_utc >= :older or v.recorded_at >= :older)),
    (select max(cut_n) from tallystick.verdict where contract = :contract),
    (select min(p.cut_n) from tallystick.compensation_plan as p
        where p.contract = :contract
            and (
                p.recorded_at >= :older
                or exists (select from tallystick.audit as a where a.plan_id = p.plan_id and a.recorded_at >= :older)
                or exists (
                    select from tallystick.compensation_action as a
                    where a.plan_id = p.plan_id and a.state in ('executing', 'waiting')
                )
            ))
)
"""
"""Below it every run is judged, its window and its verdict are old, and no plan that may still act was drawn on it.

The newest run stays in any case: the next cut goes on from it. NULL where there is no verdict at all.
"""

_STAYING_ITEM = """
case
    when l.item_id like 'legs:%' then 'leg'
    when exists (
        select from tallystick.open_item as o
        where o.contract = l.contract and o.item_id = l.item_id and o.cut_n = l.ended_cut_n
            and o.side = 'ledger' and o.state = 'undecidable' and o.transaction_key <> ''
    ) then 'leg'
    when exists (
        select from tallystick.open_item as o
        where o.contract = l.contract and o.item_id = l.item_id and (o.step > 0 or o.state = 'written_off')
    ) then 'person'
    when exists (
        select from tallystick.open_item as o
        join tallystick.compensation_action as a on a.break_id = o.break_id
        where o.contract = l.contract and o.item_id = l.item_id
    ) then 'repair'
end
"""
"""Why an ended item stays for good.

leg: a later cut asks whether the legs of a business transaction were judged before, and which of its rows nobody could
decide. person: a row that was written off and is read once more is known by it, and its event for a leg that came.
repair: the trail of a repair names the break and its items.
"""

ITEMS = Kind(
    name="items",
    keys=f"""
    select l.item_id as key from tallystick.item_life as l
    where l.contract = :contract and l.ended_cut_n < :kept_from and {_STAYING_ITEM} is null
    """,
    key_type="text",
    deleted_from=MappingProxyType({open_item: "item_id", item_life: "item_id"}),
)
"""Each whole, with all its rows: one that stands, or whose end a kept run still reports, keeps them all."""

BREAKS = Kind(
    name="breaks",
    keys=f"""
    select b.break_id as key from tallystick.item_break as b
    where b.contract = :contract and b.cut_n < :kept_from
        and not exists (select from tallystick.compensation_action as a where a.break_id = b.break_id)
        and not exists (
            select from tallystick.open_item as o
            join tallystick.item_life as l on l.contract = o.contract and l.item_id = o.item_id
            where o.contract = b.contract and o.break_id = b.break_id
                and not (coalesce(l.ended_cut_n < :kept_from, false) and {_STAYING_ITEM} is null)
        )
    """,
    key_type="uuid",
    deleted_from=MappingProxyType({item_break: "break_id"}),
)
"""Those that no item that stays names, and no repair. Their sums stay, in break_total."""

ALERTS = Kind(
    name="alerts",
    keys="""
    select t.alert_id as key
    from tallystick.alert as t
    join (
        select r.dedup_key, max(r.alert_id) as alert_id
        from tallystick.alert as r
        join (
            select a.dedup_key, max(a.alert_id) as newest, min(a.alert_id) filter (
                where a.recorded_at >= :older or a.cut_n >= :kept_from or exists (
                    select from jsonb_array_elements_text(a.sinks) as named (sink)
                    where not exists (
                        select from tallystick.alert as later
                        join tallystick.alert_delivery as d on d.alert_id = later.alert_id
                        where later.contract = a.contract and later.dedup_key = a.dedup_key
                            and later.alert_id >= a.alert_id and d.delivered and d.sink = named.sink
                    )
                )
            ) as stays_from
            from tallystick.alert as a where a.contract = :contract group by a.dedup_key
        ) as of_key on of_key.dedup_key = r.dedup_key
        where r.contract = :contract and r.action = 'resolve' and r.alert_id < of_key.newest
            and (of_key.stays_from is null or r.alert_id < of_key.stays_from)
        group by r.dedup_key
    ) as ended on ended.dedup_key = t.dedup_key
    where t.contract = :contract and t.alert_id <= ended.alert_id
    """,
    key_type="bigint",
    deleted_from=MappingProxyType({alert_delivery: "alert_id", alert: "alert_id"}),
)
"""The oldest incidents of a class, whole, up to the first that is young or that a sink has not got. The newest alert of
a class stays: it says whether the class is firing.
"""

OUTCOMES = Kind(
    name="outcomes of expectations",
    keys="""
    select e.outcome_id as key from tallystick.expectations_outcome as e
    where e.contract = :contract and e.cut_n < :kept_from
        and e.cut_n < (select max(cut_n) from tallystick.expectations_outcome where contract = :contract)
    """,
    key_type="bigint",
    deleted_from=MappingProxyType({expectations_outcome: "outcome_id"}),
)
"""The newest says whose alerts count."""

SAMPLES = Kind(
    name="samples",
    keys="""
    select s.at_utc as key from tallystick.sample as s
    where s.contract = :contract and s.at_utc < least(
        :older,
        (select window_end_utc from tallystick.cut where contract = :contract and n = :kept_from - 1),
        (select min(due_utc) from tallystick.standing_item where contract = :contract and state = 'open')
    )
    """,
    key_type="timestamptz",
    deleted_from=MappingProxyType({sample: "at_utc"}),
)
"""Those from before the last pruned window ended, and before the oldest open item was due: by the others a later cut
says how far a side has settled.
"""

KINDS = (ITEMS, BREAKS, ALERTS, OUTCOMES, SAMPLES)
"""In the order of their deletion: items name breaks."""


def kept_from(connection: Connection, contract_name: str, older_than_utc: datetime) -> int:
    """Return the first cut whose run stays whole; 0 where all stay."""
    asked = {"contract": contract_name, "older": older_than_utc}
    return int(connection.scalar(text(_KEPT_FROM), asked) or 0)


def count(connection: Connection, kind: Kind, bounds: Bounds) -> int:
    """Return how many of a kind may go."""
    return int(connection.scalar(text(f"select count(*) from ({kind.keys}) as gone"), bounds.parameters()) or 0)


def next_keys(
    connection: Connection, kind: Kind, bounds: Bounds, *, after: object | None, at_most: int
) -> list[object]:
    """Return the keys of the next batch, in order. after: the last key of the one before; None: of the first."""
    beyond = "" if after is None else f"where key > cast(:after as {kind.key_type})"
    statement = f"select key from ({kind.keys}) as gone {beyond} order by key limit :at_most"
    asked = bounds.parameters() | {"at_most": at_most} | ({} if after is None else {"after": after})
    return list(connection.scalars(text(statement), asked))


def count_staying(connection: Connection, bounds: Bounds) -> dict[str, int]:
    """Return how many items of the pruned runs stay, by the reason why; a reason without any is left out."""
    ended = f"""
    select {_STAYING_ITEM} as reason, count(*) as items from tallystick.item_life as l
    where l.contract = :contract and l.ended_cut_n < :kept_from and {_STAYING_ITEM} is not null group by 1
    """
    standing = """
    select count(distinct o.item_id) from tallystick.open_item as o
    join tallystick.item_life as l on l.contract = o.contract and l.item_id = o.item_id
    where o.contract = :contract and o.cut_n < :kept_from and (l.ended_cut_n is null or l.ended_cut_n >= :kept_from)
    """
    found = {row.reason: row.items for row in connection.execute(text(ended), bounds.parameters())}
    found["standing"] = connection.scalar(text(standing), bounds.parameters()) or 0
    return {reason: found[reason] for reason in ("standing", "person", "repair", "leg") if found.get(reason)}
