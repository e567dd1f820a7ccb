"""Print results: tables and sentences for people, JSON for machines. Colours reach terminals only.

Texts from outside go through escape_untrusted: a match key must not control a terminal.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer
from rich.text import Text

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import Attempt
from tallystick.cli.table import Rows, console
from tallystick.compensation.write_off import BreakWrittenOff
from tallystick.contract.change import ChangeEffect, ContractChange, gravest, value_text
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import CheckResult, ConfigLine
from tallystick.matching.closed_cut import CutClosed
from tallystick.model.break_history import ToldBreak
from tallystick.model.census_values import PartitionCensus
from tallystick.model.findings import Break, largest_first, money_at_stake
from tallystick.model.stored_run import RunSummary, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.proposal.fields import Proposal
from tallystick.report.break_story import Story, amount_of
from tallystick.report.log_excerpt import LogStrip, strip_of
from tallystick.store.breaks.break_store import PREFIX_MIN
from tallystick.store.runs.contract_store import NewestContract
from tallystick.text.expectation_words import outcome_sentences, outcome_text
from tallystick.text.finding_guide import BREAK_TEXTS, DOUBT_TEXTS, NOTICE_TEXTS
from tallystick.text.money import format_minor, format_money
from tallystick.text.plain import escape_untrusted, format_time, format_window, story_text
from tallystick.text.side_terms import for_inputs
from tallystick.text.verdict_sentence import counted, verdict_sentence

_BREAKS_SHOWN_MAX = 20
"""Breaks of one class on a screen; --json and the report have more."""

VERDICT_STYLES = {Verdict.MATCHED: "bold green", Verdict.INCONCLUSIVE: "bold yellow", Verdict.BROKEN: "bold red"}

_STANDINGS = {CheckResult.OK: "green", CheckResult.AT_RISK: "bold red", CheckResult.UNKNOWN: "bold yellow"}

_EFFECTS = {ChangeEffect.KEPT: "green", ChangeEffect.RE_EVALUATED: "bold yellow", ChangeEffect.REFUSED: "bold red"}


def print_json(document: Any) -> None:
    """Print one JSON document in ASCII, so that no character from outside acts on the terminal."""
    typer.echo(json.dumps(document, indent=2))


def print_contracts(contracts: Sequence[Contract]) -> None:
    """Print one line per contract."""
    table = Rows("contract", ">version", "direction", "topics", "table", "schedule", "fingerprint")
    for contract in contracts:
        table.add_row(
            contract.name,
            str(contract.version),
            contract.direction,
            ", ".join(contract.topics),
            contract.ledger.place,
            contract.schedule,
            contract.fingerprint[:12],
        )
    _print_rows(table)


def print_proposal(proposal: Proposal) -> None:
    """Print which key pairs with which column and why, and what is missing, on stderr."""
    table = Rows("field", "event", "ledger", "why")
    for pairing in proposal.pairings:
        said = (pairing.constant, pairing.constant) if pairing.constant else (pairing.key, pairing.column)
        table.add_row(pairing.role, *said, pairing.why)
    if proposal.pairings:
        _print_rows(table)
    errors = console(stderr=True)
    for sentence in (*proposal.remarks, *proposal.missing):
        errors.print(sentence)


def print_contract_changes(
    contract: Contract, stored: NewestContract, changes: Sequence[ContractChange], *, open_items: int
) -> None:
    """Print what the store has, one line per field that differs, and what stays as it is."""
    out, before = console(), stored.contract
    out.print(
        f"{contract.name}: cut {stored.cut_n} was made with version {before.version} "
        f"({before.fingerprint[:12]}), the file is version {contract.version} ({contract.fingerprint[:12]}); "
        f"{counted(open_items, 'item')} open."
    )
    if not changes:
        out.print("Nothing differs.")
        return
    table = Rows("field", "before", "after", "effect", "what it does")
    for change in changes:
        table.add_row(
            change.field,
            escape_untrusted(value_text(change.before)),
            escape_untrusted(value_text(change.after)),
            Text(change.effect, style=_EFFECTS[change.effect]),
            change.why,
        )
    out.print()
    _print_rows(table)
    out.print()
    for sentence in _after_the_changes(stored, contract, changes):
        out.print(sentence)


def _after_the_changes(stored: NewestContract, contract: Contract, changes: Sequence[ContractChange]) -> Iterator[str]:
    """Yield the sentences that concern the contract as a whole."""
    worst = gravest(changes)
    if worst is ChangeEffect.REFUSED:
        yield "No cut would be made with this file: put the old values back, or begin a contract under a new name."
        return
    if worst is ChangeEffect.RE_EVALUATED and contract.version <= stored.contract.version:
        yield f"The version is still {contract.version}: raise it, so that people can distinguish the two."
    if not stored.judged:
        yield f"Cut {stored.cut_n} has no verdict yet: it will be judged by the file as it is at that time."
    yield (
        f"Verdicts and reports up to cut {stored.cut_n} stay. A cut that is read again (run --reread) is judged by the "
        "contract that it was made with."
    )


def print_runs(runs: Sequence[RunSummary]) -> None:
    """Print one line per run, newest first."""
    _print_rows(runs_table(runs))


def runs_table(runs: Iterable[RunSummary]) -> Rows:
    """Return one row per run, in the order given."""
    table = Rows(
        "run",
        "verdict",
        "window",
        ">breaks",
        ">at stake",
        "doubts",
        "stored at",
        spared=("stored at", "doubts", "window"),
    )
    for run in runs:
        table.add_row(
            f"{run.contract}/{run.cut_n}",
            _verdict_cell(run),
            format_window(run.window_start_utc, run.window_end_utc),
            f"{run.breaks:,}",
            escape_untrusted(format_money(run.money_minor)),
            ", ".join(dict.fromkeys(found.doubt for found in run.doubts)) or "none",
            format_time(run.recorded_at),
        )
    return table


def _verdict_cell(run: RunSummary) -> Text:
    """Return the verdict; beside it the cut that later read what this run could not."""
    verdict = Text(run.verdict, style=VERDICT_STYLES[run.verdict])
    if run.completed_by_cut is not None:
        verdict.append(f", read whole by cut {run.completed_by_cut}", style="dim")
    return verdict


def print_run(run: StoredRun) -> None:
    """Print the verdict and its reason, and doubts, breaks and census where there are any."""
    out, result = console(), run.result
    words = for_inputs if result.of_inputs else str
    window = format_window(run.window_start_utc, run.window_end_utc)
    out.print(
        Text.assemble(
            (str(result.verdict), VERDICT_STYLES[result.verdict]), f"  {result.contract}/{result.cut_n}  {window}"
        )
    )
    out.print(story_text(verdict_sentence(result)))
    out.print(Text(f"The ledger is read {run.ledger_guarantee}.", style="dim"))
    for found in result.doubts:
        out.print()
        out.print(Text(words(DOUBT_TEXTS[found.doubt].title), style="bold yellow"))
        out.print(story_text(found.sentence))
        out.print(f"Check first: {words(DOUBT_TEXTS[found.doubt].check_first)}")
    for notice in result.notices:
        out.print()
        style = "bold yellow" if notice.pages else "bold"
        out.print(Text(f"{words(NOTICE_TEXTS[notice.notice].title)} (changes no verdict)", style=style))
        out.print(story_text(notice.sentence))
        out.print(f"Check first: {words(NOTICE_TEXTS[notice.notice].check_first)}")
    if run.expectations is not None:
        out.print()
        style = "bold" if run.expectations.is_complete and not run.expectations.not_met else "bold yellow"
        out.print(Text(f"Expectations of {outcome_text(run.expectations)} (they change no verdict)", style=style))
        for sentence in outcome_sentences(run.expectations):
            out.print(story_text(sentence))
    for break_class, breaks in _by_class(result.breaks):
        out.print()
        text = BREAK_TEXTS[break_class]
        money = escape_untrusted(format_money(money_at_stake(breaks)))
        out.print(Text(f"{words(text.title)}: {counted(len(breaks), 'break')}, {money}", style="bold red"))
        out.print(f"Check first: {words(text.check_first)}")
        _print_rows(_breaks_table(breaks))
        if len(breaks) > _BREAKS_SHOWN_MAX:
            out.print(f"and {len(breaks) - _BREAKS_SHOWN_MAX:,} more; --json and the report have them")
    if result.figures.census:
        out.print()
        print_census(result.figures.census)


def print_census(census: Sequence[PartitionCensus]) -> None:
    """Print one line per partition; Spark's rows where Spark has read them too."""
    compared = any(part.spark_rows is not None for part in census)
    compacted = any(part.compacted for part in census)
    columns = [">start", ">end", ">committed", ">plain", ">aborted", ">markers"]
    columns += [*([">compacted"] if compacted else []), ">unexplained", *([">Spark's rows"] if compared else [])]
    table = Rows("partition", *columns, spared=("start", "end", "markers"))
    for part in census:
        table.add_row(
            f"{part.topic}[{part.partition}]",
            f"{part.kafka_offset_start:,}",
            f"{part.kafka_offset_end:,}",
            f"{part.committed:,}",
            f"{part.plain:,}",
            f"{part.aborted:,}",
            f"{part.commit_markers + part.abort_markers:,}",
            *([f"{part.compacted:,}"] if compacted else []),
            Text(f"{part.unexplained:,}", style="bold red" if part.unexplained else ""),
            *([f"{part.spark_rows:,}" if part.spark_rows is not None else "not counted"] if compared else []),
        )
    _print_rows(table)


