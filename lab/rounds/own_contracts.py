"""What a person brings to `make up`: the contracts beside the lab's own two.

Each keeps all but its start: its first window has just ended, so that its books begin at once and nothing waits to be
caught up. Whether a file is a contract, the command line of `tallystick` says.
"""

import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from croniter import croniter

Document = dict[str, Any]
"""A contract as its file has it."""


@dataclass(frozen=True, kw_only=True)
class OwnContracts:
    """The contracts as they were copied, and what is wrong with files that are none."""

    contracts: tuple[Document, ...]
    faults: tuple[str, ...]


def copy_contracts(source: Path, target: Path, *, without: Collection[str], now_utc: datetime) -> OwnContracts:
    """Copy the files of a folder but those of these contracts; a file that is refused as it is, for Airflow to show."""
    faults = _check(source)
    contracts = []
    for path in sorted(source.glob("*.yaml")):
        if any(fault.startswith(f"{path}: ") for fault in faults):
            (target / path.name).write_bytes(path.read_bytes())
            continue
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        if document["contract"] not in without:
            begun = document | {"start_date": _start(document, now_utc=now_utc)}
            text = yaml.safe_dump(begun, sort_keys=False, allow_unicode=True)
            (target / path.name).write_text(text, encoding="utf-8")
            contracts.append(begun)
    return OwnContracts(contracts=tuple(contracts), faults=faults)


def _check(folder: Path) -> tuple[str, ...]:
    """The faults of all files; each begins with its file."""
    argv = [str(Path(sys.executable).with_name("tallystick")), "contract", "check", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return tuple(done.stderr.splitlines()) if done.returncode else ()


def _start(document: Document, *, now_utc: datetime) -> datetime:
    """The beginning of the window that has just ended, unless the contract's own start is later."""
    ticks = croniter(document["schedule"], now_utc)
    ticks.get_prev(datetime)
    begins: datetime = ticks.get_prev(datetime)
    own = document["start_date"]
    own = own if isinstance(own, datetime) else datetime.fromisoformat(own)
    return max(own if own.tzinfo else own.replace(tzinfo=UTC), begins)
