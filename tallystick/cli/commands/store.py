"""`tallystick store`: bring the verdict store to this version's shape."""

from typing import Annotated

import typer

from tallystick.connections.connections import store_dsn

store_commands = typer.Typer(no_args_is_help=True, help="The verdict store: cuts, verdicts, breaks and open items.")


@store_commands.command("migrate")
def migrate_store(
    grant_to: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Give this role what Tallystick needs to work, and no more.")
    ] = None,
) -> None:
    """Bring the verdict store to this version's shape. Quiet and safe when it is there already.

    The store's address comes from the environment variable TALLYSTICK_STORE_DSN, here with the role that owns the
    store. In operation Tallystick connects as another one, which --grant-to names: it adds and reads, changes two
    tables in named columns, deletes nothing, and can touch neither a table's shape nor a trigger. A role that was
    granted once gets its rights anew at each migration.

    Example: `TALLYSTICK_STORE_DSN=postgresql://tally_owner@db/tally tallystick store migrate --grant-to tally`
    """
    from tallystick.store.engine import connect_store, migrate

    granted = migrate(connect_store(store_dsn()), grant_to=grant_to)
    typer.echo("the verdict store has the shape of this version")
    if not granted:
        typer.echo(
            "nobody but its owner may work in it, who can also change the audit trail: --grant-to names another role"
        )
