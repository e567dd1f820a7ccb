"""Names, cron expressions and moments: what is refused wherever a field is one, and the twins."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tallystick.contract.contract import Contract
from tests.unit.contract.documents import FieldCases, changed, refusal

CRON = "expected a cron expression of five fields, in UTC, such as '0 * * * *'"
MOMENT = "expected a time with its zone, such as 2026-01-31T00:00:00Z"

TEN_YEARS = 315_360_000
NAME = "expected a name in lower case letters, digits and _, beginning with a letter"


@pytest.mark.parametrize(
    ("schedule", "faults"),
    [
        ("0 25 * * *", "; 25 is no hour"),
        ("61 * 0 * mon-no", "; 61 is no minute; 0 is no day of the month; mon-no is no day of the week"),
        ("0 25 * *", ""),
        ("@hourly", ""),
    ],
)
def test_a_field_that_is_at_fault_is_named_where_there_are_five(tmp_path: Path, schedule: str, faults: str) -> None:
    assert (
        refusal(tmp_path, yaml.safe_dump(changed(schedule=schedule))) == f'schedule: got "{schedule}"; {CRON}{faults}'
    )


class TestFields(FieldCases):
    refused = (
        # names
        ({"contract": "Billing"}, f'contract: got "Billing"; {NAME}'),
        ({"contract": "a" * 64}, f'contract: got "{"a" * 64}"; {NAME}'),
        ({"legs": {"Pay": "billing"}}, f'legs.Pay: got "Pay"; {NAME}'),
        # time
        ({"schedule": "61 * * * *"}, f'schedule: got "61 * * * *"; {CRON}'),
        ({"schedule": "* * * *"}, f'schedule: got "* * * *"; {CRON}'),
        ({"schedule": "0 * * * * *"}, f'schedule: got "0 * * * * *"; {CRON}'),
        ({"schedule": "@hourly"}, f'schedule: got "@hourly"; {CRON}'),
        ({"schedule": "R * * * *"}, 'schedule: got "R * * * *"; expected the same firings whenever they are asked for'),
        ({"schedule": "0 r(1-5) * * *"}, 'schedule: got "0 r(1-5) * * *"; expected the same firings'),
        ({"schedule": "0 0 30 2 *"}, 'schedule: got "0 0 30 2 *"; expected a date that there is: this one never comes'),
        (
            {"schedule": "0 0 29 2 1#5"},
            'schedule: got "0 0 29 2 1#5"; expected a firing every few years: got 2016-02-29 and then 2044-02-29',
        ),
        (
            {"settle_timeout_seconds": TEN_YEARS + 1},
            "settle_timeout_seconds: got 315360001; expected 315,360,000 or less, which is ten years",
        ),
        ({"verdict_within_seconds": 10**14}, "verdict_within_seconds: got 100000000000000; expected 315,360,000 or"),
        (
            {"start_date": "0001-01-01T00:00:00+14:00"},
            'start_date: got "0001-01-01T00:00:00+14:00"; expected a time that also UTC has, from the years 1 to 9999',
        ),
        ({"start_date": "2026-01-01T00:00:00"}, f'start_date: got "2026-01-01T00:00:00"; {MOMENT}'),
        ({"start_date": datetime(2026, 1, 1).date()}, f'start_date: got "2026-01-01"; {MOMENT}'),  # noqa: DTZ001
        ({"start_date": 2026}, f"start_date: got 2026; {MOMENT}"),
        ({"start_date": "soon"}, f'start_date: got "soon"; {MOMENT}'),
    )

    read = (
        {"contract": "a" * 63},
        {"schedule": "*/15 0-6 * * mon"},
        {"schedule": "0 0 29 2 *"},
        {"schedule": "0 6 * mar thu"},
        {"settle_timeout_seconds": TEN_YEARS},
        {"start_date": "2026-01-01T00:00:00+02:00"},
        {"start_date": "0001-01-01T00:00:00-14:00"},
    )


@pytest.mark.parametrize(
    "changes", [{"schedule": "R * * * *"}, {"schedule": "0 0 30 2 *"}, {"verdict_within_seconds": 400_000_000_000}]
)
def test_what_was_stored_before_it_was_refused_is_read_so_that_a_better_one_may_follow(changes: dict[str, Any]) -> None:
    stored = Contract.model_validate(changed()).model_dump(mode="json") | changes
    assert isinstance(Contract.model_validate(stored), Contract)
