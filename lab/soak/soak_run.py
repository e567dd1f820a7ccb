"""A soak at work: windows of live traffic with faults, cut, judged, disturbed, looked at again, and summed up.

Two books, payments and payouts, whose traffic never stops while their windows are cut and judged, in turn. What a
window is to find is planted while the window before it is judged. Some pairs are completed only once they were cut
through, and some only once they were called missing. One Spark session judges all, but for the runs that are killed or
contested.

A pair whose second half comes after the cut must be there before the cut is judged, or it is rightly called missing:
so between the two the traffic is stopped for a moment and the log decided. No grace, and no clock.

One file, since a window's steps share the traffic, the clockless order and the state of the window before it.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from lab.faults.event_faults import KeyFault, Later
from lab.product.command_line import CommandFailed, CommandLine
from lab.product.spark_app import ENDS, SparkApp
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.mixed_round import LEGAL_NOTICES
from lab.rounds.round_contracts import faulty, payments_contract, payouts_contract, write_contract
from lab.servers import process
from lab.servers.broker import Broker
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.postgres import PostgresServer
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.kafka_clients import new_admin
from lab.services.live_traffic import LiveTraffic
from lab.services.namespace import Namespace
from lab.services.workload import Workload
from lab.soak.late_partners import Straddle, cleared
from lab.soak.soak_plan import BOOKS, Disturbance, Window, plan_soak
from lab.soak.soak_score import BookTruth, SoakScore, add_accounts, score_findings
from lab.truth.committed_reader import committed_records
from lab.truth.round_truth import PlantedFault, RoundTruth
from lab.truth.score import Finding
from lab.truth.store_size import store_bytes
from lab.truth.stored_books import StoredBooks, read_books, window_name

Say = Callable[[str], None]

_ATTEMPTS_MAX = 5
_LAST_WINDOWS_MAX = 3
_SERVICES = {"payments": "billing", "payouts": "relay"}
_LEGS = {"payments": (Leg.PAYMENT, Leg.INVOICE), "payouts": (Leg.PAYOUT,)}
_KEEP_EACH = 10
_STORED_ROWS = """
    SELECT (SELECT count(*) FROM tallystick.verdict), (SELECT count(*) FROM tallystick.item_break),
           (SELECT count(*) FROM tallystick.open_item), (SELECT count(*) FROM tallystick.alert),
           (SELECT sum(attempt) FROM tallystick.cut), (SELECT string_agg(digest, ',') FROM
           (SELECT digest FROM tallystick.verdict ORDER BY contract, cut_n) judged)"""


class RunFailed(RuntimeError):
    """A run ended without a verdict though nothing disturbed it, or what it may not change has changed."""


@dataclass(frozen=True, kw_only=True)
class SoakResult:
    """done: how often each thing happened. seconds: of each window. The rest are sums over all windows."""

    seed: int
    score: SoakScore
    done: Counter[str]
    seconds: tuple[float, ...]
    store_bytes: int
    verdicts: Counter[str]
    offsets: int
    records: int
    rows: int
    cleared: int


def run_soak(
    stack: LabStack,
    *,
    seed: int,
    windows: int,
    folder: Path,
    say: Say = lambda _: None,
    keep: Callable[[SoakResult], None] = lambda _: None,
) -> SoakResult:
    """Play all windows, and score them. Writes truth.json into the folder; keep: told the figures so far, now and then.

    The store must be migrated. Raises what stopped it, such as CommandFailed or SparkAppEnded.
    """
    with ExitStack() as cleanup:
        return Soak(stack, seed, windows, folder, say, keep, cleanup).play()


class Soak:
    """One soak. What it opens is closed with `cleanup`."""

    def __init__(
        self,
        stack: LabStack,
        seed: int,
        windows: int,
        folder: Path,
        say: Say,
        keep: Callable[[SoakResult], None],
        cleanup: ExitStack,
    ) -> None:
        self.stack, self.seed, self.folder, self.say, self.keep, self.cleanup = stack, seed, folder, say, keep, cleanup
        self.plan = plan_soak(seed, windows)
        self.names = {book: f"soak{seed}_{book}" for book in BOOKS}
        self.command_line = CommandLine(addresses=stack, folder=folder)
        self.planted: list[PlantedFault] = []
        self.done: Counter[str] = Counter()
        self.seconds: list[float] = []
        self._later: list[tuple[Window, KeyFault, Later]] = []  # window of the first half, second half
        self._straddles: list[tuple[Window, str, Straddle]] = []  # the name says how they are made
        self._spare: SparkApp | None = None
        self._pool = cleanup.enter_context(ThreadPoolExecutor(4))

    def play(self) -> SoakResult:
        contracts = self.folder / "contracts"
        contracts.mkdir(parents=True)
        self.session = self._new_app("session")
        self.contracts = {book: write_contract(contracts, self._prepare(book)) for book in BOOKS}
        self._log_ends = LogEnds(new_admin(self.stack.bootstrap_servers))
        self.command_line.cut([*self.contracts.values()])
        self.traffic = {book: self._start_traffic(book) for book in BOOKS}
        self.say("the baselines are taken, and traffic runs")
        planting = self._pool.submit(self._plant, self.plan[0])
        for window, following in zip(self.plan, (*self.plan[1:], None), strict=True):
            started = time.monotonic()
            planting.result()
            planting = self._play_window(window, following)
            self.seconds.append(round(time.monotonic() - started, 2))
            self._tell(window)
            if window.number % _KEEP_EACH == 0:
                self.keep(self._result())
        self._play_last_windows()
        truth = [self._count(book) for book in BOOKS]
        return self._result(truth)

    def _play_window(self, window: Window, following: Window | None) -> Future[None]:
        """Cut, judge, disturb, look again. Gives the planting of the next window, which may still be at work."""
        self._open_spare(following)
        self._finish_later(window)
        self.traffic[window.book].wait_for_batch()
        self._cut(window)
        self._finish_straddles()
        self._calm()
        planting = None if window.disturbance.server else self._pool.submit(self._plant, following)
        self._judge(window)
        self._look_again(window)
        return planting or self._pool.submit(self._plant, following)

    # What is planted, and what comes later.

    def _plant(self, window: Window | None) -> None:
        """A fault of single events, and the first half of a pair that the window's cut is to go through."""
        if window is None:
            return
        with self._desk(window.book, str(window.number)) as desk:
            if window.fault is not None:
                left = window.fault.plant(desk)
                self._note(window.fault.name, left.findings, window.cut_n)
                if left.later is not None:
                    self._later.append((window, window.fault, left.later))
            if window.straddle is not None:
                self._straddles.append((window, window.straddle.__name__, window.straddle(desk)))

    def _finish_later(self, now: Window | None) -> None:
        """Second halves that come once their first half's window was judged. now: None where all are."""
        for planted, fault, later in [one for one in self._later if one[0] is not now]:
            self._note(fault.name, later(), planted.cut_n + 1)
            self._later.remove((planted, fault, later))

    def _finish_straddles(self) -> None:
        """Second halves behind a cut; the cut after it clears them."""
        for window, name, straddle in self._straddles:
            self._note(name, cleared(self.names[window.book], *straddle.finish()), window.cut_n + 1)
        self._straddles.clear()

    def _note(self, name: str, findings: Iterable[Finding], cut_n: int) -> None:
        for one in findings:
            named = replace(one, contract=window_name(one.contract, cut_n))
            self.planted.append(PlantedFault(fault=name, finding=named))

    # Cuts.

    def _cut(self, window: Window) -> None:
        """Store the window's cut, whatever happens meanwhile."""
        if window.disturbance is Disturbance.TWO_CUTS:
            both = [self._pool.submit(self._try_cut, window) for _ in range(2)]
            if sorted(one.result() for one in both) != [False, True]:
                raise RunFailed(f"window {window.number}: of two cuts at once, one must be stored and one refused")
            self.done["cuts refused"] += 1
        elif window.disturbance.server and window.at == "cut":
            told = self.command_line.log.stat().st_size
            tried = self._pool.submit(self._try_cut, window)
            process.wait_until(lambda: tried.done() or self._has_settled(told), what="a cut", deadline_seconds=120)
            self._strike(window.disturbance)
            self.done["cuts failed"] += not tried.result()
        if not self._is_cut(window):
            self.command_line.cut([self.contracts[window.book]])

    def _try_cut(self, window: Window) -> bool:
        try:
            self.command_line.cut([self.contracts[window.book]])
        except CommandFailed:
            return False
        return True

    def _has_settled(self, told: int) -> bool:
        """Has a cut's process looked at both sides, since its log was so long?"""
        return b"settle" in self.command_line.log.read_bytes()[told:]

    def _is_cut(self, window: Window) -> bool:
        query = "SELECT 1 FROM tallystick.cut WHERE contract = %s AND n = %s"
        with psycopg.connect(self.stack.store_dsn) as connection:
            return connection.execute(query, (self.names[window.book], window.cut_n)).fetchone() is not None

    def _calm(self) -> None:
        """Return once no payment is half written that a cut may have gone through, and all of the log is decided."""
        with self._between_batches():
            self._log_ends.wait_until_decided([place for book in BOOKS for place in self._places(book)])

    @contextmanager
    def _between_batches(self) -> Iterator[None]:
        with self.traffic["payments"].between_batches, self.traffic["payouts"].between_batches:
            yield

    # Runs.

    def _judge(self, window: Window) -> None:
        """Give the window its verdict, in the session; where the plan says so another process tries it, too."""
        self._open_spare(window)
        spare = self._spare if window.disturbance.needs_process else None
        if spare is not None:
            spare.order(self.contracts[window.book], window.cut_n)
            step = spare.wait_for({window.at, *ENDS})
            if step["step"] in ENDS:
                raise RunFailed(f"{self._name(window)}: {step}; expected {window.at}\n{spare.log_tail}")
            if window.disturbance is Disturbance.RUN_KILLED:
                spare.kill(window.part)
                self._spare = None
        end = self._judge_in_session(window)
        if window.disturbance is Disturbance.RUN_KILLED:
            self.done["run killed" if end == "committed" else "run killed too late"] += 1
        elif spare is not None:
            self._end_contest(window, spare)

    def _judge_in_session(self, window: Window) -> str:
        """Until there is a verdict; gives the last step. Only a disturbance may let a run fail. Raises RunFailed."""
        strikes = bool(window.disturbance.server) and window.at != "cut"
        for _ in range(_ATTEMPTS_MAX):
            self.session.order(self.contracts[window.book], window.cut_n)
            step = self.session.wait_for({window.at, *ENDS} if strikes else ENDS)
            if strikes:
                self._strike(window.disturbance)
                strikes = False
            end = step if step["step"] in ENDS else self.session.wait_for(ENDS)
            if end["step"] != "failed":
                return str(end["step"])
            if not window.disturbance.may_fail(end["error"]):
                break
            self.done["runs failed"] += 1
        raise RunFailed(f"{self._name(window)}: {end['error']}\n{self.session.log_tail}")

    def _end_contest(self, window: Window, spare: SparkApp) -> None:
        """The other one of two runs may have won, may have come too late, or have been fenced."""
        end = spare.wait_for(ENDS)
        if end["step"] == "failed" and not window.disturbance.may_fail(end["error"]):
            raise RunFailed(f"{self._name(window)}: of two runs one failed: {end['error']}\n{spare.log_tail}")
        self.done[str(window.disturbance)] += 1

    def _look_again(self, window: Window) -> None:
        """Read a stored cut again, and clear one as an operator would: nothing may change."""
        dice = random.Random(f"again:{self.seed}:{window.number}")
        before = self._stored_rows()
        for wanted, reread in ((window.reread, True), (window.clear, False)):
            past = dice.choice(self.plan[: window.number])
            if not wanted:
                continue
            self.session.order(self.contracts[past.book], past.cut_n, reread=reread)
            end = self.session.wait_for(ENDS)
            if end["step"] != ("reread" if reread else "already_judged"):
                raise RunFailed(f"{self._name(past)}, looked at again: {end}\n{self.session.log_tail}")
            self.done["cuts read again" if reread else "verdicts cleared"] += 1
        if self._stored_rows() != before:
            raise RunFailed(f"window {window.number}: what was looked at again has changed the store")

    def _stored_rows(self) -> Any:
        with psycopg.connect(self.stack.store_dsn) as connection:
            return connection.execute(_STORED_ROWS).fetchone()

    # Servers.

    def _strike(self, disturbance: Disturbance) -> None:
        """Kill or stop a server, and start it again at once."""
        servers: dict[str, Broker | PostgresServer] = {
            "broker": self.stack.broker,
            "ledger": self.stack.ledger_server,
            "store": self.stack.store_server,
        }
        server = servers[disturbance.server]

        def strike() -> None:
            if disturbance.kills:
                server.kill()
            server.restart()

        if server is self.stack.store_server and self._spare is not None:
            self._spare.end()  # one that is just starting ends without its store; its window opens another
            self._spare = None
        if server is self.stack.broker:
            self._strike_amid_transactions(strike)
        else:
            strike()
        self.done[str(disturbance)] += 1

    def _strike_amid_transactions(self, strike: Callable[[], None]) -> None:
        """While each book has a producer transaction open, and none is being committed.

        An only broker that dies between the coordinator's decision and its markers comes back without yet knowing the
        partitions' leaders, drops the markers, and leaves a transaction that hangs: a fault of Kafka's.
        """
        payments, payouts = (self.traffic[book] for book in BOOKS)
        with self._between_batches():
            self._calm()
            payments.write_batch(lambda: payouts.write_batch(strike))

    # The end.

    def _play_last_windows(self) -> None:
        """No more traffic of its own; windows of both books until nothing is open."""
        for traffic in self.traffic.values():
            traffic.stop()
        for window in range(_LAST_WINDOWS_MAX):
            self._finish_later(None)
            for traffic in self.traffic.values():
                traffic.write_batch()
            self._calm()
            self.command_line.cut([*self.contracts.values()])
            for book, contract in self.contracts.items():
                self.session.order(contract, sum(one.book == book for one in self.plan) + 1 + window)
                end = self.session.wait_for(ENDS)
                if end["step"] != "committed":
                    raise RunFailed(f"{self.names[book]}: {end}\n{self.session.log_tail}")
            if not any(states[-1] == "open" for books in self._stored() for states in books.states.values()):
                self.say("traffic has stopped, and the last windows left nothing open")
                return

    def _count(self, book: str) -> BookTruth:
        """What the log and the ledger hold now, read by a committed reader and by plain SQL."""
        ends, records = committed_records(self.stack.bootstrap_servers, self._places(book))
        table = "payout" if book == "payouts" else "posting WHERE side = 'credit'"
        with psycopg.connect(self.stack.ledger_owner_dsn) as connection:
            (rows,) = connection.execute(f"SELECT count(*) FROM {self.names[book]}.{table}").fetchone() or (0,)
        return BookTruth(contract=self.names[book], ends=ends, records=records, ledger_rows=rows)

    def _result(self, truth: Sequence[BookTruth] = ()) -> SoakResult:
        """The figures so far; at the end with the truth about both sides."""
        stored = self._stored()
        judged = {window_name(books.contract, window) for books in stored for window in books.verdicts}
        planted = [one for one in self.planted if one.finding.contract in judged]
        RoundTruth(
            seed=self.seed, contracts=tuple(self.names.values()), clean=(), allowed=(), planted=tuple(planted)
        ).write(self.folder / "truth.json")
        scored = score_findings([one.finding for one in planted], stored, legal_notices=LEGAL_NOTICES)
        return SoakResult(
            seed=self.seed,
            score=add_accounts(scored, truth, stored),
            done=Counter(self.done),
            seconds=tuple(self.seconds),
            store_bytes=store_bytes(self.stack.store_dsn),
            verdicts=Counter(verdict for books in stored for verdict in books.verdicts.values()),
            offsets=sum(sum(books.offsets.values()) for books in stored),
            records=sum(sum(books.records.values()) for books in stored),
            rows=sum(books.ledger_rows for books in stored),
            cleared=sum(states.count("cleared") for books in stored for states in books.states.values()),
        )

    def _stored(self) -> list[StoredBooks]:
        return [read_books(self.stack.store_dsn, name) for name in self.names.values()]

    # What it is made of.

    def _prepare(self, book: str) -> dict[str, Any]:
        name, service = self.names[book], _SERVICES[book]
        prepare(self.stack, DeliveryMode.AT_LEAST_ONCE, self.seed, name)
        contract = payouts_contract if book == "payouts" else payments_contract
        with self._desk(book, "prepare") as desk:
            desk.make_topic(desk.stray_topic)
        return contract(name, name, **faulty(name, service))

    def _desk(self, book: str, seed: str) -> AbstractContextManager[Workload]:
        return Workload.open(self.stack, self.names[book], _SERVICES[book], f"{self.seed}:{seed}")

    def _start_traffic(self, book: str) -> LiveTraffic:
        desk = self.cleanup.enter_context(self._desk(book, "traffic"))
        return self.cleanup.enter_context(LiveTraffic(desk))

    def _open_spare(self, window: Window | None) -> None:
        """Have a Spark app of its own for the window, where its plan asks for one. It starts slowly, so in time."""
        if window is not None and window.disturbance.needs_process and self._spare is None:
            self._spare = self._new_app(f"spare-{window.number}")

    def _new_app(self, name: str) -> SparkApp:
        app = SparkApp(self.command_line, name)
        self.cleanup.callback(app.end)
        return app

    def _name(self, window: Window) -> str:
        return window_name(self.names[window.book], window.cut_n)

    def _places(self, book: str) -> list[Partition]:
        names = Namespace(self.names[book])
        topics = [names.topic(leg) for leg in _LEGS[book]]
        return [(topic, number) for topic in topics for number in range(names.partitions[topic])]

    def _tell(self, window: Window) -> None:
        where = f", at {window.at}" if window.disturbance.server or window.disturbance.needs_process else ""
        what = "" if window.disturbance is Disturbance.NONE else f"; {window.disturbance}{where}"
        self.say(f"window {window.number}, {window.book}: {self.seconds[-1]:.1f} s{what}")
