"""An action that ends a hanging transaction repairs no break: a run's doubt is what it answers."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table tallystick.compensation_action alter column break_id drop not null")
