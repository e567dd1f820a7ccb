"""A changed rule is noticed or survives as it should; reasons that are left over are told. Without mutmut."""

import json
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from .accepted import LIST, Accepted, read_accepted
from .kept import Kept, read_kept, source_of, write_kept
from .main import document_of, figures_of, problems_of
from .mutant import Mutant, difference
from .parts import PARTS, chosen
from .trial import Outcome

ROOT = Path(__file__).parents[2]
CAPS, TESTS_OF_CAPS = "tallystick/compensation/caps.py", "tests/unit/compensation/test_caps.py"

TRY = """
import json, sys, pytest
from tests.mutants.mutant import Mutant
from tests.mutants import trial
from tests.mutants.trial import OPTIONS
from tests.mutants.trials import Trials
trial.SECONDS_MIN = 1
trials = Trials([Mutant(**one) for one in json.loads(sys.argv[1])], seconds=None)
pytest.main([*OPTIONS, *sys.argv[2:]], plugins=[trials])
print("\\n" + json.dumps([trials.failed, [str(outcome) for _, outcome in trials.results]]))
"""


def outcomes(*mutants: Mutant) -> list[str]:
    """Try mutants in a process of its own; without one all tests must pass."""
    told = json.dumps([asdict(one) for one in mutants])
    command = [sys.executable, "-c", TRY, told, TESTS_OF_CAPS]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    failed, found = json.loads(ran.stdout.splitlines()[-1])
    assert failed == []
    return list(found)


def mutant_of(file: str, function: str, was: str, now: str) -> Mutant:
    source = (ROOT / file).read_text()
    assert source.count(was) == 1
    text = source.replace(was, now)
    return Mutant(file, source[: source.index(was)].count("\n") + 1, function, *difference(source, text), text)


def test_a_changed_rule_is_killed_and_an_equivalent_one_survives() -> None:
    refusal, whole = "CapBudget.refusal", (ROOT / CAPS).read_text()
    assert outcomes(
        mutant_of(CAPS, refusal, "if self.items < 1", "if self.items < 2"),
        mutant_of(CAPS, refusal, "if self.items < 1", "if self.items <= 0"),
        mutant_of(
            CAPS, refusal, "        if key in self.keys", "        while True: pass\n        if key in self.keys"
        ),
        mutant_of(CAPS, "not_opted_in", "if rules.abort", "if not rules.abort"),
        Mutant(CAPS, 1, "", "", "raise ImportError", f"{whole}\nraise ImportError\n"),
        Mutant(CAPS, 1, "", "", "NOTHING = 0", f"{whole}\nNOTHING = 0\n"),
    ) == ["killed", "survived", "timeout", "unreached", "killed", "survived"]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a\n  b < 1\nc", "a\n  b <= 1\nc", ("b < 1", "b <= 1")),
        ("f(\n    a,\n    b,\n)", "f(\n    a,\n)", ("b,", "")),
        ("x\nx\nx", "x\nx", ("x", "")),
        ("f(\n    a,\n    b)", "f(None)", ("f( a, b)", "f(None)")),
    ],
)
def test_a_mutant_is_named_by_the_lines_that_differ(before: str, after: str, told: tuple[str, str]) -> None:
    assert difference(before, after) == told


KNOWN = """
[[survivors]]
file = "a.py"
function = "f"
why = "no such value"
changes = [["x < 1", "x <= 1"], ["y", "z"]]
"""


def named(was: str, now: str, function: str = "f", file: str = "a.py") -> Mutant:
    return Mutant(file, 7, function, was, now, "")


def test_a_survivor_with_a_reason_is_no_problem_and_one_without_is() -> None:
    known, new = named("x < 1", "x <= 1"), named("x < 1", "x <= 1", function="g")
    other = named("y", "z")
    accepted = read_accepted(KNOWN)
    assert problems_of([(known, Outcome.SURVIVED), (other, Outcome.UNREACHED)], [], accepted) == []
    (problem,) = problems_of(
        [(known, Outcome.SURVIVED), (other, Outcome.SURVIVED), (new, Outcome.SURVIVED)], [], accepted
    )
    assert problem.startswith("a.py:7: survives, in g")
    figures = figures_of(["a.py"], [(known, Outcome.SURVIVED), (new, Outcome.SURVIVED)], [], accepted)["a.py"]
    assert [survivor["why"] for survivor in figures["survivors"]] == ["no such value", None]


