"""Packed JSON reads as the object that it was made of, and stays small."""

import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.host.packed_json import PackedJson, json_text, unpacked_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda members: st.lists(members, max_size=3) | st.dictionaries(TEXTS, members, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_it_equals_what_it_was_made_of_and_so_does_a_copy_from_another_process(document: dict[str, Any]) -> None:
    packed = PackedJson(document)
    assert packed == document
    assert (len(packed), list(packed)) == (len(document), sorted(document))
    assert pickle.loads(pickle.dumps(packed)) == packed
    assert unpacked_json(packed) == unpacked_json(document) == document


def test_its_text_is_the_same_in_whatever_order_the_names_came() -> None:
    assert json_text(PackedJson({"b": {"d": 1, "c": 2}, "a": [3]})) == b'{"a":[3],"b":{"c":2,"d":1}}'
    assert json_text({"a": [3], "b": {"c": 2, "d": 1}}) == b'{"a":[3],"b":{"c":2,"d":1}}'


def test_a_name_that_it_has_is_there_and_another_is_not() -> None:
    packed = PackedJson({"at": "ledger:7"})
    assert (packed["at"], packed.get("seen_legs"), "seen_legs" in packed) == ("ledger:7", None, False)
    with pytest.raises(KeyError, match="seen_legs"):
        packed["seen_legs"]


def test_what_json_has_no_form_of_is_refused_when_it_is_packed() -> None:
    with pytest.raises(TypeError, match="complex"):
        PackedJson({"grace": 1j})
    assert PackedJson({"grace": timedelta(seconds=1)})["grace"] == "PT1S"
