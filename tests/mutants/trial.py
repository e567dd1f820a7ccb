"""Tries mutants in a process that has imported all and collected the tests: a fork for each.

A change inside of a function is put into the living function, so that the fork runs the tests at once. Any other
change, and one of a function that was called while tests were collected, needs our modules to be imported anew.

The tests of a mutant are those that called its function when all was whole: first those of its own file, then the
quickest. A mutant with which a test needs more than FACTOR times its processor time, or that waits for BLOCKED_SECONDS,
is a timeout; how busy the machine is does not count.
"""

import contextlib
import gc
import importlib.machinery
import importlib.util
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.tmpdir import tmppath_result_key

from .mutant import Mutant

ROOT = Path(__file__).parents[2]
FACTOR, SECONDS_MIN, BLOCKED_SECONDS = 4, 3, 10
_KILLED, _SURVIVED, _IMPORT_ANEW = 10, 11, 12

Called = frozenset[tuple[str, str]]
"""Files and qualified names of outermost functions."""


class Outcome(StrEnum):
    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"
    UNREACHED = "unreached"
    """No test calls its function."""


ALIVE = (Outcome.SURVIVED, Outcome.UNREACHED)


@dataclass
class Suite:
    """Collected tests, which functions each called, and how long it took."""

    items: list[pytest.Item]
    watched: frozenset[str]
    at_import: Called = frozenset()
    called: dict[str, Called] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def run_whole(self) -> None:
        """Without any mutant."""
        for item in self.items:
            began = time.process_time()
            with calls_of(self.watched) as called:
                if not passes(item):
                    self.failed.append(item.nodeid)
                    with contextlib.suppress(BaseException):  # else each test after it fails too
                        item.session._setupstate.teardown_exact(None)
            self.seconds[item.nodeid] = time.process_time() - began
            self.called[item.nodeid] = frozenset(called)

    def of(self, mutant: Mutant) -> list[pytest.Item]:
        """The tests that may notice a mutant: of what runs at import all, since evidence is built there too."""
        own, name = test_file_of(mutant.file), (mutant.file, mutant.function)
        at_import = not mutant.function or name in self.at_import
        chosen = [item for item in self.items if at_import or name in self.called[item.nodeid]]
        return sorted(chosen, key=lambda item: (file_of(item) != own, self.seconds[item.nodeid], item.nodeid))


def test_file_of(file: str) -> str:
    path = Path("tests", "unit", *Path(file).parts[1:])
    return str(path.with_name(f"test_{path.name}"))


def file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


def passes(item: Any) -> bool:
    """Run a test without a report: to tell a failure takes longer than to find it."""
    item._initrequest()
    item.stash[tmppath_result_key] = {}
    stack = item.session._setupstate
    try:
        stack.setup(item)
        item.runtest()
        stack.teardown_exact(None)
    except BaseException:  # a mutant may raise anything
        return False
    return True


@contextlib.contextmanager
def calls_of(watched: frozenset[str]) -> Iterator[set[tuple[str, str]]]:
    """Note the outermost functions of the watched files that are called meanwhile."""
    called: set[tuple[str, str]] = set()
    names = {str(ROOT / file): file for file in watched}
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in seen:
            seen.add(code)
            if code.co_filename in names:
                called.add((names[code.co_filename], code.co_qualname.split(".<locals>")[0]))

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


def try_mutant(suite: Suite, mutant: Mutant) -> Outcome:
    """Try it in the living function first, which is quicker; and what was called at import, once more at import."""
    items = suite.of(mutant)
    if not items:
        return Outcome.UNREACHED
    seconds = FACTOR * sum(suite.seconds[item.nodeid] for item in items) + SECONDS_MIN
    at_import = (mutant.file, mutant.function) in suite.at_import
    if mutant.function:
        ended = in_a_fork(lambda: _in_place(mutant, items, suite.seconds), seconds=seconds)
        if ended != _IMPORT_ANEW and not (ended == _SURVIVED and at_import):
            return _outcome(ended)
    files = list(dict.fromkeys(map(file_of, items)))
    return _outcome(in_a_fork(lambda: _imported_anew(mutant, files), seconds=seconds + 30))


