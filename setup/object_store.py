"""Builds a real server of S3's interface into .tools/, out of its Go module: what `make object-store` stores in.

Exit 0: it is there. 1: it could not be built, and the words of Go stand above.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from debian_file import TOOLS

MODULE, VERSION = "github.com/versity/versitygw", "v1.8.0"
SERVER = TOOLS / "versitygw"


def main() -> int:
    """Nothing to do where this version was built before. Go's checksum database says that it is what was released."""
    stamp = TOOLS / "versitygw.version"
    if SERVER.exists() and stamp.is_file() and stamp.read_text() == VERSION:
        return 0
    go = shutil.which("go")
    if not go:
        print(f"setup: expected go, which builds {MODULE}", file=sys.stderr)
        return 1
    TOOLS.mkdir(exist_ok=True)
    environment = {**os.environ, "GOBIN": str(TOOLS)}
    package = f"{MODULE}/cmd/versitygw@{VERSION}"
    if subprocess.run([go, "install", package], cwd=TOOLS, env=environment, check=False).returncode:
        return 1
    stamp.write_text(VERSION)
    return 0


if __name__ == "__main__":
    sys.exit(main())
