"""A record's producer transaction on its partition: where it begins, which marker ends it, and by which protocol."""

import pytest

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import FetchedLog, OffsetNotInLog
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.transaction_span import LOOK_BACK_OFFSETS, TransactionSpan, read_spans
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import PART
from tests.unit.kafka_log.censuses import fetch_of
from tests.unit.synthetic_log import SyntheticLog

COMMIT, ABORT = Marker.COMMIT, Marker.ABORT
CONSTANT, MOVING, UNKNOWN = MarkerProtocol


def spans_of(log: SyntheticLog, *offsets: int) -> dict[int, TransactionSpan]:
    return read_spans(fetch_of(log), PART, offsets, lambda batch, inside: None)


def span_of(log: SyntheticLog, offset: int) -> TransactionSpan:
    return spans_of(log, offset)[offset]


def transaction(log: SyntheticLog, marker: Marker, *, data_epoch: int, marker_epoch: int, records: int = 2) -> int:
    """Its first offset."""
    first = log.append(*[b"x"] * records, producer_id=7, epoch=data_epoch, transactional=True)
    log.end_transaction(7, marker, epoch=marker_epoch)
    return first


def test_a_span_begins_after_its_producers_last_marker_and_ends_at_its_next_one() -> None:
    log = SyntheticLog(fetch_batches=2)
    transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    log.append(b"x", producer_id=8, transactional=True)
    first = log.append(b"x", b"y", producer_id=7, transactional=True)
    log.end_transaction(8, ABORT)
    log.append(b"z", producer_id=7, transactional=True)
    marker = log.end_transaction(7, COMMIT)
    for offset in (first, first + 1, marker - 1):
        span = span_of(log, offset)
        assert (span.first_offset, span.first_is_certain) == (first, True)
        assert (span.marker, span.marker_offset, span.marker_epoch) == (COMMIT, marker, 0)
        assert (span.marker_timestamp_ms, span.coordinator_epoch) == (1_700_000_000_000, 0)


def test_the_marker_may_lie_above_the_lso() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, transactional=True)
    log.append(b"y", producer_id=8, transactional=True)
    marker = log.end_transaction(7, ABORT)
    assert log.lso < marker
    assert (span_of(log, 0).marker, span_of(log, 0).marker_offset) == (ABORT, marker)


def test_a_transaction_that_has_not_ended_has_no_marker() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, transactional=True)
    span = span_of(log, 0)
    assert (span.marker, span.marker_offset, span.coordinator_epoch) == (None, None, None)
    assert span.as_json()["marker"] is None


@pytest.mark.parametrize(
    ("spans", "protocol"),
    [
        pytest.param([(COMMIT, 3, 3)], CONSTANT, id="a commit under the data's epoch"),
        pytest.param([(COMMIT, 3, 4)], MOVING, id="a commit under the next epoch"),
        pytest.param([(ABORT, 3, 3)], CONSTANT, id="an abort under the data's epoch"),
        pytest.param([(ABORT, 3, 4)], UNKNOWN, id="an abort under the next epoch: fenced, timed out, or version 2"),
        pytest.param([(COMMIT, 3, 3), (ABORT, 3, 4)], CONSTANT, id="fenced, as its other transaction tells"),
        pytest.param([(COMMIT, 3, 4), (ABORT, 4, 5)], MOVING, id="version 2, as its other transaction tells"),
        pytest.param([(COMMIT, 3, 3), (COMMIT, 3, 4)], UNKNOWN, id="the client was changed in between"),
    ],
)
def test_the_protocol_is_told_by_whether_the_epoch_moves(
    spans: list[tuple[Marker, int, int]], protocol: MarkerProtocol
) -> None:
    log = SyntheticLog()
    firsts = [transaction(log, marker, data_epoch=data, marker_epoch=ends) for marker, data, ends in spans]
    assert span_of(log, firsts[-1]).protocol is protocol


