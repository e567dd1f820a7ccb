"""What stood around a cut comes back from the store as it was, so that judging again gives the same answer."""

import json
from dataclasses import fields, replace
from datetime import timedelta

from tallystick.kafka_cluster.state import (
    CLUSTER_STATE,
    BatchFingerprint,
    BlockedEvents,
    BrokerSettings,
    ClusterState,
    FirstSight,
    PositionSums,
    RewrittenBatch,
    ServerProof,
    TopicSettings,
    UnreadExpiry,
)
from tallystick.model.cut import Discontinuity, FileChange, LedgerAnchor, LedgerFile
from tallystick.pipeline.lookups import LookUps
from tests.unit.builders import NOON, PART, TOPIC, cut_of, ledger_at, partition_at, positions_of, slice_of
from tests.unit.kafka_cluster.states import OPEN

FULL = ClusterState(
    ledger=ledger_at(300),
    partitions_before=(partition_at(),),
    partitions_after=(partition_at(high_watermark=30),),
    topic_settings=(
        TopicSettings(
            topic=TOPIC,
            replication_factor=3,
            in_sync_replicas=2,
            min_insync_replicas=2,
            unclean_leader_election=True,
            cleanup_policy=("compact", "delete"),
            retention_ms=2**63 - 1,
            retention_bytes=-1,
            message_timestamp_type="CreateTime",
        ),
    ),
    broker_settings=BrokerSettings(
        transaction_max_timeout_ms=900_000,
        transactional_id_expiration_ms=604_800_000,
        producer_id_expiration_ms=86_400_000,
        transaction_version=2,
    ),
    open_transactions=(OPEN,),
    first_sights=(FirstSight(topic_partition=PART, producer_id=4001, kafka_offset_start=20, first_seen_utc=NOON),),
    held_events=(
        BlockedEvents(
            topic_partition=PART,
            producer_id=4001,
            producer_epoch=3,
            kafka_offset_start=20,
            events=2,
            money={"EUR": 2**53 + 1},
            holds=True,
            complete=False,
        ),
    ),
    anchors=(
        BatchFingerprint(
            topic_partition=PART,
            kafka_offset_start=4,
            kafka_offset_end=9,
            crc32c=2**32 - 1,
            leader_epoch=3,
            read_by_cut=1,
        ),
    ),
    rewritten=(RewrittenBatch(topic_partition=PART, kafka_offset=4, read_by_cut=1, before="a", now="b"),),
    gone_unseen=(PART,),
    expiries=(UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=NOON + timedelta(microseconds=1)),),
    ledger_sums=PositionSums(expected=2**70, now=2**70 + 1, at_end=2**71),
    ledger_files=(
        FileChange(before=LedgerFile(path="a.parquet", size_bytes=2**53 + 1, modified_ns=2**60 + 1), after=None),
    ),
    posted=("ledger:2",),
    ledger_lost=(LedgerAnchor(position=2**62 + 1, row_id="a", key_checksum=2**32 - 1),),
    cursor_positions=(*positions_of((20, 2**53 + 1)), *positions_of((300, 301), side=None)),
    server_proofs=(ServerProof(connection="kafka_billing", setting="security.protocol", value="SSL", needs="SSL"),),
)


def test_it_goes_through_json_unchanged() -> None:
    document = json.loads(json.dumps(CLUSTER_STATE.dump_python(FULL, mode="json", by_alias=True)))
    assert CLUSTER_STATE.validate_python(document) == FULL
    look_ups = LookUps(topic_settled_until_utc=None, ledger_settled_until_utc=None, older_rows=None, cluster_state=FULL)
    assert LookUps.from_json(json.loads(json.dumps(look_ups.to_json()))) == look_ups


def test_every_part_but_actions_and_repairs_is_tried() -> None:
    assert [one.name for one in fields(ClusterState) if not getattr(FULL, one.name)] == ["actions", "repairs"]


def test_what_an_older_run_did_not_keep_is_empty() -> None:
    assert CLUSTER_STATE.validate_python({}) == ClusterState()


def test_a_topic_whose_settings_nobody_may_describe_is_taken_not_to_compact() -> None:
    assert FULL.compacts(TOPIC)
    assert not FULL.compacts("billing.fees")


def test_a_log_that_was_short_when_the_cut_was_made_stays_so_though_it_grew_before_it_was_judged() -> None:
    short = replace(slice_of(20, 20), snapshot=partition_at(lso=15, high_watermark=15))
    grown = ClusterState(partitions_before=(partition_at(lso=40, high_watermark=40),))
    assert grown.discontinuity_of(cut_of(short), short) is Discontinuity.TRUNCATED
    whole = slice_of(10, 20)
    assert grown.discontinuity_of(cut_of(whole), whole) is None
