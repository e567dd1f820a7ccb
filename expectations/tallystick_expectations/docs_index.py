"""The first page of one contract's Data Docs: a line for each run, with a link to the page of each suite.

By the names of the files alone, so it takes no longer for what earlier runs found. Great Expectations' own index reads
every result again for each run.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from jinja2 import Environment

_PAGE = Environment(autoescape=True).from_string(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Data Docs</title>
<h1>Data Docs</h1>
<table>
{% for run, suites in runs %}<tr><td>{{ run }}</td>
{% for suite, address in suites %}<td><a href="{{ address }}">{{ suite }}</a></td>
{% endfor %}</tr>
{% endfor %}</table>
</html>
"""
)


_OF_A_RUN = "validations/*/*/*/*.html"


def write_index(pages: Path, *, also: Iterable[str] = ()) -> None:
    """Write `index.html` into the folder of the pages, the newest run first. also: pages that lie elsewhere."""
    runs: dict[str, dict[str, str]] = defaultdict(dict)
    here = (str(path.relative_to(pages)) for path in pages.glob(_OF_A_RUN))
    for name in sorted({*here, *(name for name in also if PurePosixPath(name).match(_OF_A_RUN))}):
        _, suite, run, *_ = PurePosixPath(name).parts
        runs[run][suite] = quote(name)
    newest_first = sorted(runs, key=_number, reverse=True)
    text = _PAGE.render(runs=[(run, sorted(runs[run].items())) for run in newest_first])
    unfinished = pages / "index.html.new"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(pages / "index.html")


def _number(run: str) -> int:
    """The cut's number in `cut 7`."""
    return int(run.rpartition(" ")[2])
