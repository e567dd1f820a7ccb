"""Names, cron expressions and moments: what is refused wherever a field is one, and the twins."""

from datetime import datetime
from pathlib import Path

import pytest
import yaml

from tests.unit.contract.documents import FieldCases, changed, refusal

CRON = "expected a cron expression of five fields, in UTC, such as '0 * * * *'"
MOMENT = "expected a time with its zone, such as 2026-01-31T00:00:00Z"

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
        ({"start_date": "2026-01-01T00:00:00"}, f'start_date: got "2026-01-01T00:00:00"; {MOMENT}'),
        ({"start_date": datetime(2026, 1, 1).date()}, f'start_date: got "2026-01-01"; {MOMENT}'),  # noqa: DTZ001
        ({"start_date": 2026}, f"start_date: got 2026; {MOMENT}"),
        ({"start_date": "soon"}, f'start_date: got "soon"; {MOMENT}'),
    )

    read = (
        {"contract": "a" * 63},
        {"schedule": "*/15 0-6 * * mon"},
        {"start_date": "2026-01-01T00:00:00+02:00"},
    )
