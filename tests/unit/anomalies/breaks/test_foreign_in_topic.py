"""P3: an unpaired event of a writer that the contract does not know."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import Evidence
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.findings import classes, the_break
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import L2T, T2L, contract_of, event, evidence_of, record_of, row


def of_writer(origin: str) -> Evidence:
    """An event without a row; who wrote it."""
    alone, known = event(11), {"origin_header": "service", "known_origins": ["relay"]}
    record_origins = {alone.item_id: replace(record_of(alone), headers={"service": origin})}
    return evidence_of(alone, contract=contract_of(event=known), record_origins=record_origins)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.FOREIGN_IN_TOPIC,
            fires=of_writer("load-test"),
            twin=of_writer("relay"),
            twin_is=frozenset({BreakClass.PHANTOM_IN_TOPIC}),
        ),
    )


def with_origins(direction: Direction) -> Contract:
    return contract_of(direction, event={"origin_header": "service", "known_origins": ["relay", "backfill"]})


def written_by(headers: Mapping[str, str] | None, *copies: Any, direction: Direction = L2T) -> Evidence:
    """An event, and who wrote it; None: it has left the log."""
    alone = event(11)
    record_origins: dict[str, LogRecord] = {}
    if headers is not None:
        record_origins[alone.item_id] = replace(record_of(alone), headers=headers)
    return evidence_of(
        alone, *copies, direction=direction, contract=with_origins(direction), record_origins=record_origins
    )


@pytest.mark.parametrize(("direction"), [L2T, T2L], ids=str)
@pytest.mark.parametrize("headers", [{"service": "load-test"}, {}, {"session": "relay"}])
def test_an_unpaired_event_of_an_unknown_writer_is_foreign(direction: Direction, headers: Mapping[str, str]) -> None:
    evidence = written_by(headers, direction=direction)
    assert classes(evidence) == {BreakClass.FOREIGN_IN_TOPIC}
    found = the_break(evidence)
    assert found.evidence["origin"] == headers.get("service")
    by = "written by 'load-test'" if "service" in headers else "written without the header 'service'"
    assert f"billing.payouts:0:11 was {by}; the contract knows relay, backfill" in found.story


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
@pytest.mark.parametrize("headers", [{"service": "relay"}, {"service": "backfill"}, None])
def test_an_unpaired_event_of_a_known_writer_or_of_one_that_nobody_can_tell_is_not(
    direction: Direction, headers: Mapping[str, str] | None
) -> None:
    known = BreakClass.PHANTOM_IN_TOPIC if direction is L2T else BreakClass.MISSING_IN_LEDGER
    assert classes(written_by(headers, direction=direction)) == {known}


def test_a_paired_event_is_not_asked_where_it_comes_from() -> None:
    assert classes(written_by({"service": "load-test"}, row(1))) == set()


def test_without_known_origins_nobody_is_foreign() -> None:
    evidence = replace(written_by({"service": "load-test"}), contract=contract_of())
    assert classes(evidence) == {BreakClass.PHANTOM_IN_TOPIC}
