"""Print a trace for people."""

from collections.abc import Sequence

from rich.text import Text

from tallystick.cli.table import Rows, console
from tallystick.model.break_history import HopState
from tallystick.text.plain import escape_untrusted, story_text
from tallystick.text.verdict_sentence import counted
from tallystick.tracing.hop import Statement, Trace, is_silent, window_of

_STYLES = {
    HopState.MATCHED: "bold green",
    HopState.BROKEN: "bold red",
    HopState.NOT_SEEN: "dim",
    HopState.NOT_ASKED: "bold yellow",
}


def print_traces(traces: Sequence[Trace]) -> None:
    """Print each chain that knows the key; the others in one line."""
    out = console()
    silent = [trace for trace in traces if is_silent(trace)]
    for trace in traces:
        if trace not in silent:
            out.print(Text(story_text(trace.sentence), style="bold"))
            out.print(_table(trace).fitting(out.width))
            out.print()
    if silent:
        hops = sum(len(trace.hops) for trace in silent)
        name = "other contract" if len(silent) < len(traces) else "contract"
        out.print(f"{counted(hops, name)} asked; none has seen it, as far back as its key index goes.")


def _table(trace: Trace) -> Rows:
    table = Rows("contract", "state", "run", "what is known", "where", "window", spared=("window",))
    for hop in trace.hops:
        for one in hop.statements:
            table.add_row(
                hop.contract.name,
                Text(one.state.replace("_", " "), style=_STYLES.get(one.state, "bold")),
                f"{hop.contract.name}/{one.cut.n}" if one.cut else "",
                story_text(_with_break(one)),
                escape_untrusted(", ".join(one.places)),
                window_of(one.cut) if one.cut else "",
            )
    return table


def _with_break(one: Statement) -> str:
    return f"{one.sentence} See: tallystick explain {str(one.break_id)[:8]}" if one.break_id else one.sentence
