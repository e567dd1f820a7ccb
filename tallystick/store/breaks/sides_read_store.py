"""Says by when all of what had come to some sides of a contract has been read, as far as any run reads it.

A side is read as of a cut's sample once a run, that cut's or a later one's, has read up to that cut's mark. So it is
where no slice ever reaches its own mark: rows wait for an overlap, files for a quiet time, and one transaction or
another is open across every cut.
"""

from collections.abc import Collection
from datetime import UTC, datetime
from functools import cache

from sqlalchemy import ARRAY, Engine, Text, bindparam, text

from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.store.runs.cut_store import read_cut, side_name

_NEVER = datetime.min.replace(tzinfo=UTC)
_JUDGED_SLICE = f"""tallystick.cut_slice as s
    join tallystick.verdict as v on v.contract = s.contract and v.cut_n = s.cut_n
    where s.contract = :contract and s.side = w.side and not jsonb_path_exists(v.doubts, '$[*] ? (
        @.doubt == "{Doubt.CUT_CLOSED}"
        || (@.doubt == "{Doubt.TOPIC_RECREATED}" || @.doubt == "{Doubt.LOG_TRUNCATED}") && @.details.topic == $topic
    )', jsonb_build_object('topic', w.topic))"""
"""Slices of side w that their run has read: none that people closed, or whose log does not go on there."""
_READ_UP_TO = text(f"""
select w.side, passed.marked_at_utc, (
    select min(f.cut_n) from tallystick.cut_slice as f where f.contract = :contract and f.side = w.side
) as first_cut
from unnest(:sides, :topics) as w (side, topic)
left join lateral (
    select s.cut_n, s.ends_at, s.details->'snapshot' as snapshot from {_JUDGED_SLICE}
    order by s.cut_n desc limit 1
) as newest on true
left join lateral (
    select c.marked_at_utc from tallystick.cut as c, {_JUDGED_SLICE}
    and c.contract = s.contract and c.n = s.cut_n and c.n > 0 and not c.by_time
    and (s.details->>'mark')::bigint <= newest.ends_at
    and s.details->'snapshot'->'system_identifier' is not distinct from newest.snapshot->'system_identifier'
    and s.details->'snapshot'->'timeline' is not distinct from newest.snapshot->'timeline'
    and not coalesce(
        (s.details->'snapshot'->>'timeline')::bigint > 0
        and (s.details->'snapshot'->>'xmax')::bigint < (s.details->>'mark')::bigint, false
    )
    and not exists (
        select from jsonb_array_elements(s.details->'left') as one (file) where not exists (
            select from tallystick.cut_slice as t
            where t.contract = s.contract and t.side = s.side and t.cut_n > s.cut_n and t.cut_n <= newest.cut_n
            and t.details->'files' @> jsonb_build_array(one.file)
        )
    )
    order by s.cut_n desc limit 1
) as passed on true
""").bindparams(bindparam("sides", type_=ARRAY(Text)), bindparam("topics", type_=ARRAY(Text)))
"""A baseline's marks are no sample, nor is one above what a server with a history has given out. A file that a cut left
is read once a slice has taken it as it was then.
"""


def sides_read_up_to(engine: Engine, contract_name: str, sides: Collection[TopicPartition | None]) -> datetime:
    """Return by when all of what had come to these sides has been read; None is the ledger.

    What came to a slice that people closed, or where a log was cut back, is in no run; a later cut that has read what
    came behind it counts. Of a topic that was created again none does.
    """
    named = {side_name(side): side for side in sides}
    topics = [side.topic if side else "" for side in named.values()]
    asked = {"contract": contract_name, "sides": list(named), "topics": topics}
    with engine.connect() as connection:
        rows = list(connection.execute(_READ_UP_TO, asked))
    cut_at = cache(lambda n: read_cut(engine, contract_name, n))
    return min(row.marked_at_utc or _before_it_came(named[row.side], cut_at(row.first_cut - 1)) for row in rows)


def _before_it_came(side: TopicPartition | None, before: Cut | None) -> datetime:
    """Return when the cut before the first that knew the partition was marked: all of the partition came later. Of a
    topic that was no part of the books by then, nobody knows.
    """
    known = side is not None and before is not None and before.topic_ids(side.topic)
    return before.marked_at_utc if before is not None and known else _NEVER
