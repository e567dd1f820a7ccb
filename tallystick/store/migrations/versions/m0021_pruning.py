"""What was pruned of a contract's past, and the way for the store's owner alone to delete it from append-only tables.

An older version works in this shape, but takes a pruned run for one that found nothing: so the first pruning says that
it is served no more.
"""

from alembic import op

from tallystick.store.downgrade_refused import DowngradeRefused

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_MARK = """
create table tallystick.prune_mark (
    contract text not null,
    kept_from_cut_n integer not null,
    older_than_utc timestamptz not null,
    pruned_at timestamptz default clock_timestamp() not null,
    delivery_failures jsonb default '{}' not null,
    constraint prune_mark_pk primary key (contract)
);
comment on table tallystick.prune_mark
    is 'of the runs below kept_from_cut_n only verdict, slices and sums are left, and what still counts';
comment on column tallystick.prune_mark.delivery_failures
    is 'sink to the number of failed deliveries that were deleted: a counter never goes back';
update tallystick.served_revision set oldest = '0020';
"""

_REFUSE_CHANGE = """
create or replace function tallystick.refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('tallystick.pruning', true) = 'on'
        and tg_table_name in ('item_break', 'open_item', 'alert', 'alert_delivery', 'expectations_outcome')
    then
        return null;
    end if;
    raise exception 'tallystick.% is append-only: % refused', tg_table_name, tg_op;
end $$;
"""
"""The setting keeps a slip of the hand away; that nobody but the owner may delete is held by rights."""

_REFUSE_EVERY_CHANGE = """
create or replace function tallystick.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'tallystick.% is append-only: % refused', tg_table_name, tg_op;
end $$;
"""


def upgrade() -> None:
    op.execute(_MARK)
    op.execute(_REFUSE_CHANGE)


def downgrade() -> None:
    """Raises DowngradeRefused where something was pruned: nobody could tell any more which runs are not whole.

    A pruning that is about to leave its mark is waited for.
    """
    op.execute("lock table tallystick.prune_mark in access exclusive mode")
    pruned = op.get_bind().exec_driver_sql("select contract from tallystick.prune_mark order by 1 limit 1").scalar()
    if pruned is not None:
        raise DowngradeRefused(
            f"the store was pruned ({pruned}), and revision 0020 would take a pruned run for one that found nothing; "
            "expected a store that was never pruned; stay at this version, or restore a backup from before the pruning"
        )
    op.execute(_REFUSE_EVERY_CHANGE)
    op.execute("drop table tallystick.prune_mark")
