"""Judge stored cuts: read both sides, pair them, and commit verdict, breaks and open items in one transaction each.

    spark-submit reconcile_app.py --contract dags/contracts/billing_payments.yaml --cut 7

Several pairs of --contract and --cut are judged one after the other in one Spark session; one that fails stops none of
the others. With --follow further ones are read from a named pipe while the session lives, a JSON object a line
({"contract": FILE, "cut": N}, and "reread": true where that is asked for), until whoever writes them closes it. The
client of a Spark Connect server can be given /dev/stdin; spark-submit hands no standard input on.

Addresses come from the environment (TALLYSTICK_STORE_DSN, TALLYSTICK_CONN_<ID>), never from argv; all breaks are also
written as Parquet under TALLYSTICK_ARTIFACTS_DIR. Prints one JSON line per step. Exits 0 once each verdict is stored,
whatever it says; anything else means that one is not.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from tallystick.alerting.policy import alerts_for
from tallystick.connections.connections import (
    Connections,
    KafkaSettings,
    connections_from_environment,
    store_dsn,
)
from tallystick.contract.change import refuse_other_books
from tallystick.contract.contract import Contract, load_contract
from tallystick.documents.breaks_parquet import breaks_file
from tallystick.host.artifacts import ArtifactsUnreachable, Copies, Place, artifacts_place, copies_of, delete_folder
from tallystick.host.gc_tuning import relaxed_gc, short_process
from tallystick.host.private_files import private_folder
from tallystick.judging.canaries import missed_canaries
from tallystick.judging.judge import judge
from tallystick.kafka_cluster.rewritten_since import (
    refuse_rewritten,
    rewritten_above,
    rewritten_since_cut,
    without_rewritten,
)
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.kafka_log.header_cache import BatchHeads, KeptHeads
from tallystick.ledger.key_index import commit_index, delete_expired, first_kept, index_folder, new_seed
from tallystick.matching.closed_cut import DIGEST
from tallystick.matching.scan_result import summary_of
from tallystick.model.cut import Cut, without_expired
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import ExitCode
from tallystick.pipeline.investigate import ScannedCut, investigate, take_cut_census
from tallystick.pipeline.lookups import LookUps
from tallystick.pipeline.run_history import keys_as_old_as_the_books, open_indexes, read_history
from tallystick.pipeline.sources import open_both_sides
from tallystick.report.log_excerpt import FETCH_BYTES, with_strips
from tallystick.store.alerts.alert_store import firing_alerts
from tallystick.store.engine import open_store
from tallystick.store.runs.contract_store import read_contract
from tallystick.store.runs.cut_store import claim_attempt, read_cut
from tallystick.store.runs.open_item_store import open_items_as_of
from tallystick.store.runs.outstanding_store import outstanding_classes
from tallystick.store.runs.run_history_store import key_index_seed_before
from tallystick.store.runs.run_store import commit_run, read_run, read_run_head
from tallystick.text.plain import printed_text
from tallystick_spark.readers.key_index_files import IndexPlan
from tallystick_spark.scan import CutToScan, reads_log, scan_cut
from tallystick_spark.session import is_client, load_client

_PR_SET_PDEATHSIG = 1


class CutNotStored(TallystickError):
    """There is no such cut: the cut task did not run, or the number is wrong."""


class DigestChanged(TallystickError):
    """Reading the same cut again gave another digest: the log or the ledger is not what it was."""

    exit_code = ExitCode.INCONCLUSIVE


class CutJob(NamedTuple):
    """One stored cut to judge, or to read again."""

    contract_file: Path
    cut_n: int
    reread: bool


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line, which is the contract between scheduler and job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contract", type=Path, default=[], action="append", help="the contract's YAML file")
    parser.add_argument("--cut", type=int, default=[], action="append", help="number of the stored cut to judge")
    parser.add_argument("--reread", action="store_true", help="read a judged cut again and compare; stores nothing")
    parser.add_argument("--follow", type=Path, metavar="PIPE", help="judge what is written here too, a line each")
    arguments = parser.parse_args(argv)
    if len(arguments.contract) != len(arguments.cut):
        parser.error(
            f"got {len(arguments.contract)} --contract and {len(arguments.cut)} --cut; expected a --cut for each"
        )
    if not arguments.cut and arguments.follow is None:
        parser.error("got no cut to judge; expected --contract and --cut, or --follow")
    return arguments


def announce(step: str, **figures: object) -> None:
    """Print one JSON line per step, for people's progress bars and for the log."""
    line = json.dumps({"step": step, **figures}) + "\n"
    print(line, end="", flush=True)  # one write: the census tells from a thread of its own


