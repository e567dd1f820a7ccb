"""The tables of the verdict store. Migrations in tallystick/store/migrations bring a database to this shape.

Tiling is held by keys, not by care: a slice's start must be the end of the slice before it (cut_slice_follows),
and each contract has at most one open cut (one_open_cut), which is its lock. APPEND_ONLY is held by a trigger; so is
what breaks and items name, with one question for all rows of a statement instead of one for each.

One file, since the tables name each other by their keys, and are read beside each other.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Computed,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    Uuid,
    cast,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "tallystick"

REVISION = "0024"
"""Of this shape: the newest migration's."""
OLDEST_SERVED = "0020"
"""The oldest revision whose code may work in this shape, which the newest migration writes into served_revision.

It stays where a migration only adds: tables, columns that may be null or have a default, indexes.
"""
VERSION_TABLE = "alembic_version"
"""In which Alembic keeps it; in the same schema."""

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pk",
        "uq": "%(table_name)s_%(column_0_N_name)s_uq",
        "fk": "%(table_name)s_%(column_0_N_name)s_fk",
        "ix": "%(table_name)s_%(column_0_N_name)s_ix",
        "ck": "%(table_name)s_%(constraint_name)s_ck",
    },
)


class UtcTime(TypeDecorator[datetime]):
    """A moment. Refuses a naive time; gives UTC back, whatever the session's time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"expected an aware time, got {value.isoformat()}")
        return value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)


_TIME = UtcTime()


def big_integer(stored: ColumnElement[Any]) -> ColumnElement[int]:
    """A number in a JSON document: offsets, positions and counts outgrow 32 bits."""
    return cast(stored.as_string(), BigInteger)


def without_sign(amount_minor: ColumnElement[int]) -> ColumnElement[Decimal]:
    """Return the absolute value as numeric, since the smallest bigint has no bigint without its sign."""
    return func.abs(cast(amount_minor, Numeric), type_=Numeric)


def _recorded_at() -> Column[object]:
    return Column("recorded_at", _TIME, nullable=False, server_default=func.clock_timestamp())


contract_version = Table(
    "contract_version",
    metadata,
    Column("contract", Text, primary_key=True),
    Column("fingerprint", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("body", JSONB, nullable=False),
    _recorded_at(),
)

sample = Table(
    "sample",
    metadata,
    Column("contract", Text, primary_key=True),
    Column("at_utc", _TIME, primary_key=True),
    Column("ledger_xmin", BigInteger, nullable=False),
    Column("ledger_xmax", BigInteger, nullable=False),
    Column("high_watermarks", JSONB, nullable=False),
)

served_revision = Table(
    "served_revision",
    metadata,
    Column("oldest", Text, nullable=False),
    Column("single", Boolean, primary_key=True, server_default=text("true")),
    CheckConstraint("single", name="one_row"),
    comment="the oldest revision whose code may work in this store; each migration says it again",
)

cut = Table(
    "cut",
    metadata,
    Column("contract", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("window_start_utc", _TIME, nullable=False),
    Column("window_end_utc", _TIME, nullable=False),
    Column("marked_at_utc", _TIME, nullable=False),
    Column("now_utc", _TIME, nullable=False),
    Column("contract_fingerprint", Text, nullable=False),
    Column("scheduler_run_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("open", Boolean, nullable=False),
    _recorded_at(),
    Column("by_time", Boolean, nullable=False, server_default=text("false")),
    Column("host_ahead_ms", BigInteger),
    PrimaryKeyConstraint("contract", "n"),
    ForeignKeyConstraint(
        ["contract", "contract_fingerprint"],
        [f"{SCHEMA}.contract_version.contract", f"{SCHEMA}.contract_version.fingerprint"],
    ),
    CheckConstraint("window_start_utc <= window_end_utc", name="window"),
    Index("one_open_cut", "contract", unique=True, postgresql_where=text("open")),
)

cut_slice = Table(
    "cut_slice",
    metadata,
    Column("contract", Text, nullable=False),
    Column("side", Text, nullable=False, comment='"ledger", or "topic:<name>:<partition>"'),
    Column("slice_n", Integer, nullable=False, comment="counts this side's slices from 0, whatever the cut"),
    Column("cut_n", Integer, nullable=False),
    Column("starts_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger, nullable=False),
    Column("details", JSONB, nullable=False),
    Column("previous_slice_n", Integer, Computed("nullif(slice_n, 0) - 1", persisted=True)),
    PrimaryKeyConstraint("contract", "side", "slice_n"),
    UniqueConstraint("contract", "side", "slice_n", "ends_at", name="cut_slice_end"),
    UniqueConstraint("contract", "side", "cut_n", name="cut_slice_once"),
    ForeignKeyConstraint(["contract", "cut_n"], [f"{SCHEMA}.cut.contract", f"{SCHEMA}.cut.n"]),
    ForeignKeyConstraint(
        ["contract", "side", "previous_slice_n", "starts_at"],
        [f"{SCHEMA}.cut_slice.{name}" for name in ("contract", "side", "slice_n", "ends_at")],
        name="cut_slice_follows",
    ),
    CheckConstraint("starts_at <= ends_at", name="bounds"),
    Index(None, "contract", "cut_n"),
)

verdict = Table(
    "verdict",
    metadata,
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("doubts", JSONB, nullable=False),
    Column("figures", JSONB, nullable=False),
    Column("digest", Text, nullable=False),
    Column("look_ups", JSONB, nullable=False),
    Column("attempt", Integer, nullable=False),
    _recorded_at(),
    Column("notices", JSONB, nullable=False, server_default=text("'[]'")),
    Column("lag", JSONB),
    Column("key_index", JSONB, comment="topic_to_topic: files of the index of keys; no other file counts"),
    Column("summary", JSONB, comment="both sides in figures, for expectations; null: nothing was read, or it is older"),
    PrimaryKeyConstraint("contract", "cut_n"),
    ForeignKeyConstraint(["contract", "cut_n"], [f"{SCHEMA}.cut.contract", f"{SCHEMA}.cut.n"]),
    CheckConstraint("verdict in ('MATCHED', 'INCONCLUSIVE', 'BROKEN')", name="known"),
)

expectations_outcome = Table(
    "expectations_outcome",
    metadata,
    Column("outcome_id", BigInteger, Identity(always=True), primary_key=True),
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("body", JSONB, nullable=False),
    _recorded_at(),
    ForeignKeyConstraint(["contract", "cut_n"], [f"{SCHEMA}.verdict.contract", f"{SCHEMA}.verdict.cut_n"]),
    Index(None, "contract", "cut_n", "outcome_id"),
    comment="the newest of a cut counts; after one in which everything was evaluated none follows",
)

item_break = Table(
    "item_break",
    metadata,
    Column("break_id", Uuid, primary_key=True),
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("break_class", Text, nullable=False),
    Column("match_key", Text, nullable=False),
    Column("transaction_key", Text, nullable=False),
    Column("leg", Text, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("copies", Integer, nullable=False),
    Column("story", Text, nullable=False),
    Column("evidence", JSONB, nullable=False),
    Index("item_break_by_money", "contract", "cut_n", text("abs(amount_minor::numeric)"), "break_id"),
    comment="contract and cut_n are a verdict's, held by a trigger",
)

break_total = Table(
    "break_total",
    metadata,
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("break_class", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("breaks", Integer, nullable=False),
    Column("amount_minor", Numeric, nullable=False),
    PrimaryKeyConstraint("contract", "cut_n", "break_class", "currency"),
    comment="kept by a trigger on item_break; amount_minor: without signs",
)

open_item = Table(
    "open_item",
    metadata,
    Column("contract", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("side", Text, nullable=False),
    Column("match_key", Text, nullable=False),
    Column("transaction_key", Text, nullable=False),
    Column("leg", Text, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("first_seen_cut", Integer, nullable=False),
    Column("first_seen_utc", _TIME, nullable=False),
    Column("due_utc", _TIME, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("pairable", Boolean, nullable=False),
    Column("break_id", Uuid),
    Column("cleared_by", Text, nullable=False),
    Column(
        "step",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="0: written by the run of cut_n; from 1 on: by a person, after it and before the next cut",
    ),
    Column("written_off_by", Text, nullable=False, server_default=text("''")),
    Column("written_off_because", Text, nullable=False, server_default=text("''")),
    Column("written_off_at", _TIME),
    Column("written_ms", BigInteger),
    Column("compared_text", Text, nullable=False, server_default=text("''")),
    Index(None, "contract", "cut_n"),
    Index(None, "break_id"),
    Index(
        "open_item_left_rows",
        "contract",
        "transaction_key",
        postgresql_where=text("state in ('undecidable', 'written_off') and side = 'ledger'"),
    ),
    PrimaryKeyConstraint("contract", "item_id", "cut_n", "step"),
    CheckConstraint("state in ('open', 'cleared', 'broken', 'written_off', 'undecidable')", name="state"),
    CheckConstraint("state <> 'broken' or break_id is not null", name="broken_by"),
    CheckConstraint(
        "(step = 0) = (written_off_at is null) and (step = 0) = (written_off_by = '')"
        " and (step = 0) = (written_off_because = '') and (step = 0 or state = 'written_off')",
        name="written_off_by",
    ),
    comment="the newest row of an item at or before a cut is its state as of that cut; triggers hold what it names",
)

item_life = Table(
    "item_life",
    metadata,
    Column("contract", Text, nullable=False),
    Column("item_id", Text, nullable=False),
    Column("ended_cut_n", Integer),
    PrimaryKeyConstraint("contract", "item_id"),
    Index(None, "contract", "ended_cut_n"),
    comment="kept by a trigger on open_item; ended_cut_n: after that cut none carries the item; null while one may",
)

standing_item = Table(
    "standing_item",
    metadata,
    Column("contract", Text, nullable=False),
    Column("item_id", Text(collation="C"), nullable=False),
    Column("state", Text, nullable=False),
    Column("break_class", Text, nullable=False),
    Column("side", Text, nullable=False),
    Column("match_key", Text(collation="C"), nullable=False),
    Column("transaction_key", Text(collation="C"), nullable=False),
    Column("leg", Text, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("first_seen_utc", _TIME, nullable=False),
    Column("due_utc", _TIME, nullable=False),
    Column("break_id", Uuid),
    PrimaryKeyConstraint("contract", "item_id"),
    Index("standing_item_by_age", "contract", "first_seen_utc", "item_id"),
    Index("standing_item_by_money", "contract", text("abs(amount_minor::numeric)"), "item_id"),
    Index("standing_item_by_key", "contract", "match_key"),
    Index("standing_item_by_transaction", "contract", "transaction_key"),
    comment="kept by a trigger on open_item: the newest row of each item that a later cut may carry",
)

standing_total = Table(
    "standing_total",
    metadata,
    Column("contract", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("break_class", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("first_seen_utc", _TIME, nullable=False),
    Column("items", BigInteger, nullable=False),
    Column("amount_minor", Numeric, nullable=False),
    PrimaryKeyConstraint("contract", "state", "break_class", "currency", "first_seen_utc"),
    comment="kept by triggers on standing_item: its sums; amount_minor: without signs",
)

alert = Table(
    "alert",
    metadata,
    Column("alert_id", BigInteger, Identity(always=True), primary_key=True),
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, comment="null: it tells of a verdict that is not there, so it belongs to no cut"),
    Column("topic", Text, nullable=False, comment="a break class, or inconclusive"),
    Column("dedup_key", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column(
        "sinks", JSONB, nullable=False, comment="names of the sinks it is addressed to; a later sink hears no history"
    ),
    _recorded_at(),
    UniqueConstraint("contract", "cut_n", "dedup_key", "action", name="alert_once_a_run"),
    ForeignKeyConstraint(["contract", "cut_n"], [f"{SCHEMA}.verdict.contract", f"{SCHEMA}.verdict.cut_n"]),
    CheckConstraint("action in ('trigger', 'resolve', 'acknowledge')", name="action"),
    Index(None, "contract", "dedup_key", "alert_id"),
)

alert_delivery = Table(
    "alert_delivery",
    metadata,
    Column("delivery_id", BigInteger, Identity(always=True), primary_key=True),
    Column("alert_id", BigInteger, nullable=False),
    Column("sink", Text, nullable=False),
    Column("delivered", Boolean, nullable=False),
    Column("detail", Text, nullable=False),
    _recorded_at(),
    Column(
        "retry_after_seconds",
        Integer,
        comment="until then this sink is not asked again, for whatever contract; null: it did not say",
    ),
    ForeignKeyConstraint(["alert_id"], [f"{SCHEMA}.alert.alert_id"]),
    Index(None, "alert_id", "sink"),
    Index(
        "alert_delivery_asked_to_wait_ix",
        "sink",
        "recorded_at",
        postgresql_where=text("retry_after_seconds is not null"),
    ),
)

compensation_plan = Table(
    "compensation_plan",
    metadata,
    Column("plan_id", Uuid, primary_key=True),
    Column("contract", Text, nullable=False),
    Column("cut_n", Integer, nullable=False),
    Column("plan_hash", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("requested_by", Text, nullable=False),
    _recorded_at(),
    Column("in_short", JSONB, Computed(f"{SCHEMA}.plan_in_short(body)", persisted=True)),
    ForeignKeyConstraint(["contract", "cut_n"], [f"{SCHEMA}.verdict.contract", f"{SCHEMA}.verdict.cut_n"]),
    Index(None, "contract", "recorded_at"),
)

compensation_action = Table(
    "compensation_action",
    metadata,
    Column("action_id", Uuid, primary_key=True, comment="UUIDv5 of contract and break: one per break, over all plans"),
    Column("break_id", Uuid),
    Column("plan_id", Uuid, nullable=False),
    Column("state", Text, nullable=False),
    Column("outcome", JSONB, nullable=False, server_default=text("'{}'")),
    _recorded_at(),
    Column("effect", Text, comment="SHA-256 of what it does to a side, in words that are the same in every contract"),
    Column("reopened", Integer, nullable=False, server_default=text("0"), comment="how often a person has reopened it"),
    Column(
        "void_progress",
        JSONB,
        comment="progress topic, and up to which offset its records prove nothing of this action any more",
    ),
    Column("source", Text, comment="SHA-256 of what it does by which row or event, whatever is called the match key"),
    ForeignKeyConstraint(["break_id"], [f"{SCHEMA}.item_break.break_id"]),
    ForeignKeyConstraint(["plan_id"], [f"{SCHEMA}.compensation_plan.plan_id"]),
    Index(None, "break_id"),
    Index(None, "plan_id"),
    Index(None, "effect"),
    Index(None, "source"),
    CheckConstraint("state in ('executing', 'done', 'refused', 'waiting')", name="state"),
)

executor_key = Table(
    "executor_key",
    metadata,
    Column("only_one", Boolean, primary_key=True, server_default=text("true")),
    Column("secret", LargeBinary, nullable=False),
    _recorded_at(),
    CheckConstraint("only_one", name="only_one"),
    CheckConstraint("octet_length(secret) >= 32", name="secret"),
    comment="by which executors know their own progress records; nobody else reads it",
)

acting_switch = Table(
    "acting_switch",
    metadata,
    Column("switch_id", BigInteger, Identity(always=True), primary_key=True),
    Column("contract", Text, nullable=False, comment="a contract, or * for all"),
    Column("stopped", Boolean, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("because", Text, nullable=False),
    Column("at_utc", _TIME, nullable=False),
    _recorded_at(),
    Index(None, "contract", "switch_id"),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", BigInteger, Identity(always=True), primary_key=True),
    Column("contract", Text, nullable=False),
    Column("plan_id", Uuid),
    Column("actor", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
    _recorded_at(),
    Index(None, "plan_id", "audit_id"),
    comment="who did what, when, with which plan hash, and what came of it",
)

prune_mark = Table(
    "prune_mark",
    metadata,
    Column("contract", Text, primary_key=True),
    Column("kept_from_cut_n", Integer, nullable=False),
    Column("older_than_utc", _TIME, nullable=False),
    Column("pruned_at", _TIME, nullable=False, server_default=func.clock_timestamp()),
    Column(
        "delivery_failures",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        comment="sink to the number of failed deliveries that were deleted: a counter never goes back",
    ),
    comment="of the runs below kept_from_cut_n only verdict, slices and sums are left, and what still counts",
)

APPEND_ONLY = (
    verdict,
    expectations_outcome,
    item_break,
    open_item,
    alert,
    alert_delivery,
    compensation_plan,
    acting_switch,
    audit,
)
"""Tables whose rows are never changed: a trigger refuses UPDATE, DELETE and TRUNCATE.

But for what `store prune` deletes of five of them, as the owner.
"""
