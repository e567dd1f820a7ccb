"""Open items that a person gave up: by whom, why and when, beside the row of the run whose cut they follow."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_WRITE_OFFS = """
alter table tallystick.open_item
    add column step integer default 0 not null,
    add column written_off_by text default '' not null,
    add column written_off_because text default '' not null,
    add column written_off_at timestamptz,
    drop constraint open_item_pk,
    add constraint open_item_pk primary key (contract, item_id, cut_n, step),
    add constraint open_item_written_off_by_ck check (
        (step = 0) = (written_off_at is null) and (step = 0) = (written_off_by = '')
        and (step = 0) = (written_off_because = '') and (step = 0 or state = 'written_off')
    );
comment on column tallystick.open_item.step
    is '0: written by the run of cut_n; from 1 on: by a person, after it and before the next cut';
"""


def upgrade() -> None:
    op.execute(_WRITE_OFFS)
