"""The survivors that are known, each with the reason why no test can or need tell it from the rule."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .mutant import Mutant

LIST = Path(__file__).with_name("accepted.toml")

Name = tuple[str, str, str, str]


@dataclass(frozen=True)
class Accepted:
    """reasons: by a mutant's name."""

    reasons: dict[Name, str]

    def why(self, mutant: Mutant) -> str | None:
        return self.reasons.get(mutant.name)

    def left_over(self, made: Collection[Mutant], survived: Collection[Mutant]) -> list[str]:
        """Say which reasons are for a mutant that is not made any more, or that a test kills; of mutated files only."""
        files = {mutant.file for mutant in made}
        names, alive = ({mutant.name for mutant in some} for some in (made, survived))
        return [
            f"{told(name)}\n    {'is killed' if name in names else 'is not made any more'}: take it out of {LIST.name}"
            for name in self.reasons
            if name[0] in files and name not in alive
        ]


def told(name: Name) -> str:
    file, function, was, now = name
    return f"{file}, {function or 'outside of functions'}\n  - {was}\n  + {now}"


def read_accepted(text: str) -> Accepted:
    """Read the list: tables `survivors` with file, function, why and changes, each of them a line before and after.

    Raises ValueError where one has no reason, or stands there twice.
    """
    reasons: dict[Name, str] = {}
    for table in tomllib.loads(text).get("survivors", []):
        if not table.get("why", "").strip():
            raise ValueError(f"{table['file']}, {table['function']}: no reason")
        for was, now in table["changes"]:
            name = (table["file"], table["function"], was, now)
            if name in reasons:
                raise ValueError(f"{told(name)}\nstands there twice")
            reasons[name] = table["why"]
    return Accepted(reasons)
