import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError

from edgeembed.cli.evaluate import command
from edgeembed.evaluation import TASKS, EvaluationTask, Score, SentenceEncoder, Setting

from .conftest import NameEncoders


class _Hashing:
    """A cheap encoder: counts of letters, rotated by its seed."""

    def __init__(self, seed: int) -> None:
        self.projection = np.random.default_rng(seed).normal(size=(26, 16))

    def encode(self, texts: list[str], /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        counts = np.array([[text.count(chr(97 + letter)) for letter in range(26)] for text in texts])
        return (counts @ self.projection).astype(np.float32)

    encode_query = encode
    encode_document = encode


@pytest.fixture
def sts_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.tsv"
    rows = ("a cat sits\ta cat sat\t5", "a dog runs\tthe dog ran\t4", "a cat\tthe sun\t1", "rain\twater\t2.5")
    file.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return file


@pytest.fixture(autouse=True)
def cheap_models(name_encoders: NameEncoders) -> None:
    name_encoders(lambda name: _Hashing(len(name)))


def test_scores_are_shown_with_the_percentage_of_the_reference(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--against", "reference", "--sts", str(sts_file)])
    assert run.exit_code == 0
    assert "Spearman" in run.stdout
    assert "reference" in run.stdout
    assert "percent" in run.stdout


def test_json_on_stdout_and_in_the_file_are_the_same(sts_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.json"
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--json", "--out", str(out)])
    assert json.loads(run.stdout) == json.loads(out.read_text())
    assert json.loads(run.stdout)["scores"][0]["items"] == 4


def test_models_are_added_to_the_file_that_they_are_written_to(sts_file: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "scores.json")
    CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--out", out])
    options = ["--sts", str(sts_file), "--add-to", out, "--out", out, "--force"]
    run = CliRunner().invoke(command, ["another", *options])
    assert run.exit_code == 0
    assert "student" in run.stdout
    assert [each["model"] for each in json.loads(Path(out).read_text())] == ["student", "another"]


def test_repeated_files_are_scored_in_order(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--sts", str(sts_file), "--json"])
    assert len(json.loads(run.stdout)["scores"]) == 2


def test_progress_goes_to_stderr(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--json"])
    assert json.loads(run.stdout)
    assert "pairs" in run.stderr


def test_no_tasks_are_an_error() -> None:
    run = CliRunner().invoke(command, ["student"])
    assert isinstance(run.exception, InputError)
    assert "expected at least one of: " in str(run.exception)


def test_an_existing_output_file_is_an_error_before_any_work(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", "absent.tsv", "--out", str(sts_file)])
    assert isinstance(run.exception, InputError)
    assert "--force" in str(run.exception)


def test_a_missing_file_is_an_error_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeembed.evaluation.evaluate.find_encoder", lambda _: pytest.fail("looked for a model"))
    run = CliRunner().invoke(command, ["student", "--sts", "absent.tsv"])
    assert isinstance(run.exception, InputError)
    assert "absent.tsv cannot be read" in str(run.exception)


def test_several_models_are_rows_of_one_table_and_a_list_in_json(sts_file: Path) -> None:
    shown = CliRunner().invoke(command, ["one", "three", "--against", "reference", "--sts", str(sts_file)])
    assert shown.exit_code == 0, shown.output
    assert [line.split()[0] for line in shown.stdout.splitlines()[2:5]] == ["reference", "one", "three"]
    found = json.loads(CliRunner().invoke(command, ["one", "three", "--sts", str(sts_file), "--json"]).stdout)
    assert [each["model"] for each in found] == ["one", "three"]


def test_a_folder_of_sts_sets_is_reported_with_its_average(sts_file: Path, tmp_path: Path) -> None:
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb" / "test.tsv").write_text(sts_file.read_text())
    out = tmp_path / "table.md"
    run = CliRunner().invoke(command, ["student", "--sts", str(tmp_path), "--json", "--markdown", str(out)])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["suites"]["sts"]["average_of"] == "Avg. (1 of 7: STS-B)"
    assert json.loads(run.stdout)["suites"]["sts"]["values"]["SICK-R"] is None
    assert "Avg. (1 of 7)" in out.read_text()


def test_transfer_tasks_are_found_in_a_folder(tmp_path: Path) -> None:
    texts = [*("a cat sat\tyes" for _ in range(10)), *("rain\tno" for _ in range(10))]
    for part in ("train", "test"):
        (tmp_path / f"trec_{part}.tsv").write_text("\n".join(["text\tlabel", *texts]) + "\n")
    run = CliRunner().invoke(command, ["student", "--transfer", str(tmp_path), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert found["scores"][0]["value"] == 100
    assert found["suites"]["transfer"]["average_of"] == "Avg. (1 of 7: TREC)"


def test_a_folder_without_transfer_tasks_is_an_error_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.evaluation.evaluate.find_encoder", lambda _: pytest.fail("looked for a model"))
    run = CliRunner().invoke(command, ["student", "--transfer", str(tmp_path)])
    assert isinstance(run.exception, InputError)
    assert "none of the transfer tasks" in str(run.exception)


def test_language_pairs_are_selected(tmp_path: Path) -> None:
    for language in ("de", "en", "fr"):
        (tmp_path / "mt" / language).mkdir(parents=True)
        rows = (f"{language} a\tone {language}\t1", f"{language} b\ttwo {language}\t2", f"{language} c\tthree\t3")
        (tmp_path / "mt" / language / "test.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    text = tmp_path / "de-en.tsv"
    text.write_text("de\ten\n" + "".join(f"eins {letter}\tone {letter}\n" for letter in "abcdef"))
    arguments = ["student", "--cross-lingual-sts", f"{tmp_path / 'mt'}#fr-de", "--bitext", str(text), "--json"]
    run = CliRunner().invoke(command, [*arguments, "--bitext-rows", "4"])
    assert run.exit_code == 0, run.output
    scores = {score["task"]: score["items"] for score in json.loads(run.stdout)["scores"]}
    assert scores == {
        "mt, fr-de": 3,
        "mt, average": 3,
        f"{tmp_path.name}/de-en, de to en": 4,
        f"{tmp_path.name}/de-en, en to de": 4,
    }


def test_a_setting_without_files_is_an_error(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--bitext-rows", "4"])
    assert isinstance(run.exception, InputError)
    assert str(run.exception) == "--bitext-rows is given without --bitext; expected files in --bitext"


def test_each_score_is_printed_on_stderr_when_it_is_there(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--against", "reference", "--sts", str(sts_file), "--json"])
    lines = [line for line in run.stderr.splitlines() if "(Spearman x100)" in line]
    assert [line.split(",")[0] for line in lines] == ["reference", "student"]


def test_scores_are_in_the_order_of_the_options(sts_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "de-en.tsv"
    text.write_text("de\ten\n" + "".join(f"eins {letter}\tone {letter}\n" for letter in "abc"))
    first, second = ["--bitext", str(text)], ["--sts", str(sts_file)]
    for options in ([*first, *second], [*second, *first]):
        run = CliRunner().invoke(command, ["student", *options, "--json"])
        kinds = dict.fromkeys(score["kind"] for score in json.loads(run.stdout)["scores"])
        assert list(kinds) == [options[0].lstrip("-"), options[2].lstrip("-")]


class _Lengths(EvaluationTask):
    """The mean length of an embedding: a task as a plugin may have it."""

    metavar = "FILE"
    help = "Texts, one per line: the mean length of an embedding."

    def __init__(self, *sources: str, factor: Annotated[int, Setting("Factor of the length.", minimum=1)] = 1) -> None:
        self.check_settings(factor=factor)
        self.factor = factor
        self.sets = [Path(each) for each in self.check_sources(sources)]

    def score(self, encoder: SentenceEncoder, data: Path) -> list[Score]:
        texts = data.read_text().splitlines()
        return [
            Score(data.name, "length", self.factor * float(np.linalg.norm(encoder.encode(texts), axis=1).mean()), 2)
        ]


@pytest.fixture
def lengths() -> Iterator[None]:
    """The task of a plugin."""
    TASKS.register("mean-length")(_Lengths)
    yield
    del TASKS._classes["mean-length"]


@pytest.mark.usefixtures("lengths")
def test_the_task_of_a_plugin_has_its_options_and_a_table(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("a cat\na dog\n")
    helped = CliRunner().invoke(command, ["--help"]).stdout
    assert "--mean-length FILE" in helped
    assert "--mean-length-factor" in helped
    arguments = ["student", "--mean-length", str(file), "--mean-length-factor"]
    run = CliRunner().invoke(command, [*arguments, "3"])
    assert run.exit_code == 0, run.output
    assert "texts.txt: length, 2 items" in run.stdout
    assert CliRunner().invoke(command, [*arguments, "0"]).exit_code == 2