def test_a_span_that_begins_further_back_than_was_looked_says_so() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, transactional=True)
    log.append(*[b"z"] * LOOK_BACK_OFFSETS)
    last = log.append(b"y", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert (span_of(log, last).first_offset, span_of(log, last).first_is_certain) == (last, False)


def test_a_log_that_begins_later_is_read_from_its_start_and_the_span_may_have_begun_before() -> None:
    log = SyntheticLog(log_start=40)
    log.append(b"x", b"y", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert (span_of(log, 41).first_offset, span_of(log, 41).first_is_certain) == (40, False)


def test_what_has_left_the_log_has_no_span_and_the_rest_has() -> None:
    log = SyntheticLog(log_start=40)
    log.append(b"x", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert list(spans_of(log, 3, 40)) == [40]
    assert spans_of(log, 3) == {}
    assert spans_of(log) == {}


def test_many_records_take_one_pass_and_share_their_spans() -> None:
    log = SyntheticLog(fetch_batches=100)
    wanted = []
    for _ in range(200):
        first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
        wanted += [first, first + 1]
    spans = spans_of(log, *wanted)
    assert sorted(spans) == wanted
    assert all(span.marker_offset == span.first_offset + 2 for span in spans.values())
    assert log.fetches <= 2 + len(log.batches) / 100 + 1


def test_records_that_lie_far_apart_do_not_make_it_read_what_lies_between() -> None:
    log = SyntheticLog(fetch_batches=5)
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    for _ in range(200):
        log.append(*[b"z"] * 500)
    last = transaction(log, ABORT, data_epoch=0, marker_epoch=0)
    spans = spans_of(log, first, last)
    assert [spans[first].marker, spans[last].marker] == [COMMIT, ABORT]
    assert log.fetches < 20


def a_transaction_among_plain_records(before: int) -> tuple[SyntheticLog, int, int]:
    """A plain record; then, so many plain ones further, a transaction in two batches: where each of both stands."""
    log = SyntheticLog(fetch_batches=1)
    log.append(*[b"z"] * 500)
    plain = log.append(b"y")
    for _ in range(before):
        log.append(*[b"z"] * 500)
    log.append(b"x", producer_id=7, transactional=True)
    log.append(b"x", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    return log, plain, log.end - 2


def test_for_a_plain_record_nothing_is_read_of_what_lies_before_it_nor_far_behind_it() -> None:
    log, plain, _ = a_transaction_among_plain_records(before=40)
    assert spans_of(log, plain) == {}
    assert log.fetches == 3


def test_a_transaction_that_comes_behind_a_plain_record_is_looked_for_from_where_it_may_begin() -> None:
    log, plain, last = a_transaction_among_plain_records(before=1)
    assert spans_of(log, plain, last) == spans_of(log, last)
    assert spans_of(log, plain, last)[last].first_is_certain


def test_each_batch_with_what_was_asked_for_is_met_once() -> None:
    log = SyntheticLog(fetch_batches=1)
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0, records=3)
    second = transaction(log, ABORT, data_epoch=0, marker_epoch=0)
    plain = log.append(b"z")
    met: list[tuple[str, list[int]]] = []
    asked = [plain, first, first + 2, second, second + 2]
    read_spans(log.fetch, PART, asked, lambda batch, inside: met.append((str(batch.outcome), list(inside))))
    assert met == [("committed", [first, first + 2]), ("aborted", [second]), ("plain", [plain])]


def test_a_span_is_told_with_all_that_is_known_of_it() -> None:
    log = SyntheticLog()
    first = transaction(log, COMMIT, data_epoch=3, marker_epoch=4)
    assert span_of(log, first).as_json() == {
        "first_offset": 0,
        "first_is_certain": True,
        "marker": "commit",
        "marker_offset": 2,
        "marker_epoch": 4,
        "marker_timestamp_ms": 1_700_000_000_000,
        "coordinator_epoch": 0,
        "protocol": str(MOVING),
    }
    log.append(b"x", producer_id=9, transactional=True)
    assert span_of(log, 3).as_json() == {
        "first_offset": 3,
        "first_is_certain": True,
        "marker": None,
        "marker_offset": None,
        "marker_epoch": None,
        "marker_timestamp_ms": None,
        "coordinator_epoch": None,
        "protocol": str(UNKNOWN),
    }


def test_the_epoch_of_the_last_data_before_a_marker_tells_its_protocol() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, epoch=2, transactional=True)
    log.append(b"x", producer_id=7, epoch=3, transactional=True)
    log.end_transaction(7, COMMIT, epoch=3)
    assert span_of(log, 0).protocol is CONSTANT


def test_an_empty_transaction_in_between_makes_a_beginning_certain_and_tells_no_protocol() -> None:
    log = SyntheticLog(log_start=40)
    log.end_transaction(7, COMMIT, epoch=9)
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    assert (span_of(log, first).first_is_certain, span_of(log, first).protocol) == (True, CONSTANT)


@pytest.mark.parametrize(("between", "looked_at"), [(9_999, True), (10_000, False)])
def test_a_transactions_first_record_is_looked_for_as_far_back_as_it_says(between: int, looked_at: bool) -> None:
    log = SyntheticLog()
    log.append(b"z")
    first = log.append(b"x", producer_id=7, transactional=True)
    log.append(*[b"z"] * between)
    last = log.append(b"y", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert span_of(log, last).first_offset == (first if looked_at else last)


@pytest.mark.parametrize(("between", "fetches"), [(LOOK_BACK_OFFSETS - 2, 1), (LOOK_BACK_OFFSETS + 500, 2)])
def test_one_pass_goes_on_to_a_neighbour_whose_transaction_may_begin_here(between: int, fetches: int) -> None:
    """Each pass begins with one question more, for the outcome of what stands there."""
    log = SyntheticLog()
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    log.append(*[b"z"] * between)
    second = transaction(log, ABORT, data_epoch=0, marker_epoch=0)
    spans = spans_of(log, first, second)
    assert [spans[first].marker, spans[second].marker] == [COMMIT, ABORT]
    assert log.fetches == 1 + 2 * fetches


def test_an_offset_at_the_logs_end_has_no_span_and_is_not_waited_for() -> None:
    log = SyntheticLog()
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    assert list(spans_of(log, first, log.end)) == [first]
    assert spans_of(log, log.end) == {}


def test_what_expires_while_it_is_looked_for_has_no_span() -> None:
    log = SyntheticLog()
    transaction(log, COMMIT, data_epoch=0, marker_epoch=0)

    def expires(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        if read_committed:
            raise OffsetNotInLog("it is gone")
        return log.fetch(part, offset, read_committed)

    assert read_spans(expires, PART, [0], lambda batch, inside: None) == {}


def test_an_offset_that_is_asked_for_twice_is_met_once() -> None:
    log = SyntheticLog()
    first = transaction(log, COMMIT, data_epoch=0, marker_epoch=0)
    met: list[list[int]] = []
    read_spans(log.fetch, PART, [first, first], lambda batch, inside: met.append(list(inside)))
    assert met == [[first]]
