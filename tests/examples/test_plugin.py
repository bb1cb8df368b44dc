"""The example of a plugin, installed in a folder on the path, as pip would."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a process in which the plugin is installed."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (points,) = project["entry-points"].items()
    site = tmp_path / "site"
    (package,) = points[1].values()
    shutil.copytree(EXAMPLE / package, site / package)
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points[1].items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{points[0]}]", *lines]) + "\n")
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def edgeembed(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "edgeembed.cli.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_is_small() -> None:
    files = [each for each in EXAMPLE.rglob("*") if each.suffix in {".py", ".toml"}]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) < 150


def test_its_recipe_is_listed_under_its_name_and_printed(environment: dict[str, str]) -> None:
    listed = {each["name"]: each for each in json.loads(edgeembed(environment, "recipes", "--json"))}
    assert listed["spread"]["plugin"] == "example"
    shown = json.loads(edgeembed(environment, "recipes", "spread", "--json"))
    assert shown["student"]["shape"] == {"keep": "last"}
    assert shown["stages"][0]["losses"]["smooth_l1"] == {"weight": 10.0, "beta": 0.1}


def test_its_student_is_distilled_with_its_loss(
    environment: dict[str, str], teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    sizes = [
        "student.layers=2",
        "student.token_dim=8",
        "student.max_seq_length=32",
        "head.dim=8",
        "vocabulary.size=100",
    ]
    changes = [*sizes, "stages.batch_size=64", f'teacher="{teacher_folder.as_posix()}"']
    report = edgeembed(
        environment,
        *("distill", "--recipe", "spread", "--corpus", str(tmp_path / "text.txt"), "--out", str(tmp_path / "student")),
        *(word for change in changes for word in ("--set", change)),
        "--json",
    )
    assert json.loads(report)["dimension"] == 8
    assert (tmp_path / "student" / "modules.json").is_file()


def test_its_task_is_an_option_with_a_setting(environment: dict[str, str], tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    rows = [
        f"cat {number}\tcat {number}\t1\ncat {number}\ttax\t0\ndog {number}\tdog {number}\t0\n" for number in range(10)
    ]
    pairs.write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    options = ["--paraphrases", str(pairs), "--paraphrases-percent", "90", "--no-cache", "--json"]
    (score,) = json.loads(edgeembed(environment, "evaluate", "micro", *options))["scores"]
    assert score["value"] == pytest.approx(200 / 3)
    assert (score["metric"], score["items"]) == ("accuracy x100", 30)
    assert score["interval"][0] < score["value"] < score["interval"][1]
