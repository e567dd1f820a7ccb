"""The contract's section on alerts: where they go, and how loudly."""

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from tallystick.contract.field_types import ContractPart, CurrencyCode, MinorUnits, Name, SomeSeconds
from tallystick.model.finding_names import BreakClass


class Severity(StrEnum):
    """The severity of an alert; the words of PagerDuty's Events API v2."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class AlertSinkSection(ContractPart):
    """The place to which an alert is delivered. Addresses and secrets stand in the connection only."""

    kind: Literal["webhook", "file", "pagerduty", "alertmanager", "slack", "email", "apprise"]
    """webhook: HTTP POST of JSON, signed where the connection has a secret. file: one JSON line appended. apprise:
    whatever that library can reach."""
    connection: Name | None = None
    """Every kind but file: id of the Airflow connection that holds the address."""
    path: str | None = None
    """file only: the file, relative to the artifacts folder."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind != "file" and not (self.connection and self.path is None):
            raise ValueError(f"expected a connection and no path for {_article(self.kind)} sink")
        if self.kind == "file" and not (self.path and self.connection is None):
            raise ValueError("expected a path and no connection for a file sink")
        return self

    @field_validator("path")
    @classmethod
    def _inside_artifacts(cls, path: str | None) -> str | None:
        if path is not None and (PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts):
            raise ValueError("expected a path inside the artifacts folder, such as 'alerts/billing.jsonl'")
        return path


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'ae' else 'a'} {kind}"


class AlertRules(ContractPart):
    """The receivers of alerts about a break, and their severity."""

    sinks: tuple[AlertSinkSection, ...] = Field(default=(), max_length=8)
    """Every sink gets every alert."""
    critical_at_minor: dict[CurrencyCode, MinorUnits] = Field(default_factory=dict)
    """Money at stake, per currency in minor units, from which a break is critical; below it is an error."""
    severity_by_class: dict[BreakClass, Severity] = Field(default_factory=dict)
    """Overrides for single classes."""
    escalate_after_seconds: SomeSeconds | None = None
    """How long the oldest break of a class may stand until its alert gets the next severity and pages once more, unless
    it is acknowledged. Absent: it does not."""
    backfilled: Literal["lower", "same"] = "lower"
    """lower: what is found in a window that was caught up late pages one severity lower, though not below warning."""
    match_keys: Literal["hidden", "shown"] = "hidden"
    """shown: alerts name up to five events by match key too, beside the break's id. Only where keys are nobody's
    personal data."""
