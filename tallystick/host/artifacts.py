"""The place where a run's files lie: a folder, or a store of objects that pyarrow's file systems reach.

A folder stays a `Path`, with the rights of private_files.py. An address such as s3://bucket/prefix becomes an
`ObjectPlace`. Its store has no rename and no half a file: an object is there once all of it is. So a file is written
to this machine's disk first, and then sent as a whole. Decides how a place is named, reached, written and read; its
writers decide what lies there.

An account comes from the environment, as each store's own clients read it, or from a connection; an address never has
one.
"""

import json
import mimetypes
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, mkstemp
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tallystick.host.private_files import FolderRefused, private_file, private_folder, system_refusals, usable_folder
from tallystick.model.errors import TallystickError

if TYPE_CHECKING:
    import pyarrow.fs as pafs

PLACE_VARIABLE = "TALLYSTICK_ARTIFACTS_DIR"
CONNECTION_VARIABLE = "TALLYSTICK_ARTIFACTS_CONN_ID"
_DEFAULT = "build/artifacts"
_SCHEMES = ("s3", "gs", "abfs", "abfss")
_AT_ONCE = 8
"""Objects that are sent or fetched side by side: each waits for the network most of the time."""


class ArtifactsRefused(TallystickError):
    """The setting names no place that is known, or options that its store does not have."""


class ArtifactMissing(TallystickError):
    """A file is not in its place: nobody wrote it yet, somebody deleted it, or it lies on another machine's disk."""


class ArtifactsUnreachable(TallystickError):
    """The store of objects does not answer, or refuses. What was stored before is untouched."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """A bucket or container, down to the prefix of all artifacts. options: keywords of its pyarrow file system."""

    address: str
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class ObjectPlace:
    """A file or a folder in a store. Asks nothing until it is read or written, and may go to another process."""

    store: ObjectStore
    below: PurePosixPath = field(default_factory=PurePosixPath)

    def __truediv__(self, name: str) -> "ObjectPlace":
        """Return the place below this one. Raises ValueError for a name that leads out of it."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("expected a name below the place")
        return replace(self, below=self.below / path)

    def __str__(self) -> str:
        return f"{self.store.address}/{self.below}"

    @property
    def name(self) -> str:
        return self.below.name


Place = Path | ObjectPlace


def artifacts_place(environment: Mapping[str, str] = os.environ) -> Place:
    """Return the place for reports, Data Docs, breaks and the key index. Raises ArtifactsRefused.

    A folder is said in full: processes of Spark's have other folders of their own.
    """
    text = environment.get(PLACE_VARIABLE) or _DEFAULT
    if not is_address(text):
        try:
            return usable_folder(Path(text).absolute(), setting=PLACE_VARIABLE)
        except FolderRefused as refused:
            raise ArtifactsRefused(str(refused)) from None
    address = urlsplit(text)
    if address.scheme not in _SCHEMES:
        raise ArtifactsRefused(
            f"{PLACE_VARIABLE}: expected a folder, or an address that begins with "
            f"{', '.join(f'{scheme}://' for scheme in _SCHEMES[:-1])} or {_SCHEMES[-1]}://"
        )
    host, is_azure = address.netloc, address.scheme.startswith("abfs")
    if not host or ":" in host or ("@" in host and not is_azure) or address.query or address.fragment:
        raise ArtifactsRefused(
            f"{PLACE_VARIABLE}: expected {address.scheme}://BUCKET/PREFIX without account and options; these belong "
            f"into the environment, or into the connection that {CONNECTION_VARIABLE} names"
        )
    options = _options(address.scheme, environment)
    if is_azure and "@" in host:
        host, _, account = host.partition("@")
        options.setdefault("account_name", account.partition(".")[0])
    return ObjectPlace(
        ObjectStore(
            address=f"{address.scheme}://{host}{address.path}".rstrip("/"), options=tuple(sorted(options.items()))
        )
    )


def is_address(text: str) -> bool:
    """Return whether this is an address of a store, and not a folder of this machine."""
    return "://" in text


