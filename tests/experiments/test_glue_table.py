"""Tables of classifiers of GLUE tasks."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.cmow.glue_table import main


def report(folder: Path, name: str, score: float, metric: str = "accuracy") -> None:
    file = folder / f"run-{name}" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"metric": metric, "metrics": {metric: score, "other": 1.0}, "history": [1.0, 2.0]}))


def tasks_of(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("*/*")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, score in [("1e-3-0", 60.0), ("5e-4-0", 62.0), ("5e-4-1", 58.0), ("5e-4-2", 63.0)]:
        report(tmp_path / "general/rte", name, score)
    report(tmp_path / "general/cola", "1e-3-0", 20.0, "matthews")
    report(tmp_path / "random/rte", "1e-3-0", 55.0)
    return tmp_path


def test_a_cell_is_the_median_over_seeds_at_the_rate_that_is_best_with_seed_0(folder: Path) -> None:
    lines = CliRunner().invoke(main, tasks_of(folder)).output.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[0] == ["student", "average", "CoLA", "RTE"]
    assert rows[2] == ["general", "41.0", "20.0", "62.0 (62.0, 58.0, 63.0)"]
    assert rows[3] == ["random", "-", "-", "55.0"]


def test_a_cell_has_the_share_of_the_teacher_of_its_task(folder: Path) -> None:
    report(folder / "teacher/rte", "5e-5-0", 80.0)
    lines = CliRunner().invoke(main, tasks_of(folder)).output.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows[2] == ["general", "41.0", "20.0", "62.0 (62.0, 58.0, 63.0), 78 %"]
    assert rows[4] == ["teacher", "-", "-", "80.0, 100 %"]


def test_all_runs_are_written_to_a_file(folder: Path) -> None:
    out = folder / "runs.json"
    CliRunner().invoke(main, [*tasks_of(folder), "--out", str(out)], catch_exceptions=False)
    runs = json.loads(out.read_text())
    assert len(runs) == 6
    assert runs[1] == {
        "student": "general",
        "task": "rte",
        "learning_rate": "1e-3",
        "seed": 0,
        "metric": "accuracy",
        "metrics": {"accuracy": 60.0, "other": 1.0},
        "epochs": 2,
    }


def test_a_run_that_is_there_twice_counts_once(folder: Path) -> None:
    report(folder / "copy/general/rte", "5e-4-0", 62.0)
    lines = CliRunner().invoke(main, [*tasks_of(folder), str(folder / "copy/general/rte")]).output.splitlines()
    assert "62.0 (62.0, 58.0, 63.0)" in lines[2]


def test_a_folder_without_reports_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, [str(tmp_path)])
    assert result.exit_code == 2
    assert "has no reports; expected files such as seed-0/1e-3-0.json" in " ".join(result.output.split())
