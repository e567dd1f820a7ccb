"""How late partners came; cuts that end by time; what a cut holds and carries, found without reading all the past."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_LAG = """
alter table tallystick.verdict add column lag jsonb;
alter table tallystick.open_item add column written_ms bigint;
alter table tallystick.cut add column by_time boolean not null default false;
create index cut_slice_contract_cut_n_ix on tallystick.cut_slice (contract, cut_n);
create index open_item_contract_cut_n_ix on tallystick.open_item (contract, cut_n);
create table tallystick.item_life (
    contract text not null,
    item_id text not null,
    ended_cut_n integer,
    constraint item_life_pk primary key (contract, item_id)
);
create index item_life_contract_ended_cut_n_ix on tallystick.item_life (contract, ended_cut_n);
comment on table tallystick.item_life
    is 'kept by a trigger on open_item; ended_cut_n: after that cut none carries the item; null while one may';
"""

_KEPT_BY_TRIGGER = """
create function tallystick.keep_item_life() returns trigger language plpgsql as $$
begin
    insert into tallystick.item_life (contract, item_id, ended_cut_n)
    select distinct on (contract, item_id) contract, item_id,
        case when state = 'cleared' or (not pairable and state not in ('open', 'broken')) then cut_n end
    from fresh order by contract, item_id, cut_n desc, step desc
    on conflict (contract, item_id) do update set ended_cut_n = excluded.ended_cut_n;
    return null;
end $$;
create trigger item_life after insert on tallystick.open_item
    referencing new table as fresh for each statement execute function tallystick.keep_item_life();
"""

_FROM_WHAT_IS_STORED = """
insert into tallystick.item_life (contract, item_id, ended_cut_n)
select distinct on (contract, item_id) contract, item_id,
    case when state = 'cleared' or (not pairable and state not in ('open', 'broken')) then cut_n end
from tallystick.open_item order by contract, item_id, cut_n desc, step desc;
"""


def upgrade() -> None:
    op.execute(_LAG)
    op.execute(_KEPT_BY_TRIGGER)
    op.execute(_FROM_WHAT_IS_STORED)
