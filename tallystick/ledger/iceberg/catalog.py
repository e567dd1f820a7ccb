"""The catalog that knows a table of Iceberg, and what its failures mean."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable


def catalog_properties(address: str) -> dict[str, str]:
    """Read the catalog's properties. Raises LedgerRefused, without a value of theirs."""
    try:
        document = json.loads(address)
    except ValueError:
        document = None
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        raise LedgerRefused(
            "ledger connection of kind iceberg: expected a JSON object of strings, the catalog's properties, such as "
            '{"type": "sql", "uri": "postgresql+psycopg://...", "warehouse": "s3://bucket/lake"}'
        )
    return document


@contextmanager
def failures(table: str) -> Iterator[None]:
    """Tell what a retry may cure from what it does not. No text of the library is passed on: it may hold a secret."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchPropertyException, NoSuchTableError, ValidationError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (NoSuchTableError, NoSuchNamespaceError):
        raise LedgerRefused(f"ledger table {table}: the catalog has no such table") from None
    except (NoSuchPropertyException, ValidationError) as error:
        raise LedgerRefused(f"ledger table {table}: the catalog cannot be opened: {type(error).__name__}") from None
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise LedgerRefused(f"ledger table {table}: pyiceberg refuses it: {type(error).__name__}") from None
        raise LedgerRefused(
            f"ledger table {table}: it has equality deletes, which pyiceberg does not read; expected a sink that "
            "appends. What to do: a compaction that applies them, or the sink without upsert"
        ) from None
    except (OSError, SQLAlchemyError, _rest_error()) as error:
        raise LedgerUnreachable(f"ledger table {table}: {type(error).__name__}") from None


def _rest_error() -> type[Exception]:
    from pyiceberg.exceptions import RESTError

    return RESTError
