"""The table of rights in the verdict store: complete, and nothing more than is needed."""

import pytest

from tallystick.store.rights import RIGHTS, Rights, grants
from tallystick.store.schema import APPEND_ONLY, VERSION_TABLE
from tests.unit.store.kept_tables import KEPT_BY_TRIGGERS, TABLES


def test_every_table_of_the_schema_is_in_the_table_and_no_other() -> None:
    assert set(RIGHTS) == {*TABLES, VERSION_TABLE}


def test_rows_of_append_only_tables_are_added_and_never_changed() -> None:
    assert {RIGHTS[table.name] for table in APPEND_ONLY} == {Rights(may_insert=True)}


def test_what_triggers_keep_is_read_only() -> None:
    assert {"break_total", "item_life", "standing_item", "standing_total"} == KEPT_BY_TRIGGERS
    assert {RIGHTS[name] for name in (*KEPT_BY_TRIGGERS, VERSION_TABLE)} == {Rights()}


@pytest.mark.parametrize("name", [name for name in RIGHTS if RIGHTS[name].may_update])
def test_a_column_that_may_be_changed_is_one_of_its_table_and_names_no_row(name: str) -> None:
    table = TABLES[name]
    assert set(RIGHTS[name].may_update) <= {*table.columns.keys()} - {*table.primary_key.columns.keys()}


def test_nothing_may_be_deleted_and_what_was_there_goes_first() -> None:
    statements = grants('a "role"')
    first_grant = next(n for n, statement in enumerate(statements) if statement.startswith("grant"))
    assert all(statement.startswith("revoke all on") for statement in statements[:first_grant])
    assert all(statement.startswith("grant") for statement in statements[first_grant:])
    assert 'grant select, insert on tallystick.audit to "a ""role"""' in statements
    assert not any(word in statement for statement in statements for word in ("delete", "truncate", "trigger on"))
