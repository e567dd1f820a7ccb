"""What pages ask often, kept as it changes: breaks per run and class, what stands now and its sums, a plan in short."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TABLES = """
create table tallystick.break_total (
    contract text not null,
    cut_n integer not null,
    break_class text not null,
    currency text not null,
    breaks integer not null,
    amount_minor numeric not null,
    constraint break_total_pk primary key (contract, cut_n, break_class, currency)
);
comment on table tallystick.break_total is 'kept by a trigger on item_break';
create table tallystick.standing_item (
    contract text not null,
    item_id text collate "C" not null,
    state text not null,
    break_class text not null,
    side text not null,
    match_key text collate "C" not null,
    transaction_key text collate "C" not null,
    leg text not null,
    amount_minor bigint not null,
    currency text not null,
    first_seen_utc timestamptz not null,
    due_utc timestamptz not null,
    break_id uuid,
    constraint standing_item_pk primary key (contract, item_id)
);
comment on table tallystick.standing_item
    is 'kept by a trigger on open_item: the newest row of each item that a later cut may carry';
create index standing_item_by_age on tallystick.standing_item (contract, first_seen_utc, item_id);
create index standing_item_by_money on tallystick.standing_item (contract, amount_minor, item_id);
create index standing_item_by_key on tallystick.standing_item (contract, match_key);
create index standing_item_by_transaction on tallystick.standing_item (contract, transaction_key);
create table tallystick.standing_total (
    contract text not null,
    state text not null,
    break_class text not null,
    currency text not null,
    first_seen_utc timestamptz not null,
    items bigint not null,
    amount_minor numeric not null,
    constraint standing_total_pk primary key (contract, state, break_class, currency, first_seen_utc)
);
comment on table tallystick.standing_total is 'kept by triggers on standing_item: its sums';
"""

_INDEXES = """
create index open_item_break_id_ix on tallystick.open_item (break_id);
create index compensation_action_break_id_ix on tallystick.compensation_action (break_id);
create index item_break_by_money on tallystick.item_break (contract, cut_n, amount_minor, break_id);
drop index tallystick.item_break_contract_cut_n_ix;
"""

_TRIGGERS = """
create function tallystick.keep_break_totals() returns trigger language plpgsql as $$
begin
    insert into tallystick.break_total as stored (contract, cut_n, break_class, currency, breaks, amount_minor)
    select contract, cut_n, break_class, currency, count(*), sum(amount_minor)
    from fresh group by contract, cut_n, break_class, currency
    on conflict (contract, cut_n, break_class, currency) do update
    set breaks = stored.breaks + excluded.breaks, amount_minor = stored.amount_minor + excluded.amount_minor;
    return null;
end $$;
create trigger break_total after insert on tallystick.item_break
    referencing new table as fresh for each statement execute function tallystick.keep_break_totals();

create function tallystick.add_standing(
    contract text, state text, break_class text, currency text, first_seen_utc timestamptz, items bigint, amount numeric
) returns void language sql as $$
    insert into tallystick.standing_total as stored values ($1, $2, $3, $4, $5, $6, $7)
    on conflict on constraint standing_total_pk do update
    set items = stored.items + excluded.items, amount_minor = stored.amount_minor + excluded.amount_minor;
$$;
create function tallystick.keep_standing_totals() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        perform tallystick.add_standing(contract, state, break_class, currency, first_seen_utc, -items, -amount)
        from (
            select contract, state, break_class, currency, first_seen_utc, count(*) items, sum(amount_minor) amount
            from gone group by contract, state, break_class, currency, first_seen_utc
        ) as summed;
    end if;
    if tg_op <> 'DELETE' then
        perform tallystick.add_standing(contract, state, break_class, currency, first_seen_utc, items, amount)
        from (
            select contract, state, break_class, currency, first_seen_utc, count(*) items, sum(amount_minor) amount
            from fresh group by contract, state, break_class, currency, first_seen_utc
        ) as summed;
    end if;
    if tg_op <> 'INSERT' then
        delete from tallystick.standing_total where items = 0;
    end if;
    return null;
