"""The edge of the command line: every expected error is one sentence and an exit code; a bug keeps its traceback."""

import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer

from tallystick.cli.renamed import RenamingGroup, old_option
from tallystick.host.extras import missing_extra
from tallystick.model.errors import TallystickError
from tallystick.model.verdict import ExitCode
from tallystick.text.plain import printed_text, unwritable

_OURS = "TALLYSTICK_"
"""What the variables that commands read begin with."""


class TextRefused(TallystickError):
    """An argument or a variable is no text that the store, a path or a server could take."""


class CommandGroup(RenamingGroup):
    """Run a command, and turn what it raises into an exit code that no verdict has."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted; what was already stored stays. Run the same command again to go on.", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit(ExitCode.PIPE_CLOSED) from None
        except Exception as error:  # the outermost edge: sort what is expected from bugs
            told = old_option(error) or error
            if type(told).__module__.startswith("typer"):
                _show_value(told)
                raise
            raise typer.Exit(report_error(told)) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing:  # a shell that completes a line is told nothing
            _refuse_unwritable(args, os.environ)
        return super().resolve_command(ctx, args)


def _refuse_unwritable(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse once what each command would have to refuse. Raises TextRefused, which quotes no value."""
    for n, text in enumerate(arguments):
        if fault := unwritable(text):
            option, before = text.split("=")[0], arguments[n - 1] if n else ""
            place = f"what follows {before}" if before.startswith("-") else f"argument {n + 1}"
            name = option if option.startswith("--") and not unwritable(option) else place
            raise TextRefused(f"{name}: got {fault}; expected text in UTF-8, without NUL")
    for name, value in environment.items():
        if name.startswith(_OURS) and (fault := unwritable(value)):
            raise TextRefused(f"{name}: got {fault}; expected text in UTF-8, without NUL")


def report_error(error: Exception) -> ExitCode:
    """Print on stderr what failed, a bug with its traceback. Return the exit code."""
    sentence, code = _expected(error)
    if sentence is None:
        print(printed_text("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        sentence = f"{type(error).__name__}: this is a bug in Tallystick; the lines above say where"
    typer.echo(printed_text(sentence), err=True)
    return code


def _show_value(error: Exception) -> None:
    """Let a refusal of an option say what was given and what was expected: of pydantic's words typer shows less."""
    from pydantic import ValidationError

    from tallystick.contract.error_lines import value_fault

    if isinstance(error, typer.BadParameter) and isinstance(error.__cause__, ValidationError):
        words = value_fault(error.__cause__.errors()[0], {})
        error.message = printed_text(re.sub(r"'.*' is not one of (.*)\.$", r"expected one of \1", words))


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, so that a stopped service leaves no Spark behind either."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop_stdout() -> None:
    """Drop what stdout still buffers: its flush at exit would raise again. Source: Python manual, SIGPIPE."""
    with suppress(OSError):  # not a real file in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _expected(error: Exception) -> tuple[str | None, ExitCode]:
    """Return the sentence for an error that a person can act on; None for a bug. Imports only after a failure."""
    if isinstance(error, TallystickError):
        return str(error), error.exit_code
    if isinstance(error, ImportError):
        sentence = missing_extra(error)
        return sentence, ExitCode.REFUSED if sentence else ExitCode.BUG
    from confluent_kafka import KafkaException
    from kafka.errors import KafkaError
    from psycopg import OperationalError as LedgerLost
    from sqlalchemy.exc import OperationalError as StoreLost

    match error:
        case KafkaError():
            return f"Kafka: {type(error).__name__}; expected an answer, so try again", ExitCode.REFUSED
        case KafkaException():
            return f"Kafka: {error.args[0].str()}; expected an answer, so try again", ExitCode.REFUSED
        case StoreLost() | LedgerLost():
            return "a database went away while it was asked; expected an answer, so try again", ExitCode.REFUSED
    return None, ExitCode.BUG
