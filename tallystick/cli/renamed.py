"""Refuse a command or an option by the name that it had in an older version, and say its name of today."""

from typing import Any

from typer.core import TyperGroup

from tallystick.model.errors import TallystickError

COMMANDS = {"posture": "check-config", "compensation act": "compensation execute"}
"""Old name to new name, as they are typed behind `tallystick`."""

OPTIONS = {"--because": "--reason"}
"""Old name to new name. Only commands that have the new one know the old one; elsewhere it is an unknown option."""


class OldSpelling(TallystickError):
    """Something is asked for by the name that it had in an older version."""


class RenamingGroup(TyperGroup):
    """A group of commands, some of which had another name once."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        old = " ".join([*_names_of(ctx), args[0]])
        if old in COMMANDS and not ctx.resilient_parsing:  # a shell that completes a line is told nothing
            raise OldSpelling(f"`tallystick {old}` has a new name: use `tallystick {COMMANDS[old]}`")
        return super().resolve_command(ctx, args)


def _names_of(ctx: Any) -> list[str]:
    """Return the words that led to this group, without the program's own name."""
    return [*_names_of(ctx.parent), ctx.info_name] if ctx.parent else []


def old_option(error: Exception) -> OldSpelling | None:
    """Return the sentence that names the new spelling of an old option; None for any other error."""
    old, ctx = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    if old not in OPTIONS or ctx is None:
        return None
    if not any(OPTIONS[old] in one.opts for one in ctx.command.params):
        return None
    return OldSpelling(f"`{old}` has a new name: use `{OPTIONS[old]}`")