def print_config_check(lines: Sequence[ConfigLine]) -> None:
    """Print one line per setting; below, what to do about those that are not ok."""
    out, table = console(), Rows("where", "setting", "value", "result", "required")
    for line in lines:
        table.add_row(line.scope, line.setting, line.value, Text(line.standing, _STANDINGS[line.standing]), line.needs)
    _print_rows(table)
    for line in lines:
        if line.do:
            out.print()
            out.print(Text(f"{line.setting} of {line.scope} is {line.standing}", style=_STANDINGS[line.standing]))
            out.print(f"What to do: {line.do}")


def print_story(told: ToldBreak, story: Story) -> None:
    """Print the story of a break under its headings, then the log around it where that was kept."""
    out = console()
    out.print(Text.assemble((story.title, "bold red"), f"  {story.run}  {story.amount}"))
    out.print(f"break {told.item_break.break_id}")
    for paragraph in story.paragraphs:
        out.print()
        out.print(Text(paragraph.heading, style="bold"))
        for sentence in paragraph.sentences:
            out.print(sentence)
    strip = strip_of(told.item_break)
    if strip is not None:
        out.print()
        out.print(Text(f"The log around it: {strip.topic_partition}", style="bold"))
        _print_rows(_strip_table(strip))


def print_written_off(done: BreakWrittenOff) -> None:
    """Print what was written off, and what is left of its class."""
    out, item_break, who = console(), done.item_break, escape_untrusted(done.write_off.by)
    out.print(f"break {item_break.break_id} of {done.contract} is written off by {who}: {amount_of(item_break)}")
    if done.outstanding:
        out.print(f"{item_break.break_class}: {done.outstanding} more outstanding")
    elif done.alert_resolved:
        out.print(f"{item_break.break_class}: none outstanding; its alert is resolved with the next delivery")
    else:
        out.print(f"{item_break.break_class}: none outstanding")


