"""Tables of students with several seeds."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.seed_table import main


def evaluation(model: str, *values: float) -> dict[str, Any]:
    tasks = ("sts12/test", "sts12/test, outside STS-B", "TREC")
    scores = [{"task": task, "value": value} for task, value in zip(tasks, values, strict=True)]
    return {"model": model, "scores": scores, "parameters": {"parameters": 9_477_504}}


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    file = tmp_path / "scores.json"
    rows = [
        evaluation("build/small-seed-0", 70, 60, 80),
        evaluation("build/small-seed-1", 72, 61, 82),
        evaluation("teacher", 78, 70, 82),
    ]
    file.write_text(json.dumps(rows))
    return file


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_seeds_are_averaged_and_compared_with_the_teacher(scores: Path) -> None:
    lines = CliRunner().invoke(main, [str(scores), "--teacher", "teacher"]).output.splitlines()
    assert cells(lines[0])[1:5] == ["STS12", "TREC", "average (seeds)", "%"]
    assert cells(lines[2]) == ["small", "71.00", "81.00", "76.00 (75.00, 77.00)", "95.0", "60.50", "9.48M"]
    assert cells(lines[3])[0:5] == ["teacher", "78.00", "82.00", "80.00", "100.0"]


def test_without_a_teacher_there_are_no_averages(scores: Path) -> None:
    lines = CliRunner().invoke(main, [str(scores)]).output.splitlines()
    assert cells(lines[2]) == ["small", "71.00", "81.00", "60.50", "9.48M"]


def test_chosen_tasks_have_the_score_of_each_seed(scores: Path) -> None:
    lines = CliRunner().invoke(main, [str(scores), "--task", "TREC", "--task", "sts12/test"]).output.splitlines()
    assert cells(lines[0]) == ["model", "TREC", "STS12"]
    assert cells(lines[2]) == ["small", "81.0 (80.0, 82.0)", "71.0 (70.0, 72.0)"]
    assert cells(lines[3]) == ["teacher", "82.0", "78.0"]


def test_a_task_without_scores_is_an_error(scores: Path) -> None:
    result = CliRunner().invoke(main, [str(scores), "--task", "sickr/test"])
    assert result.exit_code == 2
    assert "expected one of: TREC; sts12/test;" in " ".join(result.output.split())


def test_chosen_tasks_are_not_compared_with_a_teacher(scores: Path) -> None:
    result = CliRunner().invoke(main, [str(scores), "--task", "TREC", "--teacher", "teacher"])
    assert result.exit_code == 2
    assert "give one of the two" in result.output


def test_each_rate_has_its_score_on_the_development_set(scores: Path, tmp_path: Path) -> None:
    rates = [
        {"name": "small-rate-1e-3", "dev_spearman": [50.0, 85.9]},
        {"name": "small-rate-3e-4", "dev_spearman": [60.0, 85.7]},
        {"name": "large-rate-3e-4", "dev_spearman": [86.0]},
    ]
    (tmp_path / "rates.json").write_text(json.dumps(rates))
    output = (
        CliRunner().invoke(main, [str(scores), "--teacher", "teacher", "--rates", str(tmp_path / "rates.json")]).output
    )
    lines = output.splitlines()[-4:]
    assert [cells(line) for line in lines if "---" not in line] == [
        ["STS-B dev", "3e-4", "1e-3"],
        ["small", "85.70", "85.90"],
        ["large", "86.00", "-"],
    ]


def test_a_teacher_without_scores_is_an_error(scores: Path) -> None:
    result = CliRunner().invoke(main, [str(scores), "--teacher", "none"])
    assert result.exit_code == 2
    assert "'none' is not in" in result.output
    assert "expected one of: small, teacher" in result.output
