"""InnoDB's status as a snapshot: what it says once is read, and what is said twice is not believed."""

import pytest

from tallystick.ledger.innodb import snapshot_of_status, versioning_statements
from tallystick.ledger.protocol import LedgerReadCancelled

OURS = """---TRANSACTION (0x7efd477d9b80), ACTIVE 0 sec
0 lock struct(s), heap size 1128, 0 row lock(s)
MariaDB thread id 5, OS thread handle 139626274141888, query id 30 127.0.0.1 reader starting
SHOW ENGINE INNODB STATUS
Trx read view will not see trx with id >= 63, sees < 57
"""
ANOTHER = """---TRANSACTION 58, ACTIVE 2 sec
1 lock struct(s), heap size 1128, 0 row lock(s), undo log entries 1
MariaDB thread id 55, OS thread handle 139626274141889, query id 31 127.0.0.1 owner
{statement}
Trx read view will not see trx with id >= 99, sees < 99
"""
STATUS = """------------
TRANSACTIONS
------------
Trx id counter 64
Purge done for trx's n:o < 50 undo n:o < 0 state: running
LIST OF TRANSACTIONS FOR EACH SESSION:
{sessions}--------
FILE I/O
--------
---
LOG
---
Log sequence number 4294967400
Log flushed up to   4294967300
"""


def test_the_bounds_are_those_of_the_session_that_asks() -> None:
    for sessions in (OURS, ANOTHER.format(statement="SELECT 1") + OURS, OURS + ANOTHER.format(statement="SELECT 1")):
        found = snapshot_of_status(STATUS.format(sessions=sessions), session=5, server="s")
        assert (found.low_mark, found.high_mark) == (57, 64)
        assert (found.system_identifier, found.timeline, found.lsn) == ("s", 1, "1/4")
        assert found.log_position == 4_294_967_300


@pytest.mark.parametrize(
    "status",
    [
        STATUS.format(sessions=ANOTHER.format(statement="SELECT 1")),
        STATUS.format(sessions=OURS.replace("Trx read view", "Trx")),
        STATUS.format(sessions=OURS + ANOTHER.format(statement="SELECT /*\nMariaDB thread id 5, x\n*/ 1")),
        STATUS.format(sessions=OURS + "Log flushed up to 9\n"),
        STATUS.format(sessions=OURS + "TRANSACTIONS\n---\nTrx id counter 7\n"),
        STATUS.format(sessions=OURS + "... truncated...\n"),
        STATUS.format(sessions=OURS).partition("FILE I/O")[0],
    ],
    ids=["not there", "no snapshot", "our session twice", "two logs", "two counters", "cut short", "no log"],
)
def test_what_is_not_said_exactly_once_is_not_believed(status: str) -> None:
    with pytest.raises(LedgerReadCancelled, match="does not say this session's snapshot once"):
        snapshot_of_status(status, session=5, server="s")


def test_the_statements_name_the_table_in_order() -> None:
    add, index = versioning_statements("billing.posting")
    assert add.startswith("ALTER TABLE billing.posting ADD COLUMN row_start BIGINT UNSIGNED")
    assert index == "CREATE INDEX row_start ON billing.posting (row_start)"
