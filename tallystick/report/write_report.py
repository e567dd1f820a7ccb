"""One self-contained HTML page per run: no script, no network, the same bytes for the same stored run and contract.

page.py says what stands where, report.html.jinja2 how it is marked up, report.css how it looks by day, by night and on
paper. Here it is put together and written.
"""

import os
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tallystick.contract.contract import Contract
from tallystick.host.private_files import private_file, private_folder
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.text.plain import escape_untrusted, format_time


def report_path(folder: Path, contract_name: str, n: int) -> Path:
    """Return the path of the report of cut n, below the artifacts folder."""
    return folder / "reports" / contract_name / f"{n}.html"


def write_report(run: StoredRun, contract: Contract, folder: Path) -> Path:
    """Write the report of a run below the artifacts folder and give its path.

    contract: the one the cut was made under. A reader never sees half a page: it is moved into place when it is whole.
    """
    path = report_path(folder, run.result.contract, run.result.cut_n)
    private_folder(path.parent, below=folder)
    html = render_report(run, contract)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, suffix=".part", delete=False) as part:
        part.write(html)
    private_file(Path(part.name))  # a temporary file is its owner's only; the api-server may be another of the group
    os.replace(part.name, path)
    return path


def render_report(run: StoredRun, contract: Contract) -> str:
    """The page. Pure: no clock, no address, no version; every order is fixed."""
    return _template().render(page=report_page(run, contract))


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("tallystick.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    loader = environment.loader
    assert loader is not None
    css, _, _ = loader.get_source(environment, "report.css")
    environment.globals["css"] = Markup(css)  # our own file, no value in it
    environment.filters |= {"count": "{:,}".format, "time": format_time, "untrusted": escape_untrusted}
    return environment.get_template("report.html.jinja2")
