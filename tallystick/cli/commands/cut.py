"""`tallystick cut`: store a cut, or close one that no attempt can judge."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tallystick.cli.commands.run import local_run
from tallystick.cli.error_handling import stopped_by_sigterm
from tallystick.cli.shared_options import AsJson, RunName, run_of
from tallystick.connections.connections import store_dsn


class _MakesByDefault(TyperGroup):
    """`cut FILE...` is `cut make FILE...`: it was a command of its own before there were two."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            args = ["make", *args]
        return super().parse_args(ctx, args)


cut_commands = typer.Typer(
    cls=_MakesByDefault,
    no_args_is_help=True,
    help="Store a cut without judging it, or close one that no run can judge.",
)


@cut_commands.command("make")
def store_cuts(
    contract_files: Annotated[
        list[Path], typer.Argument(metavar="CONTRACT_FILE", help="One or more contract files (YAML).")
    ],
    as_json: AsJson = False,
) -> None:
    """Store the cut of the window that ends now, for a Spark job of your own to judge.

    Does what `run` does before it starts Spark, with the same environment. It is refused while an earlier cut has no
    verdict; the next `run` judges that one.

    `tallystick cut CONTRACT_FILE...` is the same.

    Example: `tallystick cut make dags/contracts/billing_payments.yaml`
    """
    from tallystick.cli.output import print_json
    from tallystick.cli.progress import Progress
    from tallystick.contract.contract import load_contract
    from tallystick.pipeline.local_run import fix_cut

    contracts = [load_contract(path) for path in contract_files]
    with stopped_by_sigterm(), Progress() as progress:
        locals_ = [local_run(one, path, progress) for one, path in zip(contracts, contract_files, strict=True)]
        cuts = [fix_cut(local, settle=True) for local in locals_]
    if as_json:
        print_json([{"contract": cut.contract, "cut": cut.n} for cut in cuts])
    else:
        for cut in cuts:
            typer.echo(f"{cut.contract}/{cut.n}")


@cut_commands.command("close")
def close_one(
    run_name: RunName,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who decided it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why no run can judge it; the audit trail keeps it.")],
    as_json: AsJson = False,
) -> None:
    """Close an open cut that no attempt can judge, so that later windows are judged. This is the last resort.

    Its verdict is INCONCLUSIVE and names its slices, which nobody has read. Later runs report no partner as missing
    that may be in them. This cannot be undone. It is refused before at least one attempt to judge the cut.

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
