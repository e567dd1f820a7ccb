"""A verdict names the files of its index of keys, so that what a killed attempt has written is read by nobody."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NAMED_FILES = """
alter table tallystick.verdict add column key_index jsonb;
comment on column tallystick.verdict.key_index
    is 'topic_to_topic: files of the index of keys; no other file counts';
"""


def upgrade() -> None:
    op.execute(_NAMED_FILES)
