"""The metrics for a monitoring system: names, units, labels and values. Pure.

Labels are names that a person wrote down or that the code knows: contracts, sinks, verdicts, classes, ages and ISO 4217
codes. No id, no key and no text of a payload is one, so how many series there are does not depend on what events say.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tallystick.model.metric_figures import ContractFigures, JudgedWindow, SinkFigures
from tallystick.model.open_item import BUCKETS, ItemState
from tallystick.model.verdict import Verdict
from tallystick.text.money import is_known_currency

WAITING = "waiting"
"""Label of items that are no break: not due yet, or not decidable yet."""

OTHER_CURRENCY = "other"
"""Label of money whose code ISO 4217 does not list: somebody else's text, and no sum that means anything but not 0."""

AGES = tuple(zip(("under_1h", "1h_to_1d", "1d_to_7d", "over_7d"), (end for _, end in BUCKETS), strict=True))
"""Label and end of each of the report's buckets of age, half-open."""


class MetricKind(StrEnum):
    """The way in which a value moves: freely, or only up."""

    GAUGE = "gauge"
    COUNTER = "counter"


Labels = Mapping[str, str]
Observed = Iterable[tuple[Labels, int | float]]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric. unit: as UCUM writes it, "s" for seconds; "" for counts."""

    name: str
    unit: str
    kind: MetricKind
    says: str


@dataclass(frozen=True, kw_only=True)
class ContractMetric(Metric):
    """A metric of each contract. of: its values in one contract's books."""

    of: Callable[[ContractFigures, datetime], Observed]


@dataclass(frozen=True, kw_only=True)
class MetricValues:
    """One metric with its series as of one moment."""

    metric: Metric
    values: tuple[tuple[Labels, int | float], ...]


def metric_values(books: Sequence[ContractFigures], *, now_utc: datetime) -> tuple[MetricValues, ...]:
    """Every metric in order, also those without a series now; the first says how many contracts there are."""
    return (
        MetricValues(metric=CONTRACTS, values=(({}, len(books)),)),
        *(
            MetricValues(
                metric=metric,
                values=tuple(
                    ({"contract": figures.contract, **labels}, value)
                    for figures in books
                    for labels, value in metric.of(figures, now_utc)
                ),
            )
            for metric in METRICS
        ),
    )


def _verdict(figures: ContractFigures, now_utc: datetime) -> Observed:
    newest = figures.judged.verdict if figures.judged else None
    return [({"verdict": str(verdict)}, int(verdict is newest)) for verdict in Verdict]


def _overdue(figures: ContractFigures, now_utc: datetime) -> Observed:
    yield {}, max(0.0, _seconds(now_utc - figures.due_utc))


def _since(moment: Callable[[JudgedWindow], datetime | None]) -> Callable[[ContractFigures, datetime], Observed]:
    def age(figures: ContractFigures, now_utc: datetime) -> Observed:
        found = moment(figures.judged) if figures.judged else None
        return [] if found is None else [({}, _seconds(now_utc - found))]

    return age


def _headroom(figures: ContractFigures, now_utc: datetime) -> Observed:
    if figures.judged and figures.judged.expires_utc:
        yield {}, _seconds(figures.judged.expires_utc - now_utc)


def _run_seconds(figures: ContractFigures, now_utc: datetime) -> Observed:
    if figures.judged:
        yield {}, figures.judged.run_seconds


def _money(state: ItemState) -> Callable[[ContractFigures, datetime], Observed]:
    def money(figures: ContractFigures, now_utc: datetime) -> Observed:
        sums: dict[str, int] = {}
        for standing in figures.standing:
            items = standing.items
            if items.state is state and items.currency:
                currency = items.currency if is_known_currency(items.currency) else OTHER_CURRENCY
                sums[currency] = sums.get(currency, 0) + items.amount_minor
        return [({"currency": currency}, sums[currency]) for currency in sorted(sums)]

    return money


