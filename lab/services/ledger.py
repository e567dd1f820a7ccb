"""The ledger's tables, and the only statements that write to them.

A posting is never changed: a trigger refuses UPDATE, DELETE and TRUNCATE. A payout is an outbox row: its owner sets
`sent` by UPDATE, and may store the broker's receipt, so the row carries `written_xid`, the transaction that first wrote
it.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psycopg
from psycopg import sql

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment
from lab.services.namespace import Namespace

_TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.posting (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    payment_id uuid NOT NULL,
    leg text NOT NULL,
    account text NOT NULL,
    side text NOT NULL CHECK (side IN ('debit', 'credit')),
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    occurred_at timestamptz NOT NULL,
    posted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX posting_event ON {schema}.posting (event_id);
CREATE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'postings are append-only'; END $$;
CREATE TRIGGER posting_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.posting
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();
CREATE TABLE {schema}.payout (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    payment_id uuid NOT NULL,
    leg text NOT NULL DEFAULT 'payout',
    amount_minor bigint NOT NULL,
    currency text NOT NULL,
    occurred_at timestamptz NOT NULL,
    sent boolean NOT NULL DEFAULT false,
    sent_at timestamptz,
    receipt_partition int,
    receipt_offset bigint,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    written_xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
);
CREATE INDEX payout_event ON {schema}.payout (event_id);
CREATE INDEX payout_written_xid ON {schema}.payout (written_xid);
CREATE TABLE {schema}.poster_offset (
    topic text, partition int, next_offset bigint NOT NULL, PRIMARY KEY (topic, partition)
);
CREATE TABLE {schema}.note (written_at timestamptz NOT NULL DEFAULT clock_timestamp(), words text NOT NULL);
"""

_ACCOUNTS = {Leg.PAYMENT: ("cash", "receivable"), Leg.INVOICE: ("receivable", "revenue")}  # debit, credit


@dataclass(frozen=True, kw_only=True)
class PayoutRow:
    """One outbox row."""

    entry_id: int
    written_xid: int
    payment: Payment

    @property
    def event(self) -> Event:
        return self.payment.event(Leg.PAYOUT)

    @property
    def source(self) -> str:
        return f"payout:{self.entry_id}"


