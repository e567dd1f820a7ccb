"""A library of an extra that is missing is one sentence with the command that installs it."""

import pytest

from tallystick.host import extras
from tallystick.host.extras import EXTRA_OF, LibraryMissing, missing_extra, require


@pytest.fixture
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)


def test_a_library_that_is_installed_is_not_asked_for() -> None:
    for module in EXTRA_OF:
        require(module)


@pytest.mark.usefixtures("_nothing_installed")
def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(LibraryMissing, match=r"^pyspark: not installed, .* `pip install 'tallystick\[spark\]'`$"):
        require("pyspark")


def test_an_import_that_an_extra_cures_says_which() -> None:
    error = ModuleNotFoundError("No module named x", name="opentelemetry.exporter.prometheus")
    told = missing_extra(error)
    assert told is not None
    assert told.startswith("opentelemetry.exporter.prometheus: ")
    assert told.endswith("`pip install 'tallystick[otel]'`")


@pytest.mark.parametrize("name", [None, "tallystick.gone", "pydantic"])
def test_an_import_that_no_extra_cures_is_a_bug(name: str | None) -> None:
    assert missing_extra(ImportError("x", name=name)) is None