@contextmanager
def whole_file(place: Place, *, below: Place | None = None) -> Iterator[Path]:
    """Give a file of this machine to write; once that is done it is in its place, whole or not at all.

    below: the folder of the artifacts, from which on folders are narrowed. Raises ArtifactsUnreachable, FolderRefused.
    """
    if isinstance(place, ObjectPlace):
        with TemporaryDirectory(prefix="tallystick-") as scratch:
            written = Path(scratch, place.name)
            yield written
            send(written, place)
        return
    private_folder(place.parent, below=below if isinstance(below, Path) else None)
    with system_refusals(place):
        # Also another thread's, or another machine's on the same disk, has a name of its own.
        handle, name = mkstemp(prefix=f"{place.stem}.", suffix=".unfinished", dir=place.parent)
        os.close(handle)
    unfinished = Path(name)
    try:
        yield private_file(unfinished)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


def read_bytes(place: Place) -> bytes:
    """Return what a file holds. Raises ArtifactMissing, ArtifactsUnreachable."""
    if isinstance(place, Path):
        try:
            return place.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise _missing(place) from None
    with _asked(place) as (system, key), system.open_input_stream(key, compression=None) as stream:
        return bytes(stream.read())


def is_there(place: Place) -> bool:
    """Return whether a file is in its place. Raises ArtifactsUnreachable."""
    if isinstance(place, Path):
        return place.is_file()
    with _asked(place) as (system, key):
        return bool(system.get_file_info(key).is_file)


def names_below(folder: Place) -> list[str]:
    """Return the path of every file below a folder, seen from there, in order. Raises ArtifactsUnreachable."""
    if isinstance(folder, Path):
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return sorted(
        str(PurePosixPath(info.path).relative_to(key)) for key, info in _listed(folder, recursive=True) if info.is_file
    )


def folders_in(folder: Place) -> list[str]:
    """Return the names of the folders in a folder; none where it is not there. Raises ArtifactsUnreachable."""
    if isinstance(folder, Path):
        return sorted(path.name for path in folder.glob("*") if path.is_dir())
    return sorted(info.base_name for _, info in _listed(folder, recursive=False) if not info.is_file)


def delete_file(place: Place) -> None:
    """Delete a file, if it is there. Raises ArtifactsUnreachable."""
    if isinstance(place, Path):
        place.unlink(missing_ok=True)
        return
    with suppress(ArtifactMissing), _asked(place) as (system, key):
        system.delete_file(key)


def delete_folder(folder: Place) -> None:
    """Delete a folder with all below it, if it is there. Raises ArtifactsUnreachable."""
    if isinstance(folder, Path):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        return
    with suppress(ArtifactMissing), _asked(folder) as (system, key):
        system.delete_dir(key)


def send(path: Path, place: ObjectPlace) -> None:
    """Send a file of this machine to its place in the store. Raises ArtifactsUnreachable.

    In a thread, which Ctrl-C does not reach: a stream that is dropped completes its object, which would be half a file.
    """
    with ThreadPoolExecutor(1) as aside:
        aside.submit(_send, path, place).result()


def _send(path: Path, place: ObjectPlace) -> None:
    import pyarrow as pa

    kind = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    with pa.memory_map(str(path)) as source, _asked(place) as (system, key):
        sink = system.open_output_stream(key, compression=None, metadata={"Content-Type": kind})
        sink.write(source.read_buffer())
        sink.close()


def send_folder(folder: Path, place: ObjectPlace, *, last: str) -> None:
    """Send all files below a folder of this machine, and last the one that leads to the others.

    Raises ArtifactsUnreachable.
    """
    with ThreadPoolExecutor(_AT_ONCE) as beside:
        others = (name for name in names_below(folder) if name != last)
        for _ in beside.map(lambda name: _send(folder / name, place / name), others):
            pass
    send(folder / last, place / last)