def print_closed(done: CutClosed) -> None:
    """Print what nobody has read, and that the next window is judged."""
    out = console()
    out.print(f"{done.cut.contract}/{done.cut.n} is closed, INCONCLUSIVE. {story_text(done.sentence)}")
    out.print("The next window is judged by the next run.")


def print_attempts(page: Alert, attempts: Sequence[tuple[str, Attempt]]) -> None:
    """Print what came of an alert, one line per sink."""
    out = console()
    out.print(page.summary)
    for name, attempt in attempts:
        out.print(f"{name}: {'taken' if attempt.delivered else 'NOT taken'}: {attempt.detail}")


def _strip_table(strip: LogStrip) -> Rows:
    table = Rows("", ">from", ">to", "what", ">producer", ">epoch")
    for batch in strip.batches:
        ours = batch.kafka_offset_start <= strip.kafka_offset < batch.kafka_offset_end
        table.add_row(
            ">" if ours else "",
            f"{batch.kafka_offset_start}",
            f"{batch.kafka_offset_end - 1}",
            batch.kind,
            f"{batch.producer_id}" if batch.producer_id >= 0 else "none",
            f"{batch.producer_epoch}" if batch.producer_id >= 0 else "",
        )
    return table


def _print_rows(rows: Rows) -> None:
    out = console()
    out.print(rows.fitting(out.width))


def _by_class(breaks: Iterable[Break]) -> list[tuple[Any, list[Break]]]:
    groups: dict[Any, list[Break]] = {}
    for item_break in breaks:
        groups.setdefault(item_break.break_class, []).append(item_break)
    return sorted(groups.items())


def _breaks_table(breaks: list[Break]) -> Rows:
    table = Rows("break", ">at stake", "leg", "match key", "what happened")
    for item_break in sorted(breaks, key=largest_first)[:_BREAKS_SHOWN_MAX]:
        amount = format_minor(item_break.amount_minor, item_break.currency) if item_break.currency else "not known"
        table.add_row(
            str(item_break.break_id)[:PREFIX_MIN],
            escape_untrusted(amount),
            escape_untrusted(item_break.leg),
            escape_untrusted(item_break.match_key),
            story_text(item_break.story),
        )
    return table
