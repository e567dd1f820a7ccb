"""A path has one spelling; what other programs write for one is refused, each with what to write here."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.field_path import (
    ABSENT,
    LENGTH_MAX,
    NAMES_MAX,
    checked_path,
    document_of,
    names_of,
    path_of,
    refuse_fields_inside_fields,
    value_at,
    values_by_path,
)

READ = {
    "event_id": ("event_id",),
    "orderId": ("orderId",),
    "order-id": ("order-id",),
    "data.order.id": ("data", "order", "id"),
    'data."order.id"': ("data", "order.id"),
    '"order.id".value': ("order.id", "value"),
    '"@type"': ("@type",),
    'data."1"': ("data", "1"),
    'data."Größe in cm"."$"': ("data", "Größe in cm", "$"),
    "null": ("null",),
    ".".join(["a"] * NAMES_MAX): ("a",) * NAMES_MAX,
    "a" * LENGTH_MAX: ("a" * LENGTH_MAX,),
}
REFUSED = {
    "": "expected a key of the JSON payload, or a path of keys",
    "data.": "expected a key of the JSON payload",
    ".data": "expected a key of the JSON payload",
    "data..id": "expected a key of the JSON payload",
    "event id": "expected a key of the JSON payload",
    "data.1": "expected a key of the JSON payload",
    "-id": "expected a key of the JSON payload",
    "größe": "expected a key of the JSON payload",
    "event_id\n": "expected a key of the JSON payload",
    'data."id': "expected a key of the JSON payload",
    'data."".id': "expected a key of the JSON payload",
    'data."a\\"b"': "expected a key of the JSON payload",
    'data."order"."id"': "expected data.order.id: only keys with other characters stand in quotes",
    '"event_id"': "expected event_id: only keys",
    "$.data.id": "expected a path without $ before it",
    "data[0].id": "expected keys of objects only: a member of a list",
    "data.*": "expected keys of objects only",
    "data['id']": "expected keys of objects only",
    "data.`order.id`": "expected double quotes in place of backticks",
    "data.order\\.id": "expected no backslash: a key with a dot stands in double quotes",
    "/data/id": "expected dots between the keys",
    "data:id": "expected dots between the keys",
    ".".join(["a"] * (NAMES_MAX + 1)): "expected at most 16 keys",
    "a" * (LENGTH_MAX + 1): "expected at most 16 keys and 250 characters",
}


@pytest.mark.parametrize(("path", "names"), READ.items())
def test_a_path_leads_by_its_names(path: str, names: tuple[str, ...]) -> None:
    assert checked_path(path) == path
    assert (names_of(path), path_of(names)) == (names, path)


@pytest.mark.parametrize(("path", "reason"), REFUSED.items())
def test_anything_else_is_refused_with_what_to_write(path: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^expected") as refused:
        checked_path(path)
    assert str(refused.value).startswith(reason)


NAMES = st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
OBJECTS = st.recursive(
    st.integers() | st.none() | st.lists(st.integers(), max_size=2),
    lambda inside: st.dictionaries(NAMES, inside, min_size=1, max_size=3),
)


@given(st.lists(NAMES, min_size=1, max_size=NAMES_MAX))
def test_each_list_of_names_has_one_path(names: list[str]) -> None:
    assert names_of(checked_path(path_of(names))) == tuple(names)


@given(st.dictionaries(NAMES, OBJECTS, max_size=4))
def test_values_and_their_paths_are_the_document(document: dict[str, Any]) -> None:
    values = dict(values_by_path(document))
    assert document_of(values) == document
    assert all(value_at(document, path) == value for path, value in values.items())
    refuse_fields_inside_fields(values)


def test_a_key_that_no_path_holds_and_what_lies_too_deep_are_left_out() -> None:
    deep: dict[str, Any] = {"id": 1}
    for _ in range(NAMES_MAX):
        deep = {"a": deep}
    assert list(values_by_path({'a"b': 1, "a\n": 1, "a" * 300: 1, "c": 2, "d": deep, "e": {}})) == [("c", 2)]


@pytest.mark.parametrize("path", ["b", "a.c", "a.b.c.d", "a.b.c"])
def test_a_value_that_is_not_there_is_absent_and_null_is_not(path: str) -> None:
    document = json.loads('{"a": {"b": [{"c": 1}], "n": null}}')
    assert value_at(document, path) is ABSENT
    assert value_at(document, "a.n") is None


def test_one_field_inside_another_is_refused_and_one_beside_it_is_not() -> None:
    refuse_fields_inside_fields(["data.id", "data.id", "data.idea", "data_id", '"data.id".x'])
    with pytest.raises(ValueError, match=r"^expected one value at each path: data\.id lies inside data, which is a"):
        refuse_fields_inside_fields(["event_id", "data.id", "data"])
