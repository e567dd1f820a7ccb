"""The rights of the files of a run: for their owner alone, or a group with it; never for everybody, whatever the umask.

What lies below TALLYSTICK_ARTIFACTS_DIR names keys and money. A file is shared with a group where that may write into
its folder, so that who writes into a folder that another process made need not be told.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tallystick.model.errors import TallystickError

SHARED_VARIABLE, WITH_GROUP = "TALLYSTICK_ARTIFACTS_SHARED_WITH", "group"
_OWNERS_FOLDER, _GROUPS_FOLDER = 0o700, 0o770
_OWNERS_FILE, _GROUPS_FILE = 0o600, 0o660
_KEPT_BITS = stat.S_ISGID
"""By it an operator lets a folder's group be that of all below."""


class SharingRefused(TallystickError):
    """The environment says something else than that a group shares the files."""


class FolderRefused(TallystickError):
    """A folder is none, or the system refuses to make it, or to write there."""

    retryable = True


def usable_folder(folder: Path, *, setting: str) -> Path:
    """Return a folder that is there, or that nothing stands in the way of. Raises FolderRefused by its setting."""
    standing = next((one for one in (folder, *folder.parents) if os.path.lexists(one)), folder)
    if os.path.lexists(standing) and not os.path.isdir(standing):
        raise FolderRefused(
            f"{setting}: got {folder}, but {standing} is no folder; expected one, or a path to make one"
        )
    return folder


@contextmanager
def system_refusals(path: Path) -> Iterator[None]:
    """Say in one sentence what the system refuses about a folder or its files. Raises FolderRefused."""
    try:
        yield
    except OSError as error:
        raise FolderRefused(
            f"{error.filename or path}: {error.strerror}; expected a folder that this user can make and write in: name "
            "another one, or change that one"
        ) from None


def private_folder(folder: Path, *, below: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Make a folder, and each one above it that is missing. Those that stand are narrowed from `below` on, itself not.

    Raises SharingRefused, FolderRefused.
    """
    mode = _folder_mode(environment)
    with system_refusals(folder):
        for one in (*reversed(folder.parents), folder):
            made = not one.exists()
            if made:
                one.mkdir(exist_ok=True)
            if made or (below is not None and one != below and one.is_relative_to(below)):
                _set_mode(one, mode)
    return folder


def private_file(path: Path) -> Path:
    """Make a file, or narrow the one that stands. Raises FolderRefused."""
    with system_refusals(path):
        path.touch(mode=_OWNERS_FILE)
        _set_mode(path, _GROUPS_FILE if _is_shared(path.parent) else _OWNERS_FILE)
    return path


def narrow(folder: Path) -> None:
    """All below a folder that somebody else's code wrote, as private as the folder."""
    is_shared = _is_shared(folder)
    for parent, folders, files in os.walk(folder):
        for name in folders:
            _set_mode(Path(parent, name), _GROUPS_FOLDER if is_shared else _OWNERS_FOLDER)
        for name in files:
            _set_mode(Path(parent, name), _GROUPS_FILE if is_shared else _OWNERS_FILE)


def _is_shared(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IWGRP)


def _folder_mode(environment: Mapping[str, str]) -> int:
    shared_with = environment.get(SHARED_VARIABLE, "")
    if shared_with not in ("", WITH_GROUP):
        raise SharingRefused(f"{SHARED_VARIABLE}: got {shared_with!r}; expected {WITH_GROUP!r}, or nothing")
    return _GROUPS_FOLDER if shared_with else _OWNERS_FOLDER


def _set_mode(path: Path, mode: int) -> None:
    with suppress(PermissionError, FileNotFoundError):  # another user's, who alone may; or gone meanwhile
        now = stat.S_IMODE(path.stat().st_mode)
        if now != mode | now & _KEPT_BITS:
            path.chmod(mode | now & _KEPT_BITS)
