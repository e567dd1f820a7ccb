"""Puts the operators of `make mutants` into build/mutants/mutmut: a folder beside .venv, for that command alone.

Exit 0: they are there. 1: they could not be installed, and the installer's words stand above.
"""

from __future__ import annotations

import sys

from fuzzer import ROOT, install_beside

FOLDER = ROOT / "build" / "mutants" / "mutmut"
LOCK = ROOT / "requirements" / "mutants.lock"


if __name__ == "__main__":
    sys.exit(install_beside(FOLDER, LOCK, who="mutants"))
