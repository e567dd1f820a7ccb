"""What a run of schedules must have reached, how often it did, and what cannot be reached yet."""

from collections import Counter
from collections.abc import Mapping

from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.item_reason import ReasonCode

AT_LEAST = 10

REFUSALS = (
    "ActingStopped",
    "BrokerUnreachable",
    "CloseRefused",
    "CutAlreadyOpen",
    "ExecutorFenced",
    "Killed",
    "LogEndsEarly",
    "OffsetNotInLog",
    "PlanStale",
)
"""What ends an attempt or a person's step, and may be waited for."""
ACTIONS = ("published", "already_published", "refused")
"""What comes of an action of a plan that publishes."""

NOT_YET: Mapping[str, str] = {
    "break misrouted_in_topic": "no service writes an event under another leg's topic yet",
    "break row_without_key": "no row without a key is written yet",
    "break foreign_in_topic": "no contract names what is foreign to it yet",
    "break out_of_order_in_topic": "a contract with a sequence is matched pair by pair, which needs Spark",
    "break column_mismatch": "the contracts that are drawn compare no columns yet",
    "break group_sum_mismatch": "the contracts that are drawn have no groups yet",
    "reason SUM_DIFFERS": "as group_sum_mismatch",
    "break lost_acknowledged_write": "no relay stores its acknowledgements yet",
    "break compensated_twice": "no zombie of an executor from before fencing is drawn",
    "doubt held_by_prepared_transaction": "no coordinator of two-phase commits on the topic's side yet",
    "doubt forged_repair": "nobody forges the header of a repair yet",
    "doubt canary_missed": "a canary is missed only by a broken product",
    "doubt key_index_lost": "nobody deletes the index's files yet",
    "notice representation_differs": "needs a contract that ignores the case of currencies: matched pair by pair",
    "notice unfiltered_reader": "needs a consumer that reads aborted records as a habit",
    "notice retention_overtakes": "retention takes at once, it announces nothing",
    "reason WITHOUT_KEY": "as row_without_key",
    "reason MISROUTED": "as misrouted_in_topic",
    "reason ACKNOWLEDGED_OFFSET_EXPIRED": "no relay stores its acknowledgements yet",
    "reason LEGS_STRAYED": "no stray topics yet",
    "reason UNKNOWN": "only what an older release has stored",
}
"""What is not reached, and why: each line is something to build."""

SELDOM: Mapping[str, str] = {
    "doubt readers_disagree": "Kafka's own client, the second reader, is not run; a log that is cut back between the "
    "census and the scan of inputs shows it once in some 500 schedules",
    "break compensation_not_effective": "only of a repair that an election or an owner has taken away without a trace: "
    "once in 700 schedules",
    "reason GONE_UNREAD": "only of an output too many beside another one, where retention takes it while it is read",
    "reason PARTNER_CUT_AWAY": "only of a row that a run reads with an event too many that an election takes meanwhile",
    "reason TAKEN_BACK_ROW_GONE": "only of a row that is archived unread beside its reversal: once in 3,000 schedules",
}
"""What is reached too seldom to be waited for, and when."""


def expected() -> list[str]:
    """All that must be reached."""
    every = [
        *(f"break {one}" for one in BreakClass),
        *(f"doubt {one}" for one in Doubt),
        *(f"notice {one}" for one in Notice),
        *(f"reason {one.name}" for one in ReasonCode),
        *(f"refusal {one}" for one in REFUSALS),
        *(f"action {one}" for one in ACTIONS),
    ]
    return [name for name in every if name not in NOT_YET and name not in SELDOM]


def missed(reached: Counter[str]) -> dict[str, int]:
    """What was reached less often than it must, and how often."""
    return {name: reached[name] for name in expected() if reached[name] < AT_LEAST}


def reached_all_the_same(reached: Counter[str]) -> list[str]:
    """Lines of NOT_YET that are not true any more."""
    return sorted(name for name in NOT_YET if reached[name])
