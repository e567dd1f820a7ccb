"""The oldest version of Tallystick that this store still serves, so that an upgrade may roll."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_SERVED = """
create table tallystick.served_revision (
    oldest text not null,
    single boolean default true not null,
    constraint served_revision_pk primary key (single),
    constraint served_revision_one_row_ck check (single)
);
comment on table tallystick.served_revision
    is 'the oldest revision whose code may work in this store; each migration says it again';
insert into tallystick.served_revision (oldest) values ('0020');
"""


def upgrade() -> None:
    op.execute(_SERVED)