def _outcome(ended: int) -> Outcome:
    """Whatever ends a fork but its own word that all tests passed, a test would have noticed."""
    if ended in (-signal.SIGXCPU, -signal.SIGPROF, -signal.SIGALRM):
        return Outcome.TIMEOUT
    return Outcome.SURVIVED if ended == _SURVIVED else Outcome.KILLED


def in_a_fork(attempt: Callable[[], int], *, seconds: float) -> int:
    """Return the exit code, or the signal that ended it as a negative number."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    pid = os.fork()
    if pid:
        return _watch(pid)
    code = _KILLED
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        _go_silent()
        limit = math.ceil(seconds)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # at the second the kernel sends SIGKILL
        code = attempt()
    finally:
        os._exit(code)


def _watch(pid: int) -> int:
    """Wait for a fork; end one that does nothing but wait."""
    asleep = 0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if signal.sigtimedwait([signal.SIGCHLD], 1) is None:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            asleep = asleep + 1 if state == "S" else 0
            if asleep == BLOCKED_SECONDS:
                os.kill(pid, signal.SIGALRM)


def _go_silent() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def _in_place(mutant: Mutant, items: Sequence[pytest.Item], seconds: Mapping[str, float]) -> int:
    function = _living(sys.modules[_module_of(mutant.file)], mutant.function.split("."))
    code = function and _code_like(function.__code__, compile(mutant.source, str(ROOT / mutant.file), "exec"))
    if function is None or code is None or len(code.co_freevars) != len(function.__code__.co_freevars):
        return _IMPORT_ANEW
    function.__code__ = code
    _forget_answers()
    return _SURVIVED if all(_passes_in_time(item, seconds[item.nodeid]) for item in items) else _KILLED


def _passes_in_time(item: pytest.Item, seconds: float) -> bool:
    """The kernel ends the fork where a test goes on for ever: the whole suite's time would be long to wait for."""
    signal.setitimer(signal.ITIMER_PROF, FACTOR * seconds + SECONDS_MIN)
    return passes(item)


def _module_of(file: str) -> str:
    return ".".join(Path(file).with_suffix("").parts)


def _living(module: ModuleType, path: Sequence[str]) -> FunctionType | None:
    """The function of that qualified name, below what wraps it; none whose answers are kept in objects."""
    found: Any = module
    for name in path:
        found = vars(found).get(name)
        if found is None:
            return None
    for inside in ("__func__", "fget", "__wrapped__"):
        found = getattr(found, inside, None) or found
    return found if isinstance(found, FunctionType) else None


def _code_like(wanted: CodeType, among: CodeType) -> CodeType | None:
    for one in among.co_consts:
        if isinstance(one, CodeType):
            if (one.co_qualname, one.co_firstlineno) == (wanted.co_qualname, wanted.co_firstlineno):
                return one
            if (inside := _code_like(wanted, one)) is not None:
                return inside
    return None


def _forget_answers() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("tallystick"):
            for value in list(vars(module).values()):
                if callable(forget := getattr(value, "cache_clear", None)):
                    forget()


def _imported_anew(mutant: Mutant, files: Sequence[str]) -> int:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(f"{ROOT}/") and not file.startswith(f"{ROOT}/.venv/") and name != "__main__":
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    return _SURVIVED if pytest.main([*OPTIONS, "-x", *files]) == pytest.ExitCode.OK else _KILLED


OPTIONS = (
    "-q",
    "-s",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "-p",
    "tests.mutants.quiet_hypothesis",
)


class _Finder:
    """Finds one module: the mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.name = mutant, _module_of(mutant.file)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        file = str(ROOT / self.mutant.file)
        loader = _Loader(name, file)
        loader.source = self.mutant.source
        return importlib.util.spec_from_file_location(name, file, loader=loader)


class _Loader(importlib.machinery.SourceFileLoader):
    source: str

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


def freeze() -> None:
    """What is there stays: a fork must not copy it to collect garbage."""
    gc.collect()
    gc.freeze()
