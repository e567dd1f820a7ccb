"""A3: a reader of uncommitted data is told where it did no harm; where it did, the break says so."""

from dataclasses import replace

import pytest

from tallystick.anomalies.notices.unfiltered_reader import unfiltered_reader
from tallystick.anomalies.registry import findings_of
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.finding_guide import NOTICE_TEXTS
from tests.unit.anomalies.builders import SLICE
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import IN_TOPIC, T2L, census_of, contract_of, evidence_of, row, seen, slice_of


def declared_as(isolation: str | None, *, aborted: int = 0) -> Evidence:
    """Books whose owner says how the consumer reads."""
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "consumer_isolation": isolation}
    census = replace(census_of(SLICE), plain=9 - aborted, spark_rows=9 - aborted, aborted=aborted)
    return evidence_of(direction=T2L, contract=contract_of(T2L, ledger=ledger), census=(census,))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(name=Notice.UNFILTERED_READER, fires=declared_as("read_uncommitted"), twin=declared_as("read_committed")),
    )


def read_by(isolation: str | None, *copies: Entry, aborted: int = 0, lookup_hits: object = ()) -> list[NoticeFound]:
    ledger = {"connection": "ledger_billing", "table": "billing.payout", "consumer_isolation": isolation}
    census = replace(census_of(slice_of(10, 20)), aborted=aborted)
    evidence = evidence_of(
        *copies, direction=T2L, contract=contract_of(T2L, ledger=ledger), census=(census,), lookup_hits=lookup_hits
    )
    return list(findings_of(unfiltered_reader, evidence))


def test_a_reader_of_uncommitted_data_is_told_and_whether_it_met_any() -> None:
    (lucky,) = read_by("read_uncommitted")
    assert lucky.sentence.endswith("no aborted record lay in this window.")
    (spared,) = read_by("read_uncommitted", aborted=3)
    assert spared.sentence.endswith("3 aborted records lay in this window, and no row of an aborted record was found.")
    assert spared.details["aborted_records"] == 3
    (once,) = read_by("read_uncommitted", aborted=1)
    assert once.sentence.endswith("; 1 aborted record lay in this window, and no row of an aborted record was found.")


@pytest.mark.parametrize("aborted", [0, 12])
def test_its_guide_is_true_whether_an_aborted_record_lay_there_or_not(aborted: int) -> None:
    (told,) = read_by("read_uncommitted", aborted=aborted)
    means = NOTICE_TEXTS[told.notice].means
    assert "no row of an aborted or open event was found" in means
    assert "no aborted record" not in means


@pytest.mark.parametrize("isolation", ["read_committed", None])
def test_a_reader_that_filters_or_that_nobody_declared_is_not(isolation: str | None) -> None:
    assert read_by(isolation, aborted=3) == []


def test_where_it_did_harm_the_break_says_so() -> None:
    assert (
        read_by("read_uncommitted", row(1), aborted=1, lookup_hits=[seen(IN_TOPIC, RecordLocation.ABORTED, 12)]) == []
    )
    assert read_by("read_uncommitted", row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.OPEN, 25)]) == []
    assert len(read_by("read_uncommitted", row(1))) == 1
