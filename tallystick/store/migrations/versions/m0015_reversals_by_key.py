"""The effect of a reversal is told by its key, not by the copy: of two contracts that take different copies of one key
back, each knows of the other.
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_REVERSALS = """
update tallystick.compensation_action as a
set effect = encode(
    sha256(
        convert_to(
            concat_ws(E'\\x1f', 'reverse', t.topic_id, i.item->>'leg', i.item->>'match_key'), 'UTF8'
        )
    ), 'hex'
)
from tallystick.compensation_plan as p
cross join lateral jsonb_array_elements(p.body->'items') as i (item)
cross join lateral (
    select s.details->'snapshot'->>'topic_id' as topic_id
    from tallystick.cut_slice as s
    where s.contract = p.contract
        and s.side <> 'ledger'
        and s.details->'snapshot'->>'topic' = i.item->>'topic'
    order by s.cut_n desc
    limit 1
) as t
where p.plan_id = a.plan_id
    and i.item->>'kind' = 'reverse'
    and (i.item->>'action_id')::uuid = a.action_id;
"""


def upgrade() -> None:
    op.execute(_REVERSALS)
