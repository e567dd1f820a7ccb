"""The contract's section on events: the payload's keys, of an output and of an input."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from tallystick.contract.compare import NO_COLUMNS, ComparedColumns
from tallystick.contract.field_path import refuse_fields_inside_fields
from tallystick.contract.field_types import (
    AmountField,
    AmountUnit,
    ContractPart,
    CurrencyField,
    KeyField,
    LegField,
    PayloadField,
    Place,
    constants_of,
    refuse_unit_without_digits,
    spelled,
)


class PayloadKey(StrEnum):
    """A key of the payload that an event is identified by."""

    MATCH_KEY = "match_key"
    TRANSACTION_KEY = "transaction_key"
    ORDERING_KEY = "ordering_key"


EventFormat = Literal["json", "json_schema", "avro", "protobuf", "debezium"]
ASKS_REGISTRY: tuple[EventFormat, ...] = ("avro", "protobuf")
"""The formats whose values no one can read without their schema."""
MAY_ASK_REGISTRY: tuple[EventFormat, ...] = (*ASKS_REGISTRY, "debezium")


class EventFields(ContractPart):
    """The fields of the payload, each a key or a path of keys."""

    format: EventFormat = "json"
    """How a record's value is written. json: as it stands. json_schema: JSON behind a schema's id, as Confluent's
    serializers write it. avro, protobuf: behind a schema's id too, read by the schema that kafka.schema_registry gives
    for it. debezium: a change event, whose row as it was inserted is the payload; its envelope is JSON, or Avro where
    kafka.schema_registry is named."""
    _registry: str | None = PrivateAttr(None)
    """Connection id of the registry of its schemas: the contract says it once, for all its events."""
    _compared: ComparedColumns = PrivateAttr(NO_COLUMNS)
    """What is compared besides money: the contract says it once, for both sides."""

    @property
    def registry(self) -> str | None:
        """Return the connection id of the schema registry to ask, if any."""
        return self._registry

    def asking(self, registry: str | None) -> "EventFields":
        """Return the same fields, whose schemas are in this registry. Raises ValueError where they need one."""
        if registry is None and self.format in ASKS_REGISTRY:
            raise ValueError(f"expected kafka.schema_registry with format {self.format}: it has the schemas")
        fields = self.model_copy()
        fields._registry = registry if self.format in MAY_ASK_REGISTRY else None
        return fields

    @property
    def compared(self) -> ComparedColumns:
        """Return what is compared besides money."""
        return self._compared

    def comparing(self, columns: ComparedColumns) -> "EventFields":
        """Return the same fields, with these values beside them."""
        fields = self.model_copy()
        fields._compared = columns
        return fields

    def refuse_to_compare(self, columns: ComparedColumns) -> None:
        """Raise ValueError where these values cannot be read beside the fields."""
        for path in columns.paths:
            if path in self.paths:
                raise ValueError(f"expected compare to name other fields than event: {path} is one already")
        for place in map(spelled, columns.places):
            if place in map(spelled, self._own_places):
                raise ValueError(f"expected compare to name other places than event: {place} is one already")
        refuse_fields_inside_fields((*self.paths, *columns.paths))

    match_key: KeyField = "event_id"
    """Identifies the event; pairs with the ledger's match_key. The compared fields are no part of it. Like
    transaction_key and leg it may stand in a header ({header: ce_id}) or be the record's key ({record: key})."""
    transaction_key: KeyField = "payment_id"
    """Identifies the business transaction whose legs belong together."""
    leg: LegField = "leg"
    """Which expected record of the business transaction this is, or {constant: name} where the contract has one leg."""
    amount_minor: AmountField = "amount_minor"
    """Money, in the unit of event.amount_unit, or {constant: 0} where events carry none. Compared."""
    currency: CurrencyField = "currency"
    """ISO 4217 code, or {constant: EUR} where all events are in one. Compared."""
    amount_unit: AmountUnit = "minor"
    """minor: a JSON integer. major: a JSON number or text such as "12.50", without exponent; one that is no whole
    number of its currency's minor units (ISO 4217) is unreadable."""
    ordering_key: PayloadField | None = None
    """Events with the same value here keep their order on their partition; named together with sequence."""
    sequence: PayloadField | None = None
    """A JSON integer that grows with the offset within one ordering key and partition."""

    @model_validator(mode="after")
    def _ordered_by_both(self) -> Self:
        if (self.ordering_key is None) != (self.sequence is None):
            raise ValueError("expected ordering_key and sequence together, or neither")
        others = (self.match_key, self.transaction_key, self.leg, self.amount_minor, self.currency, self.ordering_key)
        if self.sequence is not None and self.sequence in others:
            raise ValueError(f"expected a key of its own for sequence: {self.sequence!r} is named twice")
        return self

    @model_validator(mode="after")
    def _reads_what_it_states(self) -> Self:
        refuse_unit_without_digits(self.amount_unit, self.constants)
        if self.format == "debezium" and not self.paths:
            raise ValueError(
                "expected a field of the row with format debezium: which change it is, only its value says"
            )
        return self

    @model_validator(mode="after")
    def _no_field_inside_another(self) -> Self:
        refuse_fields_inside_fields(self.paths)
        return self

    @property
    def constants(self) -> dict[str, Any]:
        """Return the fields that no record has, each with what all events have for it."""
        return constants_of(self)

    @property
    def places(self) -> tuple[Place, ...]:
        """Return where fields, and what is compared beside them, stand outside of a record's value."""
        return (*self._own_places, *self._compared.places)

    @property
    def _own_places(self) -> tuple[Place, ...]:
        fields = (self.match_key, self.transaction_key, self.leg, self.currency)
        return tuple(one for one in fields if isinstance(one, Place))

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths into the value of all fields that stand there, some of them more than once."""
        read = (self.match_key, self.transaction_key, self.leg, self.amount_minor, self.currency)
        return (
            *(one for one in read if isinstance(one, str)),
            *([self.ordering_key] if self.ordering_key else []),
            *([self.sequence] if self.sequence else []),
        )

    origin_header: Annotated[str, Field(min_length=1)] | None = None
    """Record header that names the service which wrote the event. Goes with known_origins."""
    known_origins: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Values of origin_header that may write here. An unpaired event of another one, or of none, is foreign."""

    @model_validator(mode="after")
    def _origins_complete(self) -> Self:
        if bool(self.origin_header) != bool(self.known_origins):
            raise ValueError("expected origin_header and known_origins together, or neither")
        return self


class InputFields(ContractPart):
    """The fields of an input event, where they differ from the output's (`event`)."""

    format: EventFormat | None = None
    """How an input's value is written."""
    match_key: KeyField | None = None
    """Pairs with the output's match_key."""
    transaction_key: KeyField | None = None
    """Identifies the business transaction."""
    leg: LegField | None = None
    """Which leg the input becomes; asked only where the contract has several."""
    amount_minor: AmountField | None = None
    """Money, in the unit of ledger.amount_unit. Compared."""
    currency: CurrencyField | None = None
    """ISO 4217 code, or {constant: EUR} where all inputs are in one. Compared."""
