"""A fault that needs a second server: the ledger is switched over to its standby.

In a namespace and under a contract of its own, as in `ledger_books`; the lab's ledger goes on beside it, so that no
other contract is switched over. Nothing is lost by it: the standby has replayed all before it is promoted.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from lab.faults.event_faults import Planted, broken
from lab.faults.ledger_fault_books import Findings, doubt, pay_out
from lab.faults.log_fault_books import LogBook, LogFault
from lab.rounds.round_contracts import SWITCHED_LEDGER
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_OWNER, LEDGER_READER, PostgresServer
from lab.services.workload import Workload


def switched_over(book: LogBook) -> Planted:
    """What was paid before the switch-over is paid again after it, and another payout is made there."""
    row = pay_out(book)

    def switch() -> Findings:
        promoted = _promote_standby(book)
        book.command_line.ledgers[SWITCHED_LEDGER] = promoted.dsn(LEDGER_READER, LEDGER_DATABASE)
        there = replace(book.stack, ledger_owner_dsn=promoted.dsn(LEDGER_OWNER, LEDGER_DATABASE))
        with Workload.open(there, book.name, "relay", "switched") as desk:
            again = desk.add_payout(row.payment)
            twice = broken(desk, "duplicate_in_ledger", again.event)
        replace(book, stack=there).agree()
        return *twice, doubt(book, "ledger_failed_over")

    return Planted(later=switch)


SWITCHED_FAULTS = (LogFault(plant=switched_over, fields={"connection": SWITCHED_LEDGER}),)


def _promote_standby(book: LogBook) -> PostgresServer:
    """A server of the book's own, with all that the lab's ledger holds; it ends with the round."""
    primary = book.stack.ledger_server
    folder = Path(primary.folder).with_name(book.name)
    book.cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    standby = primary.copy(folder)
    book.cleanup.callback(standby.stop)
    standby.start()
    standby.wait_replayed(primary)
    with standby.connect() as admin:
        admin.execute("SELECT pg_promote()")
    return standby
