"""What a soak draws: every disturbance and every fault comes round, and a seed draws the same again."""

from collections import Counter

from lab.faults.event_faults import PAYMENT_FAULTS, PAYOUT_FAULTS
from lab.product.spark_app import STEPS
from lab.soak.soak_plan import BOOKS, Disturbance, plan_soak

WINDOWS = plan_soak(seed=7, windows=200)


def test_a_seed_draws_the_same_again_and_another_seed_something_else() -> None:
    assert plan_soak(seed=7, windows=200) == WINDOWS
    assert plan_soak(seed=8, windows=200) != WINDOWS


def test_more_windows_begin_with_the_same_ones() -> None:
    assert plan_soak(seed=7, windows=60) == WINDOWS[:60]


def test_the_books_take_turns_and_each_counts_its_own_cuts() -> None:
    assert [window.number for window in WINDOWS] == list(range(1, 201))
    for book in BOOKS:
        assert [window.cut_n for window in WINDOWS if window.book == book] == list(range(1, 101))


def test_twenty_windows_in_a_row_have_every_disturbance_and_two_killed_runs() -> None:
    for first in range(0, 200, 20):
        drawn = Counter(window.disturbance for window in WINDOWS[first : first + 20])
        assert set(drawn) == set(Disturbance)
        assert drawn[Disturbance.RUN_KILLED] == 2


def test_a_run_is_killed_at_a_step_that_it_announces_and_a_server_also_while_a_window_is_cut() -> None:
    killed = {window.at for window in WINDOWS if window.disturbance is Disturbance.RUN_KILLED}
    contested = {window.at for window in WINDOWS if window.disturbance is Disturbance.TWO_RUNS}
    struck = {window.at for window in WINDOWS if window.disturbance.server}
    assert killed == set(STEPS)
    assert contested == {"claimed"}
    assert struck == {"cut", *STEPS}


def test_only_a_server_that_goes_away_or_another_run_may_let_a_run_fail() -> None:
    for error in ("AttemptFenced", "IndexIncomplete", "LedgerUnreachable", "VerdictDiffers"):
        allowed = {each for each in Disturbance if each.may_fail(error)}
        servers = {each for each in Disturbance if each.server}
        expected = {
            "AttemptFenced": servers | {Disturbance.TWO_RUNS},
            "IndexIncomplete": servers | {Disturbance.TWO_RUNS},
            "LedgerUnreachable": servers,
            "VerdictDiffers": set(),
        }
        assert allowed == expected[error]


def test_every_fault_that_needs_no_time_out_comes_round() -> None:
    drawn = {window.fault.name for window in WINDOWS if window.fault}
    known = {fault.name for fault in (*PAYMENT_FAULTS, *PAYOUT_FAULTS) if not fault.slow}
    assert drawn == known | {"posted_late", "payout_late"}


def test_each_book_has_windows_without_a_fault_and_pairs_that_straddle_a_cut() -> None:
    for book in BOOKS:
        ours = [window for window in WINDOWS if window.book == book]
        assert any(window.fault is None for window in ours)
        assert any(window.straddle for window in ours)


def test_a_server_is_named_by_what_happens_to_it_and_a_run_is_none() -> None:
    assert {each.server for each in Disturbance} == {"", "broker", "ledger", "store"}
    assert Disturbance.RUN_KILLED.server == ""
    killed = {each for each in Disturbance if each.kills}
    assert killed == {
        Disturbance.RUN_KILLED,
        Disturbance.BROKER_KILLED,
        Disturbance.LEDGER_KILLED,
        Disturbance.STORE_KILLED,
    }
