"""A run tells of every verdict that was stored, whichever cut it was of and whatever failed beside or behind it."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.pipeline import local_run
from tallystick.spark.spark_job import SparkAppFailed

Place = tuple[str, int]


@dataclass
class Books:
    """Contracts whose cuts Spark judges, but for those that fail."""

    unfinished: dict[str, int] = field(default_factory=dict)
    fails: set[Place] = field(default_factory=set)
    broker_is_there: bool = True
    judged: set[Place] = field(default_factory=set)
    told: list[Place] = field(default_factory=list)

    def open_cut(self, _: object, contract: str) -> Any:
        n = self.unfinished.get(contract)
        return None if n is None else SimpleNamespace(contract=contract, n=n, is_baseline=False)

    def fix_cut(self, local: Any, *, settle: bool) -> Any:
        if not self.broker_is_there:
            raise BrokerUnreachable("Kafka at b:1: nothing listens there")
        return SimpleNamespace(contract=local.contract.name, n=9)

    def judge(self, cuts: Any, _: object) -> None:
        places = {(cut.contract, cut.n) for _, cut in cuts}
        self.judged |= places - self.fails
        if places & self.fails:
            raise SparkAppFailed("the Spark app ended with exit code 1")

    def read_run(self, _: object, contract: str, n: int) -> Any:
        return SimpleNamespace(place=(contract, n)) if (contract, n) in self.judged else None

    def reconcile(self, *contracts: str) -> None:
        locals_: Any = [
            SimpleNamespace(contract=SimpleNamespace(name=name), engine=None, on_progress=lambda *_: None)
            for name in contracts
        ]
        local_run.reconcile_now(locals_, settle=True, judged=self.hear)

    def hear(self, run: Any, _: Path) -> None:
        self.told.append(run.place)


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> Books:
    books = Books()
    monkeypatch.setattr(local_run, "open_cut", books.open_cut)
    monkeypatch.setattr(local_run, "fix_cut", books.fix_cut)
    monkeypatch.setattr(local_run, "read_run", books.read_run)
    monkeypatch.setattr(local_run, "_judge", books.judge)
    monkeypatch.setattr(local_run, "_tell_people", lambda *_: Path("report.html"))
    return books


def test_the_cut_that_an_earlier_run_left_is_told_before_the_new_one(books: Books) -> None:
    books.unfinished = {"a": 8}
    books.reconcile("a", "b")
    assert books.told == [("a", 8), ("a", 9), ("b", 9)]


def test_without_one_each_contracts_cut_is_told_once(books: Books) -> None:
    books.reconcile("a", "b")
    assert books.told == [("a", 9), ("b", 9)]


def test_a_verdict_is_told_where_another_contracts_job_fails(books: Books) -> None:
    books.fails = {("a", 9)}
    with pytest.raises(SparkAppFailed):
        books.reconcile("a", "b")
    assert books.told == [("b", 9)]


def test_a_verdict_is_told_where_the_next_cut_cannot_be_made(books: Books) -> None:
    books.unfinished, books.broker_is_there = {"a": 8}, False
    with pytest.raises(BrokerUnreachable):
        books.reconcile("a")
    assert books.told == [("a", 8)]


@dataclass
class Client:
    """One that was started ahead."""

    is_free: bool = True
    handed: list[list[tuple[Path, int]]] = field(default_factory=list)

    def judge(self, cuts: list[tuple[Path, int]], *, log: Path, observe: Any) -> None:
        self.is_free = False
        self.handed.append(cuts)


@pytest.mark.parametrize(
    ("ahead", "handed", "started"),
    [
        (Client(), [[(Path("a.yaml"), 8)]], ["a/9.log"]),
        (None, None, ["a/8.log", "a/9.log"]),
    ],
    ids=["a client waits", "none"],
)
def test_a_client_that_was_started_ahead_judges_the_first_cuts_and_the_next_start_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ahead: Any, handed: Any, started: list[str]
) -> None:
    books = Books(unfinished={"a": 8})
    jobs: list[str] = []
    monkeypatch.setattr(local_run, "open_cut", books.open_cut)
    monkeypatch.setattr(local_run, "fix_cut", books.fix_cut)
    monkeypatch.setattr(local_run, "read_run", lambda *_: None)
    monkeypatch.setattr(local_run, "stored_run", lambda *_: SimpleNamespace(place=("a", 8)))
    monkeypatch.setattr(local_run, "_tell_people", lambda *_: Path("report.html"))
    monkeypatch.setattr(local_run, "submit_argv", lambda *_, **__: [])
    monkeypatch.setattr(
        local_run, "run_job", lambda _, *, log, **__: jobs.append(str(log.relative_to(tmp_path / "logs")))
    )
    local: Any = SimpleNamespace(
        contract=SimpleNamespace(name="a"),
        contract_file=Path("a.yaml"),
        engine=None,
        environment={"SPARK_REMOTE": "sc://localhost:1"},
        artifacts=tmp_path,
        folder=tmp_path,
        on_progress=lambda *_: None,
    )
    local_run.reconcile_now([local], settle=True, judged=lambda *_: None, ahead=ahead)
    assert (getattr(ahead, "handed", None), jobs) == (handed, started)
