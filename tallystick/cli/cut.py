"""The commands about single cuts, and how a run is named. Heavy imports stand inside the commands."""

import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tallystick.connections.connections import store_dsn


class _MakesByDefault(TyperGroup):
    """`cut FILE...` is `cut make FILE...`: it was a command of its own before there were two."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["make", *args]
        return super().parse_args(ctx, args)


cut_commands = typer.Typer(
    cls=_MakesByDefault, no_args_is_help=True, help="Cuts: what a run reads, fixed before it reads."
)
RunName = Annotated[str, typer.Argument(metavar="RUN", help="CONTRACT/N, such as billing_payments/7.")]


def run_of(run_name: str) -> tuple[str, int]:
    """Contract and cut of a run's name. Raises typer.BadParameter."""
    found = re.fullmatch(r"([a-z][a-z0-9_]*)/(\d{1,9})", run_name)
    if found is None:
        raise typer.BadParameter(f"got {run_name!r}; expected CONTRACT/N, such as billing_payments/7")
    return found[1], int(found[2])


@cut_commands.command("close")
def close_one(
    run_name: RunName,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who decided it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why nobody can judge it, for whoever audits it.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout; its keys are stable.")] = False,
) -> None:
    """Close an open cut that no attempt can judge, so that the books go on: the last resort.

    Its verdict is INCONCLUSIVE and names what stands in it, which nobody has read: later runs call no partner absent
    that may stand there. It cannot be taken back. Refused before somebody has tried to judge the cut.

    Example: `tallystick cut close billing_payouts/7 --by "Ada Byron" --reason "its batch at offset 4711 is corrupt"`
    """
    from tallystick.cli.output import print_closed, print_json
    from tallystick.documents.run import closed_document
    from tallystick.host.terminal_user import this_terminal
    from tallystick.matching.closed_cut import closing_of
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store
    from tallystick.store.runs.close_store import close_cut

    contract, n = run_of(run_name)
    engine = open_store(store_dsn())
    closing = closing_of(by=by, reason=reason, at_utc=store_now(engine))
    closed = close_cut(engine, contract, n, closing, terminal=this_terminal())
    if as_json:
        print_json(closed_document(closed))
    else:
        print_closed(closed)
