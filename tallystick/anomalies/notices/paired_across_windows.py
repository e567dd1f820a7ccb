"""L3: pairs whose event and row were read by different cuts.

Every schedule has such an edge, and what crosses it is no break: neither a missing copy in one window nor a phantom in
the next. Not to be mistaken for a late partner, which is counted there (late_partner): these are in time, as far as
anybody can say.
"""

from collections.abc import Iterator

from tallystick.anomalies.notices.late_partner import was_alone
from tallystick.matching.match_case import Entry, MatchResult
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.verdict_sentence import counted


def paired_across_windows(cut: Cut, outcomes: tuple[MatchResult, ...]) -> Iterator[NoticeFound]:
    """Yield one notice per run."""
    across = sum(
        _first_seen(cut, topic) != _first_seen(cut, ledger) and not (was_alone(topic) or was_alone(ledger))
        for outcome in outcomes
        for topic, ledger in outcome.agreeing
    )
    if across:
        have = "has its" if across == 1 else "have their"
        yield NoticeFound(
            notice=Notice.PAIRED_ACROSS_WINDOWS,
            sentence=f"{counted(across, 'pair')} {have} event and row in different windows.",
            count=across,
        )


def _first_seen(cut: Cut, copy: Entry) -> int:
    return copy.carried.first_seen_cut if copy.carried else cut.n
