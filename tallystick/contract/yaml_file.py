"""Reads one YAML file into a mapping, or says in one line why not.

Stricter than PyYAML: a key that stands twice in a mapping is refused, since the parser would keep the last one unseen.
"""

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
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_NoKeyTwice)
    except FileNotFoundError:
        raise DocumentUnreadable(f"{path}: no such file; expected a contract in YAML") from None
    except OSError as error:
        raise DocumentUnreadable(f"{path}: {error.strerror}; expected a readable file") from None
    except UnicodeDecodeError as error:
        raise DocumentUnreadable(f"{path}: byte {error.start} is no UTF-8; expected a text file in UTF-8") from None
    except yaml.YAMLError as error:
        raise DocumentUnreadable(f"{path}: not readable as YAML: {_in_one_line(error)}") from None
    if not isinstance(document, dict):
        got = "nothing" if document is None else f"a {_YAML_WORDS.get(type(document), type(document).__name__)}"
        raise DocumentUnreadable(f"{path}: got {got}; expected a mapping that begins with 'contract:'")
    return document


_YAML_WORDS = {list: "list", str: "text", int: "number", float: "number", bool: "true or false"}


class _NoKeyTwice(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
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