def _open_items(figures: ContractFigures, now_utc: datetime) -> Observed:
    counts: dict[tuple[str, str], int] = {}
    for standing in figures.standing:
        items = standing.items
        if items.state in (ItemState.OPEN, ItemState.BROKEN):
            name = str(standing.break_class) if items.state is ItemState.BROKEN else WAITING
            place = (name, _age(now_utc - items.first_seen_utc))
            counts[place] = counts.get(place, 0) + items.count
    return [({"class": name, "age": age}, counts[name, age]) for name, age in sorted(counts)]


def _failures(figures: ContractFigures, now_utc: datetime) -> Observed:
    return _of_sinks(figures, lambda sink: sink.failures)


def _owed(figures: ContractFigures, now_utc: datetime) -> Observed:
    return _of_sinks(figures, lambda sink: sink.owed)


def _of_sinks(figures: ContractFigures, count: Callable[[SinkFigures], int]) -> Iterator[tuple[Labels, int]]:
    for sink in figures.sinks:
        yield {"sink": sink.sink}, count(sink)


def _age(age: timedelta) -> str:
    return next(label for label, end in AGES if age < end)


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()


CONTRACTS = Metric(
    name="tallystick.contracts", unit="", kind=MetricKind.GAUGE, says="Contracts that have books in the verdict store"
)

METRICS = (
    ContractMetric(
        name="tallystick.verdict",
        unit="",
        kind=MetricKind.GAUGE,
        says="1 on the newest verdict of a contract, 0 on the others; all 0 while it has none",
        of=_verdict,
    ),
    ContractMetric(
        name="tallystick.verdict.overdue",
        unit="s",
        kind=MetricKind.GAUGE,
        says="How long ago the verdict of the next window was due; 0 while it is not",
        of=_overdue,
    ),
    ContractMetric(
        name="tallystick.cursor.lag",
        unit="s",
        kind=MetricKind.GAUGE,
        says="How long ago the newest judged window ended",
        of=_since(lambda judged: judged.window_end_utc),
    ),
    ContractMetric(
        name="tallystick.lso.age",
        unit="s",
        kind=MetricKind.GAUGE,
        says="Age of the moment up to which a run has seen every topic whole, below its last stable offset",
        of=_since(lambda judged: judged.topic_settled_until_utc),
    ),
    ContractMetric(
        name="tallystick.horizon.age",
        unit="s",
        kind=MetricKind.GAUGE,
        says="Age of the moment up to which a run has seen the ledger whole, below its horizon",
        of=_since(lambda judged: judged.ledger_settled_until_utc),
    ),
    ContractMetric(
        name="tallystick.retention.headroom",
        unit="s",
        kind=MetricKind.GAUGE,
        says="How long until retention may take offsets that no run has read; below 0 it may have",
        of=_headroom,
    ),
    ContractMetric(
        name="tallystick.run.duration",
        unit="s",
        kind=MetricKind.GAUGE,
        says="From the stored cut to the stored verdict of the newest judged window",
        of=_run_seconds,
    ),
    ContractMetric(
        name="tallystick.money_at_risk.minor_units",
        unit="",
        kind=MetricKind.GAUGE,
        says="Amounts of the copies in breaks that nobody has cleared or written off, in minor units of their currency",
        of=_money(ItemState.BROKEN),
    ),
    ContractMetric(
        name="tallystick.money_waiting.minor_units",
        unit="",
        kind=MetricKind.GAUGE,
        says="Amounts of the copies that wait for their partner, in minor units of their currency",
        of=_money(ItemState.OPEN),
    ),
    ContractMetric(
        name="tallystick.open_items",
        unit="",
        kind=MetricKind.GAUGE,
        says="Items without a partner, by class of break (or waiting) and by age since they were first seen",
        of=_open_items,
    ),
    ContractMetric(
        name="tallystick.alerts.owed",
        unit="",
        kind=MetricKind.GAUGE,
        says="Alerts that a sink has not taken yet",
        of=_owed,
    ),
    ContractMetric(
        name="tallystick.alert.delivery.failures",
        unit="",
        kind=MetricKind.COUNTER,
        says="Attempts to deliver an alert that failed or were refused",
        of=_failures,
    ),
)
