"""Mutates the rules, and counts what the tests notice: python -m tests.mutants.main [--modules NAME ...] [--seconds N].

Prints each survivor with its place; figures in build/mutants.json. With --seconds the mutants of each part are a
sample, drawn by the seed. Exit 1: a survivor is not in the list of those that are known, or the list names one that is
not alive. 3: a test fails without any mutant.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import distributions
from typing import Any

from .accepted import LIST, Accepted, read_accepted
from .mutant import Mutant
from .parts import PARTS, chosen
from .trial import ALIVE, ROOT, Outcome

FOLDER, OUT = ROOT / "build" / "mutants", ROOT / "build" / "mutants.json"
OPERATORS = FOLDER / "mutmut"


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--modules", nargs="*", default=[], help=f"parts ({', '.join(PARTS)}), or modules of them")
    asked.add_argument("--seconds", type=float, help="for all; each part has an equal share")
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    accepted = read_accepted(LIST.read_text())
    parts = chosen(given.modules)
    figures: dict[str, Any] = {}
    problems: list[str] = []
    for part, modules in parts.items():
        share = [] if given.seconds is None else ["--seconds", str(given.seconds / len(parts))]
        if code := try_part(part, [*modules, *share, "--seed", str(given.seed)]):
            return code
        told = json.loads((FOLDER / f"{part}.json").read_text())
        results = [(Mutant(**mutant), Outcome(outcome)) for mutant, outcome in told["results"]]
        untried = [Mutant(**mutant) for mutant in told["untried"]]
        figures |= figures_of(modules, results, untried, accepted)
        problems += problems_of(results, untried, accepted)
        print(
            f"{part}: {line_of(total(figures[module] for module in modules))} in {told['seconds']:,.0f} s", flush=True
        )
        OUT.write_text(json.dumps(document_of(figures, seed=given.seed, seconds=given.seconds), indent=2) + "\n")
    print("\n".join(problems))
    print(f"all: {line_of(total(figures.values()))}")
    return 1 if problems else 0


def try_part(part: str, arguments: Sequence[str]) -> int:
    """A process of its own, since all that a part's tests import stays in it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(OPERATORS), str(ROOT)])}
    command = [sys.executable, "-m", "tests.mutants.part", part, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def figures_of(
    modules: Sequence[str], results: Sequence[tuple[Mutant, Outcome]], untried: Sequence[Mutant], accepted: Accepted
) -> dict[str, dict[str, Any]]:
    """Count by module. Survivors are sorted by their place."""
    figures = {}
    for module in modules:
        ended = Counter(outcome for mutant, outcome in results if mutant.file == module)
        alive = [mutant for mutant, outcome in results if mutant.file == module and outcome in ALIVE]
        figures[module] = {
            "mutants": ended.total(),
            "killed": ended[Outcome.KILLED],
            "timeouts": ended[Outcome.TIMEOUT],
            "survived": len(alive),
            "unreached": ended[Outcome.UNREACHED],
            "untried": sum(mutant.file == module for mutant in untried),
            "survivors": [
                {
                    "line": mutant.line,
                    "function": mutant.function,
                    "was": mutant.was,
                    "now": mutant.now,
                    "why": accepted.why(mutant),
                }
                for mutant in sorted(alive, key=lambda one: (one.line, one.now))
            ],
        }
    return figures


def problems_of(results: Sequence[tuple[Mutant, Outcome]], untried: Sequence[Mutant], accepted: Accepted) -> list[str]:
    """Say which survivors are not known, and which known ones are not alive."""
    alive = [mutant for mutant, outcome in results if outcome in ALIVE]
    new = [
        f"{mutant.file}:{mutant.line}: survives, in {mutant.function or 'no function'}\n"
        f"  - {mutant.was}\n  + {mutant.now}"
        for mutant in sorted(alive, key=lambda one: (one.file, one.line, one.now))
        if accepted.why(mutant) is None
    ]
    made = [*(mutant for mutant, _ in results), *untried]
    return [*new, *accepted.left_over(made, [*alive, *untried])]


def total(modules: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for figures in modules:
        counts.update({name: number for name, number in figures.items() if name != "survivors"})
        counts["explained"] += sum(survivor["why"] is not None for survivor in figures["survivors"])
    return counts


def line_of(counts: Counter[str]) -> str:
    """For people."""
    noticed = counts["killed"] + counts["timeouts"]
    told = (
        f"{noticed:,} of {counts['mutants']:,} mutants are noticed ({share(counts):.1f} %), "
        f"{counts['timeouts']:,} of them since they do not end; of {counts['survived']:,} survivors "
        f"{counts['explained']:,} have a reason"
    )
    return f"{told}; {counts['untried']:,} are not tried" if counts["untried"] else told


def share(counts: Counter[str]) -> float:
    """Per cent of what was tried."""
    return 100 * (counts["killed"] + counts["timeouts"]) / max(1, counts["mutants"])


def document_of(modules: dict[str, Any], *, seed: int, seconds: float | None) -> dict[str, Any]:
    counts = total(modules.values())
    return {
        "versions": versions(),
        "seed": seed,
        "seconds": seconds,
        **{name: counts[name] for name in ("mutants", "killed", "timeouts", "survived", "explained", "untried")},
        "modules": modules,
    }


def versions() -> dict[str, str]:
    """Of what makes and tries the mutants."""
    wanted = ("tallystick", "pytest", "hypothesis", "mutmut", "libcst")
    path = [str(OPERATORS), *sys.path]
    found = {one.name.lower(): one.version for one in reversed([*distributions(path=path)]) if one.name}
    return {name: found[name] for name in wanted if name in found} | {"python": platform.python_version()}


if __name__ == "__main__":
    sys.exit(main())
