"""The edge of the command line: every expected error is one sentence and an exit code; a bug keeps its traceback."""

import os
import sys
import traceback
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from tallystick.host.gc_tuning import relaxed_gc
from tallystick.model.verdict import ExitCode
from tallystick.text.plain import printed_text


class CommandGroup(TyperGroup):
    """Runs a command and turns what it raises into an exit code that no verdict has.

    A short command is mostly imports; the search for garbage among what they make was a tenth of its time.
    """

    @relaxed_gc()
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted; nothing was stored half", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit(ExitCode.PIPE_CLOSED) from None
        except Exception as error:  # the outermost edge: sort what is expected from bugs
            if type(error).__module__.startswith("typer"):
                raise
            raise typer.Exit(tell_of(error)) from None


def tell_of(error: Exception) -> ExitCode:
    """Say on stderr what failed, a bug with its traceback. Returns what the command ends with."""
    sentence, code = _expected(error)
    if sentence is None:
        print(printed_text("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        sentence = f"{type(error).__name__}: this is a bug in Tallystick; the lines above say where"
    typer.echo(printed_text(sentence), err=True)
    return code


def _drop_stdout() -> None:
    """What stdout still buffers goes nowhere; its flush at exit would raise again. Source: Python manual, SIGPIPE."""
    with suppress(OSError):  # not a real file in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _expected(error: Exception) -> tuple[str | None, ExitCode]:
    """The sentence for an error that an operator can act on; None for a bug. Imports only once something went wrong."""
    from confluent_kafka import KafkaException
    from kafka.errors import KafkaError
    from psycopg import OperationalError as LedgerLost
    from sqlalchemy.exc import OperationalError as StoreLost

    from tallystick.alerting.acknowledgement import AcknowledgementRefused
    from tallystick.alerting.sample_alert import NoSinks
    from tallystick.compensation.kill_switch import SwitchRefused
    from tallystick.compensation.plan import PlanRefused
    from tallystick.compensation.write_off import WriteOffRefused
    from tallystick.connections.connections import ConnectionNotGiven
    from tallystick.contract.change import ContractChangeRefused
    from tallystick.contract.contract import ContractRefused
    from tallystick.executor.effects.publish_events import ExecutorFenced, TransactionAborted
    from tallystick.executor.progress_topic import ProgressHeld, ProgressLost
    from tallystick.host.private_files import SharingRefused
    from tallystick.kafka_log.fetch import BrokerUnreachable, OffsetNotInLog
    from tallystick.kafka_log.topic_snapshot import TopicNotFound
    from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
    from tallystick.matching.closed_cut import CloseRefused
    from tallystick.metrics.export import AddressRefused, MetricsEmpty, PushRefused
    from tallystick.model.cut import PartitionsVanished
    from tallystick.pipeline.local_run import RereadDiffers, RunNotJudged
    from tallystick.pipeline.make_cut import LedgerTooFarAhead
    from tallystick.pipeline.spark_job import SparkAppFailed, SparkNotReady
    from tallystick.pipeline.window_order import WindowNotOver, WindowOutOfOrder
    from tallystick.store.breaks.break_store import BreakAmbiguous, BreakNotFound
    from tallystick.store.engine import StoreNotMigrated, StoreUnreachable
    from tallystick.store.plans.reopen_store import ReopenRefused
    from tallystick.store.rights import RoleRefused
    from tallystick.store.runs.cut_store import CutAlreadyOpen

    match error:
        case RereadDiffers():
            return str(error), ExitCode.INCONCLUSIVE
        case (
            ContractRefused()
            | ContractChangeRefused()
            | ConnectionNotGiven()
            | StoreUnreachable()
            | StoreNotMigrated()
            | RoleRefused()
            | ReopenRefused()
            | BrokerUnreachable()
            | LedgerUnreachable()
            | LedgerRefused()
            | LedgerTooFarAhead()
            | TopicNotFound()
            | OffsetNotInLog()
            | PartitionsVanished()
            | CutAlreadyOpen()
            | WindowOutOfOrder()
            | WindowNotOver()
            | RunNotJudged()
            | BreakNotFound()
            | BreakAmbiguous()
            | WriteOffRefused()
            | CloseRefused()
            | SwitchRefused()
            | PlanRefused()
            | ProgressLost()
            | ProgressHeld()
            | ExecutorFenced()
            | TransactionAborted()
            | AcknowledgementRefused()
            | NoSinks()
            | AddressRefused()
            | MetricsEmpty()
            | PushRefused()
            | SharingRefused()
            | SparkNotReady()
            | SparkAppFailed()
        ):
            return str(error), ExitCode.REFUSED
        case KafkaError():
            return f"Kafka: {type(error).__name__}; expected an answer, so try again", ExitCode.REFUSED
        case KafkaException():
            return f"Kafka: {error.args[0].str()}; expected an answer, so try again", ExitCode.REFUSED
        case StoreLost() | LedgerLost():
            return "a database went away while it was asked; expected an answer, so try again", ExitCode.REFUSED
    return None, ExitCode.BUG
