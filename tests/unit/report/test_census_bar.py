"""An offset that nobody explains and a reader that counts differently are seen."""

from dataclasses import replace

from tallystick.contract.contract import Contract
from tallystick.model.census_values import PartitionCensus
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import Page


def with_census(run: StoredRun, *census: PartitionCensus) -> StoredRun:
    return replace(run, result=replace(run.result, figures=replace(run.result.figures, census=census)))


def test_an_offset_that_nobody_explains_is_seen(matched_run: StoredRun, contract: Contract) -> None:
    one, two = matched_run.result.figures.census
    gap = replace(one, unexplained=1, kafka_offset_end=one.kafka_offset_end + 1)
    page = report_page(with_census(matched_run, two, gap), contract)
    assert not page.law_holds
    assert page.census_bars[0].name == "billing.fees[0]"  # the odd one first
    assert page.census_bars[0].tone == "doubtful"
    html = render_report(with_census(matched_run, two, gap), contract)
    assert "it does not add up" in html
    assert 'fill="url(#unexplained)"' in str(page.census_bars[0].bar)


def test_a_reader_that_counts_differently_is_seen(matched_run: StoredRun, contract: Contract) -> None:
    one, two = matched_run.result.figures.census
    html = render_report(with_census(matched_run, replace(one, spark_rows=2), two), contract)
    assert "in 1 partition it read another number of records than it counted" in html
    assert "in 2 partitions it read as many records as it counted" in render_report(matched_run, contract)


def test_a_run_with_many_partitions_draws_some_and_lists_all(matched_run: StoredRun, contract: Contract) -> None:
    one = matched_run.result.figures.census[0]
    census = tuple(replace(one, partition=number) for number in range(100))
    html = render_report(with_census(matched_run, *census), contract)
    assert "And 60 more partitions in the table." in html
    assert "billing.fees[99]" in html


def test_compacted_offsets_are_named_and_counted_only_where_there_are_any(
    matched_run: StoredRun, contract: Contract
) -> None:
    one, two = matched_run.result.figures.census
    holed = replace(one, compacted=5, holes=5, empty_transactions=4, kafka_offset_end=one.kafka_offset_end + 5)
    page = report_page(with_census(matched_run, holed, two), contract)
    assert page.law.endswith("+ 5 compacted + 0 unexplained")
    assert page.law_holds
    compacts = [bar for bar in page.census_bars if "url(#compacted)" in str(bar.bar)]
    assert [bar.name for bar in compacts] == ["billing.fees[0]"]
    assert "compacted away" in Page(render_report(with_census(matched_run, holed, two), contract)).text
    assert "compacted away" not in Page(render_report(matched_run, contract)).text
