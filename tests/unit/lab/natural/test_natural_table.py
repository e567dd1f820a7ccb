"""The page of the proof tells of each fault that old Kafkas make, under the classes that it has to be found as."""

import random

import pytest

from lab.natural.main import WORLDS
from lab.natural.natural_fault import NaturalFault, payment_of_one_size
from lab.servers.process import REPOSITORY
from lab.services.event import Leg

FAULTS = [fault for world in WORLDS for fault in world.faults]
PAGE = (REPOSITORY / "docs" / "proof.md").read_text()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_has_a_row_that_names_its_issue_and_what_it_was_made_with(fault: NaturalFault) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| A") and fault.issue in line]
    versions = [word.strip(",") for word in fault.made_with.split() if word[0].isdigit()]
    assert versions
    assert [version for version in versions if version not in row] == []


def test_no_row_is_left_of_a_fault_that_is_not_made() -> None:
    section = PAGE.partition("`make natural`\n")[2].partition("\n## ")[0]
    assert len([line for line in section.splitlines() if line.startswith("| A")]) == len(FAULTS)


def test_all_events_of_a_book_have_one_size() -> None:
    """KAFKA-19012 shows only where the batch that takes the place of another is as long as that one."""
    dice = random.Random(1)
    sizes = {
        len(payment_of_one_size(dice).event(leg).to_value()) for _ in range(50) for leg in (Leg.PAYMENT, Leg.INVOICE)
    }
    assert len(sizes) == 1
