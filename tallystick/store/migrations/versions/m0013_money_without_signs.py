"""Sums of money at stake have no signs: a missing refund made a missing payment look smaller, and both together none.

numeric: the smallest bigint has no bigint without its sign.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TRIGGERS = """
create or replace function tallystick.keep_break_totals() returns trigger language plpgsql as $$
begin
    insert into tallystick.break_total as stored (contract, cut_n, break_class, currency, breaks, amount_minor)
    select contract, cut_n, break_class, currency, count(*), sum(abs(amount_minor::numeric))
    from fresh group by contract, cut_n, break_class, currency
    on conflict (contract, cut_n, break_class, currency) do update
    set breaks = stored.breaks + excluded.breaks, amount_minor = stored.amount_minor + excluded.amount_minor;
    return null;
end $$;
create or replace function tallystick.keep_standing_totals() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        perform tallystick.add_standing(contract, state, break_class, currency, first_seen_utc, -items, -amount)
        from (
            select contract, state, break_class, currency, first_seen_utc, count(*) items,
                sum(abs(amount_minor::numeric)) amount
            from gone group by contract, state, break_class, currency, first_seen_utc
        ) as summed;
    end if;
    if tg_op <> 'DELETE' then
        perform tallystick.add_standing(contract, state, break_class, currency, first_seen_utc, items, amount)
        from (
            select contract, state, break_class, currency, first_seen_utc, count(*) items,
                sum(abs(amount_minor::numeric)) amount
            from fresh group by contract, state, break_class, currency, first_seen_utc
        ) as summed;
    end if;
    if tg_op <> 'INSERT' then
        delete from tallystick.standing_total where items = 0;
    end if;
    return null;
end $$;
"""

_FROM_WHAT_IS_STORED = """
update tallystick.break_total as total set amount_minor = summed.amount
from (
    select contract, cut_n, break_class, currency, sum(abs(amount_minor::numeric)) as amount
    from tallystick.item_break group by contract, cut_n, break_class, currency
) as summed
where (total.contract, total.cut_n, total.break_class, total.currency)
    = (summed.contract, summed.cut_n, summed.break_class, summed.currency);
update tallystick.standing_total as total set amount_minor = summed.amount
from (
    select contract, state, break_class, currency, first_seen_utc, sum(abs(amount_minor::numeric)) as amount
    from tallystick.standing_item group by contract, state, break_class, currency, first_seen_utc
) as summed
where (total.contract, total.state, total.break_class, total.currency, total.first_seen_utc)
    = (summed.contract, summed.state, summed.break_class, summed.currency, summed.first_seen_utc);
comment on table tallystick.break_total is 'kept by a trigger on item_break; amount_minor: without signs';
comment on table tallystick.standing_total
    is 'kept by triggers on standing_item: its sums; amount_minor: without signs';
"""

_INDEXES = """
drop index tallystick.item_break_by_money;
create index item_break_by_money on tallystick.item_break (contract, cut_n, abs(amount_minor::numeric), break_id);
drop index tallystick.standing_item_by_money;
create index standing_item_by_money on tallystick.standing_item (contract, abs(amount_minor::numeric), item_id);
"""

_PLANS = """
create or replace function tallystick.plan_in_short(body jsonb) returns jsonb immutable language sql as $$
    select jsonb_build_object(
        'aborts', coalesce(body -> 'aborts', '[]'),
        'items', (
            select coalesce(jsonb_agg(item order by n), '[]')
            from jsonb_array_elements(body -> 'items') with ordinality as listed (item, n) where n <= 100
        ),
        'sums', (
            select coalesce(jsonb_agg(to_jsonb(summed) order by kind, currency), '[]')
            from (
                select coalesce(item ->> 'kind', 'republish') as kind, item ->> 'currency' as currency,
                    count(*) as items, sum(abs((item ->> 'amount_minor')::numeric))::bigint
                        as amount_minor
                from jsonb_array_elements(body -> 'items') as item group by 1, 2
            ) as summed
        ),
        'left_out', (
            select coalesce(jsonb_agg(to_jsonb(summed) order by breaks desc, reason), '[]')
            from (
                select item ->> 'reason' as reason, count(*) as breaks,
                    (array_agg(item ->> 'match_key' order by n))[1:3] as match_keys
                from jsonb_array_elements(body -> 'left_out') with ordinality as listed (item, n) group by 1
            ) as summed
        )
    )
$$;
alter table tallystick.compensation_plan drop column in_short;
alter table tallystick.compensation_plan
    add column in_short jsonb generated always as (tallystick.plan_in_short(body)) stored;
"""


def upgrade() -> None:
    op.execute(_TRIGGERS)
    op.execute(_FROM_WHAT_IS_STORED)
    op.execute(_INDEXES)
    op.execute(_PLANS)
