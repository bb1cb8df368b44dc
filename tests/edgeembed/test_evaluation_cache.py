"""Scores of the reference are kept, and reused only for what they are scores of."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder

from edgeembed.evaluation import TASKS, EvaluationTask, RetrievalSet, Score, SentencePairs
from edgeembed.evaluation import evaluate as module
from edgeembed.evaluation.encoders import find_encoder
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.retrieval import Retrieval
from edgeembed.evaluation.tasks.sts import STS

TEXTS = ["a cat", "a dog", "rain", "a cat sat", "the sun", "water"]
PAIRS = SentencePairs("pairs", TEXTS[:3], TEXTS[3:], np.array([3.0, 1.0, 2.0]), None)
SET = RetrievalSet("set", {"q": "a cat"}, {"1": "a cat sat", "2": "rain"}, {"q": {"1"}})


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models and data sets that were scored, and not read from the cache."""
    names: list[str] = []
    score_data = module.score_data

    def score(name: str, encoder: Any, task: Any, data: Any, reporter: Any) -> Any:
        names.append(f"{name} on {data.name}")
        return score_data(name, encoder, task, data, reporter)

    monkeypatch.setattr(module, "score_data", score)
    return names


def test_the_reference_is_scored_once_for_all_students(tmp_path: Path, scored: list[str]) -> None:
    first = evaluate("micro", STS(PAIRS), against="nano", cache=tmp_path)
    second = evaluate("mini", STS(PAIRS), against="nano", cache=tmp_path)
    assert scored == ["nano on pairs", "micro on pairs", "mini on pairs"]
    assert second.models[0].reference_scores == first.models[0].reference_scores
    assert second.models[0].reference_parameters == first.models[0].reference_parameters
    assert [score.kind for score in second.models[0].reference_scores] == ["sts"]


def test_a_reference_whose_scores_are_known_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate("micro", STS(PAIRS), against="nano", cache=tmp_path)
    monkeypatch.setattr(
        module, "find_encoder", lambda name: (lambda: pytest.fail("loaded")) if name == "nano" else find_encoder(name)
    )
    evaluate("micro", STS(PAIRS), against="nano", cache=tmp_path)


def test_other_data_settings_or_models_are_scored(tmp_path: Path, scored: list[str]) -> None:
    def score(task: Any, against: str = "nano") -> None:
        evaluate("micro", task, against=against, cache=tmp_path)

    score(STS(PAIRS))
    score(STS(SentencePairs("pairs", PAIRS.first, PAIRS.second, np.array([3.0, 2.0, 1.0]), None)))
    score(STS(PAIRS), against="mini")
    score(Retrieval(SET, documents_by="micro"), against="micro")
    found = [name for name in scored if not name.startswith("micro")]
    assert found == ["nano on pairs", "nano on pairs", "mini on pairs"]


class _Scaled(EvaluationTask):
    """The length of an embedding, scaled: a setting that the data do not show."""

    metavar = "FILE"
    help = "Nothing."

    def __init__(self, *sources: SentencePairs, factor: int = 1) -> None:
        self.factor = factor
        self.sets = list(sources)

    def score(self, encoder: Any, data: SentencePairs) -> list[Score]:
        return [Score(data.name, "length", self.factor * float(np.linalg.norm(encoder.encode(data.first[0]))), 1)]


@pytest.fixture
def scaled() -> Iterator[None]:
    """The task of a plugin."""
    TASKS.register("scaled")(_Scaled)
    yield
    del TASKS._classes["scaled"]


@pytest.mark.usefixtures("scaled")
def test_other_settings_of_a_plugins_task_are_scored(tmp_path: Path, scored: list[str]) -> None:
    for factor in (2, 3, 3):
        report = evaluate("micro", _Scaled(PAIRS, factor=factor), against="nano", cache=tmp_path)
        assert report.models[0].reference_scores[0].value == pytest.approx(factor)
    assert scored.count("nano on pairs") == 2


def test_documents_of_another_model_are_scored_anew(tmp_path: Path, scored: list[str]) -> None:
    for documents_by in ("mini", "mini", Encoder("mini")):
        evaluate("micro", Retrieval(SET, documents_by=documents_by), against="mini", cache=tmp_path)
    mini = [name for name in scored if name.startswith("mini")]
    # A loaded encoder has no fingerprint, so what depends on it is never kept.
    assert mini == ["mini on set", "mini on set, documents by mini", "mini on set, documents by edgeembed-mini"]


def test_nothing_is_kept_of_a_loaded_model_or_without_a_cache(tmp_path: Path) -> None:
    evaluate("micro", STS(PAIRS), against=Encoder("nano"), cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_cache_false_scores_the_reference_each_time(scored: list[str]) -> None:
    for _ in range(2):
        evaluate("micro", STS(PAIRS), against="nano", cache=False)
    assert scored.count("nano on pairs") == 2


def test_a_damaged_file_is_written_again(tmp_path: Path, scored: list[str]) -> None:
    evaluate("micro", STS(PAIRS), against="nano", cache=tmp_path)
    for file in tmp_path.iterdir():
        file.write_text("{", encoding="utf-8")
    evaluate("micro", STS(PAIRS), against="nano", cache=tmp_path)
    assert scored.count("nano on pairs") == 2
    assert all(json.loads(file.read_text(encoding="utf-8")) for file in tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    assert evaluate("micro", STS(PAIRS), against="nano", cache=file / "folder").models[0].reference_scores
