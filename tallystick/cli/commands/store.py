"""`tallystick store`: bring the verdict store to this version's schema or one back, and delete what is old."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tallystick.cli.error_handling import stopped_by_sigterm
from tallystick.connections.connections import store_dsn
from tallystick.model.verdict import ExitCode

if TYPE_CHECKING:
    from tallystick.store.retention.prune_store import Pruned

store_commands = typer.Typer(
    no_args_is_help=True, help="Create the verdict store's tables, bring them to this version, or delete what is old."
)
_STAYS = {
    "standing": "items that stand, or that a kept run ended",
    "person": "items that a person wrote off",
    "repair": "items of repaired breaks",
    "leg": "items of transactions' legs",
}
"""Why an item stays, to the words for it."""


@store_commands.command("migrate")
def migrate_store(
    grant_to: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="Grant this role the rights that Tallystick needs, and no others."),
    ] = None,
) -> None:
    """Bring the verdict store to this version's schema. Changes nothing if it has that schema.

    Set TALLYSTICK_STORE_DSN to the store's address, here with the role that owns the store. For all other commands and
    the DAGs, connect as a second role, which --grant-to names. That role reads and adds rows, and changes named columns
    of two tables. It deletes nothing, and cannot change a table or a trigger. Each migration renews its rights.

    Example: `TALLYSTICK_STORE_DSN=postgresql://tally_owner@db/tally tallystick store migrate --grant-to tally`
    """
    from tallystick.store.engine import connect_store, migrate
    from tallystick.store.schema import REVISION

    done = migrate(connect_store(store_dsn()), grant_to=grant_to)
    if done.before is None:
        typer.echo(f"the verdict store is made, with the schema of this version: revision {REVISION}")
    elif done.before != REVISION:
        typer.echo(
            f"the verdict store is upgraded from revision {done.before} to {REVISION}, the schema of this version"
        )
    else:
        typer.echo(f"the verdict store has the schema of this version already: revision {REVISION}")
    if not done.granted:
        typer.echo("only its owner may use it, who can also change the audit trail: name a second role with --grant-to")


@store_commands.command("downgrade")
def downgrade_store() -> None:
    """Take the newest migration back, so that the version before works in the store as it did.

    Only one revision, only by the version that made it, and only as the store's owner. Refused where something would
    be lost. A version that the migrated store still serves needs no downgrade: install it, and keep the store.

    Example: `TALLYSTICK_STORE_DSN=postgresql://tally_owner@db/tally tallystick store downgrade`
    """
    from tallystick.store.engine import connect_store, downgrade

    revision = downgrade(connect_store(store_dsn()))
    typer.echo(f"the verdict store has revision {revision} again: this version refuses it, the one before works in it")


@store_commands.command("prune")
def prune_store(
    older_than: Annotated[
        str, typer.Option(metavar="DAYS", help="Age of window and verdict from which a run is old, such as 90d.")
    ],
    contract: Annotated[
        str | None, typer.Option(metavar="NAME", help="Prune only this contract. Default: all.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be deleted, and delete nothing.")
    ] = False,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Leave reports, breaks and logs in the artifacts folder.")
    ] = False,
) -> None:
    """Delete what is old and closed from the verdict store, and the files that belong to it.

    It deletes ended items, their breaks, alerts of incidents that are over, samples and outcomes of expectations; then
    reports, breaks and logs of pruned runs in TALLYSTICK_ARTIFACTS_DIR. Verdicts, slices, sums, contracts, plans and
    the audit trail stay, and so does what is open, or written off by a person, or repaired: docs/retention.md.

    Only the store's owner can delete; --dry-run works with any role. Runs may go on meanwhile. It may be stopped at
    any time: the next run of the command continues. Prune only when every worker has this version: after the first
    pruning, older versions can no longer use the store.

    Example: `tallystick store prune --older-than 90d --dry-run`

    Example: `TALLYSTICK_STORE_DSN=postgresql://tally_owner@db/tally tallystick store prune --older-than 90d`
    """
    from tallystick.cli.progress import Progress
    from tallystick.host.artifacts import artifacts_place
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store
    from tallystick.store.retention.prune_artifacts import prune_artifacts
    from tallystick.store.retention.prune_store import contracts_to_prune, prune, require_owner, what_would_go

    age, artifacts = _age_of(older_than), artifacts_place()
    engine = open_store(store_dsn())
    if not dry_run:
        require_owner(engine)
    older_than_utc = store_now(engine) - age
    try:
        with stopped_by_sigterm(), Progress() as progress:
            for name in contracts_to_prune(engine, contract):
                if dry_run:
                    pruned = what_would_go(engine, name, older_than_utc=older_than_utc)
                else:
                    pruned = prune(
                        engine,
                        name,
                        older_than_utc=older_than_utc,
                        terminal=this_terminal(),
                        on_batch=lambda of, kind, gone: progress.on_progress(
                            "pruned", {"contract": of, "kind": kind, "gone": gone}
                        ),
                    )
                files = 0
                if not keep_files:
                    files = prune_artifacts(artifacts, name, kept_from_cut_n=pruned.kept_from_cut_n, dry_run=dry_run)
                _tell_pruned(pruned, files, dry_run=dry_run)
    except KeyboardInterrupt:
        typer.echo("interrupted: what is deleted stays deleted; the same command goes on", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _age_of(older_than: str) -> timedelta:
    """Return the age that an option gives in days. Raises typer.BadParameter."""
    found = re.fullmatch(r"([1-9]\d{0,4})d", older_than)
    if found is None:
        raise typer.BadParameter(f"--older-than: got {older_than!r}; expected days, 1d or more, such as 90d")
    return timedelta(days=int(found[1]))


def _tell_pruned(pruned: "Pruned", files: int, *, dry_run: bool) -> None:
    if pruned.is_empty and not files:
        typer.echo(f"{pruned.contract}: nothing to prune")
        return
    runs = pruned.kept_from_cut_n - pruned.first_cut_n
    cuts = f" (cuts {pruned.first_cut_n} to {pruned.kept_from_cut_n - 1})" if runs else ""
    typer.echo(f"{pruned.contract}: {'would prune' if dry_run else 'pruned'} {runs:,} runs{cuts}")
    gone = [f"{number:,} {kind}" for kind, number in (*pruned.gone.items(), ("files", files))]
    typer.echo(f"  {'would be deleted' if dry_run else 'deleted'}: {', '.join(gone)}")
    stays = [f"{number:,} {_STAYS[reason]}" for reason, number in pruned.stays.items()]
    typer.echo(f"  stays: {', '.join((*stays, 'all verdicts, slices, sums, plans and the audit trail'))}")
