"""Options that several commands share."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass


AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; its keys are stable.")]