def announce_figures(step: str, figures: Mapping[str, object]) -> None:
    """Print the same for callers that have a mapping."""
    announce(step, **figures)


def main(argv: Sequence[str]) -> None:
    arguments = parse_arguments(argv)
    die_with_parent()
    if arguments.follow and is_client():
        load_client()
    given = [
        CutJob(contract_file, cut_n, arguments.reread)
        for contract_file, cut_n in zip(arguments.contract, arguments.cut, strict=True)
    ]
    followed = follow(arguments.follow) if arguments.follow else ()
    judge_stored_cuts(open_store(store_dsn()), chain(given, followed))


def follow(pipe: Path) -> Iterator[CutJob]:
    """Yield the jobs that are written to a named pipe, as they come, until its last writer closes it."""
    with pipe.open(encoding="utf-8") as lines:
        for line in lines:
            order = json.loads(line)
            yield CutJob(Path(order["contract"]), int(order["cut"]), bool(order.get("reread", False)))


def judge_stored_cuts(engine: Engine, orders: Iterable[CutJob]) -> None:
    """Judge each cut, also after one has failed; raises the last error at the end, and prints each as it comes."""
    failed: Exception | None = None
    for order in orders:
        try:
            contract = load_contract(order.contract_file)
            judge_stored(engine, contract, _given(contract), order.cut_n, reread=order.reread)
        except Exception as error:
            print(printed_text("".join(traceback.format_exception(error))), end="", file=sys.stderr)
            announce("failed", contract_file=str(order.contract_file), cut=order.cut_n, error=type(error).__name__)
            failed = error
    if failed is not None:
        raise failed


def _given(contract: Contract) -> Connections:
    return connections_from_environment(
        kafka_id=contract.kafka.connection,
        ledger_id=contract.ledger.connection,
        primary_id=contract.ledger.primary_connection,
    )


def judge_stored(
    engine: Engine, contract: Contract, connections: Connections, cut_n: int, *, reread: bool = False
) -> None:
    """Judge one stored cut, unless it has its verdict; then read it again where that is asked for."""
    stored = read_run(engine, contract.name, cut_n)
    if stored is None:
        run_cut(engine, contract, connections, stored_cut(engine, contract, cut_n))
    elif reread and stored.result.digest != DIGEST:
        reread_cut(engine, contract, connections, stored.cut, stored.result)
    else:
        with breaks_file(stored.result, _made_under(engine, contract, cut_n), artifacts_place()):
            pass
        announce("already_judged", verdict=stored.result.verdict, digest=stored.result.digest)


def _made_under(engine: Engine, contract: Contract, cut_n: int) -> Contract:
    """Return the contract that the cut was made under: it says what people may see of the cut."""
    return read_contract(engine, contract.name, cut_n) or contract


def stored_cut(engine: Engine, contract: Contract, n: int) -> Cut:
    """Return the cut to judge. Raises CutNotStored."""
    cut = read_cut(engine, contract.name, n)
    if cut is None:
        raise CutNotStored(f"{contract.name}: cut {n} is not stored; the cut task stores it before this job reads")
    return cut


