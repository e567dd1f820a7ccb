"""Each ledger of a round holds what its source committed, each row once, and a contract finds it there."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import prepare
from lab.rounds.kept_ledger import COPIED, KeptLedger, LedgerKind, kept_ledger
from lab.rounds.round_contracts import payments_contract
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg
from lab.services.workload import Workload
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.model.cut import LedgerSlice
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.store.engine import open_store

pytestmark = [pytest.mark.stack, pytest.mark.lab, pytest.mark.timeout(300)]


@pytest.fixture(params=[kind for kind in LedgerKind if not kind.is_primary])
def kept(request: pytest.FixtureRequest, lab_stack: LabStack) -> Iterator[KeptLedger]:
    folder = REPOSITORY / "build" / "lab" / f"kept-{uuid.uuid4().hex[:8]}"
    try:
        with kept_ledger(request.param, folder, lab_stack) as kept:
            yield kept
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_contract_finds_there_what_services_posted_each_row_once(
    lab_stack: LabStack, lab_folder: Path, kept: KeptLedger
) -> None:
    name = f"kept_{kept.kind}"
    prepare(lab_stack, DeliveryMode.AT_LEAST_ONCE, 1, name)
    CommandLine(addresses=lab_stack, folder=lab_folder).migrate_store()
    contract = Contract.model_validate(kept.move(payments_contract(name, name)))
    with Workload.open(lab_stack, name, "billing", "1") as desk:
        events = [desk.payment().event(Leg.PAYMENT) for _ in range(2)]
        for event in events:
            desk.post(event)
            kept.copy(lab_stack)
    kept.copy(lab_stack)

    address = kept.connections.get(COPIED, lab_stack.ledger_reader_dsn)
    connections = Connections(
        kafka=KafkaSettings({"bootstrap.servers": lab_stack.bootstrap_servers}),
        ledger_dsn=address,
        primary_dsn=lab_stack.ledger_reader_dsn if contract.ledger.primary_connection else None,
    )
    with open_ledger_of(open_store(lab_stack.store_dsn), contract, connections) as ledger:
        snapshot = ledger.read_snapshot()
        whole = LedgerSlice(
            position_start=0,
            position_end=snapshot.low_mark,
            snapshot=snapshot,
            mark=snapshot.low_mark,
            baseline_position=0,
        )
        found = ledger.look_up_rows([str(event.event_id) for event in events], ledger.fix(whole))
    assert {key: len(rows) for key, rows in found.items()} == {str(event.event_id): 1 for event in events}
