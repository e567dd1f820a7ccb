"""What triggers keep is written as the owner of the schema: the role that Tallystick works as needs no right on it.

Each such function finds nothing by a search path: all that it names has its schema.
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_KEEPERS = ("keep_item_life", "keep_break_totals", "keep_standing_items", "keep_standing_totals")


def upgrade() -> None:
    for keeper in _KEEPERS:
        op.execute(f"alter function tallystick.{keeper}() security definer set search_path = pg_catalog, pg_temp")
