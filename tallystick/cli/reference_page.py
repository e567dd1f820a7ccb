"""Writes docs/commands.md from the command line's own help.

`python -m tallystick.cli.reference_page > docs/commands.md`
"""

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from tallystick.cli.app import app

_HEAD = """# Commands

Generated from the code: `python -m tallystick.cli.reference_page > docs/commands.md`. `tallystick COMMAND --help` says
the same.

Tables and sentences go to stdout, progress and errors to stderr. A terminal shows colours and folds long lines. In a
pipe, and with `--plain`, each row is one line with all columns. `NO_COLOR` turns colours off. The keys of `--json` are
stable: [schemas.md](schemas.md) lists them.

"""


def command_reference() -> str:
    """Return the page: every command with its arguments, options and examples, in the order of --help."""
    group = typer.main.get_command(app)
    commands = list(_commands(group, "tallystick"))
    lines = [f"- [`{name}`](#{_anchor(name)}): {_sentence(command)}" for name, command in commands]
    parts = [_HEAD, "\n".join(lines), "\n\n", f"{group.epilog}\n"]
    parts += [_section(name, command) for name, command in commands]
    return "".join(parts)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Name and command of every leaf."""
    for part, command in group.commands.items():
        whole = f"{name} {part}"
        if hasattr(command, "commands"):
            yield from _commands(command, whole)
        else:
            yield whole, command


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *(_argument(one) for one in arguments)])
    parts = [f"\n## {name}\n", f"```\n{usage}\n```", _text(command)]
    rows = [(_argument(one), one) for one in arguments] + [(_option(one), one) for one in options]
    if rows:
        table = ["| | |", "|---|---|", *(f"| `{_cell(words)}` | {_cell(_says(one))} |" for words, one in rows)]
        parts.append("\n".join(table))
    return "\n".join(f"{part}\n" if part is not parts[0] else part for part in parts)


def _text(command: Any) -> str:
    """Return the help as it is written, its examples as code."""
    text = inspect.cleandoc(command.help)
    examples = re.findall(r"^Example: `(.*)`$", text, flags=re.MULTILINE)
    words = re.sub(r"\n*^Example: `.*`$", "", text, flags=re.MULTILINE).strip()
    return "\n".join([words, "", "```", *examples, "```"])


def _sentence(command: Any) -> str:
    first = inspect.cleandoc(command.help).split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.)\s", first)[0]


def _argument(one: Any) -> str:
    words: str = (one.metavar or one.name.upper()) + ("..." if one.nargs == -1 else "")
    return words if one.required else f"[{words}]"


def _option(one: Any) -> str:
    names = ", ".join([*one.opts, *one.secondary_opts])
    return names if one.is_flag else f"{names} {one.metavar or one.name.upper()}"


def _says(one: Any) -> str:
    """Return its help and its default."""
    words: str = one.help.rstrip(".") + "."
    if one.param_type_name == "argument" or (one.is_flag and not one.secondary_opts):
        return words
    if one.is_flag:
        return f"{words} Default: {(one.opts if one.default else one.secondary_opts)[0]}."
    if one.required:
        return f"{words} Required."
    return f"{words} Default: {one.default}." if one.show_default and one.default not in (None, "") else words


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def _anchor(name: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    return name.replace(" ", "-")


if __name__ == "__main__":
    sys.stdout.write(command_reference())
