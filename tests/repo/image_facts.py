"""What the container files are held against: the locked versions, and the variables that the code reads."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE_FOLDERS = ("tallystick", "spark_apps", "plugins", "expectations", "dags")


def locked_version(package: str) -> str:
    found = re.search(rf"^{package}==(\S+)", (ROOT / "requirements" / "runtime.lock").read_text(), flags=re.MULTILINE)
    assert found
    return found.group(1)


def variables_in(*folders: str) -> set[str]:
    """Every TALLYSTICK_ name that the code in these folders spells out in full."""
    sources = [file.read_text() for folder in folders for file in (ROOT / folder).rglob("*.py")]
    quoted = re.findall(r"[\"'](TALLYSTICK_[A-Z_]*[A-Z])[\"']", "\n".join(sources))
    return set(quoted)
