"""The contract's section on the ledger: its kind, its place, its columns, and which of these go together."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tallystick.contract.compare import NO_COLUMNS, ComparedColumns
from tallystick.contract.event import InputFields
from tallystick.contract.field_types import (
    AmountColumn,
    AmountUnit,
    ColumnName,
    ContractPart,
    CurrencyColumn,
    LegColumn,
    Name,
    Seconds,
    TableName,
    TopicName,
    constants_of,
    refuse_unit_without_digits,
)
from tallystick.contract.sql_names import bare, parts_of


class LedgerColumns(ContractPart):
    """The columns of the ledger's table; same words as the event's fields."""

    row_id: ColumnName = "entry_id"
    """The table's own key, shown as evidence."""
    match_key: ColumnName = "event_id"
    """Pairs with the event's match_key."""
    transaction_key: ColumnName = "payment_id"
    """Identifies the business transaction."""
    leg: LegColumn = "leg"
    """Which expected record of the business transaction this is, or {constant: name} where the contract has one leg."""
    amount_minor: AmountColumn = "amount_minor"
    """Money, in the unit of ledger.amount_unit, or {constant: 0} where rows carry none. Compared."""
    currency: CurrencyColumn = "currency"
    """ISO 4217 code, or {constant: EUR} where all rows are in one. Compared."""
    occurred_at: ColumnName = "occurred_at"
    """When the business says it happened; copied into a republished event, never used to slice."""
    written_at: ColumnName | None = None
    """A timestamptz, set once, when the row is written: measures how late partners come. Never used to slice."""
    receipt_partition: ColumnName | None = None
    """Partition of the broker's acknowledgement that the producer stored in the row. Goes with receipt_offset."""
    receipt_offset: ColumnName | None = None
    """Offset of that acknowledgement, on the topic of the row's leg; empty or negative: none was stored."""
    reverses: ColumnName | None = None
    """Row id of the row that this one takes back; empty in all others. topic_to_ledger only."""
    action_id: ColumnName | None = None
    """Id of the compensation that wrote the row; empty in all others. With it, a row that its consumer posts behind
    ours is told apart from any other duplicate. topic_to_ledger only."""

    _compared: ComparedColumns = PrivateAttr(NO_COLUMNS)
    """What is compared besides money: the contract says it once, for both sides."""

    @property
    def compared(self) -> ComparedColumns:
        """Return what is compared besides money."""
        return self._compared

    def comparing(self, columns: ComparedColumns) -> "LedgerColumns":
        """Return the same columns, with these beside them."""
        fields = self.model_copy()
        fields._compared = columns
        return fields

    @property
    def constants(self) -> dict[str, Any]:
        """Return the fields that no row has, each with what all rows have for it."""
        return constants_of(self)

    def named(self, roles: Iterable[str]) -> tuple[str, ...]:
        """Return the columns for these of the fields above, as a schema knows them, without constants."""
        return tuple(bare(one) for role in roles if isinstance(one := getattr(self, role), str))

    @property
    def compared_names(self) -> tuple[str, ...]:
        """Return the columns that are compared besides money, as a schema knows them."""
        return tuple(map(bare, self._compared.columns))

    @model_validator(mode="after")
    def _receipt_complete(self) -> Self:
        if (self.receipt_partition is None) != (self.receipt_offset is None):
            raise ValueError("expected receipt_partition and receipt_offset together, or neither")
        return self


