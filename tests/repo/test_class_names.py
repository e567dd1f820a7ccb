"""A class name means one thing: no two classes of the product share one, and no two of the lab.

The lab imports nothing of the product and has its own readers of the same things, so the two may share names.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("tallystick", "spark_apps", "expectations", "plugins", "dags")
LAB = ("lab", "bench")


def find_shared(root: Path, folders: Iterable[str]) -> dict[str, list[str]]:
    """Return each public class that more than one module defines, with these modules."""
    modules = defaultdict(list)
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(root).as_posix())
    return {name: found for name, found in modules.items() if len(found) > 1}


@pytest.mark.parametrize("folders", [PRODUCT, LAB], ids=["the product", "the lab"])
def test_no_two_modules_define_a_class_of_one_name(folders: tuple[str, ...]) -> None:
    assert all((ROOT / folder).is_dir() for folder in folders)
    assert find_shared(ROOT, folders) == {}


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("class Row:\n    pass", "class Row:\n    pass", {"Row": ["a/one.py", "b/c/two.py"]}),
        ("class Row:\n    pass", "class OtherRow:\n    pass", {}),
        ("class _Row:\n    pass", "class _Row:\n    pass", {}),
        ("class Row:\n    pass", "from a.one import Row", {}),
        ("class Row:\n    pass", "class Table:\n    class Row:\n        pass", {}),
    ],
    ids=["the same", "other names", "private ones", "an import", "one inside another class"],
)
def test_a_name_that_two_modules_define_is_found(
    tmp_path: Path, first: str, second: str, found: dict[str, list[str]]
) -> None:
    for name, source in (("a/one.py", first), ("b/c/two.py", second)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(source)
    assert find_shared(tmp_path, ("a", "b")) == found
