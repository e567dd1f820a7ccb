"""The sample rules and dashboard, evaluated by Prometheus's own engine on what the metrics said of a real run.

promtool stands in .tools (`make promtool-setup`).
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tallystick.metrics.definitions import CONTRACTS, METRICS
from tests.metric_recording import CONTRACT, FOLDER

ROOT = Path(__file__).parents[2]
PROMTOOL = ROOT / ".tools" / "promtool"
EXAMPLES = ROOT / "docs" / "examples" / "prometheus"
RULES = EXAMPLES / "tallystick.rules.yml"

UP = ("up", {"job": "tallystick", "instance": "books:9464"}, 1.0)

BROKEN = {("TallystickBooksBroken", "critical")}
MONEY = {("TallystickMoneyAtRisk", "error")}
UNSENT = {("TallystickAlertsNotDelivered", "error")}
NEAR = {("TallystickRetentionNear", "error")}
HELD = {("TallystickLogHeldBack", "warning")}
UNPROVEN = {("TallystickBooksNotProven", "warning")}
SILENT = {("TallystickNoNewWindow", "critical")}
NOT_WATCHED = {("TallystickNotWatched", "critical")}

Sample = tuple[str, dict[str, str], float]


def recorded(moment: str) -> list[Sample]:
    """Every series of one moment of the run."""
    families = text_string_to_metric_families((FOLDER / f"{moment}.prom").read_text())
    return [(one.name, one.labels, one.value) for family in families for one in family.samples]


def series(name: str, labels: dict[str, str]) -> str:
    return name + "{" + ",".join(f'{label}="{value}"' for label, value in sorted(labels.items())) + "}"


def ask(folder: Path, tests: list[dict[str, Any]], rules: Path = RULES) -> str:
    """What promtool finds wrong; empty where all is as expected."""
    file = folder / "test.yml"
    document = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(document))
    done = subprocess.run([PROMTOOL, "test", "rules", file], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0) == ("SUCCESS" in done.stdout), done.stderr
    return "" if done.returncode == 0 else done.stdout + done.stderr


def held_still(samples: list[Sample], *, minutes: int = 240) -> list[dict[str, str]]:
    """The samples as they were recorded, scraped every minute for so long."""
    return [{"series": series(name, labels), "values": f"{value!r}+0x{minutes}"} for name, labels, value in samples]


def fires(folder: Path, samples: list[Sample], *, after: str) -> set[tuple[str, str]]:
    """Which rules of the file fire, and how gravely, after this long."""
    expression = 'count by (alertname, severity) (ALERTS{alertstate="firing"})'
    nothing = {"expr": expression, "eval_time": after, "exp_samples": []}
    said = ask(folder, [{"interval": "1m", "input_series": held_still(samples), "promql_expr_test": [nothing]}])
    assert not said or "got:" in said, said
    return set(re.findall(r'alertname="(\w+)", severity="(\w+)"', said))


@pytest.mark.parametrize(
    ("moment", "after", "expected"),
    [
        ("matched", "4h", set()),
        ("broken", "1m", BROKEN | MONEY),
        ("broken", "20m", BROKEN | MONEY | UNSENT),
        ("held", "1m", MONEY | HELD | NEAR),
        ("held", "3h", MONEY | HELD | NEAR | UNSENT | UNPROVEN),
        ("silent", "1m", MONEY | HELD | NEAR),
        ("silent", "10m", MONEY | HELD | NEAR | SILENT),
    ],
)
def test_each_moment_of_a_real_run_fires_what_it_should_and_nothing_else(
    moment: str, after: str, expected: set[tuple[str, str]], tmp_path: Path
) -> None:
    assert fires(tmp_path, [UP, *recorded(moment)], after=after) == expected


@pytest.mark.parametrize(
    "samples",
    [[], [("up", UP[1], 0.0)], [UP, ("tallystick_contracts", {}, 0.0)], recorded("matched")],
    ids=["nothing at all", "the scrape fails", "a store without contracts", "no job of that name"],
)
def test_nobody_watching_fires_too(samples: list[Sample], tmp_path: Path) -> None:
    assert fires(tmp_path, samples, after="15m") == NOT_WATCHED
    assert fires(tmp_path, samples, after="5m") == set()


def test_the_ledgers_side_held_back_is_told_apart_from_the_logs(tmp_path: Path) -> None:
    """The recorded ages of the two sides exchanged."""
    swapped = {"tallystick_lso_age_seconds": "tallystick_horizon_age_seconds"}
    swapped |= {new: old for old, new in swapped.items()}
    samples = [(swapped.get(name, name), labels, value) for name, labels, value in recorded("held")]
    assert ("TallystickLedgerHeldBack", "warning") in fires(tmp_path, [UP, *samples], after="1m")
    assert HELD & fires(tmp_path, [UP, *samples], after="1m") == set()


def test_old_items_fire_once_they_are_older_than_a_week(tmp_path: Path) -> None:
    """The recorded items, a week on."""
    old = [
        (name, labels | {"age": "over_7d"} if "age" in labels else labels, value)
        for name, labels, value in recorded("broken")
    ]
    assert ("TallystickItemsOld", "warning") in fires(tmp_path, [UP, *old], after="1m")


def test_every_rule_is_fired_by_some_test() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    named = set(re.findall(r"Tallystick[A-Z]\w+", Path(__file__).read_text()))
    assert {rule["alert"] for rule in group["rules"]} == named


def expressions() -> list[str]:
    panels = json.loads((EXAMPLES / "grafana.json").read_text())["panels"]
    return [target["expr"].replace("$contract", ".*") for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("expression", expressions())
def test_every_expression_of_the_dashboard_finds_something_in_the_run(expression: str, tmp_path: Path) -> None:
    found = {"expr": f"count({expression}) > bool 0", "eval_time": "2h", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {"interval": "1m", "input_series": held_still([UP, *recorded("held")]), "promql_expr_test": [found]}
    assert ask(tmp_path, [test]) == ""


def test_an_expression_that_finds_nothing_is_told(tmp_path: Path) -> None:
    found = {"expr": "count(nonsense) > bool 0", "eval_time": "2h", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {"interval": "1m", "input_series": held_still([UP, *recorded("held")]), "promql_expr_test": [found]}
    assert "nonsense" in ask(tmp_path, [test])


def test_rules_and_dashboard_show_every_metric() -> None:
    shown = " ".join(expressions()) + RULES.read_text()
    families = {
        family.name
        for moment in ("matched", "held")
        for family in text_string_to_metric_families((FOLDER / f"{moment}.prom").read_text())
    }
    assert {family for family in families if family not in shown} == set()
    assert len(families) == len((CONTRACTS, *METRICS))


def test_the_page_about_them_says_what_each_metric_says() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    for moment in ("matched", "held"):
        for family in text_string_to_metric_families((FOLDER / f"{moment}.prom").read_text()):
            assert [f"| `{one.name}` |" in page for one in family.samples] == [True] * len(family.samples)
            assert family.documentation in page


def test_the_exposition_keeps_the_conventions_of_prometheus() -> None:
    done = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=(FOLDER / "held.prom").read_bytes(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_no_label_holds_more_than_a_name() -> None:
    labels = {
        label
        for moment in ("matched", "broken", "held", "silent")
        for _, found, _ in recorded(moment)
        for label in found
    }
    assert labels == {"contract", "verdict", "class", "age", "currency", "sink"}
    assert {found["contract"] for _, found, _ in recorded("held") if "contract" in found} == {CONTRACT}
