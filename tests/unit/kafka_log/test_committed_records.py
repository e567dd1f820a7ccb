"""What stands around a record on its log is read for a repair; what nobody can read proves nothing."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from tallystick.compensation.plan import PlanItem
from tallystick.compensation.republished_event import find_events
from tallystick.connections.connections import KafkaSettings
from tallystick.contract.field_types import HeaderPlace
from tallystick.kafka_log import committed_records
from tallystick.kafka_log.committed_records import cleaned_partitions, committed_in
from tests.unit.builders import PART, offsets
from tests.unit.compensation.repaired_items import ITEM
from tests.unit.kafka_log.handmade_batches import FIELDS, log_with_a_bomb
from tests.unit.synthetic_log import SyntheticLog, value

KAFKA = KafkaSettings({"bootstrap.servers": "nobody.example:9092"})


def events_on(log: SyntheticLog, item: PlanItem) -> str | None:
    return find_events(committed_in(log.fetch, offsets(0, log.end)), [item], FIELDS).why_hidden(item)


def test_no_repair_is_published_beside_a_batch_that_nobody_gets_to_read() -> None:
    item = replace(ITEM, topic=PART.topic)
    log = SyntheticLog()
    log.append(value("ev-0"))
    assert events_on(log, item) is None
    hidden = events_on(log_with_a_bomb(), item)
    assert hidden is not None
    assert f"any event may stand in {PART.topic}[{PART.partition}] at 1" in hidden
    assert events_on(log_with_a_bomb(), replace(item, topic="another")) is None


def test_what_stands_around_it_is_read_for_a_repair() -> None:
    log = log_with_a_bomb()
    found = [(one.kafka_offset, bool(one.problem)) for one in committed_in(log.fetch, offsets(0, log.end))]
    assert found == [(0, False), (1, True), (3, False)]


def test_a_batch_whose_checksum_is_wrong_proves_nothing_for_a_repair() -> None:
    log = SyntheticLog()
    log.append(value("ev-0"))
    (batch,) = log.batches
    raw = batch.raw.replace(b"ev-0", b"ev-9")
    spoilt = SyntheticLog()
    spoilt.append_raw(raw, records=1)
    (found,) = committed_in(spoilt.fetch, offsets(0, 1))
    assert (found.value, found.problem) == (b"", "its batch is not the one that its checksum was made of")


def test_a_record_is_read_by_its_headers_and_its_key_where_the_contract_has_fields_there() -> None:
    """Found by review: by its value alone each of these was unreadable."""
    item = replace(ITEM, topic=PART.topic)
    by_header = FIELDS.model_copy(update={"match_key": HeaderPlace(header="ce_id")})
    log = SyntheticLog()
    log.append(value("ev-0"), headers=[("ce_id", item.match_key.encode())])
    log.append(value("ev-0"))
    found = find_events(committed_in(log.fetch, offsets(0, log.end)), [item], by_header)
    assert [one.kafka_offset for one in found.of(item)] == [0]
    assert list(found.unnamed) == [PART.topic]
    read, *_ = committed_in(log.fetch, offsets(0, log.end))
    assert read.written is not None
    assert (read.written.key, list(read.written.headers)) == (read.key, [("ce_id", b"ev-1")])


def test_a_cleaner_shows_by_the_offsets_that_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    log = SyntheticLog()
    for n in range(4):
        log.append(value(f"ev-{n}"))
    monkeypatch.setattr(committed_records, "open_admin", lambda _: nullcontext())
    monkeypatch.setattr(committed_records, "fetchers", lambda _: (log.fetch, lambda group: {}))
    asked = [offsets(0, 4)]
    assert cleaned_partitions(KAFKA, asked) == frozenset()
    del log.batches[2]
    assert cleaned_partitions(KAFKA, asked) == {PART}
    assert cleaned_partitions(KAFKA, [offsets(0, 2), offsets(3, 4)]) == frozenset()