@dataclass(frozen=True)
class Ledger:
    """The tables of one namespace."""

    namespace: Namespace

    def create(self, connection: psycopg.Connection, mode: DeliveryMode) -> None:
        """Make the tables; under exactly_once the ledger itself refuses a second posting of an event's side."""
        connection.execute(self._sql(_TABLES))
        if mode is DeliveryMode.EXACTLY_ONCE:
            connection.execute(self._sql("CREATE UNIQUE INDEX posting_once ON {schema}.posting (event_id, side)"))

    def post(self, connection: psycopg.Connection, event: Event, *, once: bool, at: datetime | None = None) -> None:
        """Write the two postings of an event. With `once`, sides that are already there stay as they are.

        at: when they say that they were written, where that is not now.
        """
        debit, credit = _ACCOUNTS[event.leg]
        conflict = "ON CONFLICT (event_id, side) DO NOTHING" if once else ""
        statement = self._sql(
            "INSERT INTO {schema}.posting"
            " (event_id, payment_id, leg, account, side, amount_minor, currency, occurred_at, posted_at)"
            " SELECT %(event_id)s, %(payment_id)s, %(leg)s, account, side, %(amount)s, %(currency)s, %(at)s,"
            " coalesce(%(posted_at)s, clock_timestamp())"
            " FROM (VALUES (%(debit)s, 'debit'), (%(credit)s, 'credit')) AS sides (account, side) " + conflict
        )
        connection.execute(statement, _values(event) | {"debit": debit, "credit": credit, "posted_at": at})

    def is_posted(self, connection: psycopg.Connection, event: Event) -> bool:
        statement = self._sql("SELECT 1 FROM {schema}.posting WHERE event_id = %s LIMIT 1")
        return connection.execute(statement, (event.event_id,)).fetchone() is not None

    def save_offset(
        self, connection: psycopg.Connection, *, topic: str, partition: int, next_kafka_offset: int
    ) -> None:
        """Save the poster's progress; it belongs to the same database transaction as the postings."""
        statement = self._sql(
            "INSERT INTO {schema}.poster_offset VALUES (%s, %s, %s)"
            " ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset"
        )
        connection.execute(statement, (topic, partition, next_kafka_offset))

    def saved_offsets(self, connection: psycopg.Connection) -> dict[tuple[str, int], int]:
        """Give the poster's progress: (topic, partition) -> next offset to read."""
        rows = connection.execute(self._sql("SELECT topic, partition, next_offset FROM {schema}.poster_offset"))
        return {(topic, partition): kafka_offset for topic, partition, kafka_offset in rows}

    def add_payout(self, connection: psycopg.Connection, payment: Payment) -> PayoutRow:
        """Write an outbox row, not sent yet."""
        statement = self._sql(
            "INSERT INTO {schema}.payout (event_id, payment_id, leg, amount_minor, currency, occurred_at)"
            " VALUES (%(event_id)s, %(payment_id)s, %(leg)s, %(amount)s, %(currency)s, %(at)s)"
            " RETURNING entry_id, written_xid"
        )
        row = connection.execute(statement, _values(payment.event(Leg.PAYOUT))).fetchone()
        assert row is not None
        return PayoutRow(entry_id=row[0], written_xid=row[1], payment=payment)

    def find_payout(self, connection: psycopg.Connection, payment: Payment) -> PayoutRow | None:
        """The first outbox row of a payment."""
        statement = self._sql(
            "SELECT entry_id, written_xid FROM {schema}.payout WHERE payment_id = %s ORDER BY entry_id LIMIT 1"
        )
        row = connection.execute(statement, (payment.payment_id,)).fetchone()
        return None if row is None else PayoutRow(entry_id=row[0], written_xid=row[1], payment=payment)

    def unsent_payouts(self, connection: psycopg.Connection) -> list[PayoutRow]:
        """Read the outbox in entry order. A row that commits late is found later: the flag, not the order, counts."""
        return self._payouts(connection, "NOT sent ORDER BY entry_id LIMIT 50", ())

    def settled_payouts(self, connection: psycopg.Connection, *, start_xid: int, horizon_xid: int) -> list[PayoutRow]:
        """Read the rows of the ended transactions [start_xid, horizon_xid), in transaction, then entry order."""
        where = "written_xid >= %s AND written_xid < %s ORDER BY written_xid, entry_id"
        return self._payouts(connection, where, (start_xid, horizon_xid))

    def mark_sent(self, connection: psycopg.Connection, row: PayoutRow) -> None:
        statement = self._sql("UPDATE {schema}.payout SET sent = true, sent_at = clock_timestamp() WHERE entry_id = %s")
        connection.execute(statement, (row.entry_id,))

    def save_receipt(
        self, connection: psycopg.Connection, row: PayoutRow, *, partition: int, kafka_offset: int
    ) -> None:
        """Store where the broker says that the row's event stands."""
        statement = self._sql(
            "UPDATE {schema}.payout SET receipt_partition = %s, receipt_offset = %s WHERE entry_id = %s"
        )
        connection.execute(statement, (partition, kafka_offset, row.entry_id))

    def mark_sent_below(self, connection: psycopg.Connection, xid: int) -> None:
        """Set the flag of every row that a transaction before `xid` wrote."""
        statement = self._sql(
            "UPDATE {schema}.payout SET sent = true, sent_at = clock_timestamp() WHERE NOT sent AND written_xid < %s"
        )
        connection.execute(statement, (xid,))

    def add_note(self, connection: psycopg.Connection, words: str) -> None:
        connection.execute(self._sql("INSERT INTO {schema}.note (words) VALUES (%s)"), (words,))

    def _payouts(self, connection: psycopg.Connection, where: str, values: tuple[int, ...]) -> list[PayoutRow]:
        columns = "SELECT entry_id, written_xid, payment_id, amount_minor, currency, occurred_at FROM {schema}.payout"
        rows = connection.execute(self._sql(f"{columns} WHERE {where}"), values)
        return [_payout_row(*row) for row in rows]

    def _sql(self, statement: str) -> sql.Composed:
        return sql.SQL(statement).format(schema=sql.Identifier(self.namespace.schema))


def horizon_xid(connection: psycopg.Connection) -> int:
    """Give the ledger horizon: every database transaction below it has ended."""
    return _xid(connection, "pg_snapshot_xmin")


def next_xid(connection: psycopg.Connection) -> int:
    """Give an id that all database transactions which have ended by now are below."""
    return _xid(connection, "pg_snapshot_xmax")


def _xid(connection: psycopg.Connection, of_the_snapshot: LiteralString) -> int:
    row = connection.execute(f"SELECT {of_the_snapshot}(pg_current_snapshot())::text::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _payout_row(
    entry_id: int, written_xid: int, payment_id: uuid.UUID, amount_minor: int, currency: str, occurred_at: datetime
) -> PayoutRow:
    payment = Payment(payment_id=payment_id, amount_minor=amount_minor, currency=currency, occurred_at=occurred_at)
    return PayoutRow(entry_id=entry_id, written_xid=written_xid, payment=payment)


def _values(event: Event) -> dict[str, object]:
    payment = event.payment
    return {
        "event_id": event.event_id,
        "payment_id": payment.payment_id,
        "leg": str(event.leg),
        "amount": payment.amount_minor,
        "currency": payment.currency,
        "at": payment.occurred_at,
    }
