"""What is known of a part's mutants from one run to the next: build/mutants/NAME.json."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from .mutant import Mutant
from .trial import ROOT, Outcome

FOLDER = ROOT / "build" / "mutants"

Result = tuple[Mutant, Outcome]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """sources: a digest of each module that the mutants were made of. measured: the day, in UTC."""

    seed: int = 0
    seconds: float = 0.0
    measured: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    results: Sequence[Result] = ()
    untried: Sequence[Mutant] = ()


def source_of(file: str, root: Path = ROOT) -> str:
    """A digest of a module as it is now; empty where it is gone."""
    path = root / file
    return sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


def write_kept(part: str, kept: Kept, *, folder: Path = FOLDER) -> None:
    document = {
        "seed": kept.seed,
        "seconds": kept.seconds,
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "sources": kept.sources,
        "results": [[_without_source(mutant), outcome] for mutant, outcome in kept.results],
        "untried": [_without_source(mutant) for mutant in kept.untried],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps(document, indent=1) + "\n")


def read_kept(part: str, *, folder: Path = FOLDER, root: Path = ROOT) -> Kept:
    """Without what was said of a module that has changed since; nothing where nothing was measured."""
    path = folder / f"{part}.json"
    if not path.exists():
        return Kept()
    told = json.loads(path.read_text())
    as_before = {file: digest for file, digest in told["sources"].items() if digest == source_of(file, root)}
    results = [(Mutant(**mutant), Outcome(outcome)) for mutant, outcome in told["results"]]
    untried = [Mutant(**mutant) for mutant in told["untried"]]
    return Kept(
        seed=told["seed"],
        seconds=told["seconds"],
        measured=told["measured"],
        sources=as_before,
        results=[(mutant, outcome) for mutant, outcome in results if mutant.file in as_before],
        untried=[mutant for mutant in untried if mutant.file in as_before],
    )


def _without_source(mutant: Mutant) -> dict[str, object]:
    return asdict(mutant) | {"source": ""}
