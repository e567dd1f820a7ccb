"""One self-contained HTML page per run: no script, no network, the same bytes for the same stored run and contract.

page.py says what stands where, report.html.jinja2 how it is marked up, report.css how it looks by day, by night and on
paper. Here it is put together and written.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tallystick.contract.contract import Contract
from tallystick.host.artifacts import Place, whole_file
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.text.plain import escape_untrusted, format_time


def report_path(artifacts: Place, contract_name: str, n: int) -> Place:
    """Return the place of the report of cut n among the artifacts."""
    return artifacts / "reports" / contract_name / f"{n}.html"


def write_report(run: StoredRun, contract: Contract, artifacts: Place) -> Place:
    """Write the report of a run among the artifacts and return its place.

    contract: the one the cut was made under. A reader never sees half a page: it is in its place when it is whole.
    Raises ArtifactsUnreachable.
    """
    place = report_path(artifacts, run.result.contract, run.result.cut_n)
    html = render_report(run, contract)
    with whole_file(place, below=artifacts) as unfinished:
        unfinished.write_text(html, encoding="utf-8")
    return place


def render_report(run: StoredRun, contract: Contract) -> str:
    """The page. Pure: no clock, no address, no version; every order is fixed."""
    return load_template().render(page=report_page(run, contract))


@cache
def load_template() -> Template:
    """Compile the page's template and those that it imports, once."""
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
    for name in environment.list_templates(extensions=["jinja2"]):
        environment.get_template(name)
    return environment.get_template("report.html.jinja2")
