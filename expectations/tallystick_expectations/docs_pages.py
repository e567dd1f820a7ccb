"""The folder that Great Expectations writes a contract's Data Docs to: among the artifacts, or on its way there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tallystick.host.artifacts import Place, names_below, send_folder
from tallystick.host.private_files import narrow, private_folder
from tallystick_expectations.docs_index import write_index


def docs_place(artifacts: Place, contract_name: str) -> Place:
    """Return the place of a contract's Data Docs."""
    return artifacts / "data_docs" / contract_name


@contextmanager
def docs_pages(artifacts: Place, contract_name: str) -> Iterator[Path]:
    """Give the folder to write to. What is written comes to a store once all of it is there.

    Raises ArtifactsUnreachable.
    """
    place = docs_place(artifacts, contract_name)
    if isinstance(place, Path):
        yield private_folder(place, below=artifacts if isinstance(artifacts, Path) else None)
        narrow(place)
        return
    with TemporaryDirectory(prefix="tallystick-") as scratch:
        pages = Path(scratch)
        yield pages
        write_index(pages, also=(f"validations/{name}" for name in names_below(place / "validations")))
        send_folder(pages, place, last="index.html")
