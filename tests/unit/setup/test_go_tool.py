"""A program is built from the module that is pinned, and from no other; `go` is a fake here."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import go_tool
import pytest
from go_tool import COMPOSE, HELM, ToolNotBuilt, build

FAKE_GO = f"""#!{sys.executable}
import json, pathlib, sys
arguments = sys.argv[1:]
if arguments[:2] == ["mod", "download"]:
    print(json.dumps({{"Sum": "h1:pinned=", "Dir": str(pathlib.Path(__file__).parent)}}))
elif arguments[0] == "build":
    pathlib.Path(arguments[arguments.index("-o") + 1]).write_text(" ".join(arguments))
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fake = tmp_path / "bin" / "go"
    fake.parent.mkdir()
    fake.write_text(FAKE_GO)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent))
    monkeypatch.setattr(go_tool, "TOOLS", tmp_path / "tools")
    return tmp_path / "tools"


def test_the_pinned_module_is_built_once(tools: Path) -> None:
    pinned = replace(COMPOSE, content="h1:pinned=")
    assert build(pinned) == tools / f"compose-{pinned.version}"
    assert json.dumps(pinned.program.read_text()).count("./cmd") == 1
    pinned.program.write_text("kept")
    assert build(pinned).read_text() == "kept"


def test_a_module_of_other_content_is_not_built(tools: Path) -> None:
    with pytest.raises(ToolNotBuilt, match="expected the content h1:other=, got h1:pinned="):
        build(replace(HELM, content="h1:other="))
    assert not tools.exists()


def test_without_go_it_says_what_is_missing(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolNotBuilt, match=r"expected go \(1.24 or newer\)"):
        build(HELM)
    assert not tools.exists()
