"""What runs and people's turns are compared by: keys, classes, money, states; no offsets, no servers' ids, no prose."""

from typing import Any, NamedTuple

from tallystick.contract.contract import Contract
from tallystick.model.run_result import RunResult
from tests.simulator.schedule.people_steps import People


class ToldRun(NamedTuple):
    """One judged cut."""

    contract: str
    cut: int
    verdict: str
    breaks: tuple[Any, ...]
    doubts: tuple[str, ...]
    notices: tuple[Any, ...]
    items: tuple[Any, ...]
    figures: tuple[Any, ...]
    census: tuple[Any, ...]


def told_of_run(contract: Contract, result: RunResult) -> ToldRun:
    figures = result.figures
    return ToldRun(
        contract=contract.name,
        cut=result.cut_n,
        verdict=str(result.verdict),
        breaks=tuple(
            sorted(
                (str(one.break_class), one.match_key, one.leg, one.amount_minor, one.currency, one.copies)
                for one in result.breaks
            )
        ),
        doubts=tuple(sorted(str(one.doubt) for one in result.doubts)),
        notices=tuple(sorted((str(one.notice), one.count, one.pages) for one in result.notices)),
        items=tuple(
            sorted(
                (
                    *(str(one.side), one.match_key, one.leg, one.amount_minor, one.currency, str(one.state)),
                    *(one.reason.code.name, str(one.found_as or ""), one.pairable, one.first_seen_cut),
                )
                for one in result.items
            )
        ),
        figures=(
            *(
                figures.topic_rows,
                figures.ledger_rows,
                figures.matched_rows,
                tuple(sorted(figures.matched_money.items())),
            ),
            *(figures.in_flight_items, tuple(sorted(figures.in_flight_money.items())), figures.carried_items),
            *(figures.undecidable_items, figures.unreadable_records, figures.ledger_older_rows),
        ),
        census=tuple(
            (
                *(one.topic, one.partition, one.committed, one.aborted, one.plain, one.commit_markers),
                *(one.abort_markers, one.unexplained, one.without_producer_id, one.spark_rows),
            )
            for one in figures.census
        ),
    )


def told_of_people(people: People, *, failed: int, stopped: int, acted: int, plans: int) -> tuple[Any, ...]:
    """What came of a turn, by how much there was of each before it."""
    return (
        ("failed", tuple(people.product.failed[failed:])),
        ("stopped", tuple(people.product.stopped[stopped:])),
        (
            "planned",
            tuple(
                (str(item.kind), item.match_key, item.leg, item.amount_minor, item.currency)
                for plan in people.plans[plans:]
                for item in plan.items
            ),
        ),
        (
            "acted",
            tuple((str(one.fate), one.match_key) for done in people.acted[acted:] for one in done.outcomes),
        ),
    )
