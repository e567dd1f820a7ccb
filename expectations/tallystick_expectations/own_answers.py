"""Puts what Great Expectations answers about a contract's own expectation into words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from tallystick.model.stored_run import ExpectationNotMet, NotEvaluated
from tallystick.text.plain import escape_untrusted
from tallystick.text.verdict_sentence import counted
from tallystick_expectations.evaluation import name_of, raised

Answer = ExpectationNotMet | NotEvaluated | None
"""None: it was met."""

VALUES_SHOWN = 5

_PLACE = re.compile(r"\$(\w+)")
_CONDITION = re.compile(r"^PassThrough\('(.*)'\)$")
"""How Great Expectations names the condition that picks rows."""


def answer_of(table: str, result: Any, rows_are_called: Sequence[str]) -> Answer:
    """Say what came of one expectation.

    One that ended with an exception, or had no row to look at, gave no answer: it would pass for want of rows.
    rows_are_called: the columns that name a row of the table.
    """
    asked = f"{table}: {words_of(result)}"
    if message := raised(result.exception_info):
        return NotEvaluated(what=asked, why=escape_untrusted(message))
    if result.result.get("element_count") == 0:
        return NotEvaluated(what=asked, why="no row of the table was looked at")
    if result.success:
        return None
    return ExpectationNotMet(
        table=table,
        columns=tuple(_columns(result.expectation_config.kwargs)),
        severity=str(result.expectation_config.severity.value),
        description=escape_untrusted(result.expectation_config.description or ""),
        expected=words_of(result),
        observed=_observed(result.result, rows_are_called),
        counted=_counted(result.result),
    )


def words_of(result: Any) -> str:
    """Return what is expected as Great Expectations says it; its name, where it has no words for it."""
    result.render()
    for content in result.expectation_config.rendered_content or ():
        text = _filled(content.value.to_json_dict())
        if text:
            return escape_untrusted(text.rstrip("."))
    return escape_untrusted(name_of(result).replace("_", " "))


def _filled(rendered: Mapping[str, Any]) -> str:
    """Fill a template in. Empty where it has a place that nothing is given for."""
    template, given = rendered.get("template") or "", rendered.get("params") or {}
    values = {name: param.get("value") for name, param in given.items()}
    if any(values.get(place) is None for place in _PLACE.findall(template)):
        return ""
    return _PLACE.sub(lambda place: value_text(values[place[1]]), template)


def _columns(kwargs: Mapping[str, Any]) -> Iterator[str]:
    for name in ("column", "column_A", "column_B"):
        if name in kwargs:
            yield str(kwargs[name])
    yield from map(str, kwargs.get("column_list", ()))


def _observed(result: Mapping[str, Any], rows_are_called: Sequence[str]) -> str:
    """Return what was found: the value of the whole, or the first values that are not as expected, by row."""
    if "observed_value" in result:
        return value_text(result["observed_value"])
    values = result.get("partial_unexpected_list") or ()
    rows = result.get("partial_unexpected_index_list") or ()
    shown = [
        _of_row(value_text(value), row, rows_are_called)
        for value, row in zip(values, [*rows, *[None] * len(values)], strict=False)
    ]
    return ", ".join(shown[:VALUES_SHOWN]) + ("" if len(shown) <= VALUES_SHOWN else " and more")


def _of_row(value: str, row: Any, rows_are_called: Sequence[str]) -> str:
    names = [value_text(row[name]) for name in rows_are_called if isinstance(row, Mapping) and name in row]
    return f"{value} in {' '.join(names)}" if names and names != [value] else value


def _counted(result: Mapping[str, Any]) -> str:
    if "unexpected_count" not in result:
        return ""
    return f"{result['unexpected_count']:,} of {counted(result['element_count'], 'row')}"


def value_text(value: Any) -> str:
    """Return a value as people read it: numbers with commas, and several beside each other."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        return f"{int(number):,}" if number.is_integer() else f"{number:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {value_text(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " and ".join(map(value_text, value)) or "nothing"
    return escape_untrusted(_CONDITION.sub(r"\1", str(value)))
