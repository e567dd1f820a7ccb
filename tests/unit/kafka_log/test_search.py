"""A look-up finds every copy of a key, whatever became of it and however it is written; most batches it passes over."""

import json
from dataclasses import replace

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.kafka_log import search as log_search
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import PATIENCE, DecidedBatch, Outcome
from tallystick.kafka_log.open_batch import open_batch
from tallystick.kafka_log.record import read_record
from tallystick.kafka_log.search import NEEDLES_MAX, Wanted, find_records
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import LAW, PART, offsets
from tests.unit.event_payloads import UNREADABLE
from tests.unit.synthetic_log import SyntheticLog, a_log, value

FIELDS = EventFields()
COMPRESSIONS = range(5)
"""None, gzip, snappy, lz4, zstd."""
LONG = "pay" * 100
"""Bytes that each of them makes shorter; a batch that would not be is left as it is."""
MANY = frozenset(f"no such event {number}" for number in range(NEEDLES_MAX))
"""With one more, so many that they are not looked for one by one."""


def found(log: SyntheticLog, start: int, end: int, wanted: Wanted) -> list[tuple[int, Outcome]]:
    records = find_records(log.fetch, [offsets(start, end)], FIELDS, wanted)
    return [(record.kafka_offset, record.outcome) for record in records]


EV_1 = Wanted(match_keys=frozenset({"ev-1"}))
STRANGERS = {name: payload for name, (payload, _) in UNREADABLE.items() if payload}


def test_every_copy_is_found_whatever_became_of_it() -> None:
    assert found(a_log(), 0, 9, EV_1) == [
        (1, Outcome.ABORTED),
        (4, Outcome.COMMITTED),
        (7, Outcome.OPEN),
        (8, Outcome.OPEN),
    ]


def test_only_copies_inside_the_range_are_found() -> None:
    assert found(a_log(), 2, 7, EV_1) == [(4, Outcome.COMMITTED)]
    assert found(a_log(), 1, 2, EV_1) == [(1, Outcome.ABORTED)]
    assert found(a_log(), 8, 9, EV_1) == [(8, Outcome.OPEN)]
    assert found(a_log(), 4, 4, EV_1) == []


def test_a_business_transaction_is_found_by_its_key_and_a_place_by_its_offset() -> None:
    log = SyntheticLog()
    for number in range(4):
        log.append(value(f"ev-{number}", f"pay-{number}"))
    assert found(log, 0, 4, Wanted(transaction_keys=frozenset({"pay-2"}))) == [(2, Outcome.PLAIN)]
    assert found(log, 0, 4, Wanted(places=frozenset({(PART, 1)}))) == [(1, Outcome.PLAIN)]
    assert found(log, 0, 4, Wanted(match_keys=frozenset({"pay-2"}), transaction_keys=frozenset({"ev-2"}))) == []


