"""What a scan that works brings home of the planted copies."""

import json
from collections.abc import Sequence

from tallystick.anomalies.registry import RULES, AnomalyRule
from tallystick.contract.contract import Contract
from tallystick.judging.canaries import canary_events, canary_rows, missed_canaries
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry
from tallystick.matching.scan_result import CANARY, CANARY_PARTITION, CanaryScan, ledger_item_id, topic_item_id
from tallystick.model.open_item import ItemSide
from tests.unit.builders import evidence_of


def all_copies(contract: Contract) -> list[Entry]:
    """Every planted copy that can be read, as the scan would bring it home if it brought all."""
    fields, copies = contract.event, []
    for event in canary_events(contract):
        try:
            document = json.loads(event.value)
        except ValueError:
            continue
        copies.append(
            Entry(
                side=ItemSide.TOPIC,
                item_id=topic_item_id(event.topic, CANARY_PARTITION, event.kafka_offset),
                match_key=document[fields.match_key],
                transaction_key=document[fields.transaction_key],
                leg=document[fields.leg],
                amount_minor=document[fields.amount_minor],
                currency=document[fields.currency],
                order=event.kafka_offset,
            )
        )
    for row in canary_rows(contract):
        copies.append(
            Entry(
                side=ItemSide.LEDGER,
                item_id=ledger_item_id(row.row_id),
                match_key=row.match_key,
                transaction_key=row.transaction_key,
                leg=row.leg,
                amount_minor=row.amount_minor,
                currency=row.currency,
                order=0,
            )
        )
    return copies


def good_scan(contract: Contract) -> CanaryScan:
    """What a scan that works brings home."""
    copies = all_copies(contract)
    simple = {f"{CANARY}equal", f"{CANARY}parts", f"{CANARY}torn", *(f"{CANARY}equal-{leg}" for leg in contract.legs)}
    torn = [copy for copy in copies if copy.side is ItemSide.TOPIC and copy.transaction_key == f"{CANARY}torn"]
    return CanaryScan(
        copies=tuple(copy for copy in copies if copy.match_key not in simple),
        incomplete=tuple(torn),
        unreadable=1,
    )


def missed(contract: Contract, scan: CanaryScan, classes: Sequence[AnomalyRule] = RULES) -> tuple[str, ...]:
    evidence: Evidence = evidence_of(contract=contract)
    return missed_canaries(evidence, scan, classes=classes)
