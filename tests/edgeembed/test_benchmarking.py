"""The public functions benchmark and compare: which arguments they take, and which are wrong."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import CheckError, EdgeEmbedError, InputError

from edgeembed import benchmarking
from edgeembed.benchmarking import benchmark, compare, find_subjects
from edgeembed.corpus.pairs import SentencePairs
from edgeembed.evaluation import RetrievalSet
from edgeembed.evaluation.tasks.retrieval import Retrieval
from edgeembed.evaluation.tasks.sts import STS
from edgeembed.models import load_model

BY_NAME = f"fastembed:BAAI/bge-small-en-v1.5@{Path(sys.base_prefix) / 'bin' / 'python3'}"
PAIRS = SentencePairs(
    "pairs", ["a cat", "a dog", "rain"], ["a cat sat", "the sun", "water"], np.array([3, 1, 2.0]), None
)


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A subject that only needs the standard library."""
    code = "def embed(texts):\n    return [[float(len(text)), text.count('e') + 0.5] for text in texts]\n"
    (tmp_path / "counts.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "counts:embed"


def test_texts_and_data_may_be_in_memory_and_reports_are_compared(function: str, tmp_path: Path) -> None:
    texts = ["read a file", "sort a list"]
    report = benchmark(
        function, against=f"base={function}", texts=texts, runs=2, processes=1, sweep=False, tasks=STS(PAIRS)
    )
    assert (report.baseline, report.texts.source, report.texts.count) == ("base", "the caller", 2)
    assert report.tasks == ["pairs (Spearman x100)"]
    report.to_json(tmp_path / "report.json")
    comparison = compare(tmp_path / "report.json", report)
    assert [change.latency_ratio for change in comparison.changes] == [1, 1]


def test_queries_are_scored_over_the_documents_of_another_model_of_the_same_dimension(function: str) -> None:
    task = RetrievalSet("set", {"q": "eee"}, {"1": "eee", "2": "a"}, {"q": {"1"}})
    options: dict[str, Any] = {"texts": ["read a file"], "runs": 1, "processes": 1, "sweep": False}
    report = benchmark(["nano", f"wide={function}"], tasks=Retrieval(task, documents_by="nano"), **options)
    assert report.tasks == ["set (nDCG@10 x100)", "set, documents by nano (nDCG@10 x100)"]
    assert [len(subject.quality) for subject in report] == [2, 1]
    assert [subject.info.space for subject in report] == [Encoder("nano").bundle.space, None]


def test_loaded_models_are_measured_like_their_folders(teacher_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def measure(subjects: Any, *_: Any, **__: Any) -> Any:
        seen.extend((subject, (Path(subject.argument) / "config.json").is_file()) for subject in subjects)
        raise InputError("stop")

    monkeypatch.setattr(benchmarking, "measure", measure)
    model = load_model(str(teacher_folder))
    with pytest.raises(InputError, match="stop"):
        benchmark([model, Encoder(), teacher_folder], texts=["read a file"])
    assert [subject.adapter for subject, _ in seen] == ["sentence-transformer", "bundle", "sentence-transformer"]
    assert len({subject.name for subject, _ in seen}) == 3
    assert all(has_config for _, has_config in seen)
    assert not Path(seen[0][0].argument).exists()


def test_a_path_is_a_folder_and_never_a_built_in_bundle() -> None:
    with pytest.raises(InputError, match="no model called"):
        find_subjects([Path("nano")])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("sentence-transformer-onnx", r"pip install 'edgeembed\[optimum\]'$"),
        ("model2vec", "peer needs model2vec, which is not installed; install it, or add @ and the Python of an"),
        ("fastembed", "peer needs fastembed, which is not installed"),
    ],
)
def test_a_subject_whose_library_is_missing_is_an_error_before_any_work(
    kind: str, message: str, teacher_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarking, "measure", lambda *_, **__: pytest.fail("measured"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(EdgeEmbedError, match=message) as raised:
        benchmark(f"peer={kind}:{teacher_folder}", texts=["read a file"])
    assert not isinstance(raised.value, CheckError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": []}, "no models to benchmark; expected at least one, or a preset"),
        ({"models": [3]}, "models is .3.; expected a model, or a list of models"),
        ({"models": "absent"}, "no model called absent"),
        ({"preset": "none"}, "no preset called none"),
        ({"peers": "build"}, "expected a preset as well"),
        ({"runs": 0}, "runs: 0 given; expected at least 1"),
        ({"texts": "absent.txt"}, "absent.txt does not exist"),
        ({"unscored": ["other"]}, "unscored names other; expected some of: mini"),
        ({"min_quality": 90.0}, "min_quality is 90, but nothing is scored"),
        ({"min_quality": 90.0, "against": "nano", "tasks": STS(PAIRS), "unscored": "mini"}, "needs the score of mini"),
        ({"min_quality": 90.0, "against": "nano", "tasks": STS(PAIRS), "unscored": "nano"}, "needs the score of nano"),
        (
            {"max_size_mb": 1.0, "models": BY_NAME},
            "cannot be checked for .*by its name",
        ),
        ({"preset": "runtime", "models": "json:dumps"}, "overhead of a call .* cannot be checked for json:dumps"),
        ({"threads": 4096, "texts": "absent.txt"}, "4096 threads requested; expected at most"),
        ({"threads": 4096, "models": "absent"}, "4096 threads requested; expected at most"),
        ({"max_latency_ratio": 0.5}, "relative to a baseline; expected against as well"),
        ({"max_size_mb": -1.0}, "-1.0 given; expected a number of at least 0"),
    ],
)
def test_wrong_arguments_are_reported_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("edgeembed_bench.benchmarking.start_worker", lambda *_, **__: pytest.fail("measured"))
    with pytest.raises(InputError, match=message) as error:
        benchmark(**{"models": "mini", "texts": ["read a file"], **arguments})
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_report_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        compare(tmp_path / "absent.json", tmp_path / "absent.json")
