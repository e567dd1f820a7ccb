"""Tallystick's pages in Airflow's UI, before any HTTP: stored values in, HTML out. Reads its own files, nothing else.

A file per page says what stands where; its template how it is marked up. Style sheet and drawings are the report's,
with a sheet on top. Links are relative to `base`, the address below which the pages are mounted.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from tallystick.text.money import format_minor
from tallystick.text.plain import escape_untrusted, format_time, story_text

_HERE = Path(__file__).parent
ASSETS: Mapping[str, tuple[Path, str]] = {
    "report.css": (_HERE.parent / "report" / "report.css", "text/css"),
    "pages.css": (_HERE / "pages.css", "text/css"),
    "pages.js": (_HERE / "pages.js", "text/javascript"),
    "icon.svg": (_HERE / "icon.svg", "image/svg+xml"),
    "icon-dark.svg": (_HERE / "icon-dark.svg", "image/svg+xml"),
}
"""All that a page loads beside itself: file and media type, by name."""


def render_page(name: str, *, base: str, now_utc: datetime, **values: Any) -> str:
    """Write the page of a template. base: "" or a path without a slash at its end."""
    template = _environment().get_template(f"{name}.html.jinja2")
    return template.render(base=base, now_utc=now_utc, assets=assets_version(), **values)


@cache
def assets_version() -> str:
    """Changes when an asset does, so that browsers may keep one for good."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path, _ in ASSETS.values()))
    return digest.hexdigest()[:12]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("tallystick.pages", package_path=""),
                PackageLoader("tallystick.report", package_path=""),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": "{:,}".format,
        "untrusted": escape_untrusted,
        "story": story_text,
        "money": format_minor,
        "time": format_time,
    }
    return environment
