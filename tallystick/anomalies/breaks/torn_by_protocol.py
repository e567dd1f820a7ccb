"""T2: a business transaction is torn since its producer transaction was committed here and aborted there.

Evidence: what proves torn_transaction, and the absent legs lie aborted on the log, by the producer transaction that
committed a seen leg. Who may do that: an administrator's abort on one partition (KIP-664), a broker's or coordinator's
error. Not to be mistaken for a producer that aborted, tried again and left a leg out: that is torn_transaction.
Where the epoch stays the same from one transaction to the next (transaction.version 1), records are of one transaction
when each was written before the other's marker.
"""

from collections.abc import Iterator, Mapping

from tallystick.anomalies.breaks.torn_transaction import legs_break, proven_torn, seen_legs, was_torn_by_protocol
from tallystick.contract.contract import Contract
from tallystick.kafka_log.record import LogRecord
from tallystick.matching.evidence import LegsCase
from tallystick.matching.match_case import Deadlines
from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break


def torn_by_protocol(
    contract: Contract, incomplete: tuple[LegsCase, ...], record_origins: Mapping[str, LogRecord], deadlines: Deadlines
) -> Iterator[Break]:
    """One break per business transaction, in the place of its torn_transaction."""
    for case, absent in proven_torn(contract, incomplete, deadlines):
        if was_torn_by_protocol(record_origins, case, absent):
            story = (
                f"One producer transaction committed {seen_legs(case)} of the transaction {case.transaction_key}, and "
                f"was aborted where its {'+'.join(absent)} leg lies."
            )
            yield legs_break(contract, record_origins, case, BreakClass.TORN_BY_PROTOCOL, story)
