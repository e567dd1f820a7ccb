"""Keep what a release's benchmark measured, in bench/results/VERSION.json, to be compared with other releases'.

    python -m bench.keep

Takes medians and ratios, sizes, versions, cores and memory from build/bench.json, and from build/bench_shapes.json,
build/bench_growth.json and build/bench_eos.json where they are. The keys and their order are the same in each file, so
that a diff of two of them compares two releases; by ratios, for seconds depend on the machine. Refuses figures with a
wrong answer.
"""

import json
from collections.abc import Mapping
from typing import Any

from bench.exactly_once import FIGURES as EXACTLY_ONCE
from bench.growth import FIGURES as GROWTH
from bench.shapes import FIGURES as SHAPES
from bench.side_by_side import FIGURES
from lab.servers.process import REPOSITORY

_FIGURES_OF_AN_ARM = ("warm_seconds", "cold_process_seconds", "cpu_seconds", "peak_mib")
RESULTS = REPOSITORY / "bench" / "results"


class WrongAnswers(ValueError):
    """Figures of a run in which an answer was not what was written: they count for nothing."""


class NoFigures(FileNotFoundError):
    """Nothing was measured yet."""


class OtherVersion(ValueError):
    """Figures of two versions lie side by side: they are no one release's."""


def main() -> None:
    if not FIGURES.exists():
        raise NoFigures(f"{FIGURES}: expected the figures of the benchmark; run `make bench` first")
    figures = json.loads(FIGURES.read_text())
    kept = {"side_by_side": kept_measurement(figures)}
    if SHAPES.exists():
        measured = json.loads(SHAPES.read_text())["shapes"]
        kept["shapes"] = {name: kept_measurement(of_shape) for name, of_shape in measured.items()}
    if GROWTH.exists():
        grown = json.loads(GROWTH.read_text())
        kept["sizes"] = {f"{one['size']['events']:,}": kept_measurement(one) for one in grown["sizes"]}
        kept["growth"] = grown["growth"]
    if EXACTLY_ONCE.exists():
        kept["exactly_once"] = kept_promises(json.loads(EXACTLY_ONCE.read_text()))
    path = RESULTS / f"{measured_version(kept)}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=2) + "\n")
    print(path.relative_to(REPOSITORY))


def measured_version(kept: Mapping[str, Any]) -> str:
    """The one version of ours that all figures are of. Raises OtherVersion."""
    parts = {"side_by_side": kept["side_by_side"], **kept.get("shapes", {}), **kept.get("sizes", {})}
    parts |= {name: kept[name] for name in ("exactly_once",) if name in kept}
    versions = {name: part["versions"]["tallystick"] for name, part in parts.items()}
    if len(set(versions.values())) > 1:
        raise OtherVersion(
            f"expected figures of one version, got {versions}; measure the older ones again, or remove them"
        )
    return str(versions["side_by_side"])


def kept_measurement(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Of one measurement: seconds and MiB of each arm, the ratios, and on what. Raises WrongAnswers."""
    if figures["disagreements"]:
        raise WrongAnswers(
            f"expected right answers, got: {'; '.join(figures['disagreements'])}. Measure again once they are right"
        )
    arms = {
        name: {unit: round(arm[unit], 2) for unit in _FIGURES_OF_AN_ARM if unit in arm}
        | {figure: arm[figure] for figure in ("reached",) if figure in arm}
        for name, arm in figures["arms"].items()
    }
    return {"size": figures["size"], "times": figures["times"], "ratios": figures["ratios"], "arms": arms} | _on(
        figures
    )


def kept_promises(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Of the price of exactly-once: medians in records per second, differences in percent, and on what."""
    messages = {
        size: {"medians": of_size["medians"], "below_percent": of_size["below_percent"]}
        for size, of_size in figures["messages"].items()
    }
    return {"mib": figures["mib"], "messages": messages} | _on(figures)


def _on(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {name: figures[name] for name in ("versions", "cores", "memory_gib")}


if __name__ == "__main__":
    main()
