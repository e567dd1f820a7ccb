"""Reads the Dockerfile as stages of instructions, and says which files of the checkout .dockerignore lets in.

Knows what our own two files say, and refuses anything else: no ARG, no heredoc, no ADD, no exec form.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

INSTRUCTIONS = ("FROM", "USER", "RUN", "WORKDIR", "COPY", "ENV")


class DockerfileRefused(Exception):
    """The Dockerfile says what this cannot read; the message names the line."""


@dataclass(frozen=True)
class Instruction:
    """One instruction with its continued lines joined, and the user that it is carried out as."""

    name: str
    text: str
    user: str

    @property
    def sources(self) -> list[str]:
        """Of a COPY: what it takes, without its last word."""
        return [word for word in self.text.split() if not word.startswith("--")][:-1]

    @property
    def target(self) -> str:
        """Of a COPY: where it puts that."""
        return self.text.split()[-1]

    @property
    def copied_from(self) -> str:
        """Of a COPY: the stage that it takes from, or empty for the checkout."""
        found = re.search(r"--from=(\S+)", self.text)
        return found[1] if found else ""

    @property
    def variables(self) -> dict[str, str]:
        """Of an ENV: each name and value."""
        return dict(word.split("=", 1) for word in shlex.split(self.text))

    @property
    def debian_packages(self) -> list[str]:
        """Of a RUN: what it installs by apt-get."""
        found = re.findall(r"apt-get install ([^&|;]+)", self.text)
        return [word for words in found for word in words.split() if not word.startswith("-")]


@dataclass(frozen=True)
class Stage:
    """A FROM and what follows it; base: an image, or the name of an earlier stage."""

    base: str
    name: str
    instructions: tuple[Instruction, ...] = ()

    def named(self, name: str) -> list[Instruction]:
        """Return the instructions of one kind, in their order."""
        return [one for one in self.instructions if one.name == name]


def read_stages(text: str) -> list[Stage]:
    """Read the stages in their order; the last one is the image. Raises DockerfileRefused."""
    stages: list[Stage] = []
    users: dict[str, str] = {}
    user = ""
    for line in _joined(text):
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        if name not in INSTRUCTIONS or rest.startswith(("[", "<<")) or (name != "FROM" and not stages):
            raise DockerfileRefused(f"Dockerfile: expected one of {', '.join(INSTRUCTIONS)} in shell form, got: {line}")
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            stages.append(Stage(base, alias or "image"))
            user = users.get(base, "airflow")
        else:
            user = rest if name == "USER" else user
            stages[-1] = replace(stages[-1], instructions=(*stages[-1].instructions, Instruction(name, rest, user)))
        users[stages[-1].name] = user
    return stages


def _joined(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [re.sub(r"\s+", " ", line) for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines()]


def files_of_context(root: Path, ignore: str) -> list[str]:
    """Return the files below root that reach the builder, by the text of .dockerignore; the last line that fits counts.

    Folders that no line lets in again are not entered: .venv and build hold a hundred thousand files.
    """
    rules = [(not line.startswith("!"), _pattern(line.lstrip("!"))) for line in ignore.splitlines() if _is_rule(line)]
    let_in = {line[1:].split("/")[0] for line in ignore.splitlines() if line.startswith("!")}
    tops = [path for path in root.iterdir() if path.name in let_in]
    files = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*"))) if path.is_file()]
    names = [str(path.relative_to(root)) for path in files]
    return [name for name in names if not _ignored(name, rules)]


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _ignored(name: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    parts = name.split("/")
    prefixes = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    fitting = [ignores for ignores, pattern in rules if any(pattern.fullmatch(prefix) for prefix in prefixes)]
    return bool(fitting) and fitting[-1]


def _pattern(line: str) -> re.Pattern[str]:
    escaped = re.escape(line.strip().strip("/"))
    return re.compile(escaped.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*"))
