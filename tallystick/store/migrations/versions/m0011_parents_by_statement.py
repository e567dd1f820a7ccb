"""Breaks and items name what is there, asked once for a statement: a run of many breaks waited for a question a row.

What they name is append-only, so no key has to guard it against being taken away.
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_KEYS = """
alter table tallystick.item_break drop constraint item_break_contract_cut_n_fk;
alter table tallystick.open_item drop constraint open_item_contract_cut_n_fk;
alter table tallystick.open_item drop constraint open_item_break_id_fk;
comment on table tallystick.item_break
    is 'contract and cut_n are a verdict''s, held by a trigger';
comment on table tallystick.open_item
    is 'the newest row of an item at or before a cut is its state as of that cut; triggers hold what it names';
"""

_TRIGGERS = """
create function tallystick.refuse_without_verdict() returns trigger language plpgsql as $$
declare
    stray record;
begin
    select named.contract, named.cut_n into stray
    from (select distinct contract, cut_n from fresh) as named
    where not exists (
        select from tallystick.verdict as v where v.contract = named.contract and v.cut_n = named.cut_n
    )
    limit 1;
    if found then
        raise foreign_key_violation
            using message = format('tallystick.%s: %s/%s has no verdict', tg_table_name, stray.contract, stray.cut_n);
    end if;
    return null;
end $$;
create trigger has_verdict after insert on tallystick.item_break
    referencing new table as fresh for each statement execute function tallystick.refuse_without_verdict();
create trigger has_verdict after insert on tallystick.open_item
    referencing new table as fresh for each statement execute function tallystick.refuse_without_verdict();

create function tallystick.refuse_without_break() returns trigger language plpgsql as $$
declare
    stray record;
begin
    select f.item_id, f.break_id into stray
    from fresh as f
    where f.break_id is not null
        and not exists (select from tallystick.item_break as b where b.break_id = f.break_id)
    limit 1;
    if found then
        raise foreign_key_violation
            using message = format(
                'tallystick.open_item: %s names break %s, which is none', stray.item_id, stray.break_id
            );
    end if;
    return null;
end $$;
create trigger has_break after insert on tallystick.open_item
    referencing new table as fresh for each statement execute function tallystick.refuse_without_break();
"""


def upgrade() -> None:
    op.execute(_KEYS)
    op.execute(_TRIGGERS)
