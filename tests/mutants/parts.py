"""What is mutated, part by part, and the tests that must notice."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

CUTS = tuple(
    f"tests/laws/test_{name}.py"
    for name in ("pairing_over_cuts", "lookups_over_cuts", "repeated_events", "topic_to_topic")
)
LAWS = tuple(
    f"tests/laws/test_{name}.py"
    for name in ("pairing_laws", "parts_of_evidence", "row_reversals_over_windows", "scanned_slices", "windows_laws")
)
JUDGING = tuple(
    f"tests/unit/judging/test_{name}.py" for name in ("judge", "record_origins", "allowed_oddities", "run_digest")
)
CENSUS = tuple(
    f"tests/unit/kafka_log/test_{name}.py"
    for name in ("offset_census", "log_walk", "transaction_span", "producer_history", "search", "record")
)
CANARIES = "tests/unit/judging/test_canaries.py"
WORLD = ("tests/simulator/test_stories.py", "tests/simulator/test_play.py", "tests/mutants/schedules.py")
PROTOCOL = "tests/protocol_model/test_model.py"


@dataclass(frozen=True)
class Part:
    """files: patterns below tallystick/. tests: those that try every mutant. slow: those that try what they leave."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    slow: tuple[str, ...]

    def modules(self) -> list[str]:
        """Return its modules, as paths below the repository."""
        found = {path for pattern in self.files for path in (ROOT / "tallystick").glob(pattern)}
        names = sorted(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py")
        return [name for name in names if name not in LEFT_OUT]


LEFT_OUT = {
    "tallystick/anomalies/registry.py": "the list of all rules; tests/unit holds it against the folders, line by line",
    "tallystick/executor/effects/abort_marker.py": "asks a broker; tests/stack and make crash do",
    "tallystick/executor/effects/abort_transactions.py": "asks a broker; tests/stack and make crash do",
    "tallystick/executor/effects/post_to_ledger.py": "asks a PostgreSQL; tests/stack and make crash do",
    "tallystick/executor/effects/source_rows.py": "asks a PostgreSQL; tests/stack does",
    "tallystick/executor/effects/trigger_dags.py": "asks an Airflow; tests/stack does",
    "tallystick/executor/post_repairs.py": "asks a PostgreSQL at each step; tests/stack and make crash do",
    "tallystick/executor/verify_plan.py": "asks broker and PostgreSQL; tests/stack does",
    "tallystick/judging/canary_cases.py": "examples that each run must find: tests themselves",
    "tallystick/judging/canary_evidence.py": "builds those examples",
}
"""Module to the reason why no unit test may be expected to notice a change of it."""

PARTS = {
    "compensation": Part(
        ("compensation/*.py",), ("tests/unit/compensation", "tests/unit/executor"), (*WORLD, PROTOCOL)
    ),
    "executor": Part(
        ("executor/**/*.py",),
        ("tests/simulator/test_repairing.py", "tests/unit/executor", "tests/unit/compensation"),
        (*WORLD, PROTOCOL),
    ),
    "judging": Part(
        ("judging/judge.py", "judging/record_origins.py", "judging/allowed_oddities.py", "judging/run_digest.py"),
        (*JUDGING, "tests/unit/anomalies", *CUTS),
        (CANARIES, *LAWS, *WORLD),
    ),
    "canaries": Part(("judging/canaries.py",), (CANARIES,), WORLD),
    "anomalies": Part(("anomalies/**/*.py",), ("tests/unit/anomalies", *JUDGING, *CUTS), (CANARIES, *LAWS, *WORLD)),
    "matching": Part(
        ("matching/*.py",),
        ("tests/unit/matching", *JUDGING, "tests/unit/anomalies", "tests/unit/compensation", *CUTS),
        (*LAWS, *WORLD),
    ),
    "cutting": Part(
        ("model/cut.py", "pipeline/make_cut.py", "pipeline/readiness.py", "pipeline/window_order.py"),
        (
            "tests/unit/model",
            "tests/unit/pipeline/test_readiness.py",
            "tests/unit/pipeline/test_window_order.py",
            "tests/simulator/test_cutting.py",
        ),
        (*LAWS, *WORLD),
    ),
    "census": Part(
        ("kafka_log/offset_census.py", "kafka_log/log_walk.py", "kafka_log/transaction_span.py"),
        CENSUS,
        (*LAWS, *WORLD),
    ),
}


def chosen(names: list[str]) -> dict[str, list[str]]:
    """Return part to modules, of parts and paths of modules; without any name all. Raises LookupError."""
    wanted = names or [*PARTS]
    unknown = [name for name in wanted if name not in PARTS and not _part_of(name)]
    if unknown:
        raise LookupError(f"{', '.join(unknown)}: neither a part ({', '.join(PARTS)}) nor a module of one")
    return {
        part: [module for module in what.modules() if part in wanted or module in wanted]
        for part, what in PARTS.items()
        if part in wanted or any(_part_of(name) == part for name in wanted)
    }


def _part_of(module: str) -> str | None:
    return next((part for part, what in PARTS.items() if module in what.modules()), None)
