"""A contract's `where` is one condition about a row; what is more than that is refused when the contract is read."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.contract import ContractRefused, load_contract
from tallystick.contract.sql_condition import for_pgjdbc, why_no_condition
from tests.unit.builders import L2T, LAW, contract_of

HONEST = (
    "side = 'credit'",
    "side LIKE 'A%' AND note NOT ILIKE '%s_100%%' ESCAPE '\\'",
    "side IN ('credit', 'fee') AND amount_minor BETWEEN 1 AND 2",
    "amount::numeric > 0 AND CAST(leg AS text) <> ''",
    "tags @> ARRAY['a', 'b'] OR 'x' = ANY(tags) OR tags && '{a,b}'::text[] OR tags[1] = 'x'",
    "created_at > timestamptz '2026-01-01' - interval '1 day'",
    "created_at >= '2026-01-01'::date + interval '1 month' AND extract(year FROM created_at) = 2026",
    "CASE WHEN amount_minor < 0 THEN reversed ELSE posted END",
    "payload ->> 'kind' = 'x' AND payload #>> '{a,b}' = 'y' AND payload @> '{\"a\": 1}' AND payload ? 'k'",
    "(payload->>'amount')::numeric > 0 AND payload ?| array['a'] AND jsonb_exists(payload, 'k')",
    "lower(btrim(side)) = 'credit' AND ledger.is_paired(entry_id, side)",
    "side IS DISTINCT FROM 'debit' AND note IS NOT NULL AND posted IS TRUE",
    "(side, leg) = ('credit', 'payment') AND side ~ '^c' AND note !~* 'x$'",
    "note = 'it''s 100% -- no comment; /* nor this */ ?' AND note <> $$a;b$$ AND note <> $a$;$a$",
    "comment = 'x' AND \"Side\" = 'credit' AND NOT cancelled",
    "flags & 4 = 4 AND amount_minor % 2 = 0 AND -amount_minor < 1",
    "daterange(a, b) @> d AND (a, b) OVERLAPS (c, d)",
    "substring(side FROM 1 FOR 2) = 'cr' AND position('a' IN note) > 0 AND side COLLATE \"C\" < 'd'",
    "true",
    "posted",
)
MORE = {
    "": "comment",
    "side =": "no expression",
    "true; DELETE FROM ledger.posting": "semicolon",
    "true);": "semicolon",
    "true) OR (true": "no expression",
    "true OR (a": "no expression",
    "true)": "no expression",
    "a, b": "no expression",
    "a = 1 -- and b = 2": "comment",
    "a = 1 /* and b */": "comment",
    "a = 1 -- and\nAND b = 2": "comment",
    "a = 'x": "no expression",
    "a = %s": "placeholder",
    "a = %(x)s": "placeholder",
    "a = :x": "placeholder",
    "a = $1": "parameter",
    "SELECT true": "no expression",
    "DELETE FROM ledger.posting": "no expression",
    "a IN (SELECT b FROM ledger.kind)": "another table",
    "EXISTS (SELECT FROM ledger.kind)": "another table",
    "a = 1 UNION SELECT 1": "no expression",
    "a = 1 LIMIT 1": "no expression",
    "a = 1 FOR UPDATE": "no expression",
    "a = 1 RETURNING a": "no expression",
    "a AS b": "no expression",
    "COPY ledger.posting TO PROGRAM 'x'": "no expression",
}


@pytest.mark.parametrize("text", HONEST)
def test_what_honest_contracts_write_is_taken(text: str) -> None:
    assert why_no_condition(text, ["postgresql"]) is None


@pytest.mark.parametrize("text", MORE)
def test_what_is_more_or_less_than_a_condition_is_refused(text: str) -> None:
    assert MORE[text] in (why_no_condition(text, ["postgresql"]) or "taken")


@LAW
@given(
    st.lists(st.sampled_from(HONEST), min_size=1, max_size=3),
    st.sampled_from(["{}", "NOT ({})", "(({}))", "({}) OR b"]),
    st.sampled_from(["; {}", "; DROP TABLE x", ") OR (true", " -- ", " /* */", ")", " SELECT", ", true", " LIMIT 1"]),
)
def test_conditions_joined_are_a_condition_and_with_something_behind_it_none(
    parts: list[str], around: str, behind: str
) -> None:
    joined = around.replace("{}", " AND ".join(f"({part})" for part in parts))
    assert why_no_condition(joined, ["postgresql"]) is None
    assert why_no_condition(joined + behind.replace("{}", joined), ["postgresql"]) is not None


@pytest.mark.parametrize(
    ("database", "text"),
    [
        ("mysql", "`side` = 'credit' AND note REGEXP '^c'"),
        ("mysql", 'side = "credit"'),
        ("sqlite", "side GLOB 'c*'"),
        ("mssql", "[side] = N'credit'"),
        ("oracle", "NVL(side, 'x') = 'credit'"),
        ("db2", "side = 'credit'"),
    ],
)
def test_another_database_has_its_own_grammar(database: str, text: str) -> None:
    assert why_no_condition(text, [database]) is None
    assert why_no_condition(f"{text}; DELETE FROM posting", [database]) is not None
    assert why_no_condition(f"{text} -- more", [database]) is not None


def written(path: Path, **ledger: Any) -> Path:
    stated = contract_of(L2T).model_dump(mode="json", exclude_defaults=True)
    stated["ledger"] |= ledger
    path.write_text(yaml.safe_dump(stated))
    return path


def test_a_contract_is_refused_when_it_is_read_and_one_that_is_stored_is_read_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "c.yaml", where="true; DELETE FROM billing.payout")
    with pytest.raises(ContractRefused) as refused:
        load_contract(path)
    assert str(refused.value) == (
        f"{path}: ledger.where: it holds a semicolon, so more than one statement; expected one SQL condition about the "
        "row, such as side = 'credit'"
    )
    assert load_contract(written(path, where="side LIKE 'cr%'")).ledger.where == "side LIKE 'cr%'"
    stored = contract_of(ledger={"connection": "l", "table": "billing.payout", "where": "a IN (SELECT b FROM c)"})
    assert stored.ledger.where


def test_a_contract_of_kind_jdbc_may_have_any_known_databases_condition(tmp_path: Path) -> None:
    by_column = {"kind": "jdbc", "order_by": "n", "overlap": 0}
    path = written(tmp_path / "c.yaml", **by_column, where="`side` = 'credit'")
    assert load_contract(path).ledger.where == "`side` = 'credit'"
    with pytest.raises(ContractRefused, match=r"ledger\.where: it is no expression"):
        load_contract(written(path, where="`side` = 'credit'"))
    with pytest.raises(ContractRefused, match=r"ledger\.where: it holds a comment"):
        load_contract(written(path, **by_column, where="side = 'credit' -- or fee"))


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT a FROM b WHERE c ? 'k'", "SELECT a FROM b WHERE c ?? 'k'"),
        ("SELECT a FROM b WHERE c ?| array['?'] AND d ?& e", "SELECT a FROM b WHERE c ??| array['?'] AND d ??& e"),
        ("SELECT '?' WHERE \"?\" = $$?$$", "SELECT '?' WHERE \"?\" = $$?$$"),
        ("SELECT a FROM b WHERE c = 1", "SELECT a FROM b WHERE c = 1"),
    ],
)
def test_a_question_mark_is_an_operator_for_sparks_driver_too(query: str, told: str) -> None:
    assert for_pgjdbc(query) == told


def test_a_text_in_mysqls_double_quotes_is_no_column() -> None:
    assert why_no_condition("\"Side\" = 'credit'", ["postgresql"]) is None
    assert "it compares texts alone" in str(why_no_condition("\"Side\" = 'credit'", ["mysql"]))
