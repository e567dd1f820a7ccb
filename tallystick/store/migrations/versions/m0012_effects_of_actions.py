"""What an action does to a side, in words that are the same in every contract: two contracts over one topic do not both
do it. Of what was posted before, the ledger's database was not kept, so those actions have none.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_COLUMN = """
alter table tallystick.compensation_action add column effect text;
comment on column tallystick.compensation_action.effect
    is 'SHA-256 of what it does to a side, in words that are the same in every contract';
create index compensation_action_effect_ix on tallystick.compensation_action (effect);
"""

_KNOWN = """
update tallystick.compensation_action as a
set effect = encode(sha256(convert_to(concat_ws(E'\\x1f', variadic known.words), 'UTF8')), 'hex')
from (
    select
        (i.item->>'action_id')::uuid as action_id,
        p.plan_id,
        case coalesce(i.item->>'kind', 'republish')
            when 'republish' then array['republish', t.topic_id, i.item->>'leg', i.item->>'match_key']
            when 'reverse' then array['reverse', t.topic_id, i.item->>'reverses']
            when 'trigger' then array[
                'trigger', i.item->>'triggers', i.item->>'break_class', i.item->>'leg', i.item->>'match_key'
            ]
        end as words
    from tallystick.compensation_plan as p
    cross join lateral jsonb_array_elements(p.body->'items') as i (item)
    left join lateral (
        select s.details->'snapshot'->>'topic_id' as topic_id
        from tallystick.cut_slice as s
        where s.contract = p.contract
            and s.side <> 'ledger'
            and s.details->'snapshot'->>'topic' = i.item->>'topic'
        order by s.cut_n desc
        limit 1
    ) as t on true
) as known
where known.action_id = a.action_id and known.plan_id = a.plan_id and known.words is not null;
"""


def upgrade() -> None:
    op.execute(_COLUMN)
    op.execute(_KNOWN)