class LedgerSection(ContractPart):
    """The source of truth."""

    kind: Literal["postgres", "jdbc", "parquet", "iceberg", "topic"] = "postgres"
    """postgres: a base table in PostgreSQL, read by its transactions' horizon. jdbc: a table of any database, read by a
    column that grows, with an overlap. parquet: a folder of files, each read once, by path and modification. iceberg:
    a table of Apache Iceberg that a sink appends to, read by its snapshots. topic: with direction topic_to_topic, the
    topics that a service consumes and transforms."""
    connection: Name
    """Id of the Airflow connection: type postgres; jdbc with an SQLAlchemy URL in its extra; parquet with a folder's
    address there, iceberg with its catalog's properties; kafka for topic. Reading is enough."""
    primary_connection: Name | None = None
    """postgres only, where connection leads to a standby: id of a connection to its primary. Rows are read on the
    standby, as far as it has replayed; its primary is asked how far a window reaches, and needs no right to the table.
    Without it a standby is refused."""
    table: Annotated[TableName, Field(validate_default=True)] = ""
    """schema.table. Of kind jdbc and iceberg also catalog.schema.table. Not for kind topic. In SQLite main.table, of
    parquet the folder schema/table, of iceberg namespace.table; kind postgres refuses a view, which has no transaction
    ids, when the cut is made."""
    order_by: ColumnName | None = None
    """jdbc only: the column that grows, an integer or a timestamp that each row gets once; in UTC where it has no
    zone."""
    overlap: Annotated[int, Field(ge=0, strict=True)] | None = None
    """jdbc only: how far behind the newest value a row may still come into sight; values of an integer, seconds of a
    timestamp, which also cover how far clocks differ. 0: rows are committed in the column's order."""
    horizon: Literal["overlap", "innodb"] = "overlap"
    """jdbc only. overlap: rows are read so far behind the newest value. innodb: order_by is the column ROW START of a
    table in MariaDB with transaction-precise system versioning; rows are read once all transactions before theirs have
    ended, and no overlap is stated. Needs the right PROCESS."""
    quiet_seconds: Seconds | None = None
    """parquet only: for how long a file must not have changed before a cut takes it."""
    topics: Annotated[tuple[TopicName, ...], Field(validate_default=True)] = ()
    """The input topics. For kind topic; each event there becomes one event on a topic of the legs."""
    event: InputFields = InputFields()
    """topic: keys of the input's JSON payload, where they differ from those of the output."""
    index_windows: Annotated[int, Field(gt=0, strict=True)] = 168
    """How many windows back the key index is read; what is older and comes again on both sides may pass for a new
    pair, anything else is found while log and ledger keep it. For so many windows after offsets were lost unread no
    business transaction is called torn: its absent leg may have stood there."""
    where: Annotated[str, Field(min_length=1)] | None = None
    """SQL condition that picks the posting that pairs, e.g. side = 'credit'. One expression about the row alone: no
    other table, comment, placeholder or semicolon. It runs in sessions that may only read."""
    slice_by: Literal["xmin", "written_xid"] = "xmin"
    """xmin: append-only tables, guarded by a count of older rows; each run scans the whole table. written_xid: the
    owner's column; rows may change. With an index on it a run reads its slice alone, without one the whole table; it
    also counts all rows by their ids, which a partial index with the contract's condition answers alone."""
    earlier_rows: Literal["kept", "archived"] = "kept"
    """written_xid only: what becomes of rows that cuts have read. kept: one that is deleted is a doubt, once. archived:
    their owner deletes old ones, and no run says so."""
    compared_windows: Annotated[int, Field(ge=0, strict=True)] = 0
    """written_xid only: so many windows back each run reads the rows again and compares what they say with what they
    said when their own run was done: a row that was changed since is a doubt, once. 0: no run looks."""
    columns: LedgerColumns = LedgerColumns()
    """Column names, where they differ from the defaults."""
    amount_unit: AmountUnit = "minor"
    """minor: whole minor units. major: a numeric or integer column, never floating point; an amount that is no whole
    number of its currency's minor units (ISO 4217) equals nothing."""
    consumer_isolation: Literal["read_committed", "read_uncommitted"] | None = None
    """topic_to_ledger only: the isolation.level of the consumer that writes the ledger, where its owner knows it."""

    @model_validator(mode="after")
    def _receipts_fit(self) -> Self:
        if self.columns.receipt_offset and self.by_xmin:
            raise ValueError(
                "expected slice_by: written_xid with receipt columns: storing a receipt updates the row, "
                "and an updated row has a new xmin"
            )
        return self

    @model_validator(mode="after")
    def _archived_rows_have_ids(self) -> Self:
        if (self.earlier_rows != "kept" or self.compared_windows) and self.slice_by != "written_xid":
            raise ValueError(
                "expected slice_by: written_xid with earlier_rows and compared_windows: only by it rows stay in "
                "their slice"
            )
        return self

    @field_validator("table", mode="wrap")
    @classmethod
    def _table_unless_topics(cls, table: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
        if table or info.data.get("kind") != "topic":
            return str(check(_stated(table)))
        return ""

    @field_validator("topics", mode="wrap")
    @classmethod
    def _topics_of_topic(
        cls, topics: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> tuple[str, ...]:
        needed = info.data.get("kind") == "topic"
        checked: tuple[str, ...] = check(_stated(topics) if needed else topics)
        if len(set(checked)) < len(checked):
            raise ValueError("expected each input topic once")
        return checked

    @model_validator(mode="after")
    def _fields_of_its_kind(self) -> Self:
        for name in _FIELDS_OF_TABLES if self.kind == "topic" else _FIELDS_OF_INPUTS:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"expected no {name} with kind {self.kind}")
        return self

    @model_validator(mode="after")
    def _unit_fits(self) -> Self:
        if self.kind != "topic":
            refuse_unit_without_digits(self.amount_unit, self.columns.constants)
        return self

    @model_validator(mode="after")
    def _three_parts_fit(self) -> Self:
        if len(parts_of(self.table)) > 2 and self.kind not in ("jdbc", "iceberg"):
            raise ValueError(
                f"expected schema.table with kind {self.kind}: only jdbc and iceberg have a name before it"
            )
        return self

    @model_validator(mode="after")
    def _fields_of_one_kind(self) -> Self:
        if self.horizon != "overlap" and self.kind != "jdbc":
            raise ValueError(f"expected no horizon with kind {self.kind}: only jdbc has a choice")
        if self.by_innodb and self.overlap is not None:
            raise ValueError("expected no overlap with horizon innodb: rows wait for open transactions alone")
        if self.primary_connection and self.kind != "postgres":
            raise ValueError(f"expected no primary_connection with kind {self.kind}: only postgres has standbys here")
        for field, kind, why in _OF_ONE_KIND:
            stated = getattr(self, field) is not None
            if stated and self.kind != kind:
                raise ValueError(f"expected no {field} with kind {self.kind}: only {kind} is read by it")
            if not stated and self.kind == kind and not (self.by_innodb and field == "overlap"):
                raise ValueError(f"expected {field} with kind {kind}: {why}")
        if self.in_files and (self.where or self.columns.receipt_offset):
            raise ValueError(
                f"expected no where and no receipt columns with kind {self.kind}: its files hold only the postings "
                "that pair, and are not changed"
            )
        if self.kind != "postgres" and (self.columns.reverses or self.columns.action_id):
            raise ValueError(
                f"expected no columns reverses and action_id with kind {self.kind}: only postgres has them"
            )
        if self.kind in ("jdbc", "parquet", "iceberg") and self.slice_by != "xmin":
            raise ValueError(f"expected no slice_by with kind {self.kind}: only postgres slices by transaction id")
        if self.in_files and self.amount_unit != "minor":
            raise ValueError(
                f"expected amount_unit minor with kind {self.kind}: major units are read from databases only"
            )
        return self

    @property
    def place(self) -> str:
        """Return in a word what is read there."""
        return self.table or ", ".join(self.topics)

    @property
    def in_files(self) -> bool:
        """Return whether its rows are in files, which no database reads."""
        return self.kind in ("parquet", "iceberg")

    @property
    def by_xmin(self) -> bool:
        """Return whether a row's position is 32 bits of the id of the transaction that wrote it last."""
        return self.kind == "postgres" and self.slice_by == "xmin"

    @property
    def by_innodb(self) -> bool:
        """Return whether a row's position is the id of the InnoDB transaction that wrote it last."""
        return self.kind == "jdbc" and self.horizon == "innodb"

    @property
    def rows_move(self) -> bool:
        """Return whether an UPDATE gives a row another position."""
        return self.by_xmin or self.by_innodb

    @property
    def rows_change(self) -> bool:
        """Return whether a later slice may hold a row of an earlier one under another key: by xmin and by a moment of
        change. A row of a file comes again in another file under its own, or it is another row.
        """
        return self.kind in ("postgres", "jdbc")

    @property
    def waits_by_rule(self) -> bool:
        """Return whether the contract's own rule holds back what is behind the horizon, and no transaction does."""
        return self.kind in ("jdbc", "parquet") and not self.by_innodb

    @property
    def overlap_text(self) -> str:
        """Return the overlap in words. Unit: values of an integer, seconds of a timestamp."""
        return f"{self.overlap} on {self.order_by}"

    @property
    def guarantee(self) -> str:
        """Say in short how it is sliced and how strong that is; the report says it in full."""
        return {
            "postgres": f"by horizon ({self.slice_by}): "
            + ("strong for rows that nobody changes" if self.by_xmin else "strong, but for what is changed once paired")
            + (", as far as a standby has replayed" if self.primary_connection else ""),
            "jdbc": f"by InnoDB's horizon ({self.order_by}): strong for rows that nobody changes"
            if self.by_innodb
            else f"by the column {self.order_by} with an overlap of {self.overlap}: weaker than a horizon",
            "parquet": f"by manifest of files left alone for {self.quiet_seconds} s: weaker than a horizon",
            "iceberg": "by snapshots of the table: strong for rows that are only appended",
            "topic": f"by LSO, with an index of the keys of {self.index_windows} windows: strong within them",
        }[self.kind]

    @property
    def positions(self) -> str:
        """Say in words what the ledger's positions are."""
        return {
            "postgres": "transaction ids",
            "jdbc": "transaction ids" if self.by_innodb else f"values of {self.order_by}",
            "parquet": "milliseconds of modification time",
            "iceberg": "sequence numbers of snapshots",
            "topic": "offsets",
        }[self.kind]


_OF_ONE_KIND = (
    ("order_by", "jdbc", "the column that grows"),
    ("overlap", "jdbc", "how far behind the newest value a row may come into sight"),
    ("quiet_seconds", "parquet", "how long a file that is still being written must have been left alone"),
)
"""Fields that one kind of ledger needs and no other has, with what they say."""


def _stated(value: Any) -> Any:
    if not value:
        raise PydanticCustomError("missing", "Field required")
    return value


_FIELDS_OF_TABLES = ("table", "where", "slice_by", "earlier_rows", "compared_windows", "columns", "consumer_isolation")
_FIELDS_OF_INPUTS = ("topics", "event")
