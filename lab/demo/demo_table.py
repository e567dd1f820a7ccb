"""The demo's last page: what each delivery mode lost, doubled and tore, and what the reconciler said."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.servers.process import REPOSITORY


def show(console: Console, figures: dict[str, Any], *, pages_file: Path, figures_file: Path) -> None:
    """Print the table, where the reports lie, and every finding that differs from the truth."""
    table = Table(title=f"The same traffic and faults in three modes (seed {figures['seed']}, {figures['seconds']} s)")
    table.add_column("delivery")
    for heading in ("lost", "doubled", "torn"):
        table.add_column(heading, justify="right")
    table.add_column("at stake, minor units", justify="right")
    table.add_column("verdicts, window by window")
    for mode, row in figures["modes"].items():
        table.add_row(mode, str(row["lost"]), str(row["doubled"]), str(row["torn"]), _money(row), _verdicts(mode, row))
    console.print(table)
    for row in figures["modes"].values():
        for path in row["reports"]:
            console.print(f"  report   {path}", highlight=False, soft_wrap=True)
    console.print(f"  alerts   {pages_file.relative_to(REPOSITORY)} ({figures['pages']})", highlight=False)
    console.print(f"  figures  {figures_file.relative_to(REPOSITORY)}", highlight=False)
    if figures["differs"]:
        console.print(f"[red]{len(figures['differs'])} findings differ from what the lab did:[/red]")
        for claim in figures["differs"]:
            console.print(f"  {claim}", highlight=False)
    else:
        console.print("Every planted fault was found under its class, and nothing else was reported.")


def _money(row: dict[str, Any]) -> str:
    return "\n".join(f"{amount:,} {currency}" for currency, amount in sorted(row["money_minor"].items())) or "none"


def _verdicts(mode: str, row: dict[str, Any]) -> str:
    return "\n".join(
        f"{name.removeprefix(mode + '_')}: " + ", ".join(run["verdict"] for run in runs if run["cut"] > 0)
        for name, runs in row["verdicts"].items()
    )