def fetch(place: ObjectPlace, names: Iterable[str], to: Path) -> None:
    """Copy files below a place into a folder of this machine, by the same names; those that are not there stay away.

    Raises ArtifactsUnreachable.
    """
    with ThreadPoolExecutor(_AT_ONCE) as beside:
        for _ in beside.map(lambda name: _fetch_one(place / name, to / name), names):
            pass


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Files of a place as one process reads them from its disk, again and again: where they lie, if that is a folder.

    folder: that folder, or one for copies of objects.
    """

    origin: Place
    folder: Path

    def fetch(self, names: Iterable[str]) -> None:
        """Let these files be in the folder, as far as they exist. Raises ArtifactsUnreachable."""
        if isinstance(self.origin, ObjectPlace):
            fetch(self.origin, names, self.folder)

    def fetch_folder(self, folder: Place) -> Path:
        """Let all files of a folder below the origin be there, and return where. Raises ArtifactsUnreachable."""
        if isinstance(folder, Path):
            return folder
        here = self.folder / folder.below
        fetch(folder, names_below(folder), here)
        return here

    def origin_of(self, path: Path) -> Place:
        """Return the place that a file of the folder was copied from."""
        return self.origin / str(path.relative_to(self.folder))


@contextmanager
def copies_of(origin: Place) -> Iterator[Copies]:
    """Give the files of a place for as long as a run reads them."""
    if isinstance(origin, Path):
        yield Copies(origin=origin, folder=origin)
        return
    with TemporaryDirectory(prefix="tallystick-") as scratch:
        yield Copies(origin=origin, folder=Path(scratch))


def _fetch_one(place: ObjectPlace, path: Path) -> None:
    if path.exists():
        return
    private_folder(path.parent)
    with (
        suppress(ArtifactMissing),
        _asked(place) as (system, key),
        system.open_input_stream(key, compression=None) as source,
    ):
        unfinished = private_file(path.with_name(f"{path.name}.unfinished"))
        with unfinished.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        unfinished.replace(path)


def _listed(folder: ObjectPlace, *, recursive: bool) -> "Iterator[tuple[str, pafs.FileInfo]]":
    """Yield the folder's key, and what lies in it."""
    import pyarrow.fs as pafs

    with _asked(folder) as (system, key):
        for info in system.get_file_info(pafs.FileSelector(key, recursive=recursive, allow_not_found=True)):
            yield key, info


@contextmanager
def _asked(place: ObjectPlace) -> "Iterator[tuple[pafs.FileSystem, str]]":
    """Give the file system and the place's key there, and say what goes wrong in words that hold no secret."""
    import pyarrow as pa

    try:
        system, root = _opened(place.store)
        yield system, str(PurePosixPath(root) / place.below)
    except FileNotFoundError:
        raise _missing(place) from None
    except (OSError, pa.ArrowException) as error:
        raise ArtifactsUnreachable(
            f"{place}: the store of artifacts did not do what it was asked ({_cause(error)}); expected that it answers "
            "and that its account may read, write, list and delete below this prefix"
        ) from None


def _missing(place: Place) -> ArtifactMissing:
    return ArtifactMissing(f"{place}: no such file lies there; expected one that a run has written")


def _cause(error: Exception) -> str:
    """Return the store's own name for it, such as ACCESS_DENIED; its sentence may hold an account."""
    found = re.search(r"AWS Error ([A-Z_]+)|HTTP status (\d+)|(curl\w*, \w+)", str(error))
    return next(filter(None, found.groups())) if found else type(error).__name__


def _options(scheme: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the keywords of the file system: those of the connection over those of the environment."""
    options: dict[str, Any] = {}
    if scheme == "s3":
        endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
        options = {"endpoint_override": endpoint} if endpoint else {}
    connection_id = environment.get(CONNECTION_VARIABLE)
    if connection_id:
        options |= _connection(f"TALLYSTICK_CONN_{connection_id.upper()}", environment)
    endpoint = options.get("endpoint_override", "")
    if is_address(endpoint):
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return options


def _connection(name: str, environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        options = json.loads(environment.get(name, ""))
    except ValueError:
        options = None
    if not isinstance(options, dict) or not all(isinstance(one, str | int | bool) for one in options.values()):
        raise ArtifactsRefused(
            f"{CONNECTION_VARIABLE}: expected {name} to be a JSON object of keywords of the store's file system in "
            'pyarrow, such as {"access_key": "...", "secret_key": "...", "region": "..."}'
        )
    return options


@lru_cache(maxsize=4)
def _opened(store: ObjectStore) -> "tuple[pafs.FileSystem, str]":
    """Return file system and path there, opened once in a process: a connection is kept. Raises ArtifactsRefused."""
    import pyarrow.fs as pafs

    address = urlsplit(store.address)
    made = {"s3": "S3FileSystem", "gs": "GcsFileSystem"}.get(address.scheme, "AzureFileSystem")
    try:
        system = getattr(pafs, made)(**dict(store.options))
    except (TypeError, ValueError, AttributeError) as error:
        raise ArtifactsRefused(
            f"{store.address}: pyarrow's {made} does not take these options ({type(error).__name__}); expected "
            f"{', '.join(name for name, _ in store.options) or 'an account'} to be keywords of it"
        ) from None
    return system, f"{address.netloc}{address.path}"
