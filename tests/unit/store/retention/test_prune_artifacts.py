"""Files of pruned runs go; whatever else lies in the folder stays."""

from pathlib import Path

import pytest

from tallystick.store.retention.prune_artifacts import prune_artifacts

PRUNED = (
    "reports/payouts/6.html",
    "breaks/payouts/cut=6/breaks.parquet",
    "logs/payouts/6.log",
    "logs/payouts/6.expectations.log",
)
STAYS = (
    "reports/payouts/7.html",
    "reports/payouts/6.html.part",
    "reports/payouts/6a.html",
    "reports/refunds/6.html",
    "breaks/payouts/cut=7/breaks.parquet",
    "logs/payouts/16.log",
    "key_index/payouts/cut=6/attempt=1/part.parquet",
    "data_docs/payouts/index.html",
)


def below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    for name in (*PRUNED, *STAYS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_the_files_of_pruned_runs_go_and_all_others_stay(artifacts: Path) -> None:
    assert prune_artifacts(artifacts, "payouts", kept_from_cut_n=7, dry_run=False) == len(PRUNED)
    assert below(artifacts) == {*STAYS}
    assert not (artifacts / "breaks" / "payouts" / "cut=6").exists()


def test_a_dry_run_counts_and_leaves_them(artifacts: Path) -> None:
    assert prune_artifacts(artifacts, "payouts", kept_from_cut_n=7, dry_run=True) == len(PRUNED)
    assert below(artifacts) == {*PRUNED, *STAYS}


def test_where_nothing_was_pruned_or_no_folder_is_nothing_goes(artifacts: Path, tmp_path: Path) -> None:
    assert prune_artifacts(artifacts, "payouts", kept_from_cut_n=0, dry_run=False) == 0
    assert prune_artifacts(tmp_path / "elsewhere", "payouts", kept_from_cut_n=7, dry_run=False) == 0
    assert below(artifacts) == {*PRUNED, *STAYS}
