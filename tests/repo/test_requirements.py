"""pyproject.toml says what the packages import, in ranges that the locks satisfy.

An import that is not declared works here, since the lab brings it along, and fails on an adopter's machine.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tallystick.host.extras import EXTRA_OF

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
SHIPPED = {  # package: its folder, and the extra without which nobody imports it
    "tallystick": ("tallystick", None),
    "tallystick_airflow": ("plugins/tallystick_airflow", "airflow"),
    "tallystick_spark": ("spark_apps/tallystick_spark", "spark"),
    "tallystick_expectations": ("expectations/tallystick_expectations", "gx"),
}
COMES_WITH = {"pydantic_core": "pydantic"}
"""A package whose version another one fixes: to name it too would be to fix it twice."""
ASKED_BY_ITS_OWNER = {"openlineage"}
"""Imported only when Airflow's OpenLineage provider asks a task for its lineage, so it is there."""


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def outside_imports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, top-level module) of each import that is neither Python's nor ours, also inside functions."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            imported = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            for module in {name.split(".")[0] for name in imported}:
                if module not in sys.stdlib_module_names and module not in SHIPPED:
                    yield str(file.relative_to(folder)), module


def undeclared(imports: Iterator[tuple[str, str]], extra: str | None) -> list[str]:
    """Name the imports that neither the core, nor the package's extra, nor the extra of EXTRA_OF declares."""
    owners = packages_distributions()
    found = []
    for file, module in imports:
        declared = PROJECT["dependencies"] + [
            line for name in {extra, EXTRA_OF.get(module)} - {None} for line in EXTRAS[str(name)]
        ]
        wanted = {canonicalize_name(name) for name in owners.get(COMES_WITH.get(module, module), ())}
        if module not in ASKED_BY_ITS_OWNER and not wanted & names(declared):
            found.append(f"{file}: {module}")
    return found


@pytest.mark.parametrize("package", SHIPPED)
def test_every_import_of_a_shipped_package_is_declared(package: str) -> None:
    folder, extra = SHIPPED[package]
    imports = list(outside_imports(ROOT / folder))
    assert imports
    assert undeclared(iter(imports), extra) == []


def test_an_import_that_is_not_declared_is_found_and_its_neighbours_are_not() -> None:
    imports = iter([("a.py", "pytest"), ("b.py", "pydantic"), ("c.py", "pyspark"), ("d.py", "fastapi")])
    assert undeclared(imports, None) == ["a.py: pytest", "d.py: fastapi"]


UNSHIPPED = ("bench", "lab", "setup", "tests")
"""What never leaves this checkout imports what the locks are made from, or an extra brings."""
OF_MAVEN = {"jars", "old_jars", "old_postgres", "registry"}
OF_THIS_CHECKOUT = {*UNSHIPPED, *(file.stem for file in (ROOT / "setup").glob("*.py"))}


def wanted_here() -> set[str]:
    """Name the packages of pyproject.toml and of every list in requirements/."""
    lists = [
        file.read_text().splitlines() for file in (ROOT / "requirements").glob("*.in") if file.stem not in OF_MAVEN
    ]
    lines = [line.partition("#")[0].strip() for lines in lists for line in lines]
    every = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    return names([*every, *(line for line in lines if line and not line.startswith("-r"))])


def unlisted(imports: Iterator[tuple[str, str]], listed: set[str]) -> list[str]:
    """Name the imports of a package that another one happens to bring. One that is not installed here has its list."""
    owners = packages_distributions()
    return [
        f"{file}: {module}"
        for file, module in imports
        if module not in OF_THIS_CHECKOUT
        and module in owners
        and not {canonicalize_name(name) for name in owners[module]} & listed
    ]


@pytest.mark.parametrize("folder", UNSHIPPED)
def test_every_import_of_what_stays_here_stands_in_a_list(folder: str) -> None:
    imports = list(outside_imports(ROOT / folder))
    assert imports
    assert unlisted(iter(imports), wanted_here()) == []


def test_a_package_that_another_one_happens_to_bring_is_found_and_its_neighbours_are_not() -> None:
    imports = iter([("a.py", "pytest"), ("b.py", "pluggy"), ("c.py", "adopt"), ("d.py", "markupsafe")])
    assert unlisted(imports, {"pytest", "markupsafe"}) == ["b.py: pluggy"]


def test_every_module_of_an_extra_is_brought_by_that_extra() -> None:
    owners = packages_distributions()
    assert {
        module: extra
        for module, extra in EXTRA_OF.items()
        if not {canonicalize_name(name) for name in owners[module]} & names(EXTRAS[extra])
    } == {}


def test_all_names_every_extra() -> None:
    (all_of_them,) = EXTRAS["all"]
    assert Requirement(all_of_them).extras == EXTRAS.keys() - {"all"}


def locked() -> dict[str, str]:
    lock = (ROOT / "requirements" / "runtime.lock").read_text()
    return dict(re.findall(r"^([a-z0-9_.-]+)==([^\s;]+)", lock, flags=re.MULTILINE))


def out_of_range(requirements: list[str], versions: dict[str, str]) -> list[str]:
    """Name the requirements whose package is not locked, or in another version than they allow."""
    wanted = [Requirement(line) for line in requirements]
    return [
        str(one)
        for one in wanted
        if canonicalize_name(one.name) != "tallystick"
        and not one.specifier.contains(versions.get(canonicalize_name(one.name), "0"), prereleases=True)
    ]


def test_what_setup_and_the_image_install_satisfies_every_range() -> None:
    every = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    assert out_of_range(every, locked()) == []


def test_a_lock_outside_of_a_range_is_noticed() -> None:
    ranges = ["a>=1,<2", "b>=1,<2", "c>=1"]
    assert out_of_range(ranges, {"a": "1.9", "b": "2.0"}) == ["b<2,>=1", "c>=1"]


def test_no_version_is_fixed_to_the_digit() -> None:
    """An exact version leaves no room beside what a company has."""
    every = [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    assert [line for line in every if "==" in line] == []
