"""How far the clock of the host that made a cut was ahead of the store's; null for cuts before."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table tallystick.cut add column host_ahead_ms bigint")
