"""The check that a contract's `where` is one condition about a row and nothing more. Parsed, never run and never
rewritten.

Kept out: several statements, what does not end where its text does, comments, placeholders, questions to other tables.
Not kept out: functions, whatever they do. No parser knows what a function of somebody's database does.
"""

from collections.abc import Iterable
from functools import lru_cache

DIALECTS = {
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "sqlite": "sqlite",
    "oracle": "oracle",
    "mssql": "tsql",
    "snowflake": "snowflake",
}
"""SQLAlchemy's name of a database to the parser's. Of any other the parser reads standard SQL."""

EXPECTED = "expected one SQL condition about the row, such as side = 'credit'"


def why_no_condition(text: str, databases: Iterable[str]) -> str | None:
    """Return why it is no condition in any of these databases, by SQLAlchemy's names; None where one of
    them takes it.
    """
    reasons = [_why_not(text, DIALECTS.get(name, "")) for name in databases]
    return None if None in reasons else reasons[0]


@lru_cache(maxsize=256)
def _why_not(text: str, dialect: str) -> str | None:
    from sqlglot import TokenType, errors, exp, tokenize  # 0.15 s that a contract without a condition does not wait for
    from sqlglot.dialects import Dialect

    about = {
        exp.Query: "it asks another table, which changes while the row stays",
        exp.Placeholder: "it holds a placeholder",
        exp.Parameter: "it holds a parameter",
    }
    try:
        tokens = tokenize(text, read=dialect)
        if not tokens or any(token.comments for token in tokens):
            return "it holds a comment, or nothing else"
        if any(token.token_type is TokenType.SEMICOLON for token in tokens):
            return "it holds a semicolon, so more than one statement"
        (condition,) = Dialect.get_or_raise(dialect).parse_into(exp.Condition, text)
    except errors.SqlglotError:
        return "it is no expression that ends where its text does"
    assert condition is not None
    if (
        dialect == "mysql"
        and '"' in text
        and any(not one.find(exp.Column) for one in condition.find_all(exp.Predicate))
    ):
        return "it compares texts alone: in MySQL and MariaDB double quotes make a text, and backticks a name"
    return next((words for kind, words in about.items() if condition.find(kind)), None)


def for_pgjdbc(query: str) -> str:
    """A query as that driver must be told it: it takes ? for a parameter, and ?? for PostgreSQL's operator of jsonb."""
    if "?" not in query:
        return query
    from sqlglot import tokenize

    marks = [token.start for token in tokenize(query, read="postgres") if query[token.start] == "?"]
    return "".join("??" if place in marks else one for place, one in enumerate(query))
