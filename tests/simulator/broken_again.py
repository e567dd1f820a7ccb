"""Breaks mended lines again, one finding at a time, and counts how many schedules it takes until that is seen.

    python -m tests.simulator.broken_again --seconds 60

Each line of BROKEN names a finding of the audit of 0.1.0 and the lines that its mend changed. The product and the
simulator are copied, the lines are broken in the copy, and schedules are played there, drawn as ever: none was written
for a finding. Writes build/simulate_broken.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.simulator.simulate import ROOT, commit

COPIED = ("tallystick", "spark_apps", "tests/simulator")


class Edit(NamedTuple):
    """In a file: this text, which stands there once, becomes that."""

    file: str
    old: str
    new: str


class Broken(NamedTuple):
    """A finding, and what breaks its mend."""

    finding: int
    name: str
    edits: tuple[Edit, ...]


BROKEN: tuple[Broken, ...] = (
    Broken(
        1,
        "a plan that has begun pays what was cleared or written off since",
        (
            Edit(
                "tallystick/executor/execute_plan.py",
                "undone | why_not_any_more(work.engine, contract, work.connections, plan, begun)",
                "undone",
            ),
            Edit(
                "tallystick/executor/effects/action_log.py",
                "if item.action_id in self.stopped or item.break_id not in outstanding",
                "if item.action_id in self.stopped",
            ),
            Edit(
                "tests/simulator/standins/plan_functions.py",
                "    gone = {item.action_id: NOT_OUTSTANDING for item in items if item.break_id not in outstanding}\n",
                "    gone: dict[UUID, str] = {}\n",
            ),
            Edit(
                "tallystick/executor/prove_repairs.py",
                "    if reason := why_not_read_whole(proof.settled.of(item.topic), proof.judged):\n",
                "    if reason := None:\n",
            ),
        ),
    ),
    Broken(
        2,
        "by xmin a touched row whose event has expired was never produced",
        (
            Edit(
                "tallystick/pipeline/lookups.py",
                "        rows_may_be_older=past.has_moved_rows(cut, below=rows_moved_below),\n",
                "        rows_may_be_older=False,\n",
            ),
        ),
    ),
    Broken(
        3,
        "a second posting beside a row from before the baseline, and a switch-over moves the baseline",
        (
            Edit(
                "tallystick/matching/pairing.py",
                "_READ_BEFORE = frozenset({RecordLocation.BEFORE_BASELINE, ",
                "_READ_BEFORE = frozenset({",
            ),
            Edit(
                "tallystick/matching/pairing.py",
                "    taken = key_was_paired or (only_one and copy is not first)\n",
                "    taken = key_was_paired\n",
            ),
            Edit(
                "tallystick/pipeline/make_cut.py",
                "        baseline_position=previous.baseline_position,\n",
                "        baseline_position=previous.baseline_position if same_history else previous.position_end,\n",
            ),
        ),
    ),
    Broken(
        4,
        "a key that begins as a canary's is invisible",
        (
            Edit(
                "spark_apps/tallystick_spark/matching/hash_scan.py",
                "if of_keys is None or _place(event) in of_keys:\n",
                "if (of_keys is None or _place(event) in of_keys) and 'canary' not in event['match_key']:\n",
            ),
        ),
    ),
    Broken(
        5,
        "by written_xid rows that are in no cut are counted by nobody",
        (
            Edit(
                "tallystick/ledger/earlier_rows.py",
                "for name in now if now[name] != expected[name]\n",
                "for name in now if now[name] < expected[name]\n",
            ),
        ),
    ),
    Broken(
        6,
        "by written_xid a paid row is deleted or replaced after its match",
        (
            Edit(
                "tallystick/ledger/earlier_rows.py",
                "for name in now if now[name] != expected[name]\n",
                "for name in now if now[name] > expected[name]\n",
            ),
            Edit(
                "tallystick/matching/pairing.py",
                "    if row.side is not ItemSide.LEDGER or case.parts is not None",
                "    if row.side is not ItemSide.TOPIC or case.parts is not None",
            ),
        ),
    ),
    Broken(
        7,
        "a payment made again after its first row was archived",
        (
            Edit(
                "tests/simulator/standins/scan.py",
                "        repeated=partial(read_before, index_to) if index_to else None,\n",
                "        repeated=None,\n",
            ),
            Edit(
                "tests/simulator/standins/scan.py",
                "        read_before=partial(read_before, given.index_to) if given.index_to else None,\n",
                "        read_before=None,\n",
            ),
            Edit(
                "tallystick/pipeline/lookups.py",
                "    indexed = index_hits(at_hand.indexes, keys) if at_hand.indexes else {}\n",
                "    indexed: dict[str, tuple[LookupHit, ...]] = {}\n",
            ),
        ),
    ),
    Broken(
        8,
        "by xmin one UPDATE of a row that has an open or broken item stops the books",
        (
            Edit(
                "tallystick/matching/grouping.py",
                "        item = of_rows.pop(copy.item_id, None)\n",
                "        item = None\n",
            ),
        ),
    ),
    Broken(
        9,
        "an UPDATE while the two halves of a scan are read loses rows",
        (
            Edit(
                "tests/simulator/standins/ledger.py",
                "        self.snapshot = dict(self.database.rows)\n",
                "        self.snapshot = None\n",
            ),
        ),
    ),
    Broken(
        10,
        "one record stops the books for ever",
        (
            Edit(
                "tallystick/kafka_log/event_decoder.py",
                "DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError, Undecodable)",
                "DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, Undecodable)",
            ),
            Edit(
                "tallystick/kafka_log/event_decoder.py",
                '    if value.count(b"{") + value.count(b"[") > DEPTH_MAX and depth_of(value) > DEPTH_MAX:\n',
                "    if False:\n",
            ),
        ),
    ),
    Broken(
        11,
        "a leg sent again after retention is a torn transaction",
        (
            Edit(
                "tallystick/matching/grouping.py",
                "not repeats.issuperset(item_id for _, _, item_id in case.seen.values())\n",
                "repeats is not None\n",
            ),
        ),
    ),
    Broken(
        12,
        "rows of one id are taken for one row",
        (
            Edit(
                "tallystick/matching/row_identity.py",
                "        while number not in named and item_id in taken:\n",
                "        while False:\n",
            ),
        ),
    ),
    Broken(
        14,
        "cuts are dated by each host's own clock",
        (
            Edit(
                "tallystick/store/clock.py",
                "    return StoreClock(now_utc=now, ",
                "    return StoreClock(now_utc=after, ",
            ),
        ),
    ),
    Broken(
        15,
        "a late row of an event that expired unread is a phantom",
        (
            Edit(
                "tallystick/matching/unreadable_ranges.py",
                "        return any(True for _ in losses)\n",
                "        return _is_lost_beside(n, losses)\n",
            ),
        ),
    ),
    Broken(
        18,
        "legs of transactions without a key complete each other",
        (
            Edit(
                "tallystick/kafka_log/event_decoder.py",
                '{"match_key", "currency", *(["transaction_key"] if several_legs else [])}',
                '{"match_key", "currency"}',
            ),
        ),
    ),
)
"""In the order of the audit's numbers."""