@relaxed_gc()
def run_cut(engine: Engine, contract: Contract, connections: Connections, cut: Cut) -> None:
    """Judge an open cut and commit what was found. The attempt fences a driver that outlived its task.

    Raises ContractChangeRefused where the cut was made under a contract of another meaning.
    """
    refuse_other_books(read_contract(engine, contract.name, cut.n), contract)
    attempt = claim_attempt(engine, contract.name, cut.n)
    announce("claimed", contract=contract.name, cut=cut.n, attempt=attempt)
    artifacts = artifacts_place()
    with copies_of(artifacts) as copies:
        index_to = IndexPlan(
            folder=index_folder(artifacts, contract.name, cut.n, attempt=attempt),
            seed=key_index_seed_before(engine, contract.name, cut.n) or new_seed(),
            copies=copies,
        )
        delete_folder(index_to.folder)  # a store that was put back gives attempts' numbers out again
        if isinstance(artifacts, Path) and isinstance(index_to.folder, Path):
            private_folder(index_to.folder, below=artifacts)
        judged, heads = judge_cut(engine, contract, connections, cut, stored_look_ups=None, index_to=index_to)
        indexed = with_index_of_keys(contract, judged, copies, index_to)
    result = with_logs_around(contract, connections.kafka, indexed, heads)
    announce("judged", verdict=result.verdict, breaks=len(result.breaks), doubts=[d.doubt for d in result.doubts])
    outstanding = outstanding_classes(engine, contract.name, after=result)
    alerts = alerts_for(contract, result, cut=cut, firing=firing_alerts(engine, contract.name), outstanding=outstanding)
    announce("committing")
    try:
        with breaks_file(result, _made_under(engine, contract, cut.n), artifacts):
            commit_run(engine, result, attempt=attempt, alerts=alerts)
            announce("committed", verdict=result.verdict, digest=result.digest)
        _delete_expired(engine, result, artifacts)
    except ArtifactsUnreachable as error:  # the verdict is stored; what is missing here, the report writes
        announce("artifacts_owed", why=str(error))


def _delete_expired(engine: Engine, result: RunResult, artifacts: Place) -> None:
    """Delete the indexes that no later run reads. Raises ArtifactsUnreachable; the next run deletes what stays then."""
    if result.key_index is None:
        return
    stands = read_run_head(engine, result.contract, result.cut_n)
    assert stands is not None
    # Another attempt may have stored the same verdict before: the index that it names is the one to keep.
    kept_from = result.key_index.kept_from
    forgotten = delete_expired(artifacts, result.contract, result.cut_n, attempt=stands.attempt, kept_from=kept_from)
    announce("index_kept", size_bytes=result.key_index.size_bytes, forgotten_cuts=forgotten)


def with_index_of_keys(contract: Contract, result: RunResult, copies: Copies, written: IndexPlan) -> RunResult:
    """Return the same result, which names the index that was written for it.

    Raises IndexIncomplete, ArtifactsUnreachable.
    """
    of_inputs = bool(contract.input_topics)
    count = result.figures.topic_rows + (result.figures.ledger_rows if of_inputs else 0)
    kept_from = first_kept(result.cut_n, windows=contract.ledger.index_windows)
    seed = None if of_inputs else written.seed
    return replace(
        result, key_index=commit_index(copies.folder, written.written(), copies=count, kept_from=kept_from, seed=seed)
    )


def with_logs_around(
    contract: Contract, kafka: KafkaSettings, result: RunResult, heads: Mapping[TopicPartition, BatchHeads]
) -> RunResult:
    """Return the same result; its largest breaks keep the log around them. Only the store needs it; no digest has it.

    heads: of the slices that were walked.
    """
    if not result.breaks:
        return result
    with open_admin(kafka) as admin:
        kept = KeptHeads(of=heads, fetch_one=fetcher(admin, fetch_bytes=1))
        fetch = kept.over(fetcher(admin, fetch_bytes=FETCH_BYTES))
        return replace(result, breaks=with_strips(fetch, result.breaks, not_on=contract.input_topics))


@relaxed_gc()
def reread_cut(engine: Engine, contract: Contract, connections: Connections, cut: Cut, before: RunResult) -> None:
    """Read the same bytes again, under the contract of then; look-ups are answered from the first time.

    Raises DigestChanged, and ContractChangeRefused where the file has another meaning than the contract of then.
    """
    of_then = read_contract(engine, contract.name, cut.n)
    refuse_other_books(of_then, contract)
    stored_look_ups = LookUps.from_json(before.look_ups)
    again, _ = judge_cut(engine, of_then or contract, connections, cut, stored_look_ups=stored_look_ups)
    announce("reread", verdict=again.verdict, digest=again.digest, same=again.digest == before.digest)
    if again.digest != before.digest:
        raise DigestChanged(f"{contract.name}/{cut.n}: digest {again.digest}, stored {before.digest}")


