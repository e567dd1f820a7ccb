"""Rows that no run could decide, or that people wrote off, are found by their transaction: a leg of it may come when no
cut carries them.
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_INDEX = """
create index open_item_left_rows on tallystick.open_item (contract, transaction_key)
    where state in ('undecidable', 'written_off') and side = 'ledger'
"""


def upgrade() -> None:
    op.execute(_INDEX)


def downgrade() -> None:
    op.execute("drop index tallystick.open_item_left_rows")
