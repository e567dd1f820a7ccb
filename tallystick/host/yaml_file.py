"""Reads one YAML file into a mapping, or says in one line why not.

Stricter than PyYAML: a key that stands twice in a mapping is refused, since the parser would keep the last one unseen,
and so is what takes long to read.
"""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from tallystick.model.errors import TallystickError


class DocumentUnreadable(TallystickError):
    """The file is no YAML mapping. The message begins with the path."""


def read_mapping(path: Path) -> dict[str, Any]:
    """Read the one mapping of a file. Raises DocumentUnreadable."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise DocumentUnreadable(f"{path}: got more than {BYTES_MAX:,} bytes; expected a contract")
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_NoKeyTwice)
    except FileNotFoundError:
        raise DocumentUnreadable(f"{path}: no such file; expected a contract in YAML") from None
    except OSError as error:
        raise DocumentUnreadable(f"{path}: {error.strerror}; expected a readable file") from None
    except UnicodeDecodeError as error:
        raise DocumentUnreadable(f"{path}: byte {error.start} is no UTF-8; expected a text file in UTF-8") from None
    except yaml.YAMLError as error:
        raise DocumentUnreadable(f"{path}: not readable as YAML: {_in_one_line(error)}") from None
    except RecursionError:
        raise DocumentUnreadable(f"{path}: not readable as YAML: it is nested too deep; expected a contract") from None
    if not isinstance(document, dict):
        got = "nothing" if document is None else f"a {_YAML_WORDS.get(type(document), type(document).__name__)}"
        raise DocumentUnreadable(f"{path}: got {got}; expected a mapping that begins with 'contract:'")
    if _is_endless(document):
        raise DocumentUnreadable(
            f"{path}: its aliases say more than {VALUES_MAX:,} values, or say themselves; expected a contract"
        )
    return document


_YAML_WORDS = {list: "list", str: "text", int: "number", float: "number", bool: "true or false"}


BYTES_MAX = 64 << 10
"""PyYAML takes a second for so many. The longest contract of this repository has 3,000."""
DEPTH_MAX = 20
"""Each bracket costs PyYAML a look at all that are open on its line: 400 deep, a tenth of BYTES_MAX takes a second."""
VALUES_MAX = 100_000
"""Of one file, each as often as an alias says it again: a few lines of aliases can say it without end."""


def _is_endless(document: Any) -> bool:
    """Does the document hold more than VALUES_MAX values, or itself?"""
    left, count = [document], 0
    while left and count <= VALUES_MAX:
        value = left.pop()
        count += 1
        if isinstance(value, dict):
            left += [*value.keys(), *value.values()]
        elif isinstance(value, list | set | tuple):
            left += value
    return count > VALUES_MAX


_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


class _NoKeyTwice(yaml.SafeLoader):
    """Gives up at DEPTH_MAX, too."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise yaml.composer.ComposerError(
                problem=f"it is nested more than {DEPTH_MAX} deep; expected a contract",
                problem_mark=parent.start_mark if parent else None,
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:  # a day 99, say
            raise yaml.constructor.ConstructorError(
                problem=f"this is no {node.tag.rpartition(':')[2]}; expected one, or a text in quotes",
                problem_mark=node.start_mark,
            ) from error
        if isinstance(value, str) and _HALF_A_PAIR.search(value):
            raise yaml.constructor.ConstructorError(
                problem="a text has half a surrogate pair, which UTF-8 lacks; expected the character itself, or \\U "
                "and its eight digits",
                problem_mark=node.start_mark,
            )
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    problem=f"a key is a {_YAML_WORDS.get(type(key), 'mapping')}; expected a text",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key!r} stands twice in one mapping; expected it once",
                    problem_mark=key_node.start_mark,
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _in_one_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
