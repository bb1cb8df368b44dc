import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError, MissingExtraError

from edgeembed.cli.evaluate import command
from edgeembed.evaluation import evaluator


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
def cheap_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "find_encoder", lambda name: lambda: _Hashing(len(name)))


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
    assert "expected at least one of: sts, retrieval, " in str(run.exception)


def test_an_existing_output_file_is_an_error_before_any_work(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", "absent.tsv", "--out", str(sts_file)])
    assert isinstance(run.exception, InputError)
    assert "--force" in str(run.exception)


def test_a_missing_file_is_an_error_before_a_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "find_encoder", lambda _: pytest.fail("looked for a model"))
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
    assert json.loads(run.stdout)["sts"]["average_of"] == "Avg. (1 of 7: STS-B)"
    assert json.loads(run.stdout)["sts"]["values"]["SICK-R"] is None
    assert "Avg. (1 of 7)" in out.read_text()


def test_entities_are_scored_with_a_catalog_file(tmp_path: Path) -> None:
    queries, catalog = tmp_path / "radio.tsv", tmp_path / "all.txt"
    queries.write_text("query\tentity\na station\ta station\n")
    catalog.write_text("a station\nanother one\n")
    arguments = ["student", "--entities", str(queries), "--catalog", str(catalog), "--json"]
    (score,) = json.loads(CliRunner().invoke(command, arguments).stdout)["scores"]
    assert (score["metric"], score["value"], score["details"]) == ("R@1 x100", 100, {"entities": 2})


def test_a_catalog_without_queries_is_an_error(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--sts", str(sts_file), "--catalog", "all.txt"])
    assert isinstance(run.exception, InputError)
    assert "expected files of queries in entities" in str(run.exception)


def test_semantic_retrieval_uses_nlist_and_nprobe(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    file = tmp_path / "pairs.tsv"
    file.write_text("question1\tquestion2\tis_duplicate\na cat\ta cat sat\t1\na dog\tthe sun\t0\n")
    arguments = ["student", "--semantic-retrieval", str(file), "--nlist", "4", "--nprobe", "3"]
    run = CliRunner().invoke(command, arguments)
    assert run.exit_code == 0, run.output
    assert "nlist 1, nprobe 3" in " ".join(run.stdout.split())


def test_missing_faiss_is_an_error_before_a_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(evaluator, "find_encoder", lambda _: pytest.fail("looked for a model"))
    file = tmp_path / "pairs.tsv"
    file.write_text("question1\tquestion2\tis_duplicate\na cat\ta cat sat\t1\n")
    run = CliRunner().invoke(command, ["student", "--semantic-retrieval", str(file)])
    assert isinstance(run.exception, MissingExtraError)
    assert "edgeembed-runtime[faiss]" in str(run.exception)


def test_geometry_takes_a_threshold(sts_file: Path) -> None:
    arguments = ["student", "--geometry", str(sts_file), "--json"]
    for above, pairs in (([], 1), (["--positives-above", "2"], 3)):
        run = CliRunner().invoke(command, [*arguments, *above])
        assert run.exit_code == 0, run.output
        alignment, uniformity = json.loads(run.stdout)["scores"]
        assert (alignment["metric"], alignment["items"]) == ("alignment", pairs)
        assert (uniformity["metric"], uniformity["items"]) == ("uniformity", 8)


def test_geometry_is_shown_as_differences_from_the_reference(sts_file: Path) -> None:
    run = CliRunner().invoke(command, ["student", "--against", "reference", "--geometry", str(sts_file)])
    assert "lower is better" in " ".join(run.stdout.split())
    assert "difference" in run.stdout
    assert "%" not in run.stdout


def test_transfer_tasks_are_found_in_a_folder(tmp_path: Path) -> None:
    texts = [*("a cat sat\tyes" for _ in range(10)), *("rain\tno" for _ in range(10))]
    for part in ("train", "test"):
        (tmp_path / f"trec_{part}.tsv").write_text("\n".join(["text\tlabel", *texts]) + "\n")
    run = CliRunner().invoke(command, ["student", "--transfer", str(tmp_path), "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    assert found["scores"][0]["value"] == 100
    assert found["transfer"]["average_of"] == "Avg. (1 of 7: TREC)"


def test_a_folder_without_transfer_tasks_is_an_error_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "find_encoder", lambda _: pytest.fail("looked for a model"))
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
