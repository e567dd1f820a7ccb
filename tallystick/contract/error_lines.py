"""Puts one fault of a contract into one line: file, path, what was found, what was expected.

Renders what pydantic found; decides nothing. A value is shown as JSON, cut to a line, with the user part of an address
masked: someone will paste a DSN where a connection id belongs.
"""

import ast
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_SHOWN_CHARACTERS_MAX = 80
_LISTED_MEMBERS_MAX = 5
_USER_OF_ADDRESS = re.compile(r"//[^@/\s]*@")


def fault_lines(
    path: Path, error: ValidationError, *, model: type[BaseModel], patterns: Mapping[str, str]
) -> tuple[str, ...]:
    """Render all of pydantic's faults. `patterns`: what each regular expression of the model means in words.

    A list whose only member is at fault also counts as too short; that echo is left out.
    """
    faults = [fault for fault in error.errors() if not (fault["type"] == "too_short" and fault["input"])]
    return tuple(_fault_line(path, fault, model=model, patterns=patterns) for fault in faults)


def _fault_line(path: Path, fault: Mapping[str, Any], *, model: type[BaseModel], patterns: Mapping[str, str]) -> str:
    where = ".".join(str(part) for part in fault["loc"] if not str(part).startswith("[")) or "(whole file)"
    if fault["type"] == "extra_forbidden":
        return f"{path}: {where}: unknown key; {_keys_expected(str(fault['loc'][-1]), fault['loc'][:-1], model)}"
    if fault["type"] == "missing":
        return f"{path}: {where}: missing; expected {_meaning(fault['loc'], model)}"
    return f"{path}: {where}: {value_fault(fault, patterns)}"


def value_fault(fault: Mapping[str, Any], patterns: Mapping[str, str]) -> str:
    """Return the value that one of pydantic's faults is about, and what was expected."""
    return f"got {_shown(fault['input'])}; {_expected(fault, patterns)}"


def model_inside(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's annotation holds, also inside a tuple, a dict or a union; None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_inside(part))), None)


def fields_by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """A model's fields by the keys that a file has for them, which are not all the attributes' names."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def docstrings_by_key(model: type[BaseModel]) -> dict[str, str]:
    """Return what a model's fields mean by their docstrings, by the keys of a file; as far as its source is there.

    Read from there when asked, since pydantic, which can do that too, looks for it whenever the model is loaded: a
    third of the time that a contract takes to load.
    """
    found: dict[str, str] = {}
    for part in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        try:
            (written,) = ast.parse(dedent(inspect.getsource(part))).body
        except (OSError, TypeError, SyntaxError):  # no source, or one that was replaced meanwhile
            continue
        assert isinstance(written, ast.ClassDef)
        for field, words in pairwise(written.body):
            match field, words:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    found[name] = inspect.cleandoc(text)
    keys = zip(fields_by_key(model), model.model_fields, strict=True)
    return {key: found[name] for key, name in keys if name in found}


def _model_at(loc: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel]:
    for part in loc:
        field = fields_by_key(model).get(str(part))
        model = (model_inside(field.annotation) if field else None) or model
    return model


def _keys_expected(key: str, parents: Sequence[int | str], model: type[BaseModel]) -> str:
    keys = list(fields_by_key(_model_at(parents, model)))
    close = get_close_matches(key, keys, n=1)
    return f"expected {close[0]!r}?" if close else f"expected one of {', '.join(keys)}"


def _meaning(loc: Sequence[int | str], model: type[BaseModel]) -> str:
    words = docstrings_by_key(_model_at(loc[:-1], model)).get(str(loc[-1]))
    if words is None:
        return "a value"
    first = words.split(". ", maxsplit=1)[0].rstrip(".")
    return f"a value: {first[0].lower()}{first[1:]}"


def _keys_of_tags(tags: str) -> str:
    """Return the keys of the mappings that may stand in place of a name; a tag is such a key in brackets."""
    return ", ".join(tag for tag in re.findall(r"\[(\w+)\]", tags) if tag != "name")


def _expected(fault: Mapping[str, Any], patterns: Mapping[str, str]) -> str:
    context: Mapping[str, Any] = fault.get("ctx") or {}
    match fault["type"]:
        case "string_pattern_mismatch":
            return f"expected {patterns.get(context['pattern'], 'text like ' + context['pattern'])}"
        case "union_tag_invalid":
            return f"expected a name, or a mapping with one of the keys {_keys_of_tags(context['expected_tags'])}"
        case "string_type":
            return _text_expected(fault["input"])
        case "bool_type":
            return "expected true or false"
        case "int_type" | "int_from_float" | "int_parsing":
            return "expected a whole number"
        case "greater_than_equal":
            return f"expected {context['ge']} or more"
        case "greater_than":
            return f"expected more than {context['gt']}"
        case "less_than_equal":
            return f"expected {context['le']:,} or less"
        case "too_short":
            return "expected at least one"
        case "string_too_short":
            return "expected some text"
        case "too_long":
            return f"expected at most {context['max_length']}"
        case "enum" | "literal_error":
            return f"expected {_nearest(fault['input'], context['expected'])}"
        case "model_type" | "dict_type":
            return "expected a mapping"
        case "tuple_type":
            return "expected a list"
        case "timezone_aware" | "datetime_parsing" | "datetime_from_date_parsing" | "datetime_type":
            return "expected a time with its zone, such as 2026-01-31T00:00:00Z"
        case "value_error":
            return str(context["error"])
    return str(fault["msg"]).replace("Input should be", "expected")


def _text_expected(value: Any) -> str:
    match value:
        case None:
            return "expected some text"
        case list() | dict():
            return f"expected one text, and no {'list' if isinstance(value, list) else 'mapping'}"
    return "expected text; put it in quotes"


def _nearest(value: Any, members: str) -> str:
    """Name the closest of a list's members, if the list is long and one is close. `members`: "'a', 'b' or 'c'"."""
    names = re.findall(r"'([^']+)'", members)
    close = get_close_matches(str(value), names, n=1) if len(names) > _LISTED_MEMBERS_MAX else []
    return f"{close[0]!r}?" if close else members


def _shown(value: Any) -> str:
    text = _USER_OF_ADDRESS.sub("//***@", json.dumps(value, default=str, ensure_ascii=False))
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}..."
