"""The services whose books are reconciled: who writes money first, who carries it to the other side, how they err."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tallystick.kafka_log.batch_header import Marker
from tests.simulator.world.broker import Producer
from tests.simulator.world.database import Database
from tests.simulator.world.input_log import InputLog
from tests.simulator.world.truth import EventFact, Money, RowFact, money_of
from tests.simulator.world.world import World

WHO = 3
"""So many transactions of each kind are open at once at most."""


@dataclass
class Carried:
    """What a carrier has done with one origin. pending: written, its transaction is open."""

    money: Money
    times: int = 0
    lost: bool = False


@dataclass
class Services:
    """The origin's writers and the carriers, both by number."""

    world: World
    payments: int = 0
    carried: dict[str, Carried] = field(default_factory=dict)
    """By the origin's copy: what was made of it."""
    pending: dict[int, list[tuple[str, Money]]] = field(default_factory=dict)
    """By carrier: what its open transaction has written."""
    backup: Database | None = None
    """Of the ledger."""

    # Writing, on either side.

    def new_payment(self, amount: int) -> list[Money]:
        """A business transaction: one leg or two."""
        self.payments += 1
        n = self.payments
        return [
            Money(f"ev-{n}-{leg}", f"pay-{n}", leg, 100 + amount, "EUR") for leg in sorted(self.world.contract.legs)
        ]

    def producer(self, side: str, who: int) -> Producer:
        name = f"{side}-{who % WHO}"
        known = self.world.broker.producers.get(name)
        if known is None or known.forgotten:
            return self.world.broker.init(name, now_ms=self.world.clock.now_ms)
        return known

    def write(self, first_side: bool, who: int, money: Money, *, partition: int, by: str = "service") -> None:
        """One copy on one side, in that side's transaction number `who`."""
        world, side = self.world, "app" if first_side else "carrier"
        if first_side == world.config.topic_first:
            self.publish(side, who, money, partition=partition, by=by)
            return
        if world.config.key_is_unique and self._row_stands(money.match_key):
            world.tell(f"the table has a row of {money.match_key} already, and takes no second one")
            return
        world.post(f"{side}-{who % WHO}", money, by=by)
        world.tell(f"{side}-{who % WHO} writes a row of {money.match_key}: {money.amount_minor} {money.currency}")

    def publish(self, side: str, who: int, money: Money, *, partition: int, by: str = "service") -> EventFact | None:
        world = self.world
        transactional = world.config.producer_mode == "transactional"
        producer = self.producer(side, who) if transactional else None
        if producer is not None and producer.decided is not None:
            world.broker.finish(producer, now_ms=world.clock.now_ms)
            world.look()
        fact = world.publish(producer, world.place(money.leg, partition), money, by=by, session=f"{side}-{who % WHO}")
        world.tell(
            f"{side}-{who % WHO} publishes {money.match_key}: {money.amount_minor} {money.currency} at "
            f"{fact.place}:{fact.offset}{'' if producer is None else f' (producer {producer.producer_id})'}"
        )
        return fact

    def open_one(self, first_side: bool, who: int) -> int:
        """This one where its transaction is open, else another one whose is, else this one."""
        side, world = "app" if first_side else "carrier", self.world
        names = [f"{side}-{n}" for n in range(WHO)]
        if first_side == world.config.topic_first:
            known = world.broker.producers
            is_open = [name in known and bool(known[name].wrote) and known[name].decided is None for name in names]
        else:
            is_open = [name in world.database.writers for name in names]
        those = [n for n in range(WHO) if is_open[n]]
        return who if not those or is_open[who % WHO] else those[who % len(those)]

    def end(self, first_side: bool, who: int, *, commit: bool, markers: int = 99) -> None:
        """End one side's transaction. markers: so many of its partitions get theirs now."""
        world, side = self.world, "app" if first_side else "carrier"
        name = f"{side}-{who % WHO}"
        if first_side == world.config.topic_first:
            producer = world.broker.producers.get(name)
            if producer is None or not producer.wrote:
                return
            world.tell(f"{name} {'commits' if commit else 'aborts'} its producer transaction")
            world.broker.decide(producer, Marker.COMMIT if commit else Marker.ABORT)
            for _ in range(min(markers, len(producer.wrote))):
                world.broker.mark_one(producer, now_ms=world.clock.now_ms)
        elif name in world.database.writers:
            world.tell(f"{name} {'commits' if commit else 'rolls back'} its database transaction")
            (world.database.commit if commit else world.database.rollback)(name)
        world.look()

    # Carrying from the first side to the second.

    def due(self) -> list[tuple[str, Money]]:
        """Origins that a carrier sees and has not handled, oldest first."""
        if self.world.config.topic_first:
            return [
                (fact.origin, fact.money)
                for fact in self.world.truth.events
                if fact.visible and fact.by != "repair" and fact.readable and not fact.negated
                if self._is_due(fact.origin)
            ]
        return [
            (row.origin, row.money) for row in self.world.truth.rows.values() if row.stands and self._is_due(row.origin)
        ]

    def _is_due(self, origin: str) -> bool:
        known = self.carried.get(origin)
        return known is None or (known.times == 0 and not known.lost)

    def carry(self, who: int, which: int, partition: int, *, changed: Money | None = None) -> None:
        """Take one that is due, and write it to the second side."""
        due = self.due()
        if not due:
            return
        origin, money = due[which % len(due)]
        self._carry(who, origin, changed or money, partition)

    def _carry(self, who: int, origin: str, money: Money, partition: int) -> None:
        known = self.carried.setdefault(origin, Carried(money))
        known.times += 1
        if self.world.config.carrier_mode == "exactly" and self._stands_already(money.match_key):
            self.world.tell(f"carrier-{who % WHO} sees {money.match_key} again and leaves it alone")
            return
        self.write(False, who, money, partition=partition)
        self.pending.setdefault(who % WHO, []).append((origin, money))

    def _stands_already(self, match_key: str) -> bool:
        """Does a copy of the key stand on the second side, or is one on its way there?"""
        if self.world.config.topic_first:
            return self._row_stands(match_key)
        return any(fact.visible or fact.outcome == "open" for fact in self.world.truth.events_of(match_key))

    def _row_stands(self, match_key: str) -> bool:
        database = self.world.database
        rows = [*database.rows.values(), *(row for name in database.writers for row in database.pending_of(name))]
        return any(row.match_key == match_key for row in rows)

    def end_carrying(self, who: int, *, commit: bool, markers: int = 99) -> None:
        """Commit, or not: then it is delivered again, unless the carrier delivers at most once."""
        written = self.pending.pop(who % WHO, [])
        self.end(False, who, commit=commit, markers=markers)
        for origin, _ in written if not commit else ():
            known = self.carried[origin]
            known.times -= 1
            known.lost |= self.world.config.carrier_mode == "at_most"

    def carry_unread(self, who: int, which: int, partition: int) -> None:
        """Take one that no reader of committed records sees; an odd one: where there is one, an aborted one."""
        if isinstance(self.world.database, InputLog):
            self._carry_unread_input(self.world.database, who, which, partition)
            return
        if not self.world.config.topic_first:
            return
        ended = {fact.origin for fact in self.world.truth.events if fact.outcome == "aborted"}
        places = [
            (fact.origin, fact.money)
            for fact in self.world.truth.events
            if fact.outcome in ("open", "aborted") and fact.by != "repair" and fact.readable and not fact.negated
        ]
        due = [(origin, money) for origin, money in places if self._is_due(origin)]
        due = [one for one in due if one[0] in ended] or due if which % 2 else due
        if due:
            origin, money = due[which % len(due)]
            self.world.tell(f"{money.match_key} is read though it is not committed")
            self._carry(who, origin, money, partition)

    def _carry_unread_input(self, inputs: InputLog, who: int, which: int, partition: int) -> None:
        """The same of a service that reads inputs."""
        found = [(how, f"row {row.row_id}", money_of(row)) for how, row in inputs.not_committed()]
        due = [(how, origin, money) for how, origin, money in found if self._is_due(origin)]
        if which % 2:
            due = [one for one in due if one[0] == "aborted"] or due
        if due:
            _, origin, money = due[which % len(due)]
            self.world.tell(f"{money.match_key} is read though it is not committed")
            self._carry(who, origin, money, partition)

    def redeliver(self, who: int, which: int, partition: int) -> None:
        """A rebalance: what was carried is delivered again."""
        done = [(origin, one.money) for origin, one in self.carried.items() if one.times]
        if done:
            origin, money = done[which % len(done)]
            self.world.tell(f"{money.match_key} is delivered again")
            self._carry(who, origin, money, partition)

    def lose(self, which: int) -> None:
        """A carrier that commits its position before it has written."""
        due = self.due()
        if due and self.world.config.carrier_mode == "at_most":
            origin, money = due[which % len(due)]
            self.carried.setdefault(origin, Carried(money)).lost = True
            self.world.tell(f"{money.match_key} is lost between the two sides")

    def forget_rows(self, gone: Mapping[str, RowFact]) -> None:
        """A backup was put back. gone: rows that went with it, by the name that each had; others come under that name.

        Where they were origins, what was made of them stands. A carrier that delivers exactly once keeps its position
        in the ledger, and so delivers again.
        """
        renamed = {before: row.origin for before, row in gone.items()}
        self.carried = {renamed.get(origin, origin): one for origin, one in self.carried.items()}
        for who, written in self.pending.items():
            self.pending[who] = [(renamed.get(origin, origin), money) for origin, money in written]
        if self.world.config.topic_first and self.world.config.carrier_mode == "exactly":
            keys = {row.money.match_key for row in gone.values()}
            for one in self.carried.values():
                if one.money.match_key in keys and not self._row_stands(one.money.match_key):
                    one.times = 0

    def standing_rows(self) -> list[RowFact]:
        return [row for row in self.world.truth.rows.values() if row.stands]

    def wrong(self, money: Money, how: int) -> Money:
        """The same with one field that is not what was meant."""
        if how % 3 == 0:
            return replace(money, currency="USD")
        return replace(money, amount_minor=money.amount_minor + 1 + how)
