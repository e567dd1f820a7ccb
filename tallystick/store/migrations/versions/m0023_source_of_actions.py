"""By which row or event an action does what it does: two contracts with other match keys do not both do it. An older
version works in this shape, and what it begins has none.
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_COLUMN = """
alter table tallystick.compensation_action add column source text;
comment on column tallystick.compensation_action.source
    is 'SHA-256 of what it does by which row or event, whatever is called the match key';
create index compensation_action_source_ix on tallystick.compensation_action (source);
"""


def upgrade() -> None:
    op.execute(_COLUMN)


def downgrade() -> None:
    op.execute("alter table tallystick.compensation_action drop column source")
