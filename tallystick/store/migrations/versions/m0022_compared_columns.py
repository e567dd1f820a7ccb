"""What an open item says in the columns that its contract compares besides money.

An older version works in this shape, but knows no contract that compares such columns.
"""

from alembic import op

from tallystick.store.downgrade_refused import DowngradeRefused

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table tallystick.open_item add column compared_text text default '' not null")


def downgrade() -> None:
    """Raises DowngradeRefused where an item says anything there. A run that is about to commit one is waited for."""
    op.execute("lock table tallystick.open_item in access exclusive mode")
    said = "select contract from tallystick.open_item where compared_text <> '' order by 1 limit 1"
    contract = op.get_bind().exec_driver_sql(said).scalar()
    if contract is not None:
        raise DowngradeRefused(
            f"items of {contract} hold columns that it compares, and revision 0021 has no place for them; expected a "
            "store in which no contract ever named compare; stay at this version"
        )
    op.execute("alter table tallystick.open_item drop column compared_text")
