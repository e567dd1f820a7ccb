"""A simulated schedule is played again on real servers, and says the same; and one that was tampered with does not."""

from dataclasses import replace

import pytest

from lab.servers.stack import LabStack
from tests.simulator.replay.compare import Servers, replay
from tests.simulator.replay.record import RecordedPlay
from tests.simulator.replay.replay import recorded
from tests.simulator.replay.store_clock import make_template
from tests.simulator.replay.tape import PersonDid, RowIn
from tests.simulator.schedule import play
from tests.simulator.schedule.play import Schedule, steps_of
from tests.simulator.world.config import Config

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("spark")]

REPAIRED = Config(direction="ledger_to_topic", slice_by="written_xid", legs=2, carrier_mode="at_least")
SEED_186 = (
    *(("trade", 3, 7), ("trade", 5, 7), ("pay", 4, 5), "window"),
    *(("half_trade", 2, 1), ("pay", 0, 8), ("carry", 1, 9), ("trade", 5, 10), ("trade", 4, 8), "window", "window"),
    *(("plan_and_act", 2, 1), "window"),
)
"""Torn, missing, repaired by an executor, and doubled by the originals, which come after all."""


@pytest.fixture(autouse=True)
def _one_quiet_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "QUIET_WINDOWS", 1)


@pytest.fixture(scope="module")
def servers(stack: LabStack, tmp_path_factory: pytest.TempPathFactory) -> Servers:
    return Servers.of(stack, make_template(stack.store_server), tmp_path_factory.mktemp("replay"))


def test_a_schedule_says_the_same_on_real_servers(servers: Servers) -> None:
    played = recorded(Schedule(REPAIRED, tuple(steps_of(*SEED_186))))
    assert "('published', 'ev-7-fee')" in str([one.entry for one in played.tape.moments if _is_persons(one.entry)])
    assert "duplicate_in_topic_compensated ev-7-fee" in "".join(played.tape.story)
    done = replay(played, servers, "repaired")
    assert (done.difference, done.windows) == (None, 5)


def test_a_row_that_is_not_what_it_was_is_told_with_its_story(servers: Servers) -> None:
    day = steps_of("window", "trade", "window")
    played = recorded(Schedule(Config(slice_by="written_xid"), tuple(day)))
    _raise_amount(played)
    difference = replay(played, servers, "tampered").difference
    assert difference is not None
    assert difference.what.endswith("WindowDue: books/1: verdict, breaks, items, figures")
    assert ("MATCHED" in difference.simulated, "BROKEN" in difference.real) == (True, True)
    assert "carrier-0 writes a row of ev-1-payout: 100 EUR" in "".join(difference.story)


def _is_persons(entry: object) -> bool:
    return isinstance(entry, PersonDid)


def _raise_amount(played: RecordedPlay) -> None:
    for n, moment in enumerate(played.tape.moments):
        if isinstance(moment.entry, RowIn):
            row = replace(moment.entry.row, amount_minor=moment.entry.row.amount_minor + 1)
            played.tape.moments[n] = moment._replace(entry=moment.entry._replace(row=row))