def judge_cut(
    engine: Engine,
    contract: Contract,
    connections: Connections,
    cut: Cut,
    *,
    stored_look_ups: LookUps | None,
    index_to: IndexPlan | None = None,
) -> tuple[RunResult, Mapping[TopicPartition, BatchHeads]]:
    """Read both sides beside the census, investigate the exceptions, judge. Beside the result: the heads of the slices.

    index_to: where to write the key index; None writes none. A cut that is read again asks no index either: the
    keys that were in one are among the stored look-ups.

    What expired since the cut was stored, or was cut away and written anew, is left out and doubted; where that happens
    meanwhile it fails only this attempt.
    """
    past = read_history(engine, contract, cut, open_items_as_of(engine, contract.name, cut.n))
    with open_both_sides(engine, contract, connections) as sides, ThreadPoolExecutor(1) as beside:
        partitions = sides.read_partitions()
        cut = without_expired(cut, partitions)
        rewritten = rewritten_since_cut(sides.fetcher(), cut, partitions)
        cut = without_rewritten(cut, rewritten)
        above = rewritten_above(sides.fetcher(), past.previous, cut, partitions)
        by_log = reads_log(contract)
        census = None if by_log else beside.submit(take_cut_census, sides, cut, announce_figures)
        announce("scanning", offsets=sum(len(part.readable) for part in cut.topic_slices))
        keys_to_include = {item.match_key for item in past.carried}
        indexes = None
        if stored_look_ups is not None:
            keys_to_include |= set(stored_look_ups.by_key)
        else:
            keys_to_include |= set(keys_as_old_as_the_books(sides.ledger, cut, past))
            assert index_to is not None and index_to.copies is not None  # where no look-ups are stored, it is asked for
            indexes = open_indexes(engine, contract, cut, index_to.copies)
        scan, counted = scan_cut(
            engine,
            CutToScan(
                contract=contract, connections=connections, cut=cut, previous=past.previous, baseline=past.baseline
            ),
            keys_to_include=keys_to_include,
            by_log=by_log,
            on_progress=announce_figures,
            indexes=indexes,
            index_to=index_to,
        )
        announce("scanned", topic_rows=scan.topic_rows, ledger_rows=scan.ledger_rows, exceptional=len(scan.copies))
        if census is not None:
            counted, last_batches = census.result()
            scan = replace(scan, last_batches=last_batches)
        refuse_rewritten(cut, scan.last_batches)
        announce("census_taken", unexplained=sum(one.unexplained for one in counted))
        scanned = ScannedCut(
            engine=engine,
            sides=sides,
            cut=cut,
            past=past,
            scan=scan,
            census=tuple(counted),
            partitions_before=partitions,
            rewritten=(*rewritten, *above),
            stored_look_ups=stored_look_ups,
            indexes=indexes,
        )
        evidence, look_ups = investigate(scanned)
        del scanned
        scan = replace(scan, log_records={})  # the evidence has those that are asked for: no window's worth twice
        announce("investigated", keys=len(evidence.outcomes))
    missed = missed_canaries(evidence, scan.canaries)
    evidence = replace(evidence, oddities=replace(evidence.oddities, missed_canaries=missed))
    result = judge(
        evidence,
        matched_rows=scan.matched_rows,
        matched_money=scan.matched_money,
        content_digests=scan.content_digests,
        look_ups=look_ups.to_json(),
        carried=past.carried,
    )
    return replace(result, summary=summary_of(scan)), scan.heads


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent is gone (Linux only); a killed task ends the JVM alone."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(1)


def run_submitted() -> None:
    """Run what the command line asks for, and announce that it is done."""
    started = time.monotonic()
    with short_process():
        main(sys.argv[1:])
    announce("done", seconds=round(time.monotonic() - started, 2))


if __name__ == "__main__":
    run_submitted()
