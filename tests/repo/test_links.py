"""Every link and every path of a committed page leads to a file or a heading of it, and the site has every page."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from docs_site import collect_pages

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FOLDERS = "adr|bench|dags|docs|expectations|lab|plugins|requirements|setup|spark_apps|tallystick|tests"
NAMED_PATH = re.compile(rf"`((?:{FOLDERS})/[a-z0-9_./*-]*)`")


def pages() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def anchors(page: Path) -> set[str]:
    """Return the anchors that a site makes of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere; links to other hosts are not followed."""
    text = CODE.sub("", page.read_text())
    return [link for link in LINK.findall(text) if "://" not in link and not leads_somewhere(page, link)]


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))


def gone_paths(text: str) -> list[str]:
    """Return the paths between backticks that are not in the repository; a name in capitals is a placeholder."""
    return [path for path in NAMED_PATH.findall(text) if not any(ROOT.glob(path.rstrip("/")))]


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    files = pages()
    assert len(files) > 100
    found = {str(page.relative_to(ROOT)): broken for page in files if (broken := broken_links(page))}
    assert found == {}


@pytest.mark.parametrize("link", ["gone.md", "#gone", "there.md#gone", "../gone/", "picture.png"])
def test_a_broken_link_is_found(tmp_path: Path, link: str) -> None:
    (tmp_path / "there.md").write_text("# There\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\nSee [it]({link}).\n")
    assert broken_links(page) == [link]


@pytest.mark.parametrize(
    "text",
    [
        "[it](there.md#1-a-heading-of-it)",
        "[it](#page)",
        "[it](https://example.org/gone.md)",
        "`[it](gone.md)`",
        "```\n[it](gone.md)\n```",
    ],
)
def test_a_link_that_leads_somewhere_is_not(tmp_path: Path, text: str) -> None:
    (tmp_path / "there.md").write_text("# There\n## 1. A heading, of it\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n{text}\n")
    assert broken_links(page) == []


def test_every_path_that_a_page_names_is_there() -> None:
    found = {str(page.relative_to(ROOT)): gone for page in pages() if (gone := gone_paths(page.read_text()))}
    assert found == {}


def test_a_path_that_is_gone_is_found_and_a_placeholder_is_not() -> None:
    assert gone_paths("open `tallystick/gone.py`") == ["tallystick/gone.py"]
    assert gone_paths("`tallystick/model/cut.py`, `docs/runbooks/`, `requirements/*.in`") == []
    assert gone_paths("`docs/runbooks/CLASS.md`") == []


def test_every_page_of_docs_is_in_the_navigation_of_the_site() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = re.findall(r"[\w/.-]+\.md", str(site["nav"]))
    assert sorted(named) == sorted(set(named))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} - set(named) == set()


def test_every_runbook_and_every_decision_is_on_its_index() -> None:
    runbooks = set(LINK.findall((ROOT / "docs" / "runbooks.md").read_text()))
    assert {f"runbooks/{page.name}" for page in (ROOT / "docs" / "runbooks").iterdir()} - runbooks == set()
    decisions = set(LINK.findall((ROOT / "adr" / "README.md").read_text()))
    assert {page.name for page in (ROOT / "adr").glob("0*.md")} == decisions


def test_the_site_is_made_of_all_pages_in_the_repositorys_layout(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("from an earlier build")
    collect_pages(ROOT, tmp_path)
    collected = {file.relative_to(tmp_path) for file in tmp_path.rglob("*.md")}
    assert {page.relative_to(ROOT) for page in pages()} == collected
