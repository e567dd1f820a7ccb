"""T2: torn by the protocol where one producer transaction holds both legs, and by the application where not."""

from dataclasses import replace

import pytest

from tallystick.anomalies.breaks.torn_by_protocol import torn_by_protocol
from tallystick.anomalies.breaks.torn_transaction import torn_transaction
from tallystick.anomalies.registry import findings_of
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.record import LogRecord
from tallystick.kafka_log.transaction_span import TransactionSpan
from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.builders import LEGS
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, T2L, TOPIC, contract_of, event, evidence_of, record_of, seen


def torn_here(*, aborted_epoch: int) -> Evidence:
    """A payment whose payout leg a producer committed under epoch 3, and whose fee leg it had aborted; under which."""
    committed, aborted = event(11), event(4, topic="billing.fees")
    case = LegsCase(
        transaction_key="pay-1",
        seen={"payout": (1_000, "EUR", committed.item_id)},
        lookup_hits={
            "payout": (seen(IN_TOPIC, RecordLocation.SLICE, 11),),
            "fee": (seen(IN_TOPIC, RecordLocation.ABORTED, 4, topic="billing.fees"),),
        },
    )
    return evidence_of(
        contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}),
        incomplete=(case,),
        record_origins={
            committed.item_id: in_transaction(record_of(committed, producer_id=7), epoch=3),
            aborted.item_id: in_transaction(record_of(aborted, producer_id=7), epoch=aborted_epoch),
        },
    )


def in_transaction(record: LogRecord, *, epoch: int) -> LogRecord:
    """The same record, of a producer whose epoch moves with each transaction."""
    span = TransactionSpan(
        first_offset=record.kafka_offset,
        first_is_certain=True,
        marker=Marker.COMMIT,
        marker_offset=record.kafka_offset + 1,
        marker_epoch=epoch + 1,
        marker_timestamp_ms=1,
        coordinator_epoch=0,
        protocol=MarkerProtocol.EPOCH_PER_TRANSACTION,
    )
    return replace(record, producer_epoch=epoch, span=span)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.TORN_BY_PROTOCOL,
            fires=torn_here(aborted_epoch=3),
            twin=torn_here(aborted_epoch=2),  # the transaction before, tried again
            twin_is=frozenset({BreakClass.TORN_TRANSACTION}),
        ),
    )


CONSTANT, MOVING, UNKNOWN = MarkerProtocol
PAYMENT, INVOICE = event(11, topic="billing.payments"), event(4, topic="billing.invoices")


def leg(
    copy: object,
    protocol: MarkerProtocol = CONSTANT,
    *,
    written_ms: int = 100,
    ended_ms: int | None = 200,
    epoch: int = 3,
    producer_id: int = 7,
) -> LogRecord:
    """A leg's record: when it was written, and when its transaction's marker was."""
    span = TransactionSpan(
        first_offset=copy.order,
        first_is_certain=True,
        marker=None if ended_ms is None else Marker.COMMIT,
        marker_offset=None if ended_ms is None else copy.order + 1,
        marker_epoch=None if ended_ms is None else epoch,
        marker_timestamp_ms=ended_ms,
        coordinator_epoch=0,
        protocol=protocol,
    )
    record = record_of(copy, producer_id=producer_id)
    return replace(record, producer_epoch=epoch, timestamp_ms=written_ms, span=span)


def of_two_legs(committed: LogRecord | None, *aborted: LogRecord) -> Evidence:
    """The payment leg is committed; the invoice leg was aborted, once for each of these."""
    invoices = [event(4 + number, topic="billing.invoices") for number in range(len(aborted))]
    case = LegsCase(
        transaction_key="pay-1",
        seen={"payment": (1_000, "EUR", PAYMENT.item_id)},
        lookup_hits={
            "payment": (seen(IN_TOPIC, RecordLocation.SLICE, 11, topic="billing.payments"),),
            "invoice": tuple(
                seen(IN_TOPIC, RecordLocation.ABORTED, copy.order, topic="billing.invoices") for copy in invoices
            ),
        },
    )
    record_origins = {copy.item_id: record for copy, record in zip(invoices, aborted, strict=True)}
    if committed is not None:
        record_origins[PAYMENT.item_id] = committed
    return evidence_of(
        contract=contract_of(T2L, legs=LEGS), direction=T2L, incomplete=(case,), record_origins=record_origins
    )


@pytest.mark.parametrize(
    ("evidence", "by_protocol"),
    [
        pytest.param(
            of_two_legs(leg(PAYMENT, ended_ms=300), leg(INVOICE, ended_ms=200)),
            True,
            id="aborted on one partition while both were open",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, written_ms=201, ended_ms=300), leg(INVOICE, written_ms=100, ended_ms=200)),
            False,
            id="aborted, and the other leg written again afterwards",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, written_ms=100, ended_ms=200), leg(INVOICE, written_ms=201, ended_ms=300)),
            False,
            id="committed, and the other leg written afterwards",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, written_ms=200, ended_ms=300), leg(INVOICE, written_ms=100, ended_ms=200)),
            True,
            id="written in the very millisecond of the abort",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, written_ms=100, ended_ms=200), leg(INVOICE, written_ms=200, ended_ms=300)),
            True,
            id="written in the very millisecond of the commit",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, MOVING, written_ms=201), leg(INVOICE, MOVING)),
            True,
            id="one epoch, and each transaction has its own",
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT, MOVING), leg(INVOICE, UNKNOWN, epoch=2)), False, id="the transaction before"
        ),
        pytest.param(
            of_two_legs(leg(PAYMENT), leg(INVOICE, epoch=2)), False, id="an earlier generation of the producer"
        ),
        pytest.param(of_two_legs(leg(PAYMENT), leg(INVOICE, producer_id=8)), False, id="another producer"),
        pytest.param(
            of_two_legs(leg(PAYMENT), replace(leg(INVOICE), span=None)), False, id="its marker was not looked up"
        ),
        pytest.param(of_two_legs(leg(PAYMENT), leg(INVOICE, ended_ms=None)), False, id="its marker was not found"),
        pytest.param(of_two_legs(None, leg(INVOICE)), False, id="the committed leg has left the log"),
        pytest.param(of_two_legs(leg(PAYMENT)), False, id="the other leg was never written"),
        pytest.param(
            of_two_legs(
                leg(PAYMENT, written_ms=201, ended_ms=300), leg(INVOICE), leg(INVOICE, written_ms=250, ended_ms=280)
            ),
            True,
            id="aborted, tried again, and aborted on one partition",
        ),
    ],
)
def test_the_protocol_tore_it_where_one_producer_transaction_holds_both_legs(
    evidence: Evidence, by_protocol: bool
) -> None:
    assert len(list(findings_of(torn_by_protocol, evidence))) == by_protocol
    assert len(list(findings_of(torn_transaction, evidence))) == (not by_protocol)


def test_a_transaction_torn_by_the_protocol_names_both_markers() -> None:
    (found,) = findings_of(torn_by_protocol, of_two_legs(leg(PAYMENT, ended_ms=300), leg(INVOICE, ended_ms=200)))
    assert (found.leg, found.amount_minor, found.currency) == ("invoice", 1_000, "EUR")
    assert "One producer transaction committed payment at topic:billing.payments:0:11" in found.story
    spans = {item_id: origin["span"] for item_id, origin in found.evidence["identities"].items()}
    assert [spans[one.item_id]["marker_offset"] for one in (PAYMENT, INVOICE)] == [12, 5]
