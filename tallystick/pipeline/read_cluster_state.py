"""Read the state of cluster and ledger around a cut, once, to be stored with its verdict."""

from dataclasses import replace

from sqlalchemy import Engine

from tallystick.kafka_cluster.batch_fingerprints import gone_unseen, written_anew_and_gone
from tallystick.kafka_cluster.cursor_progress import LOOK_BACK_CUTS, held_positions
from tallystick.kafka_cluster.snapshot import LastBatches, read_clusters
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState, ExecutedAction, PositionSums, RewrittenBatch
from tallystick.matching.scan_result import ledger_item_id
from tallystick.model.cut import Cut, LedgerSnapshot, PartitionSnapshot, continues_history
from tallystick.model.open_item import ItemState
from tallystick.pipeline.run_history import RunHistory
from tallystick.pipeline.sources import Sources
from tallystick.store.plans.plan_store import executed_actions
from tallystick.store.runs.cut_store import read_cursor_positions
from tallystick.store.runs.loss_store import last_torn_cut
from tallystick.store.runs.run_history_store import (
    cluster_state_document,
)


def read_cluster_state(
    engine: Engine,
    sides: Sources,
    cut: Cut,
    past: RunHistory,
    *,
    partitions_before: tuple[PartitionSnapshot, ...],
    scanned: LastBatches,
    rewritten: tuple[RewrittenBatch, ...],
) -> ClusterState:
    """Ask the cluster and the store what stands around the cut, once; each answer has a module of its own.

    rewritten: what was found before the scan.
    """
    earlier = CLUSTER_STATE.validate_python(cluster_state_document(engine, sides.contract.name, cut.n - 1))
    around = read_clusters(
        sides.clusters(), sides.contract, cut, partitions_before=partitions_before, scanned=scanned, earlier=earlier
    )
    seen_before = (*(part.snapshot for part in past.previous.topic_slices), *earlier.partitions_after)
    held = [one.topic_partition for one in held_positions(cut)]
    actions, posted = _actions(engine, sides, cut, past)
    return replace(
        around,
        rewritten=(
            *rewritten,
            *around.rewritten,
            *written_anew_and_gone(past.previous, cut, earlier.anchors, around.partitions_after),
        ),
        gone_unseen=gone_unseen(seen_before, earlier.anchors, around.partitions_after),
        server_proofs=sides.server_proofs,
        actions=actions,
        posted=posted,
        cursor_positions=read_cursor_positions(engine, sides.contract.name, held, before=cut.n, cuts=LOOK_BACK_CUTS)
        if held
        else (),
        ledger=_another_history(cut, sides.ledger.read_snapshot()),
        ledger_files=sides.ledger.changed_files(cut.ledger_slice),
        ledger_lost=sides.ledger.lost_anchors(cut.ledger_slice),
        ledger_sums=_position_sums(sides, cut, earlier),
    )


def _position_sums(sides: Sources, cut: Cut, earlier: ClusterState) -> PositionSums | None:
    """Asked after the scan, so that the next run expects no row that this one has not read."""
    now = sides.ledger.sum_of_positions(below=cut.ledger_slice.position_start)
    at_end = sides.ledger.sum_of_positions(below=cut.ledger_slice.position_end)
    if now is None or at_end is None:
        return None
    before = earlier.ledger_sums
    return PositionSums(
        expected=before.at_end if before else None,
        now=now,
        at_end=at_end,
        scattered_expected=before.scattered_at_end if before else None,
        scattered_now=sides.ledger.scattered_sum_of_positions(below=cut.ledger_slice.position_start),
        scattered_at_end=sides.ledger.scattered_sum_of_positions(below=cut.ledger_slice.position_end),
    )


def _another_history(cut: Cut, read: LedgerSnapshot) -> LedgerSnapshot | None:
    """The server that was read, where it does not go on from the one that the cut was made on."""
    same_history = continues_history(cut.ledger_slice.snapshot, read, read_up_to=cut.ledger_slice.position_end)
    return None if same_history else read


def _actions(
    engine: Engine, sides: Sources, cut: Cut, past: RunHistory
) -> tuple[tuple[ExecutedAction, ...], tuple[str, ...]]:
    """Compensations that were published, whose item was broken still when the cut was made, and that left no trace; and
    the item ids of the rows of others.

    None that was planned before a cut that was closed unread, had lost offsets, or was torn: it may have stood there.
    Nor one whose row stands: by xmin an UPDATE may have taken it to a later cut, and else it has been judged for what
    it is.
    """
    broken = [item for item in (*past.carried, *past.surplus_items) if item.state is ItemState.BROKEN and item.break_id]
    executed = executed_actions(engine, sides.contract.name) if broken else {}
    torn = last_torn_cut(engine, sides.contract.name, before=cut.n) if executed else 0
    unread = max(torn, *(one.n for one in past.closed), *(loss.cut_n for loss in past.losses), 0)
    was_read = [
        ExecutedAction(action_id=action.action_id, executed_utc=action.known_utc, item=item)
        for item in broken
        if item.break_id in executed
        for action in [executed[item.break_id]]
        if action.planned_from_cut >= unread
    ]
    keys = {one.item.match_key for one in was_read}
    rows = sides.ledger.look_up_rows(keys, cut.ledger_slice) if keys else {}
    standing = {row.action_id: ledger_item_id(row.row_id) for found in rows.values() for row in found if row.action_id}
    ours = [str(one.action_id) for one in was_read]
    return (
        tuple(one for one, action_id in zip(was_read, ours, strict=True) if action_id not in standing),
        tuple(standing[action_id] for action_id in ours if action_id in standing),
    )
