"""Steps that befall a ledger in files, which no table knows. Elsewhere they do nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulator.schedule.money_steps import Step
from tests.simulator.schedule.services import Services
from tests.simulator.world.folder import Folder

MOVED_IN_AFTER_SECONDS = (120, 3_700, 90_000)


def _folder(services: Services) -> Folder | None:
    database = services.world.database
    return database if isinstance(database, Folder) else None


@contextmanager
def _written_so(folder: Folder, *, older_by_seconds: int = 0, into_newest: bool = False) -> Iterator[None]:
    folder.older_by_seconds, folder.into_newest = older_by_seconds, into_newest
    yield
    folder.older_by_seconds, folder.into_newest = 0, False


def _payment_in_a_file(services: Services, a: int, b: int) -> None:
    """Whoever writes rows here brings those of one payment, from the first side or for it."""
    if services.world.config.topic_first:
        services.carry(a, 0, b)
        services.end_carrying(a, commit=True)
        return
    for n, money in enumerate(services.new_payment(b)):
        services.write(True, a, money, partition=a + b + n)
    services.end(True, a, commit=True)


def file_moved_in(services: Services, a: int, b: int) -> None:
    """A file comes that was written long ago, as its moment of modification says."""
    folder, seconds = _folder(services), MOVED_IN_AFTER_SECONDS[b % 3]
    if folder is not None:
        services.world.tell(f"a file is moved in that was written {seconds} s ago")
        with _written_so(folder, older_by_seconds=seconds):
            _payment_in_a_file(services, a, b)


def file_added_to(services: Services, a: int, b: int) -> None:
    """Rows go into the newest file, where a cut may have taken that already."""
    folder = _folder(services)
    if folder is not None:
        services.world.tell("whoever writes rows next adds them to the newest file")
        with _written_so(folder, into_newest=True):
            _payment_in_a_file(services, a, b)


def file_written_twice(services: Services, a: int, b: int) -> None:
    """A writer that had no answer writes its file once more: its rows stand twice, under the same ids."""
    folder = _folder(services)
    copies = folder.copy_newest() if folder else []
    if copies:
        services.world.tell(f"the newest file is written a second time: rows {copies}")
        services.world.look()


FILE_STEPS: dict[str, Step] = {step.__name__: step for step in (file_moved_in, file_added_to, file_written_twice)}
