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
    """Raises DowngradeRefused where an action that has one may still be done: nobody else may do the same meanwhile.

    One that is done is known by what came of it. An executor that is about to begin one is waited for.
    """
    op.execute("lock table tallystick.compensation_action in access exclusive mode")
    begun = (
        "select p.contract from tallystick.compensation_action as a "
        "join tallystick.compensation_plan as p on p.plan_id = a.plan_id "
        "where a.source is not null and a.state in ('executing', 'waiting') order by 1 limit 1"
    )
    contract = op.get_bind().exec_driver_sql(begun).scalar()
    if contract is not None:
        raise DowngradeRefused(
            f"a repair of {contract} is under way or waits for a person, and revision 0022 has no place for the row or "
            "event that it is made from; expected a store in which all repairs have ended; let them end first"
        )
    op.execute("alter table tallystick.compensation_action drop column source")
