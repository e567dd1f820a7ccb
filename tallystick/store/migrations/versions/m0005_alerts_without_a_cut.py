"""Alerts that belong to no cut: what is told of a verdict that is not there stands in the outbox like every other."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_WITHOUT_A_CUT = """
alter table tallystick.alert alter column cut_n drop not null;
comment on column tallystick.alert.cut_n
    is 'null: it tells of a verdict that is not there, so it belongs to no cut';
"""


def upgrade() -> None:
    op.execute(_WITHOUT_A_CUT)
