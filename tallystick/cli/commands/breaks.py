"""Commands about one break: explain it, or write it off."""

from typing import Annotated

import typer

from tallystick.cli.masked_runs import mask_of_cut
from tallystick.cli.shared_options import AsJson, Plain
from tallystick.connections.connections import store_dsn


def explain_break(
    break_name: Annotated[
        str, typer.Argument(metavar="BREAK", help="A break's id, or its first 8 or more hexadecimal digits.")
    ],
    as_json: AsJson = False,
    plain: Plain = False,
) -> None:
    """Explain one stored break: what each side has, who wrote it, what was ruled out and what to check.

    `tallystick show RUN` prints the first digits of the ids, of up to 20 breaks of each class. The report and
    `tallystick show RUN --json` have the ids of all breaks of a run.

    Example: `tallystick explain 5a1d6f0e`
    """
    from tallystick.cli.output import print_json, print_story
    from tallystick.documents.run import story_document
    from tallystick.report.break_story import explain
    from tallystick.store.breaks.break_store import find_break
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    found = find_break(engine, break_name)
    told = mask_of_cut(engine, found.contract, found.cut_n).told(found)
    if as_json:
        print_json(story_document(told))
    else:
        print_story(told, explain(told))


def write_off_one(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="Name of the contract that has the break.")],
    break_name: Annotated[
        str, typer.Argument(metavar="BREAK_ID", help="A break's id, or its first 8 or more hexadecimal digits.")
    ],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who decided it.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the audit trail keeps it.")],
    as_json: AsJson = False,
) -> None:
    """Write off one break that needs no repair, so that it no longer counts as outstanding.

    Its alert is resolved when no break of its class is outstanding. A write-off cannot be undone; a partner that
    arrives later still clears the break. It is refused while a run of the contract has no verdict yet, and while a
    repair of the break is under way; a DAG's repair is until its run was seen ended.

    Example: `tallystick write-off billing_payouts 5a1d6f0e --by "Ada Byron" --reason "refunded by hand, case 4711"`
    """
    from tallystick.cli.output import print_json, print_written_off
    from tallystick.compensation.write_off import write_off_of
    from tallystick.documents.run import written_off_document
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.breaks.write_off_store import write_off_break
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    engine = open_store(store_dsn())
    write_off = write_off_of(by=by, reason=reason, at_utc=store_now(engine))
    done = write_off_break(engine, contract, break_name, write_off, terminal=this_terminal())
    if as_json:
        print_json(written_off_document(done))
    else:
        print_written_off(done)
