"""What the page of one run says beyond its report: whether its canaries were caught. Pure."""

from tallystick.model.finding_names import Doubt
from tallystick.model.stored_run import StoredRun


def canary_sentence(run: StoredRun) -> str:
    """Were the planted faults found? What was planted stands beside the slices in memory, never in them."""
    if run.cut.is_baseline:
        return "A baseline reads nothing, so it plants nothing."
    missed = [found.sentence for found in run.result.doubts if found.doubt is Doubt.CANARY_MISSED]
    if missed:
        return " ".join(missed)
    return "Every fault that was planted for this run was found under its own class, so the checks can fail."
