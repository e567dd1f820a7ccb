"""The severities of a contract, and its rules for alerts field by field."""

from tallystick.contract.alerts import Severity
from tests.unit.contract.documents import FieldCases


def test_severities_stand_from_the_quietest_to_the_loudest() -> None:
    assert [str(severity) for severity in Severity] == ["info", "warning", "error", "critical"]


FILE_SINK = {"kind": "file", "path": "alerts.jsonl"}


class TestFields(FieldCases):
    refused = (
        ({"alert__sinks": [{**FILE_SINK, "zzz": 1}]}, "alert.sinks.0.zzz: unknown key; expected one of kind, connec"),
        ({"alert__sinks": FILE_SINK}, 'alert.sinks: got {"kind": "file", "path": "alerts.jsonl"}; expected a list'),
        ({"alert__sinks": [FILE_SINK] * 9}, "alert.sinks: got [{"),
        # alerts
        (
            {"alert__sinks": [{"kind": "mail"}]},
            "alert.sinks.0.kind: got \"mail\"; expected 'email'?",
        ),
        (
            {"alert__sinks": [{"kind": "webhook"}]},
            'alert.sinks.0: got {"kind": "webhook"}; expected a connection and no path for a webhook sink',
        ),
        (
            {"alert__sinks": [{"kind": "email", "connection": "mail", "path": "x"}]},
            'alert.sinks.0: got {"kind": "email", "connection": "mail", "path": "x"}; '
            "expected a connection and no path for an email sink",
        ),
        (
            {"alert__sinks": [{"kind": "file", "connection": "pager"}]},
            'alert.sinks.0: got {"kind": "file", "connection": "pager"}; '
            "expected a path and no connection for a file sink",
        ),
        (
            {"alert__sinks": [{"kind": "file", "path": "/etc/passwd"}]},
            'alert.sinks.0.path: got "/etc/passwd"; expected a path inside the artifacts folder',
        ),
        (
            {"alert__sinks": [{"kind": "file", "path": "../alerts"}]},
            'alert.sinks.0.path: got "../alerts"; expected a path inside the artifacts folder',
        ),
        (
            {"alert__severity_by_class": {"missing_in_legder": "error"}},
            "alert.severity_by_class.missing_in_legder: got \"missing_in_legder\"; expected 'missing_in_ledger'?",
        ),
        (
            {"alert__severity_by_class": {"missing_in_ledger": "loud"}},
            "alert.severity_by_class.missing_in_ledger: got \"loud\"; expected 'info', 'warning', 'error' or 'crit",
        ),
        # money
        ({"alert__critical_at_minor": {"EUR": 10.0}}, "alert.critical_at_minor.EUR: got 10.0; expected a whole number"),
        ({"alert__critical_at_minor": {"EUR": True}}, "alert.critical_at_minor.EUR: got true; expected a whole number"),
        ({"alert__critical_at_minor": {"EUR": -1}}, "alert.critical_at_minor.EUR: got -1; expected 0 or more"),
        (
            {"alert__critical_at_minor": {"ERU": 1}},
            "alert.critical_at_minor.ERU: got \"ERU\"; expected an ISO 4217 code, such as 'EUR'",
        ),
    )

    read = (
        {"alert__sinks": [FILE_SINK] * 8},
        {"alert__sinks": [{"kind": "webhook", "connection": "pager"}]},
        {"alert__severity_by_class": {"missing_in_ledger": "critical"}},
        {"alert__critical_at_minor": {"JPY": 0}},
    )
