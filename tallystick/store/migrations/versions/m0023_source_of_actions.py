"""By which row or event an action does what it does: two contracts with other match keys do not both do it. An older
version works in this shape, and what it begins has none.
"""

from alembic import op

from tallystick.store.downgrade_refused import DowngradeRefused

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
    """Raises DowngradeRefused where an action has one. An executor that is about to begin one is waited for."""
    op.execute("lock table tallystick.compensation_action in access exclusive mode")
    kept = (
        "select p.contract from tallystick.compensation_action as a "
        "join tallystick.compensation_plan as p on p.plan_id = a.plan_id "
        "where a.source is not null order by 1 limit 1"
    )
    contract = op.get_bind().exec_driver_sql(kept).scalar()
    if contract is not None:
        raise DowngradeRefused(
            f"repairs of {contract} are kept by the row or event that they were made from, and revision 0022 has no "
            "place for it; expected a store in which this version has repaired nothing; stay at this version"
        )
    op.execute("alter table tallystick.compensation_action drop column source")
