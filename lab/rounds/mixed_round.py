"""One mixed round: faults drawn by seed, planted for real among traffic that agrees, judged, and scored.

Books, each in a namespace and under a contract of its own:
- clean: exactly-once services that are killed, frozen and cut off, transactions that abort, brokers that are killed;
  two contracts, payments and payouts, and nothing may be wrong;
- payments, payouts: ordinary traffic, and the drawn faults of single events; two contracts watch the payouts;
- reads: producer transactions that stay open over a window;
- one for each drawn fault of the log, of the ledger once it was judged, and of a repair.

A stranger who means harm writes to the topics of payments and payouts in every round, and amid the repairs of a book of
their own; the score shows that he changes nothing but what he adds himself.

A round on three brokers has the clean books, whose brokers die and whose leaders move, and the faults that need them.

Three windows: the baselines, the faults, and what comes later: late copies, the end of what was open.

One file, since a round is one sequence over its books, and is read from its first window to its last.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.faults.broker_restarts import bounced
from lab.faults.event_faults import (
    PAYMENT_FAULTS,
    PAYOUT_FAULTS,
    READ_FAULTS,
    KeyFault,
    Later,
    Planted,
    after_retention,
)
from lab.faults.ledger_fault_books import LEDGER_FAULTS
from lab.faults.log_fault_books import CLUSTER_FAULTS, LOG_FAULTS, LogBook, LogFault
from lab.faults.stranger_book import STRANGER_FAULTS
from lab.product.command_line import CommandFailed, CommandLine
from lab.rounds.begun_book import BEGUN_FAULTS
from lab.rounds.delivery_mode_round import Round, prepare, run_traffic
from lab.rounds.judged_by_dag import judge_by_dag
from lab.rounds.kept_ledger import KeptLedger, LedgerKind
from lab.rounds.round_contracts import (
    SWITCHED_LEDGER,
    faulty,
    payments_contract,
    payouts_contract,
    reads_contract,
    write_contract,
)
from lab.rounds.running_round import FIRST_HOLDS_ENDED
from lab.rounds.switched_book import SWITCHED_FAULTS
from lab.servers.log_ends import LogEnds, Partition
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event_format import EventFormat, written_as
from lab.services.kafka_clients import new_admin
from lab.services.namespace import Namespace
from lab.services.workload import Traffic, Workload
from lab.truth.round_truth import PlantedFault, RoundTruth
from lab.truth.score import Finding, FindingKind, Score, score, verdict_faults
from lab.truth.stored_findings import read_contract

FAULTS_BY_BOOK = {"payments": PAYMENT_FAULTS, "payouts": PAYOUT_FAULTS, "reads": READ_FAULTS}
SEEDS_FOR_ALL = 5
"""Any so many seeds in a row draw every fault at least once."""

LEGAL_NOTICES = frozenset(
    {"empty_transaction", "late_partner", "paired_across_windows", "promise_at_risk", "unfiltered_reader"}
)
"""What Kafka allows, what a lab of one broker cannot promise, and what held traffic brings with it."""

JUDGED_FAULTS = (*LEDGER_FAULTS, *SWITCHED_FAULTS, *BEGUN_FAULTS, *STRANGER_FAULTS)
"""Those that need a window that has been judged."""

_TWIN = "payouts_twin"
"""A second contract over the payouts' topic and table."""

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
    brokers: int
    seconds: float
    score: Score
    clean: dict[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What one round plants, drawn by its seed.

    retention: it takes what the first window has judged, of the clean books and those of single events.
    """

    draws: tuple[Draw, ...] = ()
    log_faults: tuple[LogFault, ...] = ()
    retention: bool = False

    @property
    def books(self) -> tuple[str, ...]:
        """Those of single events; none where no such fault is drawn."""
        return tuple(FAULTS_BY_BOOK) if self.draws else ()

    def __len__(self) -> int:
        return len(self.draws) + len(self.log_faults)


def draw_faults(seed: int, ledger: LedgerKind = LedgerKind.POSTGRES) -> Drawn:
    """Draw each fault none to two times; a fifth of them at least once, another fifth with the next seed.

    Without those of a repair where events are no JSON, or rows are read from a standby: Tallystick refuses to repair
    them. Without those and what an owner does to judged rows where the ledger is not read by `kind: postgres`; nor is a
    standby switched over.
    """
    dice = random.Random(f"faults:{seed}")
    retention = _is_due(seed) or _is_due(seed + 3)
    draws: list[Draw] = []
    for book, faults in FAULTS_BY_BOOK.items():
        for place, fault in enumerate(faults):
            is_due = fault.always or _is_due(place + seed) or (retention and fault.sends_again)
            times = max(dice.choice(_TIMES), int(is_due))
            draws += [Draw(book, fault, number) for number in range(min(times, 1) if fault.slow else times)]
    log_faults = (*_due(LOG_FAULTS, seed), *(_due(JUDGED_FAULTS, seed) if ledger.is_postgres else ()))
    left_out = {"compensation"} if written_as().format is not EventFormat.JSON or not ledger.is_primary else set()
    if ledger is LedgerKind.STANDBY:
        left_out |= {"connection"}  # of a ledger that is switched over
    log_faults = tuple(fault for fault in log_faults if not left_out & fault.fields.keys())
    return Drawn(draws=tuple(draws), log_faults=log_faults, retention=retention)


def draw_cluster_faults(seed: int) -> Drawn:
    """Those that need three brokers: of five seeds in a row, two draw one, and three none."""
    return Drawn(log_faults=_due(CLUSTER_FAULTS, seed + 3))


def run_round(
    stack: LabStack,
    seed: int,
    folder: Path,
    say: Say = lambda _: None,
    *,
    by_dag: bool = False,
    ledger: KeptLedger | None = None,
) -> RoundResult:
    """Plant, judge and score one round in namespaces of its own. Writes truth.json into the folder.

    by_dag: the last window is judged in Airflow. ledger: where the contracts find their rows, if not in the stack's.
    """
    kept = ledger or KeptLedger()
    return _run(MixedRound(stack, seed, folder, say, draw_faults(seed, kept.kind), by_dag=by_dag, ledger=kept))


def run_cluster_round(stack: LabStack, seed: int, folder: Path, say: Say = lambda _: None) -> RoundResult:
    """The same on three brokers, with the faults that need them."""
    return _run(MixedRound(stack, seed, folder, say, draw_cluster_faults(seed)))


def _run(unplayed: "MixedRound") -> RoundResult:
    started = time.monotonic()
    with unplayed as mixed:
        truth = mixed.play()
        counted = [one for count in mixed.counted for one in count()]
    truth.write(mixed.folder / "truth.json")
    stored = [read_contract(mixed.stack.store_dsn, name) for name in truth.contracts]
    planted = {(one.contract, one.name) for one in truth.findings}
    found = [
        one
        for each in stored
        for one in each.findings
        if one.name not in LEGAL_NOTICES or (one.contract, one.name) in planted
    ]
    verdicts = {each.contract: each.verdicts for each in stored}
    scored = score(truth.findings, [*found, *counted], allowed=truth.allowed)
    broken = {one.contract for one in truth.findings if one.kind is FindingKind.BREAK}
    faults = verdict_faults(verdicts, clean=truth.clean, broken=broken)
    return RoundResult(
        seed=mixed.seed,
        brokers=len(mixed.stack.cluster.brokers),
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
    drawn: Drawn
    by_dag: bool = False
    ledger: KeptLedger = field(default_factory=KeptLedger)
    planted: list[PlantedFault] = field(default_factory=list)
    later: list[tuple[str, Later]] = field(default_factory=list)  # fault, its second half
    counted: list[Later] = field(default_factory=list)
    command_line: CommandLine = field(init=False)
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        ledgers = self.ledger.connections | {SWITCHED_LEDGER: self.stack.ledger_reader_dsn}  # until it is switched over
        self.command_line = CommandLine(addresses=self.stack, folder=self.folder, ledgers=ledgers, door=self.stack.door)

    def __enter__(self) -> "MixedRound":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def play(self) -> RoundTruth:
        """Three windows; gives the truth about them."""
        clean = self._prepare()
        contracts = self._write_contracts()
        self._open.enter_context(self.command_line.warm_spark())
        self._judge(contracts)
        self.say(f"{len(contracts)} baselines are taken; {len(self.drawn)} faults are drawn")
        traffic = {book: Traffic(self._desk(book, "traffic")) for book in self.drawn.books}
        self._first_window(clean, traffic)
        self._judge(contracts)
        self.say("the first window is judged")
        self._second_window(clean, traffic)
        self._judge(contracts, by_dag=self.by_dag)
        self.say("the second window is judged")
        return self._truth([path.stem for path in contracts])

    def _judge(self, contracts: Sequence[Path], *, by_dag: bool = False) -> None:
        """One window of each contract. Raises CommandFailed where a verdict is missing afterwards."""
        before = [self._windows(path) for path in contracts]
        self.ledger.copy(self.stack)
        if by_dag:
            judge_by_dag(self.command_line, contracts)
        else:
            self.command_line.reconcile(contracts)
        for path, windows in zip(contracts, before, strict=True):
            if (stored := self._windows(path)) != windows + 1:
                tail = self.command_line.log_tail
                raise CommandFailed(f"{path.stem}: {stored} verdicts, not {windows + 1}\n{tail}")

    def _windows(self, path: Path) -> int:
        return read_contract(self.stack.store_dsn, path.stem).windows

    def _first_window(self, clean: Round, traffic: dict[str, Traffic]) -> None:
        slow_first = sorted(self.drawn.draws, key=lambda draw: not draw.fault.slow)
        if self._has_three_brokers:
            self._clean_traffic(clean, window=1)
            self._plant_in_logs()  # takes nodes down
            return
        with ThreadPoolExecutor(_PARALLEL) as pool:
            jobs = [pool.submit(_write_ordinary, book, one, _ORDINARY) for book, one in traffic.items()]
            # A poster of the reads' book that waits for the LSO would not post behind a transaction that is open.
            jobs += [pool.submit(self._plant, draw) for draw in slow_first if draw.book != "reads"]
            jobs.append(pool.submit(self._plant_in_logs))
            self._clean_traffic(clean, window=1)
            for job in jobs:
                job.result()
        for draw in self.drawn.draws:
            if draw.book == "reads":
                self._plant(draw)
        self._wait_for_markers()
        self.say(f"{len(self.drawn)} faults are planted")

    def _second_window(self, clean: Round, traffic: dict[str, Traffic]) -> None:
        judged = self._log_ends.stable_ends(self._expiring) if self.drawn.retention else {}
        if not self._has_three_brokers:
            self._clean_traffic(clean, window=2)
        if judged:
            self._log_ends.expire(judged)  # after the broker was killed, which would have it again
            self.say("retention has taken what the first window judged")
        for fault, later in self.later:
            self._note(fault, self._as_retained(later()))
        if self._has_three_brokers:  # only now are all of them up again
            self._clean_traffic(clean, window=2)
        for book, one in traffic.items():
            _write_ordinary(book, one, _ORDINARY_LATER)
        self.later.clear()
        self._wait_for_markers()

    @property
    def _expiring(self) -> list[Partition]:
        """Of the clean books, and of those of single events."""
        names = [Namespace(self._name(book)) for book in ("clean", *self.drawn.books)]
        return [place for each in names for place in each.places if place[0] != each.requests]

    def _as_retained(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Findings of a second half: faults of the log have topics of their own, which retention leaves alone."""
        expired = {self._name(book) for book in self.drawn.books} if self.drawn.retention else set()
        return tuple(after_retention(one) if one.contract in expired else one for one in findings)

    def _plant(self, draw: Draw) -> None:
        self._keep(draw.name, draw.fault.plant(self._desk(draw.book, draw.name)))

    def _plant_in_logs(self) -> None:
        """One after another: some of them tell the brokers for a moment not to verify transactions."""
        for fault in self.drawn.log_faults:
            name = self._name(fault.name)
            book = LogBook(
                stack=self.stack,
                name=name,
                dice=random.Random(f"{name}:{self.seed}"),
                leg=fault.leg,
                command_line=self.command_line,
                contract_file=self._contracts / f"{name}.yaml",
                cleanup=self._open,
            )
            self._keep(fault.name, fault.plant(book))

    def _keep(self, fault: str, left: Planted) -> None:
        self._note(fault, left.findings)
        if left.later is not None:
            self.later.append((fault, left.later))
        if left.counted is not None:
            self.counted.append(left.counted)

    def _note(self, fault: str, findings: Iterable[Finding]) -> None:
        """What is wrong with payouts both of their contracts find."""
        for one in findings:
            self.planted.append(PlantedFault(fault=fault, finding=one))
            if one.contract == self._name("payouts"):
                self.planted.append(PlantedFault(fault=fault, finding=replace(one, contract=self._name(_TWIN))))

    def _clean_traffic(self, clean: Round, *, window: int) -> None:
        """Exactly-once services at work. First they are hit, then the broker is; of three brokers, one each time."""
        three = self._has_three_brokers

        def progress(text: str) -> None:
            # Not while a transaction is being committed: an only broker that dies between the coordinator's decision
            # and its markers comes back without yet knowing the partitions' leaders, drops the markers, and leaves a
            # transaction that hangs. That is a fault of Kafka's, and no clean book.
            if text == FIRST_HOLDS_ENDED and window == 2 and not three:
                self.stack.broker.kill()
                self.stack.broker.restart()
                self.say("the broker was killed and started again amid clean traffic")

        faults = window == 1 and not three
        sizes = {"payments": 30, "payouts": 20} if faults else {"payments": 10, "payouts": 10}
        dice = random.Random(f"bounces:{self.seed}:{window}")
        with (
            bounced(self.stack.cluster, clean.names.places, dice, times=int(three)) as bounces,
            run_traffic(
                replace(clean, seed=clean.seed + window), holds=False, faults=faults, progress=progress, **sizes
            ) as running,
        ):
            left = running.release().anomalies
        if left:
            raise RuntimeError(f"clean traffic left {left}")
        for node in bounces.killed:
            self.say(f"broker {node} was killed and started again amid clean traffic, and a leadership handed on")

    def _prepare(self) -> Round:
        """Make all namespaces, and the topics where misrouted events go."""
        clean = prepare(self.stack, DeliveryMode.EXACTLY_ONCE, self.seed * 2, self._name("clean"))
        for book in (*self.drawn.books, *(fault.name for fault in self.drawn.log_faults)):
            prepare(self.stack, DeliveryMode.AT_LEAST_ONCE, self.seed, self._name(book))
        if self.drawn.books:
            admin = new_admin(self.stack.bootstrap_servers)
            strays = [f"{self._name(book)}.stray" for book in ("payments", "payouts")]
            for made in admin.create_topics([NewTopic(stray, num_partitions=1) for stray in strays]).values():
                made.result(30)
            LogEnds(admin).wait_until_served([(stray, 0) for stray in strays])
        return clean

    def _write_contracts(self) -> list[Path]:
        clean, payments, payouts, reads = (self._name(book) for book in ("clean", "payments", "payouts", "reads"))
        contracts = [payments_contract(f"{clean}_payments", clean), payouts_contract(f"{clean}_payouts", clean)]
        if self.drawn.books:
            contracts += [
                payments_contract(payments, payments, **faulty(payments, "billing")),
                payouts_contract(payouts, payouts, **faulty(payouts, "relay")),
                payouts_contract(self._name(_TWIN), payouts, **faulty(payouts, "relay")),
                reads_contract(reads, reads),
            ]
        contracts += [fault.contract(self._name(fault.name)) for fault in self.drawn.log_faults]
        return [write_contract(self._contracts, self.ledger.move(contract)) for contract in contracts]

    def _truth(self, contracts: Sequence[str]) -> RoundTruth:
        by_faults = [(self._name(fault.name), name) for fault in self.drawn.log_faults for name in fault.allowed]
        return RoundTruth(
            seed=self.seed,
            contracts=tuple(contracts),
            clean=tuple(name for name in contracts if name.startswith(self._name("clean"))),
            allowed=((self._name("reads"), "partner_not_settled"), *by_faults),
            planted=tuple(sorted(self.planted, key=lambda one: (one.finding.contract, one.fault, one.finding.subject))),
        )

    def _desk(self, book: str, seed: str) -> Workload:
        service = "relay" if book == "payouts" else "billing"
        return self._open.enter_context(Workload.open(self.stack, self._name(book), service, seed))

    @property
    def _contracts(self) -> Path:
        return self.folder / "contracts"

    @property
    def _log_ends(self) -> LogEnds:
        return LogEnds(new_admin(self.stack.bootstrap_servers))

    @property
    def _has_three_brokers(self) -> bool:
        return len(self.stack.cluster.brokers) > 1

    def _name(self, book: str) -> str:
        return f"{'c' if self._has_three_brokers else 's'}{self.seed}_{book}"

    def _wait_for_markers(self) -> None:
        """Return once the log is decided wherever nothing is held open. A commit returns before its markers stand."""
        held = {one.finding.subject for one in self.planted if one.finding.name == "held_by_open_transaction"}
        if not self.later:
            held = set()
        names = [self._name(book) for book in ("clean", *self.drawn.books)]
        log_ends = self._log_ends
        places = [
            (topic, number)
            for topic, described in log_ends.admin.list_topics(timeout=30).topics.items()
            for number in described.partitions
            if topic.partition(".")[0] in names and f"{topic}[{number}]" not in held
        ]
        log_ends.wait_until_decided(places)


def _due(faults: Sequence[LogFault], seed: int) -> tuple[LogFault, ...]:
    return tuple(fault for place, fault in enumerate(faults) if fault.always or _is_due(place + seed))


def _is_due(number: int) -> bool:
    return number % SEEDS_FOR_ALL == 0


def _write_ordinary(book: str, traffic: Traffic, count: int) -> None:
    if book == "payouts":
        traffic.payouts(count)
    else:
        traffic.payments(count)
