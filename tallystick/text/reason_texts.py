"""The text of each reason. It may be reworded: no rule reads it, and no row, document or digest holds it."""

from collections.abc import Mapping

from tallystick.model.item_reason import Reason, ReasonCode

REASON_TEXTS: Mapping[ReasonCode, str] = {
    ReasonCode.WITHOUT_KEY: "it has no key that an event could have",
    ReasonCode.MISROUTED: "its leg belongs to {about}",
    ReasonCode.EXTRA_WAS_FOLLOWED: "the other side followed it",
    ReasonCode.EXTRA_ALONE: "the other side has no {row} for it",
    ReasonCode.KEY_WAS_PAIRED: "its key was paired already",
    ReasonCode.BESIDE_UNREAD: "another copy of its key is where no run has read",
    ReasonCode.IDLE_REVERSAL: (
        "it takes back {about}, which is no {row} of its leg and money that a run judged one too many"
    ),
    ReasonCode.FIELDS_DIFFER: "the compared fields differ",
    ReasonCode.SUM_DIFFERS: "its parts add up to another sum",
    ReasonCode.OTHER_MONEY_THAN_PAIRED: "its amount or currency differs from what its event was paired with",
    ReasonCode.ORIGIN_STILL_OPEN: "its event is in a producer transaction that is still open",
    ReasonCode.WITHIN_GRACE: "within the partner's grace",
    ReasonCode.BEYOND_CUT: "its partner lies beyond the cut of the {there}",
    ReasonCode.BEYOND_EVERY_CUT: "its partner lies beyond the cut of the {there} in one run after another",
    ReasonCode.BEFORE_BASELINE: "its partner lies before the baseline of the {there}",
    ReasonCode.WRITTEN_ANEW: "its partner on the {there} was paired before: it was written anew",
    ReasonCode.PAIRED_BEFORE: "its partner on the {there} was read before, and is not open any more",
    ReasonCode.OFFSETS_EXPIRED: "its partner may have been among the offsets that expired unread",
    ReasonCode.MAY_BE_OLDER: ("it may be an older {row}, written anew, whose event was read before it left the log"),
    ReasonCode.INPUT_OUT_OF_SIGHT: "its input may lie beyond the retained log and the key index",
    ReasonCode.PARTNER_UNREAD: "its partner on the {there} could not be read",
    ReasonCode.SIDE_HELD_BACK: "the {there} is held back before the deadline",
    ReasonCode.ACKNOWLEDGED_OFFSET_EXPIRED: "the offset that was acknowledged for it can no longer be read",
    ReasonCode.CUT_AWAY: "the log was cut back below it while this run read it",
    ReasonCode.GONE_UNREAD: "it left the log before this run could read what it may take back",
    ReasonCode.PARTNER_CUT_AWAY: "the log was cut back below its partner while this run read it",
    ReasonCode.TAKEN_BACK_ROW_GONE: "a row of its key was reversed and has since gone",
    ReasonCode.SETTLED_WITHOUT_IT: "the {there} has settled past the deadline without it",
    ReasonCode.PARTNER_CAME: "its partner came",
    ReasonCode.TAKEN_BACK: "a compensation took it back",
    ReasonCode.LEGS_CAME: "its other legs came",
    ReasonCode.LEGS_STRAYED: "{about}: on a stray topic, posted from there",
    ReasonCode.LEGS_OF_BEFORE_AWAITED: "waits for {about}, and its transaction is older than the books",
    ReasonCode.LEGS_AWAITED: "waits for {about}",
    ReasonCode.BREAK: "{break_class}",
    ReasonCode.UNKNOWN: "{text}",
}


def reason_text(reason: Reason) -> str:
    """A reason in words. What it names is as it was read: escape it before it is shown."""
    return reason.in_words(REASON_TEXTS[reason.code])
