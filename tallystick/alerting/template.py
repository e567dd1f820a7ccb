"""Writes an alert out by a template, one per kind of sink. The templates are data: they see words and call nothing.

A name that a template gets wrong is an error, not an empty place; so is JSON that is none.
"""

import json
from functools import cache
from typing import Any

from jinja2 import PackageLoader, StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_content import view_of

JSON_KINDS = ("pagerduty", "alertmanager", "slack")
LINE_KINDS = ("email", "apprise")


def render_json(kind: str, alert: Alert) -> dict[str, Any]:
    """Render an alert by a template of JSON_KINDS."""
    document: dict[str, Any] = json.loads(_template(f"{kind}.json.jinja2").render(view_of(alert)))
    return document


def render_lines(kind: str, alert: Alert) -> tuple[str, str]:
    """Render an alert by a template of LINE_KINDS: its first line, which is the subject, and the text below it."""
    subject, _, body = _template(f"{kind}.txt.jinja2").render(view_of(alert)).partition("\n")
    return subject.strip(), body.strip() + "\n"


def new_environment() -> ImmutableSandboxedEnvironment:
    """Return the environment in which templates are rendered."""
    environment = ImmutableSandboxedEnvironment(
        loader=PackageLoader("tallystick.alerting", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # nothing here is HTML: each template escapes for its own receiver
    )
    environment.filters |= {"cut_to": _cut_to, "slack": _slack}
    return environment


@cache
def _template(name: str) -> Template:
    return new_environment().get_template(name)


def _cut_to(text: str, characters_max: int) -> str:
    """A receiver refuses a longer text whole."""
    return text if len(text) <= characters_max else f"{text[: characters_max - 3]}..."


def _slack(text: str) -> str:
    """Slack's three control characters, so that no text mentions anyone or links anywhere by itself."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
