"""A report's page, parsed, and runs to make one of."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from tallystick.model.findings import Break, NoticeFound
from tallystick.model.stored_run import StoredRun

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Text per section, and every element, of a page whose tags must close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def with_breaks(run: StoredRun, *breaks: Break) -> StoredRun:
    return replace(run, result=replace(run.result, breaks=breaks))


def with_notices(run: StoredRun, *notices: NoticeFound) -> StoredRun:
    return replace(run, result=replace(run.result, notices=notices))
