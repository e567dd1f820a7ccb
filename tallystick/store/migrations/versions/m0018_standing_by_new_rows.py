"""Which items stand is told by the newest of the rows that are written, as `keep_item_life` tells what has ended.

Before, the trigger asked item_life, and so read all that ever stood in the store, whatever the run had found.
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_TRIGGER = """
create or replace function tallystick.keep_standing_items() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into tallystick.standing_item as stored
    select n.contract, n.item_id, n.state, coalesce(b.break_class, ''), n.side, n.match_key, n.transaction_key, n.leg,
        n.amount_minor, n.currency, n.first_seen_utc, n.due_utc, n.break_id
    from (
        select distinct on (contract, item_id) * from fresh order by contract, item_id, cut_n desc, step desc
    ) as n
    left join tallystick.item_break as b on b.break_id = n.break_id
    where n.state <> 'cleared' and (n.pairable or n.state in ('open', 'broken'))
    on conflict on constraint standing_item_pk do update
    set (state, break_class, side, match_key, transaction_key, leg, amount_minor, currency, first_seen_utc, due_utc,
        break_id) = (excluded.state, excluded.break_class, excluded.side, excluded.match_key, excluded.transaction_key,
        excluded.leg, excluded.amount_minor, excluded.currency, excluded.first_seen_utc, excluded.due_utc,
        excluded.break_id);
    delete from tallystick.standing_item as stored
    using (
        select distinct on (contract, item_id) * from fresh order by contract, item_id, cut_n desc, step desc
    ) as n
    where stored.contract = n.contract and stored.item_id = n.item_id
        and (n.state = 'cleared' or (not n.pairable and n.state not in ('open', 'broken')));
    return null;
end $$;
"""


def upgrade() -> None:
    op.execute(_TRIGGER)
