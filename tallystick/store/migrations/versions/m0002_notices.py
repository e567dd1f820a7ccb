"""Notices beside doubts: what a run saw and what changes no verdict."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table tallystick.verdict add column notices jsonb not null default '[]'")
