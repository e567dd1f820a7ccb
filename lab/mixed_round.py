"""One mixed round: faults drawn by seed, planted for real among traffic that agrees, judged, and scored.

Books, each in a namespace and under a contract of its own:
- clean: exactly-once services that are killed, frozen and cut off, transactions that abort, a broker that is killed;
  two contracts, payments and payouts, and nothing may be wrong;
- payments, payouts: ordinary traffic, and the drawn faults of single events;
- reads: producer transactions that stay open over a window.

Three windows: the baselines, the faults, and what comes later: late copies, the end of what was open.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.clients import new_admin
from lab.command_line import CommandFailed, CommandLine
from lab.desk import Desk, Traffic
from lab.key_faults import PAYMENT_FAULTS, PAYOUT_FAULTS, READ_FAULTS, KeyFault, Later
from lab.log_ends import LogEnds
from lab.mode import DeliveryMode
from lab.round_contracts import faulty, payments_contract, payouts_contract, reads_contract, write_contract
from lab.round_truth import PlantedFault, RoundTruth
from lab.rounds import Round, prepare, run_traffic
from lab.score import Finding, Kind, Score, score, verdict_faults
from lab.stack import LabStack
from lab.stored_findings import read_contract

FAULTS_BY_BOOK = {"payments": PAYMENT_FAULTS, "payouts": PAYOUT_FAULTS, "reads": READ_FAULTS}
SEEDS_FOR_ALL = 5
"""Any so many seeds in a row draw every fault at least once."""

LEGAL_NOTICES = frozenset(
    {"empty_transaction", "late_partner", "paired_across_windows", "promise_at_risk", "unfiltered_reader"}
)
"""What Kafka allows, what a lab of one broker cannot promise, and what held traffic brings with it."""

_ORDINARY = 24  # payments and payouts of each faulty book, in the first window
_ORDINARY_LATER = 6
_PARALLEL = 4
_TIMES = (0, 0, 1, 1, 2)

Say = Callable[[str], None]


@dataclass(frozen=True)
class Draw:
    """One planting of a fault; number tells those of the same fault apart."""

    book: str
    fault: KeyFault
    number: int

    @property
    def name(self) -> str:
        return f"{self.fault.name}-{self.number}"


@dataclass(frozen=True, kw_only=True)
class RoundResult:
    """A round's score, and how its contracts ended."""

    seed: int
    seconds: float
    score: Score
    clean: dict[str, tuple[str, ...]]


def draw_faults(seed: int) -> tuple[Draw, ...]:
    """Draw each fault none to two times; a fifth of them at least once, another fifth with the next seed."""
    dice = random.Random(f"faults:{seed}")
    draws: list[Draw] = []
    for book, faults in FAULTS_BY_BOOK.items():
        for place, fault in enumerate(faults):
            times = max(dice.choice(_TIMES), int((place + seed) % SEEDS_FOR_ALL == 0))
            draws += [Draw(book, fault, number) for number in range(min(times, 1) if fault.slow else times)]
    return tuple(draws)


def run_round(stack: LabStack, seed: int, folder: Path, say: Say = lambda _: None) -> RoundResult:
    """Plant, judge and score one round in namespaces of its own. Writes truth.json into the folder."""
    started = time.monotonic()
    with MixedRound(stack, seed, folder, say) as mixed:
        truth = mixed.play()
    truth.write(folder / "truth.json")
    stored = [read_contract(stack.store_dsn, name) for name in truth.contracts]
    found = [one for each in stored for one in each.findings if one.name not in LEGAL_NOTICES]
    verdicts = {each.contract: each.verdicts for each in stored}
    scored = score(truth.findings, found, allowed=truth.allowed)
    broken = {one.contract for one in truth.findings if one.kind is Kind.BREAK}
    faults = verdict_faults(verdicts, clean=truth.clean, broken=broken)
    return RoundResult(
        seed=seed,
        seconds=round(time.monotonic() - started, 1),
        score=Score(by_class=scored.by_class, differs=(*scored.differs, *faults)),
        clean={name: verdicts[name] for name in truth.clean},
    )


