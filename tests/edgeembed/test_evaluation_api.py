"""The public function evaluate: which models and tasks it takes, and its report."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation import RetrievalSet, SentencePairs
from edgeembed.evaluation import evaluate as module
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.bitext import Bitext
from edgeembed.evaluation.tasks.retrieval import Retrieval
from edgeembed.evaluation.tasks.sts import STS
from edgeembed.models import load_model

PAIRS = SentencePairs("pairs", ["a", "a", "b"], ["aa", "bb", "cc"], np.array([3.0, 2.0, 1.0]), None)

SET = RetrievalSet("set", {"q": "a"}, {"1": "aa"}, {"q": {"1"}})


class _Letters:
    """Counts letters."""

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        return np.array([[text.count(letter) + 0.1 * len(text) for letter in "abc"] for text in texts], np.float32)

    encode_query = encode
    encode_document = encode


@pytest.fixture
def sts_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.tsv"
    file.write_text("sentence1\tsentence2\tscore\na cat\ta cat sat\t5\na dog\tthe sun\t1\nrain\twater\t2\n")
    return file


def test_folders_and_loaded_models_have_the_same_scores(teacher_folder: Path, sts_file: Path) -> None:
    models = [str(teacher_folder), teacher_folder, load_model(str(teacher_folder))]
    report = evaluate(models, STS(str(sts_file)), against=teacher_folder)
    assert [model.comparisons[0].difference for model in report] == pytest.approx([0, 0, 0])
    assert report.models[2].parameters == report.models[0].parameters


def test_one_loaded_encoder_is_named_after_its_bundle(sts_file: Path) -> None:
    encoder = Encoder()
    report = evaluate(encoder, [STS(sts_file)])
    assert [model.model for model in report] == [encoder.bundle.name]
    assert report[encoder.bundle.name].parameters is not None


def test_loaded_encoders_of_the_same_kind_are_numbered_and_one_given_twice_is_scored_once() -> None:
    first, second = _Letters(), _Letters()
    report = evaluate([first, second, first], STS(PAIRS))
    assert [model.model for model in report] == ["_Letters (1)", "_Letters (2)", "_Letters (1)"]


def test_data_may_be_in_memory() -> None:
    task = RetrievalSet("set", {"q": "a"}, {"1": "aa", "2": "bb"}, {"q": {"1"}})
    report = evaluate(_Letters(), [STS(PAIRS), Retrieval(task)])
    assert [(score.kind, score.task) for score in report.models[0].scores] == [("sts", "pairs"), ("retrieval", "set")]
    assert [table.title for table in report.tables] == ["Scores", "Retrieval"]


def test_documents_by_scores_queries_over_the_documents_of_another_encoder() -> None:
    class Reversed(_Letters):
        def encode_document(self, texts: Any, /, *, batch_size: int = 32) -> Any:
            return super().encode(texts, batch_size=batch_size)[:, ::-1].copy()

    task = RetrievalSet("set", {"q": "a", "p": "b"}, {"1": "aa", "2": "bb", "3": "cc"}, {"q": {"1"}, "p": {"2"}})
    report = evaluate([_Letters(), Reversed()], Retrieval(task, documents_by=_Letters()))
    assert [score.task for score in report.models[0].scores] == ["set", "set, documents by _Letters"]
    own, asymmetric = ([model.scores[place].value for model in report] for place in (0, 1))
    assert asymmetric == pytest.approx([100, 100])  # both encode queries alike
    assert own[0] == pytest.approx(100)
    assert own[1] < 100
    assert "set, documents by" in report.to_markdown()


def test_documents_of_another_dimension_are_an_error() -> None:
    class Narrow(_Letters):
        def encode_document(self, texts: Any, /, *, batch_size: int = 32) -> Any:
            return super().encode(texts, batch_size=batch_size)[:, :2]

        encode_query = encode_document

    with pytest.raises(InputError, match="queries have 3 dimensions and the documents by Narrow have 2; expected"):
        evaluate(_Letters(), Retrieval(SET, documents_by=Narrow()))


def test_a_report_has_lines_tables_and_files(tmp_path: Path) -> None:
    report = evaluate(_Letters(), STS(PAIRS), against=_Letters())
    assert str(report).splitlines()[0] == "EvaluationReport: models 1, scores 1"
    assert "_Letters (2), pairs: 86.60 (Spearman x100, 100.0 % of _Letters (1))" in str(report)
    assert report.to_markdown() == report._repr_markdown_()
    assert report.to_markdown().startswith("## Scores")
    report.to_json(tmp_path / "scores.json")
    assert json.loads((tmp_path / "scores.json").read_text()) == report.to_dict()["models"][0]
    with pytest.raises(InputError, match="no model 'other' in the report; expected one of: _Letters"):
        report["other"]


def test_models_are_added_to_an_earlier_report_and_replace_those_of_the_same_name(
    teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "scores.json"
    evaluate(["mini", "nano"], STS(PAIRS), against=teacher_folder).to_json(file)
    earlier, scored = json.loads(file.read_text()), []

    def score(name: str, *given: Any) -> Any:
        scored.append(name)
        return score_data(name, *given)

    score_data = module.score_data
    monkeypatch.setattr(module, "score_data", score)
    report = evaluate(["micro", "mini"], STS(PAIRS), against=teacher_folder, add_to=file)
    assert [each.model for each in report] == ["nano", "micro", "mini"]
    assert [report["nano"].to_dict(), report["mini"].to_dict()] == [earlier[1], earlier[0]]
    assert scored == ["micro", "mini"]


def test_one_model_is_added_to_a_report_of_one_model(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    evaluate("nano", STS(PAIRS)).to_json(file)
    assert [each.model for each in evaluate("micro", STS(PAIRS), add_to=file)] == ["nano", "micro"]


def test_an_earlier_report_of_other_tasks_or_another_reference_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "scores.json"
    evaluate("nano", STS(PAIRS)).to_json(file)
    more = SentencePairs("pairs", [*PAIRS.first, "c"], [*PAIRS.second, "dd"], np.array([3.0, 2.0, 1.0, 0.0]), None)
    with pytest.raises(InputError, match=r"(the earlier report|micro) was scored on pairs \(Spearman x100, . items\)"):
        evaluate("micro", STS(more), add_to=file)
    other = dataclasses.replace(PAIRS, name="other")
    evaluate("nano", STS(PAIRS, other)).to_json(file)
    with pytest.raises(InputError, match="in another order than in the earlier report; expected pairs, other"):
        evaluate("micro", STS(other, PAIRS), add_to=file)
    with pytest.raises(InputError, match="has the reference None, but against is mini; expected the same one"):
        evaluate("micro", STS(PAIRS), against="mini", add_to=file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "has no models"),
        ("{", "cannot be read"),
        ('[{"model": "a"}]', "is not a valid report: required field missing"),
        ('[{"model": "a", "scores": 3}]', "is not a valid report"),
        ("3", "is not a valid report"),
    ],
)
def test_a_file_that_is_no_report_is_a_one_line_error(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "scores.json"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        evaluate("micro", STS(PAIRS), add_to=file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": []}, "no models to evaluate"),
        ({"models": None}, "a model is None; expected a name, a folder"),
        ({"models": "nothing-of-that-name"}, "no model called nothing-of-that-name"),
        ({"models": Path("absent")}, "no model called absent"),
        ({"against": 3}, "a model is 3; expected a name, a folder"),
        ({"tasks": []}, "no tasks to evaluate on; expected at least one of: .*, sts, "),
        ({"tasks": "stsb.tsv"}, "a task is 'stsb.tsv'; expected objects of registered tasks, such as STS"),
        ({"tasks": [PAIRS]}, "a task is .*; expected objects of registered tasks"),
        ({"cache": 3}, "cache is 3; expected a path"),
        (
            {"add_to": "absent.json"},
            "absent.json cannot be read: .*; expected a file that edgeembed evaluate --out wrote",
        ),
    ],
)
def test_wrong_arguments_are_reported_before_a_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(module, "score_data", lambda *_: pytest.fail("scored a model"))
    with pytest.raises(InputError, match=message) as error:
        evaluate(**{"models": "mini", "tasks": STS(PAIRS), "against": "nano", **arguments})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: STS("absent.tsv"), "absent.tsv cannot be read"),
        (STS, r"STS\(\) has no files; expected one or more paths"),
        (lambda: STS(3), "STS is given 3; expected paths"),  # type: ignore[arg-type]
        (lambda: Bitext(PAIRS), "Bitext is given .*; expected paths"),  # type: ignore[arg-type]
        (lambda: Bitext("absent.tsv", rows=1), "rows is 1; expected an integer of at least 2"),
        (lambda: Retrieval(SET, documents_by="absent"), "no model called absent"),
    ],
)
def test_a_task_that_cannot_be_read_is_a_one_line_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
