"""Names of columns and tables, spelled as in SQL: lower case as it stands, any other in double quotes.

SQL text takes a contract's spelling as it is. What knows names without quotes, such as the schema of a file, asks here.
"""

import re

_ANY = r'"[^"\\%?`\x00-\x1f]{1,63}"'
_PLAIN = r"[a-z_][a-z0-9_]{0,62}"
NAME_PATTERN = rf"^(?:{_PLAIN}|{_ANY})$"
TABLE_PATTERN = rf"^(?:{_PLAIN}|{_ANY})(?:\.(?:{_PLAIN}|{_ANY})){{1,2}}$"
_IS_PLAIN, _EACH = re.compile(_PLAIN), re.compile(f"{_PLAIN}|{_ANY}")


def bare(name: str) -> str:
    """Return a name without its quotes."""
    return name.strip('"')


def parts_of(table: str) -> tuple[str, ...]:
    """Return the names that a table's name is made of, from the outermost to its own, without quotes."""
    return tuple(bare(one) for one in _EACH.findall(table))


def outermost(table: str) -> str:
    """Return the first of the names that a table's name is made of, as it is spelled there."""
    return _EACH.findall(table)[0] if table else ""


def spelled(name: str) -> str:
    """Return a name as a contract spells it. One that no contract can hold gives none that is read."""
    return name if _IS_PLAIN.fullmatch(name) else f'"{name}"'