def test_a_reason_for_a_mutant_that_is_killed_or_gone_is_told_and_for_one_not_tried_is_not() -> None:
    known, other = named("x < 1", "x <= 1"), named("y", "z")
    accepted = read_accepted(KNOWN)
    killed, gone = problems_of([(known, Outcome.KILLED)], [], accepted)
    assert "is killed: take it out" in killed
    assert "is not made any more: take it out" in gone
    assert problems_of([(known, Outcome.SURVIVED)], [other], accepted) == []
    assert problems_of([(named("b", "c", file="b.py"), Outcome.KILLED)], [], accepted) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [(KNOWN.replace("no such value", " "), "no reason"), (KNOWN + KNOWN, "stands there twice")],
    ids=["no reason", "twice"],
)
def test_a_list_without_a_reason_or_with_two_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_accepted(text)


def kept_of(folder: Path, *results: tuple[Mutant, Outcome], untried: tuple[Mutant, ...] = (), root: Path) -> Kept:
    """What a later run reads of that."""
    files = {mutant.file for mutant, _ in results} | {mutant.file for mutant in untried}
    sources = {file: source_of(file, root) for file in files}
    kept = Kept(seed=3, seconds=1.5, sources=sources, results=results, untried=untried)
    write_kept("cutting", kept, folder=folder)
    return read_kept("cutting", folder=folder, root=root)


def test_what_is_known_of_a_module_counts_while_its_source_is_what_it_was(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x < 1")
    first = (named("x < 1", "x <= 1"), Outcome.KILLED), (named("y", "z", file="b.py"), Outcome.SURVIVED)
    untried = (named("v", "w"),)
    kept = kept_of(tmp_path, *first, untried=untried, root=tmp_path)
    assert (kept.results, kept.untried, kept.seed, kept.seconds) == ([*first], [*untried], 3, 1.5)
    (tmp_path / "a.py").write_text("x < 2")
    later = read_kept("cutting", folder=tmp_path, root=tmp_path)
    assert (later.results, later.untried, [*later.sources]) == ([first[1]], [], ["b.py"])
    (tmp_path / "b.py").unlink()
    assert read_kept("cutting", folder=tmp_path, root=tmp_path).results == []
    assert read_kept("census", folder=tmp_path, root=tmp_path) == Kept()


def test_the_figures_of_all_parts_add_up_whichever_run_they_are_of(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x")
    killed, alive = (named("a", "b"), Outcome.KILLED), (named("y", "z"), Outcome.SURVIVED)
    one = kept_of(tmp_path, killed, (named("c", "d"), Outcome.TIMEOUT), root=tmp_path)
    other = kept_of(tmp_path, killed, alive, untried=(named("v", "w"),), root=tmp_path)
    document = document_of({"cutting": one, "census": other}, read_accepted(KNOWN))
    assert document["total"] == {
        "mutants": 4,
        "killed": 2,
        "timeouts": 1,
        "survived": 1,
        "explained": 1,
        "untried": 1,
    }
    assert [document["parts"][part]["mutants"] for part in ("cutting", "census")] == [2, 2]
    assert {part["measured"] for part in document["parts"].values()} == {f"{datetime.now(UTC):%Y-%m-%d}"}


def test_each_reason_that_is_kept_is_for_a_line_that_is_there() -> None:
    """make mutants says more; this takes no time."""
    accepted: Accepted = read_accepted(LIST.read_text())
    modules = {module for part in PARTS.values() for module in part.modules()}
    gone = [
        (file, was)
        for file, _, was, _ in accepted.reasons
        if file not in modules or " ".join(was.split()) not in " ".join((ROOT / file).read_text().split())
    ]
    assert gone == []


def test_every_part_has_modules_and_tests_that_are_there() -> None:
    for part in PARTS.values():
        assert part.modules()
        assert [path for path in part.tests if not (ROOT / path).exists()] == []


def test_a_module_is_chosen_alone_and_an_unknown_one_refused() -> None:
    assert chosen([CAPS]) == {"compensation": [CAPS]}
    assert chosen([]).keys() == PARTS.keys()
    with pytest.raises(LookupError, match="tallystick/nothing"):
        chosen(["tallystick/nothing.py"])
