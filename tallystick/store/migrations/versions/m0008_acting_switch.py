"""The kill switch of compensations: who stopped or allowed them, when and why."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_SWITCH = """
create table tallystick.acting_switch (
    switch_id bigint generated always as identity,
    contract text not null,
    stopped boolean not null,
    set_by text not null,
    because text not null,
    at_utc timestamptz not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint acting_switch_pk primary key (switch_id)
);
create index acting_switch_contract_switch_id_ix on tallystick.acting_switch (contract, switch_id);
comment on column tallystick.acting_switch.contract is 'a contract, or * for all';
create trigger append_only before update or delete or truncate on tallystick.acting_switch
    for each statement execute function tallystick.refuse_change();
"""


def upgrade() -> None:
    op.execute(_SWITCH)
