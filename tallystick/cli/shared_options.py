"""Options and arguments that several commands share."""

import re
from pathlib import Path
from typing import Annotated

import typer

CUT_MAX = 2**31 - 1
"""Cuts are numbered by PostgreSQL's integer."""


def set_plain(plain: bool) -> None:
    """Say how every console of this command writes."""
    from tallystick.cli.table import set_plain as set_tables_plain

    set_tables_plain(plain)


AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; its keys are stable.")]
Plain = Annotated[
    bool,
    typer.Option("--plain", callback=set_plain, help="Print as in a pipe: one line per row, all columns, no colours."),
]
ContractFile = Annotated[Path, typer.Argument(metavar="CONTRACT_FILE", help="The contract's YAML file.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="CONTRACT/N, such as billing_payments/7.")]


def run_of(run_name: str) -> tuple[str, int]:
    """Return contract and cut of a run's name. Raises typer.BadParameter."""
    found = re.fullmatch(r"([a-z][a-z0-9_]*)/(\d{1,9})", run_name)
    if found is None:
        raise typer.BadParameter(f"got {run_name!r}; expected CONTRACT/N, such as billing_payments/7")
    return found[1], int(found[2])
