"""A step is repeated exactly when its inputs changed or it did not finish."""

from pathlib import Path

import bootstrap
import pytest
from bootstrap import Step, StepFailed, fingerprint, make_all


def step(tmp_path: Path, made: list[str], *, key: str = "k1", fails: bool = False) -> Step:
    def make() -> None:
        made.append(key)
        if fails:
            raise StepFailed("no network")

    return Step("a step", tmp_path / "stamps" / "step", key, make)


def test_a_finished_step_is_not_repeated(tmp_path: Path) -> None:
    made: list[str] = []
    make_all([step(tmp_path, made)])
    make_all([step(tmp_path, made)])
    assert made == ["k1"]


def test_a_step_whose_inputs_changed_is_repeated(tmp_path: Path) -> None:
    made: list[str] = []
    make_all([step(tmp_path, made)])
    make_all([step(tmp_path, made, key="k2")])
    assert made == ["k1", "k2"]


def test_a_failed_step_leaves_no_stamp_not_even_an_older_one(tmp_path: Path) -> None:
    made: list[str] = []
    make_all([step(tmp_path, made)])
    with pytest.raises(StepFailed):
        make_all([step(tmp_path, made, key="k2", fails=True)])
    assert not step(tmp_path, made).is_done


def test_a_fingerprint_changes_with_a_file_and_with_order(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    lock.write_text("one")
    before = fingerprint("3.11.7", lock)
    assert before == fingerprint("3.11.7", lock)
    lock.write_text("two")
    assert len({before, fingerprint("3.11.7", lock), fingerprint(lock, "3.11.7"), fingerprint("3.11", ".7", lock)}) == 4


def test_a_failed_command_is_named_without_the_machine_path() -> None:
    with pytest.raises(StepFailed, match=r"ended with 3") as failed:
        bootstrap.run("sh", "-c", f"exit 3 # {bootstrap.ROOT}/requirements")
    assert str(bootstrap.ROOT) not in str(failed.value)
