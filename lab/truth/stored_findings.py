"""What the reconciler stored of one contract, as findings, read by plain SQL: the lab shares no code with it."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from lab.truth.score import Finding, FindingKind

UNREADABLE, FORGED_REPAIR = "unreadable_payload", "forged_repair"
_COUNTED_AS = {UNREADABLE: "records", FORGED_REPAIR: "copies"}
"""Of doubts that say how many records they are about: how their details call that."""
_QUERIES = {
    "verdict": "SELECT * FROM tallystick.verdict WHERE contract = %s ORDER BY cut_n",
    "item_break": "SELECT * FROM tallystick.item_break WHERE contract = %s",
    "item": """
        SELECT DISTINCT ON (item_id) * FROM tallystick.open_item WHERE contract = %s
        ORDER BY item_id, cut_n DESC, step DESC""",
}


@dataclass(frozen=True, kw_only=True)
class StoredContract:
    """verdicts: of all cuts after the baseline; windows counts that one too."""

    contract: str
    windows: int
    verdicts: tuple[str, ...]
    findings: tuple[Finding, ...]


def read_contract(store_dsn: str, contract: str) -> StoredContract:
    with psycopg.connect(store_dsn, row_factory=dict_row) as connection:
        rows = {name: connection.execute(query, [contract]).fetchall() for name, query in _QUERIES.items()}
    judged = [row for row in rows["verdict"] if row["cut_n"] > 0]
    found = [
        *(break_finding(row) for row in rows["item_break"]),
        *(one for row in judged for one in verdict_findings(row)),
        *(
            item_finding(row, FindingKind.UNDECIDABLE)
            for row in rows["item"]
            if row["state"] == FindingKind.UNDECIDABLE
        ),
    ]
    return StoredContract(
        contract=contract,
        windows=len(rows["verdict"]),
        verdicts=tuple(row["verdict"] for row in judged),
        findings=tuple(found),
    )


def break_finding(row: Mapping[str, Any]) -> Finding:
    return Finding(
        contract=row["contract"],
        kind=FindingKind.BREAK,
        name=row["break_class"],
        subject=_absent_event(row) if "seen_legs" in row["evidence"] else row["match_key"],
        copies=row["copies"],
        proof=row["evidence"],
    )


def _absent_event(row: Mapping[str, Any]) -> str:
    """The id of the event that a torn payment lacks: UUIDv5(payment id, leg), as the lab's services make it."""
    return str(uuid.uuid5(uuid.UUID(row["transaction_key"]), row["leg"]))


def verdict_findings(row: Mapping[str, Any]) -> Iterator[Finding]:
    """Doubts, the records that they count, and notices of one verdict."""
    for kind in (FindingKind.DOUBT, FindingKind.NOTICE):
        yield from (_details_finding(row, kind, each) for each in row[f"{kind}s"])
    for each in row["doubts"]:
        if counted_as := _COUNTED_AS.get(each["doubt"]):
            yield records_finding(row["contract"], each["doubt"], each["details"][counted_as])


def records_finding(contract: str, doubt: str, records: int) -> Finding:
    """So many records a doubt about the contract is about: those of several windows add up."""
    return Finding(contract=contract, kind=FindingKind.RECORD, name=f"{doubt}_record", copies=records)


def _details_finding(row: Mapping[str, Any], kind: FindingKind, stored: Mapping[str, Any]) -> Finding:
    details = stored["details"]
    place = f"{details['topic']}[{details['partition']}]" if "partition" in details else details.get("topic", "")
    return Finding(contract=row["contract"], kind=kind, name=stored[str(kind)], subject=place, proof=details)


def item_finding(row: Mapping[str, Any], kind: FindingKind) -> Finding:
    return Finding(contract=row["contract"], kind=kind, name=str(kind), subject=row["match_key"])
