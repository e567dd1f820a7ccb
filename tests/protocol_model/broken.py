"""The protocol with one rule of it broken by hand, in the product's own code, and where the model has to notice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from tallystick.compensation.plan import OffsetsUnread
from tallystick.executor import progress_proof, prove_repairs, publish_repairs
from tallystick.executor.effects import action_log, publish_events
from tallystick.executor.progress_proof import ProgressProof

from .scene import Scene
from .world import Left

Patches = Iterator[tuple[Any, str, Any]]


def progress_read_before_fencing() -> Patches:
    """Whoever is overtaken meanwhile has read what its successor has changed since; nor is the store asked."""
    opened, together = publish_repairs.open_publisher, publish_repairs.publish_together

    def later(publisher: Callable[[], Any], *records: Any, **told: Any) -> Any:
        return together(publisher(), *records, **told)

    yield publish_repairs, "open_publisher", lambda *address, **names: lambda: opened(*address, **names)
    yield publish_repairs, "publish_together", later
    yield action_log.ExecutionContext, "refuse_overtaken", lambda *_: None


def progress_not_read() -> Patches:
    """Only the event itself tells that it was published."""
    yield prove_repairs, "prove_progress", lambda *_: ProgressProof()


def progress_behind_the_effect() -> Patches:
    """In a transaction of its own, once the events stand."""
    together = publish_repairs.publish_together

    def apart(publisher: Any, records: Sequence[Any], **told: Any) -> Any:
        half = len(records) // 2
        places = together(publisher, records[:half], **told)
        return (*places, *together(publisher, records[half:]))

    yield publish_repairs, "publish_together", apart


def progress_before_the_effect() -> Patches:
    """In a transaction of its own, before the events; where its topic ends is not kept, so nobody doubts it."""
    together = publish_repairs.publish_together

    def apart(publisher: Any, records: Sequence[Any], **told: Any) -> Any:
        half = len(records) // 2
        behind = together(publisher, records[half:])
        return (*together(publisher, records[:half], **told), *behind)

    yield publish_repairs, "publish_together", apart
    yield progress_proof, "published_behind", lambda *_: {}


def told_as_published_whatever_came() -> Patches:
    """A transaction that was aborted counts as published."""
    together = publish_repairs.publish_together

    def hopeful(publisher: Any, records: Sequence[Any], **told: Any) -> Any:
        try:
            return together(publisher, records, **told)
        except publish_events.TransactionAborted:
            return tuple({"topic": one.topic} for one in records)

    yield publish_repairs, "publish_together", hopeful


def done_before_it_is_published() -> Patches:
    """The store is told first."""
    published = publish_repairs._publish

    def told_first(work: Any, publisher: Any, items: Sequence[Any], proof: Any) -> Any:
        for item in items:
            action_log.record_done(work.engine, item.action_id, outcome={}, by_us=True, reopened=0)
        return published(work, publisher, items, proof)

    yield publish_repairs, "_publish", told_first


def outstanding_not_asked() -> Patches:
    """What became of the break since the plan was drawn is no matter."""
    yield action_log.ExecutionContext, "why_not_now", lambda *_: {}


def not_asked_before_the_commit() -> Patches:
    """The break is asked for once the log was read, and not again."""
    yield publish_repairs, "_why_not_commit", lambda *_: None


def held_topic_read_all_the_same() -> Patches:
    """What an open transaction hides counts as absent."""
    settled = prove_repairs.settle_topics
    yield prove_repairs, "settle_topics", lambda *a, **b: replace(settled(*a, **b), held=frozenset())


def retained_log_is_all() -> Patches:
    """What retention has taken counts as never written."""
    yield prove_repairs, "why_not_read_whole", lambda *_: None


def lost_offsets_count_as_read() -> Patches:
    """A cut that lost what it was to read has judged it all the same. This was so until the model found it."""
    yield prove_repairs, "last_cuts_with_offsets_unread", lambda *_, **__: OffsetsUnread()


def progress_made_anew_is_believed() -> Patches:
    """That no record stands proves that none ever stood."""
    yield progress_proof, "_why_lost", lambda *_: ""


def refusal_of_the_overtaken() -> Patches:
    """Whoever could not prove an absence says that it was not published, whoever has claimed since."""
    refuse = action_log.record_refusal
    yield action_log, "record_refusal", lambda *a, executor, **b: refuse(*a, executor="", **b)


def nothing_remembered() -> Patches:
    """Neither progress is read, nor does it matter what retention has taken."""
    yield from progress_not_read()
    yield from retained_log_is_all()


@dataclass(frozen=True)
class Broken:
    """A rule, the books in which that shows, and what the model says then."""

    rule: Callable[[], Patches]
    left: Left
    says: str
    scene: Scene = field(default_factory=Scene)

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Inside the product's walls, for the patches take what stands there."""
        patches = [patch.object(*one) for one in self.rule()]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in reversed(patches):
                one.stop()


STOOD = "event 0 is published, and its original stood when the executor last looked"
CLEARED = "event 0 is published, and its break was cleared before the last question"
UNTRUE = "told as published: event 0, which was never published"
NEVER = "told as already_published: event 0, which was never published"
LOST = "told as refused: event 0, which was published"
BROKEN: Mapping[str, Broken] = {
    one.rule.__name__: one
    for one in (
        Broken(progress_read_before_fencing, Left(starts=2), LOST),
        Broken(progress_not_read, Left(starts=1, strikes=1, retentions=1, runs=1), LOST),
        Broken(progress_behind_the_effect, Left(starts=1, strikes=1, retentions=1, runs=1), LOST),
        Broken(progress_before_the_effect, Left(starts=1, strikes=1), NEVER),
        Broken(
            told_as_published_whatever_came,
            Left(starts=1, strikes=1),
            UNTRUE,
        ),
        Broken(done_before_it_is_published, Left(starts=1), "action 0 is done, and its event was never published"),
        Broken(outstanding_not_asked, Left(starts=1, originals=1, runs=1, retentions=1), CLEARED),
        Broken(not_asked_before_the_commit, Left(starts=1, originals=1, runs=1), CLEARED),
        Broken(held_topic_read_all_the_same, Left(starts=1, originals=1), STOOD),
        Broken(retained_log_is_all, Left(starts=1, originals=1, retentions=1), STOOD),
        Broken(lost_offsets_count_as_read, Left(starts=1, originals=1, retentions=1, runs=1), STOOD),
        Broken(progress_made_anew_is_believed, Left(starts=1, strikes=1, retentions=1, runs=1, remakes=1), LOST),
        Broken(refusal_of_the_overtaken, Left(starts=2), LOST),
        Broken(nothing_remembered, Left(starts=1, strikes=1, retentions=1), "event 0 was published 2 times by repairs"),
    )
}