@dataclass
class MixedRound:
    """A round at work. Use it in a `with`: at its end what is still open is let go."""

    stack: LabStack
    seed: int
    folder: Path
    say: Say
    planted: list[PlantedFault] = field(default_factory=list)
    later: list[tuple[Draw, Later]] = field(default_factory=list)
    _desks: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "MixedRound":
        return self

    def __exit__(self, *_: object) -> None:
        self._desks.close()

    def play(self) -> RoundTruth:
        """Three windows; gives the truth about them."""
        draws = draw_faults(self.seed)
        clean = self._prepare()
        contracts = self._write_contracts()
        command_line = CommandLine(addresses=self.stack, folder=self.folder)
        self._judge(command_line, contracts, windows=1)
        self.say(f"{len(contracts)} baselines are taken; {len(draws)} faults are drawn")
        traffic = {book: Traffic(self._desk(book, "traffic")) for book in FAULTS_BY_BOOK}
        self._first_window(clean, traffic, draws)
        self._judge(command_line, contracts, windows=2)
        self.say("the first window is judged")
        self._second_window(clean, traffic)
        self._judge(command_line, contracts, windows=3)
        self.say("the second window is judged")
        return self._truth([path.stem for path in contracts])

    def _judge(self, command_line: CommandLine, contracts: Sequence[Path], *, windows: int) -> None:
        """One window of each contract. Raises CommandFailed where a verdict is missing afterwards."""
        command_line.reconcile(contracts)
        for path in contracts:
            stored = read_contract(self.stack.store_dsn, path.stem)
            if stored.windows != windows:
                raise CommandFailed(f"{path.stem}: {stored.windows} verdicts, not {windows}\n{command_line.log_tail}")

    def _first_window(self, clean: Round, traffic: dict[str, Traffic], draws: Sequence[Draw]) -> None:
        slow_first = sorted(draws, key=lambda draw: not draw.fault.slow)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            ordinary = [pool.submit(_write_ordinary, book, one, _ORDINARY) for book, one in traffic.items()]
            # A poster of the reads' book that waits for the LSO would not post behind a transaction that is open.
            planted = [pool.submit(self._plant, draw) for draw in slow_first if draw.book != "reads"]
            self._clean_traffic(clean, faults=True)
            for job in (*ordinary, *planted):
                job.result()
        for draw in draws:
            if draw.book == "reads":
                self._plant(draw)
        self._wait_for_markers()
        self.say(f"{len(draws)} faults are planted")

    def _second_window(self, clean: Round, traffic: dict[str, Traffic]) -> None:
        self._clean_traffic(clean, faults=False)
        for draw, later in self.later:
            self._note(draw, later())
        for book, one in traffic.items():
            _write_ordinary(book, one, _ORDINARY_LATER)
        self.later.clear()
        self._wait_for_markers()

    def _plant(self, draw: Draw) -> None:
        left = draw.fault.plant(self._desk(draw.book, draw.name))
        self._note(draw, left.findings)
        if left.later is not None:
            self.later.append((draw, left.later))

    def _note(self, draw: Draw, findings: Iterable[Finding]) -> None:
        self.planted += [PlantedFault(fault=draw.name, made=draw.fault.made, finding=one) for one in findings]

    def _clean_traffic(self, clean: Round, *, faults: bool) -> None:
        """Exactly-once services at work; with faults they are hit, without the broker is."""
        bounce = threading.Event()

        def progress(text: str) -> None:
            if text.startswith("written") and not faults and not bounce.is_set():
                bounce.set()
                self.stack.broker.kill()
                self.stack.broker.restart()
                self.say("the broker was killed and started again amid clean traffic")

        sizes = {"payments": 30, "payouts": 20} if faults else {"payments": 10, "payouts": 10}
        seeded = Round(
            addresses=clean.addresses, mode=clean.mode, seed=clean.seed + (not faults), namespace=clean.namespace
        )
        with run_traffic(seeded, holds=False, faults=faults, progress=progress, **sizes) as running:
            left = running.release().anomalies
        if left:
            raise RuntimeError(f"clean traffic left {left}")

    def _prepare(self) -> Round:
        """Make all namespaces, and the topics where misrouted events go."""
        clean = prepare(self.stack, DeliveryMode.EXACTLY_ONCE, self.seed * 2, self._name("clean"))
        for book in FAULTS_BY_BOOK:
            prepare(self.stack, DeliveryMode.AT_LEAST_ONCE, self.seed, self._name(book))
        admin = new_admin(self.stack.bootstrap_servers)
        strays = [f"{self._name(book)}.stray" for book in ("payments", "payouts")]
        for made in admin.create_topics([NewTopic(stray, num_partitions=1) for stray in strays]).values():
            made.result(30)
        LogEnds(admin).wait_until_served([(stray, 0) for stray in strays])
        return clean

    def _write_contracts(self) -> list[Path]:
        clean, payments, payouts, reads = (self._name(book) for book in ("clean", "payments", "payouts", "reads"))
        contracts = [
            payments_contract(f"{clean}_payments", clean),
            payouts_contract(f"{clean}_payouts", clean),
            payments_contract(payments, payments, **faulty(payments, "billing")),
            payouts_contract(payouts, payouts, **faulty(payouts, "relay")),
            reads_contract(reads, reads),
        ]
        return [write_contract(self.folder / "contracts", contract) for contract in contracts]

    def _truth(self, contracts: Sequence[str]) -> RoundTruth:
        reads = self._name("reads")
        return RoundTruth(
            seed=self.seed,
            contracts=tuple(contracts),
            clean=tuple(name for name in contracts if name.startswith(self._name("clean"))),
            allowed=((reads, "partner_not_settled"),),
            planted=tuple(sorted(self.planted, key=lambda one: (one.finding.contract, one.fault, one.finding.subject))),
        )

    def _desk(self, book: str, seed: str) -> Desk:
        service = "relay" if book == "payouts" else "billing"
        return self._desks.enter_context(Desk.open(self.stack, self._name(book), service, seed))

    def _name(self, book: str) -> str:
        return f"s{self.seed}_{book}"

    def _wait_for_markers(self) -> None:
        """Return once the log is decided wherever nothing is held open. A commit returns before its markers stand."""
        held = {one.finding.subject for one in self.planted if one.finding.name == "held_by_open_transaction"}
        if not self.later:
            held = set()
        names = [self._name(book) for book in ("clean", *FAULTS_BY_BOOK)]
        topics = new_admin(self.stack.bootstrap_servers).list_topics(timeout=30).topics
        places = [
            (topic, number)
            for topic, described in topics.items()
            for number in described.partitions
            if topic.partition(".")[0] in names and f"{topic}[{number}]" not in held
        ]
        LogEnds(new_admin(self.stack.bootstrap_servers)).wait_until_decided(places)


def _write_ordinary(book: str, traffic: Traffic, count: int) -> None:
    if book == "payouts":
        traffic.payouts(count)
    else:
        traffic.payments(count)
