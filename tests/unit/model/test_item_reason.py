"""What is stored of a reason stays what it was, whatever it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.finding_names import BreakClass
from tallystick.model.item_reason import Reason, ReasonCode, ReasonSide, break_reason, read_reason, reason_of
from tests.unit.builders import LAW

TOPIC, LEDGER, INPUTS = ReasonSide
C = ReasonCode

STORED: dict[tuple[ReasonCode, ReasonSide | None], str] = {
    (C.WITHOUT_KEY, None): "it has no key that an event could have",
    (C.MISROUTED, None): "its leg belongs to NAME",
    (C.EXTRA_WAS_FOLLOWED, None): "the other side followed it",
    (C.EXTRA_ALONE, LEDGER): "the other side has no row for it",
    (C.EXTRA_ALONE, INPUTS): "the other side has no input for it",
    (C.KEY_WAS_PAIRED, None): "its key was paired already",
    (C.BESIDE_UNREAD, None): "another one of its key stands where no run has read it",
    (C.IDLE_REVERSAL, LEDGER): (
        "it takes back NAME, which is no row of its leg and money that a run judged one too many"
    ),
    (C.IDLE_REVERSAL, INPUTS): (
        "it takes back NAME, which is no input of its leg and money that a run judged one too many"
    ),
    (C.FIELDS_DIFFER, None): "the compared fields differ",
    (C.SUM_DIFFERS, None): "its parts add up to another sum",
    (C.OTHER_MONEY_THAN_PAIRED, None): "it is not what was paired with its event: its money is another",
    (C.ORIGIN_STILL_OPEN, None): "its event is in a producer transaction that is still open",
    (C.WITHIN_GRACE, None): "within the partner's grace",
    (C.BEYOND_CUT, TOPIC): "its partner lies beyond the cut of the topic",
    (C.BEYOND_CUT, LEDGER): "its partner lies beyond the cut of the ledger",
    (C.BEYOND_CUT, INPUTS): "its partner lies beyond the cut of the input topic",
    (C.BEYOND_EVERY_CUT, TOPIC): "its partner lies beyond the cut of the topic in one run after another",
    (C.BEYOND_EVERY_CUT, LEDGER): "its partner lies beyond the cut of the ledger in one run after another",
    (C.BEYOND_EVERY_CUT, INPUTS): "its partner lies beyond the cut of the input topic in one run after another",
    (C.BEFORE_BASELINE, TOPIC): "its partner lies before the baseline of the topic",
    (C.BEFORE_BASELINE, LEDGER): "its partner lies before the baseline of the ledger",
    (C.BEFORE_BASELINE, INPUTS): "its partner lies before the baseline of the input topic",
    (C.WRITTEN_ANEW, TOPIC): "its partner on the topic was paired before: it was written anew",
    (C.WRITTEN_ANEW, LEDGER): "its partner on the ledger was paired before: it was written anew",
    (C.WRITTEN_ANEW, INPUTS): "its partner on the input topic was paired before: it was written anew",
    (C.PAIRED_BEFORE, TOPIC): "its partner on the topic was read before, and is not open any more",
    (C.PAIRED_BEFORE, LEDGER): "its partner on the ledger was read before, and is not open any more",
    (C.PAIRED_BEFORE, INPUTS): "its partner on the input topic was read before, and is not open any more",
    (C.OFFSETS_EXPIRED, None): "its partner may have been among the offsets that expired unread",
    (C.MAY_BE_OLDER, LEDGER): "it may be an older row, written anew, whose event was read before it left the log",
    (C.MAY_BE_OLDER, INPUTS): "it may be an older input, written anew, whose event was read before it left the log",
    (C.INPUT_OUT_OF_SIGHT, None): "its input may lie beyond the retained log and the index of keys",
    (C.PARTNER_UNREAD, TOPIC): "its partner on the topic could not be read",
    (C.PARTNER_UNREAD, LEDGER): "its partner on the ledger could not be read",
    (C.PARTNER_UNREAD, INPUTS): "its partner on the input topic could not be read",
    (C.SIDE_HELD_BACK, TOPIC): "the topic is held back before the deadline",
    (C.SIDE_HELD_BACK, LEDGER): "the ledger is held back before the deadline",
    (C.SIDE_HELD_BACK, INPUTS): "the input topic is held back before the deadline",
    (C.ACKNOWLEDGED_OFFSET_EXPIRED, None): "what the offset held that was acknowledged for it cannot be said any more",
    (C.CUT_AWAY, None): "the log was cut back below it while this run read it",
    (C.GONE_UNREAD, None): "it left the log before this run could read what it may take back",
    (C.PARTNER_CUT_AWAY, None): "the log was cut back below its partner while this run read it",
    (C.TAKEN_BACK_ROW_GONE, None): "one of its key was taken back, and does not stand any more",
    (C.SETTLED_WITHOUT_IT, TOPIC): "the topic has settled past the deadline without it",
    (C.SETTLED_WITHOUT_IT, LEDGER): "the ledger has settled past the deadline without it",
    (C.SETTLED_WITHOUT_IT, INPUTS): "the input topic has settled past the deadline without it",
    (C.PARTNER_CAME, None): "its partner came",
    (C.TAKEN_BACK, None): "a compensation took it back",
    (C.LEGS_CAME, None): "its other legs came",
    (C.LEGS_STRAYED, None): "NAME: on a stray topic, posted from there",
    (C.LEGS_OF_BEFORE_AWAITED, None): "waits for NAME, and its transaction is older than the books",
    (C.LEGS_AWAITED, None): "waits for NAME",
    (C.BREAK, None): "NAME",
    (C.UNKNOWN, None): "NAME",
}
NAMELESS = sorted({code for code, _ in STORED if "{" not in code.value.replace("{there}", "").replace("{row}", "")})


def name_of(code: ReasonCode) -> str:
    return "" if code in NAMELESS else "NAME"


def test_the_stored_text_of_each_reason_is_what_it_was() -> None:
    """Rows and digests of judged cuts hold these texts: with another one a re-read of an old cut would compare no more.
    Word reasons anew in tallystick/text/reason_texts.py; a new reason is a new line here.
    """
    stored = {
        (code, side): Reason(code=code, side=side, about=name_of(code)).stored
        for code in ReasonCode
        for side in {reason_of(code, there=one).side for one in ReasonSide} | {reason_of(code).of_inputs().side}
    }
    assert stored == STORED


@pytest.mark.parametrize(("code", "side"), [one for one in STORED if one[0] not in (C.BREAK, C.UNKNOWN)])
@given(about=st.text(max_size=8))
@LAW
def test_a_stored_reason_is_read_as_it_was_given(code: ReasonCode, side: ReasonSide | None, about: str) -> None:
    given_ = Reason(code=code, side=side, about="" if code in NAMELESS else about)
    assert read_reason(given_.stored) == given_


@pytest.mark.parametrize("break_class", BreakClass)
def test_a_stored_class_is_the_reason_of_what_answers_for_a_break(break_class: BreakClass) -> None:
    assert break_reason(break_class).stored == break_class.value
    assert read_reason(break_class.value) == break_reason(break_class)


@given(
    text=st.text() | st.sampled_from(sorted(STORED.values())).flatmap(lambda one: st.text().map(f"{one}{{}}".format))
)
@LAW
def test_whatever_a_row_says_is_stored_again_as_it_was(text: str) -> None:
    assert read_reason(text).stored == text


@pytest.mark.parametrize(
    "text",
    ["", "nobody knows {this}", "duplicate_in_topic_zombie, somebody said", "its partner came late", "its leg belongs"],
)
def test_a_text_that_no_code_has_is_unknown_and_not_refused(text: str) -> None:
    assert read_reason(text) == Reason(code=C.UNKNOWN, about=text)
    assert read_reason("its partner came").code is C.PARTNER_CAME
