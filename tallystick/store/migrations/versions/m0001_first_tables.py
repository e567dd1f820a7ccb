"""The first tables, and the trigger that keeps the append-only ones append-only."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = """
create table tallystick.audit (
    audit_id bigint generated always as identity,
    contract text not null,
    plan_id uuid,
    actor text not null,
    event text not null,
    detail jsonb not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint audit_pk primary key (audit_id)
);
comment on table tallystick.audit is 'who did what, when, with which plan hash, and what came of it';
create table tallystick.contract_version (
    contract text not null,
    fingerprint text not null,
    version integer not null,
    body jsonb not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint contract_version_pk primary key (contract, fingerprint)
);
create table tallystick.sample (
    contract text not null,
    at_utc timestamptz not null,
    ledger_xmin bigint not null,
    ledger_xmax bigint not null,
    high_watermarks jsonb not null,
    constraint sample_pk primary key (contract, at_utc)
);
create table tallystick.cut (
    contract text not null,
    n integer not null,
    window_start_utc timestamptz not null,
    window_end_utc timestamptz not null,
    marked_at_utc timestamptz not null,
    now_utc timestamptz not null,
    contract_fingerprint text not null,
    scheduler_run_id text not null,
    attempt integer default 0 not null,
    open boolean not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint cut_pk primary key (contract, n),
    constraint cut_contract_contract_fingerprint_fk
        foreign key(contract, contract_fingerprint) references tallystick.contract_version (contract, fingerprint),
    constraint cut_window_ck check (window_start_utc <= window_end_utc)
);
create unique index one_open_cut on tallystick.cut (contract) where open;
create table tallystick.cut_slice (
    contract text not null,
    side text not null,
    slice_n integer not null,
    cut_n integer not null,
    starts_at bigint not null,
    ends_at bigint not null,
    details jsonb not null,
    previous_slice_n integer generated always as (nullif(slice_n, 0) - 1) stored,
    constraint cut_slice_pk primary key (contract, side, slice_n),
    constraint cut_slice_end unique (contract, side, slice_n, ends_at),
    constraint cut_slice_once unique (contract, side, cut_n),
    constraint cut_slice_contract_cut_n_fk foreign key(contract, cut_n) references tallystick.cut (contract, n),
    constraint cut_slice_follows
        foreign key(contract, side, previous_slice_n, starts_at)
        references tallystick.cut_slice (contract, side, slice_n, ends_at),
    constraint cut_slice_bounds_ck check (starts_at <= ends_at)
);
comment on column tallystick.cut_slice.side
    is '"ledger", or "topic:<name>:<partition>"';
comment on column tallystick.cut_slice.slice_n
    is 'counts this side''s slices from 0, whatever the cut';
create table tallystick.verdict (
    contract text not null,
    cut_n integer not null,
    verdict text not null,
    doubts jsonb not null,
    figures jsonb not null,
    digest text not null,
    look_ups jsonb not null,
    attempt integer not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint verdict_pk primary key (contract, cut_n),
    constraint verdict_contract_cut_n_fk foreign key(contract, cut_n) references tallystick.cut (contract, n),
    constraint verdict_known_ck check (verdict in ('MATCHED', 'INCONCLUSIVE', 'BROKEN'))
);
create table tallystick.alert (
    alert_id bigint generated always as identity,
    contract text not null,
    cut_n integer not null,
    topic text not null,
    dedup_key text not null,
    action text not null,
    severity text not null,
    body jsonb not null,
    sinks jsonb not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint alert_pk primary key (alert_id),
    constraint alert_once_a_run unique (contract, cut_n, dedup_key, action),
    constraint alert_contract_cut_n_fk foreign key(contract, cut_n) references tallystick.verdict (contract, cut_n),
    constraint alert_action_ck check (action in ('trigger', 'resolve'))
);
comment on column tallystick.alert.topic
    is 'a break class, or inconclusive';