end $$;
create trigger standing_total_added after insert on tallystick.standing_item
    referencing new table as fresh for each statement execute function tallystick.keep_standing_totals();
create trigger standing_total_changed after update on tallystick.standing_item
    referencing old table as gone new table as fresh
    for each statement execute function tallystick.keep_standing_totals();
create trigger standing_total_taken after delete on tallystick.standing_item
    referencing old table as gone for each statement execute function tallystick.keep_standing_totals();

create function tallystick.keep_standing_items() returns trigger language plpgsql as $$
begin
    insert into tallystick.standing_item as stored
    select distinct on (f.contract, f.item_id) f.contract, f.item_id, f.state, coalesce(b.break_class, ''), f.side,
        f.match_key, f.transaction_key, f.leg, f.amount_minor, f.currency, f.first_seen_utc, f.due_utc, f.break_id
    from fresh as f
    join tallystick.item_life as life on life.contract = f.contract and life.item_id = f.item_id
    left join tallystick.item_break as b on b.break_id = f.break_id
    where life.ended_cut_n is null
    order by f.contract, f.item_id, f.cut_n desc, f.step desc
    on conflict on constraint standing_item_pk do update
    set (state, break_class, side, match_key, transaction_key, leg, amount_minor, currency, first_seen_utc, due_utc,
        break_id) = (excluded.state, excluded.break_class, excluded.side, excluded.match_key, excluded.transaction_key,
        excluded.leg, excluded.amount_minor, excluded.currency, excluded.first_seen_utc, excluded.due_utc,
        excluded.break_id);
    delete from tallystick.standing_item as stored
    using fresh as f, tallystick.item_life as life
    where stored.contract = f.contract and stored.item_id = f.item_id
        and life.contract = f.contract and life.item_id = f.item_id and life.ended_cut_n is not null;
    return null;
end $$;
-- After the trigger item_life, which says what has ended: triggers of one event fire in the order of their names.
create trigger standing_item after insert on tallystick.open_item
    referencing new table as fresh for each statement execute function tallystick.keep_standing_items();
"""

_PLANS = """
create function tallystick.plan_in_short(body jsonb) returns jsonb immutable language sql as $$
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
                    count(*) as items, sum((item ->> 'amount_minor')::bigint)::bigint as amount_minor
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
alter table tallystick.compensation_plan
    add column in_short jsonb generated always as (tallystick.plan_in_short(body)) stored;
create index compensation_plan_contract_recorded_at_ix on tallystick.compensation_plan (contract, recorded_at);
create index compensation_action_plan_id_ix on tallystick.compensation_action (plan_id);
create index audit_plan_id_audit_id_ix on tallystick.audit (plan_id, audit_id);
"""

_FROM_WHAT_IS_STORED = """
insert into tallystick.break_total
select contract, cut_n, break_class, currency, count(*), sum(amount_minor)
from tallystick.item_break group by contract, cut_n, break_class, currency;
insert into tallystick.standing_item
select distinct on (i.contract, i.item_id) i.contract, i.item_id, i.state, coalesce(b.break_class, ''), i.side,
    i.match_key, i.transaction_key, i.leg, i.amount_minor, i.currency, i.first_seen_utc, i.due_utc, i.break_id
from tallystick.item_life as life
join tallystick.open_item as i on i.contract = life.contract and i.item_id = life.item_id
left join tallystick.item_break as b on b.break_id = i.break_id
where life.ended_cut_n is null
order by i.contract, i.item_id, i.cut_n desc, i.step desc;
"""


def upgrade() -> None:
    op.execute(_TABLES)
    op.execute(_INDEXES)
    op.execute(_TRIGGERS)
    op.execute(_FROM_WHAT_IS_STORED)
    op.execute(_PLANS)
