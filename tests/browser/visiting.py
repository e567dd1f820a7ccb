"""How a person comes to the pages in a browser, and what is kept and asked of what they see."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page, StorageState

from lab.servers.airflow import AirflowStack
from lab.servers.process import REPOSITORY

SCREENS = REPOSITORY / "build" / "screens"
PATIENCE_MS = 120_000
"""Playwright waits for what it expects; so long only where the machine is busy."""

LogIn = Callable[..., Page]
"""user, viewer unless said; width in pixels, 1280; scheme, light or dark."""

_LOGGED_IN: dict[tuple[str, str], StorageState] = {}
"""What a browser keeps of a login, by Airflow's address and user: a login, and the page behind it, take seconds."""


@contextmanager
def visits(browser: Browser, airflow: AirflowStack) -> Iterator[LogIn]:
    """Open Airflow as a user who has logged in; fails when the browser has asked another host."""
    contexts: list[BrowserContext] = []
    asked: set[str] = set()

    def log_in(user: str = "viewer", *, width: int = 1280, scheme: str = "light") -> Page:
        known = (airflow.settings.base_url, user)
        context = browser.new_context(
            storage_state=_LOGGED_IN.get(known),
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            timezone_id="Europe/Berlin",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.on("request", lambda request: asked.add(request.url))
        page = context.new_page()
        if known in _LOGGED_IN:
            return page
        page.goto(airflow.settings.base_url)
        page.fill("input[name=username]", user)
        page.fill("input[name=password]", airflow.passwords[user])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: "/login" not in url)
        _LOGGED_IN[known] = context.storage_state()
        return page

    yield log_in
    for context in contexts:
        context.close()
    allowed = (airflow.settings.base_url, "data:", "blob:")
    assert [url for url in asked if not url.startswith(allowed)] == []


def shot(page: Page, name: str) -> None:
    """Keep a picture of the whole page in build/screens/."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


def inside(page: Page) -> FrameLocator:
    """The pages' own frame in Airflow's page."""
    return page.frame_locator("iframe")


def serious_faults(page: Page) -> list[tuple[str, str]]:
    """What axe-core finds serious or worse: the rule, and the first place that breaks it."""
    found = Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