def decoded(log: SyntheticLog, wanted: Wanted, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """First offsets of the batches that a search decodes."""
    seen = []

    def counted(batch: DecidedBatch) -> DefaultRecordBatch:
        seen.append(batch.header.base_offset)
        return open_batch(batch)

    monkeypatch.setattr(log_search, "open_batch", counted)
    found(log, 0, log.end, wanted)
    return seen


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_batch_without_any_of_the_keys_is_passed_over(compression: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SyntheticLog()
    for number in range(5):
        log.append(value(f"ev-{number}", LONG), compression=compression)
        assert log.batches[-1].raw[22] == compression
    assert decoded(log, Wanted(match_keys=frozenset({"ev-3"})), monkeypatch) == [3]


def test_a_batch_at_a_wanted_place_is_decoded_and_so_is_one_with_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    log = SyntheticLog()
    log.append(value("ev-0"), value("ev-1"))
    log.append(value("caf\u00e9"))
    assert decoded(log, Wanted(match_keys=frozenset({"no"}), places=frozenset({(PART, 1)})), monkeypatch) == [0, 2]


def test_where_places_are_known_only_what_stands_there_or_was_aborted_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = SyntheticLog()
    for number in range(4):
        log.append(value(f"ev-{number}"), value("ev-9"))
    log.append(value("ev-9"), producer_id=7, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    wanted = Wanted(match_keys=MANY | {"ev-9"}, places=frozenset({(PART, 5)}))
    assert decoded(log, wanted, monkeypatch) == [0, 2, 4, 6, 8]
    assert decoded(log, replace(wanted, known=(offsets(1, 20),)), monkeypatch) == [0, 4, 8]
    assert decoded(log, replace(wanted, known=(offsets(0, 20, topic="another"),)), monkeypatch) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("key", ["", 'quo"ted', "a/b", "back\\slash", "[1, 2]", "{}", "caf\u00e9", "tab\t"])
def test_a_key_that_json_may_spell_in_several_ways_is_looked_for_in_every_batch(key: str) -> None:
    assert Wanted(match_keys=frozenset({key})).needles is None


def test_so_many_keys_that_decoding_all_is_cheaper_are_not_looked_for_one_by_one() -> None:
    many = frozenset(f"ev-{number}" for number in range(NEEDLES_MAX + 1))
    assert Wanted(match_keys=many).needles is None
    assert len(Wanted(match_keys=frozenset(sorted(many)[1:])).needles or ()) == NEEDLES_MAX


def spelled(key: object, escaped: bool) -> bytes:
    """A payload whose text may be written by escapes from its first character on."""
    if escaped and isinstance(key, str):
        text = "".join(f"\\u{ord(one):04x}" for one in key if ord(one) < 0x10000)
        return b'{"event_id": "%b", "payment_id": "%b"}' % (text.encode(), LONG.encode())
    return json.dumps({"event_id": key, "payment_id": LONG}, ensure_ascii=escaped).encode()


KEYS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.integers(-(10**20), 10**20),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(float),
    st.booleans(),
    st.none(),
    st.lists(st.integers(0, 9), max_size=2),
)


@LAW
@given(st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=6), st.sampled_from(COMPRESSIONS), st.booleans())
def test_what_is_passed_over_never_held_the_key(
    payloads: list[tuple[object, bool]], compression: int, among_many: bool
) -> None:
    log = SyntheticLog()
    for key, escaped in payloads:
        log.append(spelled(key, escaped), compression=compression)
    read = [read_record(log.fetch, PART, offset, FIELDS).match_key for offset in range(log.end)]
    for key in read:
        expected = [offset for offset, one in enumerate(read) if one == key]
        wanted = Wanted(match_keys=frozenset({key}) | (MANY if among_many else set()))
        assert [offset for offset, _ in found(log, 0, log.end, wanted)] == expected


ODD_PAYLOADS = [
    None,
    b"",
    b"null",
    b"[1]",
    b"no json",
    b"\xef\xbb\xbf" + b'{"event_id": "7"}',
    b'{"event_id": "7", "payment_id": NaN}',
    b'{"event_id": 7, "payment_id": -0, "event_id": "8"}',
    b'{"event_id": 7.0}',
    b'{"event_id": 7, "note": "\xff"}',
    b'{"event_id": "7", "payment_id": ["8"]}',
    b'{"ev\\u0065nt_id": "7"} ',
    b'{"event_id": 7}',
    b'{"event_id": -12345678901234567890123, "payment_id": true}',
]
SEVERAL_FIELDS = [FIELDS, EventFields(match_key="payment_id"), EventFields(match_key="x", transaction_key="event_id")]


@LAW
@given(
    st.lists(st.sampled_from(ODD_PAYLOADS) | st.tuples(KEYS, KEYS).map(lambda keys: value(*keys)), max_size=8),
    st.sampled_from(SEVERAL_FIELDS),
    st.sets(st.sampled_from(["", "7", "8", "0", "true", "7.0", '"7.0"', '["8"]', "-12345678901234567890123"])),
    st.sets(st.sampled_from(["", "7", "8", "0", "true"])),
    st.sets(st.integers(0, 8)),
)
def test_of_many_keys_the_same_records_are_found_as_by_reading_all(
    payloads: list[bytes], fields: EventFields, match_keys: set[str], transaction_keys: set[str], places: set[int]
) -> None:
    log = SyntheticLog()
    for first in range(0, len(payloads), 3):
        log.append(*payloads[first : first + 3])
    wanted = Wanted(
        match_keys=match_keys | MANY | {"one more"},
        transaction_keys=frozenset(transaction_keys),
        places=frozenset((PART, offset) for offset in places),
    )
    assert wanted.needles is None
    everything = [read_record(log.fetch, PART, offset, fields) for offset in range(log.end)]
    found_ones = list(find_records(log.fetch, [offsets(0, log.end)], fields, wanted))
    assert found_ones == [record for record in everything if record in wanted]


def answering(log: SyntheticLog, *, empty: int, high_watermark: int) -> Fetch:
    """A new leader: above the LSO it has nothing for so many answers, since its high watermark lags."""
    left = empty

    def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        nonlocal left
        answer = log.fetch(topic_partition, offset, read_committed)
        if read_committed or not left:
            return answer
        left -= 1
        return replace(answer, records=b"", high_watermark=high_watermark)

    return fetch


@pytest.mark.parametrize("high_watermark", [6, 9])
def test_an_empty_answer_above_the_lso_is_not_the_end_of_what_stands_there(high_watermark: int) -> None:
    log = a_log()
    for empty in (1, PATIENCE - 1):
        fetch = answering(log, empty=empty, high_watermark=high_watermark)
        records = find_records(fetch, [offsets(0, log.end)], FIELDS, EV_1)
        assert [record.kafka_offset for record in records] == [1, 4, 7, 8]
    with pytest.raises(OffsetNotInLog):
        fetch = answering(log, empty=PATIENCE, high_watermark=high_watermark)
        list(find_records(fetch, [offsets(0, log.end)], FIELDS, EV_1))


@pytest.mark.parametrize("few", [True, False], ids=["few keys", "many keys"])
@pytest.mark.parametrize("payload", STRANGERS.values(), ids=STRANGERS)
def test_no_record_of_a_stranger_ends_a_look_up(payload: bytes, few: bool) -> None:
    log = SyntheticLog()
    log.append(payload)
    log.append(value("ev-2"))
    wanted = Wanted(match_keys=frozenset({"ev-2"}) | (frozenset() if few else MANY))
    assert found(log, 0, 2, wanted) == [(1, Outcome.PLAIN)]
    at_its_place = Wanted(match_keys=wanted.match_keys, places=frozenset({(PART, 0)}))
    assert found(log, 0, 2, at_its_place) == [(0, Outcome.PLAIN), (1, Outcome.PLAIN)]
