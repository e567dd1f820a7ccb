"""Makes a skipped test fail the run: what was not tried proved nothing."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", [])) if reporter else 0
    if skipped and exitstatus == pytest.ExitCode.OK:
        reporter.write_line(
            f"\n{skipped} skipped: a test that did not run proved nothing, so this run fails.", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
