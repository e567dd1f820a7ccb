"""The contract's section on events: the payload's keys, of an output and of an input."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from tallystick.contract.field_path import refuse_fields_inside_fields
from tallystick.contract.field_types import AmountUnit, ContractPart, PayloadField


class PayloadKey(StrEnum):
    """A key of the payload that an event is identified by."""

    MATCH_KEY = "match_key"
    TRANSACTION_KEY = "transaction_key"
    ORDERING_KEY = "ordering_key"


class EventFields(ContractPart):
    """The fields of the JSON payload, each a key or a path of keys."""

    match_key: PayloadField = "event_id"
    """Identifies the event; pairs with the ledger's match_key. The compared fields are no part of it."""
    transaction_key: PayloadField = "payment_id"
    """Identifies the business transaction whose legs belong together."""
    leg: PayloadField = "leg"
    """Which expected record of the business transaction this is."""
    amount_minor: PayloadField = "amount_minor"
    """Money, in the unit of event.amount_unit. Compared."""
    currency: PayloadField = "currency"
    """ISO 4217 code. Compared."""
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
    def _no_field_inside_another(self) -> Self:
        refuse_fields_inside_fields(self.paths)
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of all fields that the contract names, some of them more than once."""
        texts = (self.match_key, self.transaction_key, self.leg, self.amount_minor, self.currency)
        return (
            *texts,
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

    match_key: PayloadField | None = None
    """Pairs with the output's match_key."""
    transaction_key: PayloadField | None = None
    """Identifies the business transaction."""
    leg: PayloadField | None = None
    """Which leg the input becomes; asked only where the contract has several."""
    amount_minor: PayloadField | None = None
    """Money, in the unit of ledger.amount_unit. Compared."""
    currency: PayloadField | None = None
    """ISO 4217 code. Compared."""
