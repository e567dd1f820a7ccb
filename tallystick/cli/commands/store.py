"""`tallystick store`: bring the verdict store to this version's schema."""

from typing import Annotated

import typer

from tallystick.connections.connections import store_dsn

store_commands = typer.Typer(
    no_args_is_help=True, help="Create the verdict store's tables, or bring them to this version."
)


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

    granted = migrate(connect_store(store_dsn()), grant_to=grant_to)
    typer.echo("the verdict store has the schema of this version")
    if not granted:
        typer.echo("only its owner may use it, who can also change the audit trail: name a second role with --grant-to")
