"""Mutates the rules, and counts what the tests notice: python -m tests.mutants.main [--modules NAME ...] [--seconds N].

Part by part: a run tries the parts or modules that are named, and build/mutants.json adds up what is known of all, each
part with the day on which it was measured. What is known of a module counts while its source is what it was. Prints
each survivor with its place. With --seconds the mutants of each part are a sample, drawn by the seed; with --go-on the
next run goes on where the last one ended, and tries no mutant again that a test has noticed.

Exit 1: a survivor is not in the list of those that are known, or the list names one that is not alive. 3: a test fails
without any mutant.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions
from typing import Any

from .accepted import LIST, Accepted, read_accepted
from .kept import FOLDER, Kept, Result, read_kept
from .mutant import Mutant
from .parts import PARTS, chosen
from .trial import ALIVE, ROOT, Outcome

OUT = ROOT / "build" / "mutants.json"
OPERATORS = FOLDER / "mutmut"


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--modules", nargs="*", default=[], help=f"parts ({', '.join(PARTS)}), or modules of them")
    asked.add_argument("--seconds", type=float, help="for all; each part has an equal share")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--go-on", action="store_true", help="from what build/mutants/ has of earlier runs")
    asked.add_argument("--told", action="store_true", help="try nothing; add up what earlier runs have found")
    given = asked.parse_args()
    accepted = read_accepted(LIST.read_text())
    parts = chosen(given.modules)
    problems: list[str] = []
    for part, modules in parts.items():
        share = [] if given.seconds is None else ["--seconds", str(given.seconds / len(parts))]
        on = ["--go-on"] if given.go_on else []
        code = 0 if given.told else try_part(part, [*modules, *share, *on, "--seed", str(given.seed)])
        if code:
            return code
        kept = read_kept(part)
        results = [result for result in kept.results if result[0].file in modules]
        problems += problems_of(results, [mutant for mutant in kept.untried if mutant.file in modules], accepted)
        print(f"{part}: {line_of(total(figures_of(modules, kept.results, kept.untried, accepted)))}", flush=True)
    known = {part: read_kept(part) for part in PARTS}
    document = document_of({part: kept for part, kept in known.items() if kept.sources}, accepted)
    OUT.write_text(json.dumps(document, indent=2) + "\n")
    print("\n".join(problems))
    print(f"all that is measured: {line_of(Counter(document['total']))}")
    if missing := [part for part in PARTS if part not in document["parts"]]:
        print(f"not measured: {', '.join(missing)}")
    return 1 if problems else 0


def try_part(part: str, arguments: Sequence[str]) -> int:
    """A process of its own, since all that a part's tests import stays in it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(OPERATORS), str(ROOT)])}
    command = [sys.executable, "-m", "tests.mutants.part", part, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def figures_of(
    modules: Iterable[str], results: Sequence[Result], untried: Sequence[Mutant], accepted: Accepted
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


def problems_of(results: Sequence[Result], untried: Sequence[Mutant], accepted: Accepted) -> list[str]:
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


def total(figures: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for of_module in figures.values():
        counts.update({name: number for name, number in of_module.items() if name != "survivors"})
        counts["explained"] += sum(survivor["why"] is not None for survivor in of_module["survivors"])
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


def document_of(known: Mapping[str, Kept], accepted: Accepted) -> dict[str, Any]:
    """What is known of each part, and of all of them together."""
    modules = {
        part: figures_of(sorted(kept.sources), kept.results, kept.untried, accepted) for part, kept in known.items()
    }
    totals = {part: total(figures) for part, figures in modules.items()}
    return {
        "versions": versions(),
        "total": told(sum(totals.values(), Counter())),
        "parts": {
            part: {"measured": kept.measured, "seed": kept.seed, "seconds": kept.seconds, **told(totals[part])}
            for part, kept in known.items()
        },
        "modules": {module: figures for of_part in modules.values() for module, figures in of_part.items()},
    }


def told(counts: Counter[str]) -> dict[str, int]:
    names = ("mutants", "killed", "timeouts", "survived", "explained", "untried")
    return {name: counts[name] for name in names}


def versions() -> dict[str, str]:
    """Of what makes and tries the mutants."""
    wanted = ("tallystick", "pytest", "hypothesis", "mutmut", "libcst")
    path = [str(OPERATORS), *sys.path]
    found = {one.name.lower(): one.version for one in reversed([*distributions(path=path)]) if one.name}
    return {name: found[name] for name in wanted if name in found} | {"python": platform.python_version()}


if __name__ == "__main__":
    sys.exit(main())