UNREACHABLE = {
    13: "keys are numbered, not hashed",
    16: "indexes are described by SQL, which is not run",
    17: "slices are far smaller than the 10,000 offsets that are looked around",
}
"""Findings whose mended lines are not run here, and why."""


def break_again(broken: Broken, folder: Path) -> None:
    """Copy what is played, and break the finding's lines in the copy.

    Raises ValueError where a line does not stand there once.
    """
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in broken.edits:
        path = folder / edit.file
        text = path.read_text()
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file}: expected this once, got it {text.count(edit.old)} times: {edit.old!r}")
        path.write_text(text.replace(edit.old, edit.new))


def play_broken(broken: Broken, *, schedules: int, seed: int, seconds: float) -> dict[str, object]:
    """After how many schedules something is violated that is not known, and that the product as it is does not violate
    in that schedule.
    """
    told: dict[str, object] = {"finding": broken.finding, "name": broken.name, "schedules": 0, "found": None}
    until, first = time.monotonic() + seconds, seed
    with tempfile.TemporaryDirectory(prefix="broken-again-") as name:
        folder = Path(name)
        break_again(broken, folder)
        while first < seed + schedules and time.monotonic() < until:
            figures = _play(folder, seed + schedules - first, first, until - time.monotonic())
            if "error" in figures:
                return {**told, **figures}
            found = figures["violations"][0] if figures["violations"] else None
            first += figures["schedules"]
            told["schedules"] = first - seed
            if found and not _play(ROOT, 1, found[0], seconds).get("violations"):
                return {**told, "found": found}
    return told


def _play(folder: Path, schedules: int, seed: int, seconds: float) -> dict[str, Any]:
    """Play that folder's product up to its first violation; what a run wrote of it, or its error."""
    with tempfile.TemporaryDirectory(prefix="played-") as name:
        to = Path(name) / "found.json"
        argv = ["-m", "tests.simulator.simulate", "--until-first", "--processes", "1"]
        argv += ["--schedules", str(schedules), "--seed", str(seed), "--seconds", str(seconds), "--to", str(to)]
        path = f"{folder}:{folder / 'spark_apps'}"
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=folder,
            env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        figures: dict[str, Any] = json.loads(to.read_text()) if to.exists() else {"error": done.stderr[-2000:]}
    return figures


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each finding")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of findings")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "simulate_broken.json")
    arguments = parser.parse_args(argv)
    rows = []
    for broken in BROKEN:
        if arguments.only and broken.finding not in arguments.only:
            continue
        row = play_broken(broken, schedules=arguments.schedules, seed=arguments.seed, seconds=arguments.seconds)
        rows.append(row)
        came = row.get("found", row.get("error"))
        print(f"{row['finding']:3} {row['name']}: {row.get('schedules')} schedules: {came}", flush=True)
    unreachable = {str(number): why for number, why in UNREACHABLE.items()}
    figures = {"commit": commit(), "seed": arguments.seed, "findings": rows, "unreachable": unreachable}
    arguments.to.parent.mkdir(parents=True, exist_ok=True)
    arguments.to.write_text(json.dumps(figures, indent=1) + "\n")
    return int(any(row.get("found") is None for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
