"""Builds Compose and Helm from their Go modules into .tools/, for the checks that read our files as their users do.

A module is named by its version and by the hash of its content that Go's checksum database has; what it needs in turn
is held by the go.sum inside it. The first build takes minutes, a second call nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / ".tools"


class ToolNotBuilt(Exception):
    """A program could not be had; the message says what was missing or wrong."""


@dataclass(frozen=True)
class GoTool:
    """A program of a Go module; package: its folder inside; content: the module's h1 hash."""

    name: str
    module: str
    version: str
    package: str
    content: str

    @property
    def program(self) -> Path:
        """Where it lies once it is built."""
        return TOOLS / f"{self.name}-{self.version}"


COMPOSE = GoTool(
    name="compose",
    module="github.com/docker/compose/v2",
    version="v2.40.3",
    package="./cmd",
    content="h1:XeYkQu1svDtyfZPv5nTwFryQ25ZJMkIlc4pz9HalMPI=",
)
HELM = GoTool(
    name="helm",
    module="helm.sh/helm/v3",
    version="v3.22.0",
    package="./cmd/helm",
    content="h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=",
)


def build(tool: GoTool) -> Path:
    """Return the program, built where it is not there yet. Raises ToolNotBuilt."""
    if tool.program.exists():
        return tool.program
    print(f"setup: {tool.name} {tool.version} is built from its Go module; that takes minutes", flush=True)
    folder = module_folder(tool)
    TOOLS.mkdir(exist_ok=True)
    unfinished = tool.program.with_suffix(".new")
    _go("build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(unfinished), tool.package, cwd=folder)
    unfinished.rename(tool.program)
    return tool.program


def module_folder(tool: GoTool) -> Path:
    """Return where Go keeps the module's content, fetched where it is missing. Raises ToolNotBuilt."""
    told = json.loads(_go("mod", "download", "-json", f"{tool.module}@{tool.version}", cwd=TOOLS.parent))
    if told["Sum"] != tool.content:
        raise ToolNotBuilt(f"{tool.module}@{tool.version}: expected the content {tool.content}, got {told['Sum']}")
    return Path(told["Dir"])


def needed_module(tool: GoTool, module: str) -> Path:
    """Return the content of a module that the program is built with. Raises ToolNotBuilt."""
    folder = module_folder(tool)
    _go("mod", "download", module, cwd=folder)
    return Path(_go("list", "-m", "-f", "{{.Dir}}", module, cwd=folder).strip())


def _go(*arguments: str, cwd: Path) -> str:
    """Run go, which says itself what it fetches; returns its output. Raises ToolNotBuilt."""
    if not shutil.which("go"):
        raise ToolNotBuilt("expected go (1.24 or newer) on the PATH: Compose and Helm are built from source here")
    given = {**os.environ, "GOWORK": "off", "GOFLAGS": ""}
    done = subprocess.run(["go", *arguments], cwd=cwd, env=given, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ToolNotBuilt(f"`go {' '.join(arguments)}` ended with {done.returncode}; see above")
    return done.stdout