comment on column tallystick.alert.sinks
    is 'names of the sinks it is addressed to; a later sink hears no history';
create table tallystick.compensation_plan (
    plan_id uuid not null,
    contract text not null,
    cut_n integer not null,
    plan_hash text not null,
    body jsonb not null,
    requested_by text not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint compensation_plan_pk primary key (plan_id),
    constraint compensation_plan_contract_cut_n_fk
        foreign key(contract, cut_n) references tallystick.verdict (contract, cut_n)
);
create table tallystick.item_break (
    break_id uuid not null,
    contract text not null,
    cut_n integer not null,
    break_class text not null,
    match_key text not null,
    transaction_key text not null,
    leg text not null,
    amount_minor bigint not null,
    currency text not null,
    copies integer not null,
    story text not null,
    evidence jsonb not null,
    constraint item_break_pk primary key (break_id),
    constraint item_break_contract_cut_n_fk
        foreign key(contract, cut_n) references tallystick.verdict (contract, cut_n)
);
create index item_break_contract_cut_n_ix on tallystick.item_break (contract, cut_n);
create table tallystick.alert_delivery (
    delivery_id bigint generated always as identity,
    alert_id bigint not null,
    sink text not null,
    delivered boolean not null,
    detail text not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint alert_delivery_pk primary key (delivery_id),
    constraint alert_delivery_alert_id_fk foreign key(alert_id) references tallystick.alert (alert_id)
);
create index alert_delivery_alert_id_sink_ix on tallystick.alert_delivery (alert_id, sink);
create table tallystick.compensation_action (
    action_id uuid not null,
    break_id uuid not null,
    plan_id uuid not null,
    state text not null,
    outcome jsonb default '{}' not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint compensation_action_pk primary key (action_id),
    constraint compensation_action_break_id_fk foreign key(break_id) references tallystick.item_break (break_id),
    constraint compensation_action_plan_id_fk foreign key(plan_id) references tallystick.compensation_plan (plan_id),
    constraint compensation_action_state_ck check (state in ('executing', 'done', 'refused'))
);
comment on column tallystick.compensation_action.action_id
    is 'UUIDv5 of contract and break: one per break, over all plans';
create table tallystick.open_item (
    contract text not null,
    item_id text not null,
    cut_n integer not null,
    side text not null,
    match_key text not null,
    transaction_key text not null,
    leg text not null,
    amount_minor bigint not null,
    currency text not null,
    first_seen_cut integer not null,
    first_seen_utc timestamptz not null,
    due_utc timestamptz not null,
    state text not null,
    reason text not null,
    pairable boolean not null,
    break_id uuid,
    cleared_by text not null,
    constraint open_item_pk primary key (contract, item_id, cut_n),
    constraint open_item_contract_cut_n_fk
        foreign key(contract, cut_n) references tallystick.verdict (contract, cut_n),
    constraint open_item_break_id_fk foreign key(break_id) references tallystick.item_break (break_id),
    constraint open_item_state_ck check (state in ('open', 'cleared', 'broken', 'written_off', 'undecidable')),
    constraint open_item_broken_by_ck check (state <> 'broken' or break_id is not null)
);
comment on table tallystick.open_item is 'the newest row of an item at or before a cut is its state as of that cut';
"""

_REFUSE_CHANGE = """
create function tallystick.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'tallystick.% is append-only: % refused', tg_table_name, tg_op;
end $$;
"""

_APPEND_ONLY = (
    "verdict",
    "item_break",
    "open_item",
    "alert",
    "alert_delivery",
    "compensation_plan",
    "audit",
)


def upgrade() -> None:
    op.execute(_TABLES)
    op.execute(_REFUSE_CHANGE)
    for table in _APPEND_ONLY:
        op.execute(
            f"create trigger append_only before update or delete or truncate on tallystick.{table} "
            "for each statement execute function tallystick.refuse_change()"
        )
