"""Consoles and tables as wide as the terminal: what does not fit goes first by rank, then onto lines of its own.

Nothing is ever cut off. In a pipe, and with --plain, each row is one line with every column, and no code colours it.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tallystick.text.plain import printed_text

_WIDTH_OF_A_PIPE = 100_000
"""No line is ever folded."""

_FOLDED_MIN = 19
"""Characters that a folding column gets at least: a date and its time."""

_GAP = 2

_PLAIN = ContextVar("plain", default=False)


def set_plain(plain: bool) -> None:
    """Set whether every console of this command writes as into a pipe."""
    _PLAIN.set(plain)


def console(*, stderr: bool = False) -> Console:
    """Return a console that takes every text as it is, and heeds NO_COLOR, TERM=dumb and FORCE_COLOR."""
    terminal = False if _PLAIN.get() else None  # None: see what it writes to
    found = _Console(stderr=stderr, markup=False, highlight=False, emoji=False, force_terminal=terminal)
    if not found.is_terminal:
        found.width = _WIDTH_OF_A_PIPE
    return found


class _Console(Console):
    """Write out characters that would act on the terminal, whatever is printed; only its own colours act."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printed_text(text), style, control)


class Rows:
    """A table without lines, so that it can be cut and grepped; > aligns a column to the right and never folds it.

    spared: columns that a narrow terminal does without, the first of them first.
    """

    def __init__(self, *columns: str, spared: Sequence[str] = ()) -> None:
        self._right = [column.startswith(">") for column in columns]
        self._columns = [column.removeprefix(">") for column in columns]
        self._spared = tuple(spared)
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add one cell per column."""
        self._rows.append(tuple(cell if isinstance(cell, Text) else Text(cell) for cell in cells))

    def fitting(self, width: int) -> RenderableType:
        """Return the table if it fits; else fewer columns and a note about them; else a block of lines per row."""
        for count in range(len(self._spared) + 1):
            left_out = self._spared[:count]
            shown = [n for n, column in enumerate(self._columns) if column not in left_out]
            if self._needs(shown) <= width:
                table = self._table(shown)
                return Group(table, _note(left_out)) if left_out else table
        return self._blocks()

    def _needs(self, shown: Sequence[int]) -> int:
        """Return the width of the narrowest table of these columns that is still easy to read, in characters."""
        widths = [self._width(n) if self._right[n] else min(self._width(n), _FOLDED_MIN) for n in shown]
        return sum(widths) + _GAP * (len(shown) - 1)

    def _width(self, n: int) -> int:
        return max([cell_len(self._columns[n]), *(row[n].cell_len for row in self._rows)])

    def _table(self, shown: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for n in shown:
            if self._right[n]:
                table.add_column(self._columns[n], justify="right", no_wrap=True)
            else:
                table.add_column(self._columns[n], overflow="fold")
        for row in self._rows:
            table.add_row(*(row[n] for n in shown))
        return table

    def _blocks(self) -> RenderableType:
        blocks: list[RenderableType] = []
        for row in self._rows:
            block = Table(box=None, pad_edge=False, show_header=False)
            block.add_column(style="bold", no_wrap=True)
            block.add_column(overflow="fold")
            for name, cell in zip(self._columns, row, strict=True):
                block.add_row(name, cell)
            blocks += [Text(), block] if blocks else [block]
        return Group(*blocks)


def _note(left_out: Sequence[str]) -> Text:
    return Text(f"without {', '.join(left_out)}: the terminal is too narrow; --plain shows all", style="dim")
