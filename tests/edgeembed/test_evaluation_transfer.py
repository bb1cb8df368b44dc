"""Transfer tasks, on sets with known scores."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from edgeembed.evaluation import logistic_regression
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.transfer import Transfer, read_transfer, score_transfer

from .conftest import NameEncoders

Row = tuple[str, ...]


class _Numbers:
    """An encoder whose embedding of "3 0.5" is (3, 0.5), and which records the texts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        self.texts.extend(texts)
        return np.array([[float(number) for number in text.split()] for text in texts], dtype=np.float32)

    encode_query = encode
    encode_document = encode


class _Worse(_Numbers):
    """An encoder with equal embeddings for all texts."""

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        return np.ones((len(texts), 2), dtype=np.float32)


def _write(path: Path, rows: Iterable[Row], header: str = "text\tlabel") -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def _separable(count: int, seed: int = 0, labels: tuple[str, ...] = ("0", "1")) -> list[Row]:
    """Return texts whose embeddings are far from the origin, in a direction per label."""
    random = np.random.default_rng(seed)
    kinds = [number % len(labels) for number in range(count)]
    angles = [2 * np.pi * kind / len(labels) + random.normal(scale=0.05) for kind in kinds]
    return [
        (f"{9 * np.cos(angle):.6f} {9 * np.sin(angle):.6f}", labels[kind])
        for angle, kind in zip(angles, kinds, strict=True)
    ]


def _noise(count: int, seed: int = 0) -> list[Row]:
    random = np.random.default_rng(seed)
    return [
        (f"{x:.6f} {y:.6f}", str(label))
        for (x, y), label in zip(random.normal(size=(count, 2)), random.integers(2, size=count), strict=True)
    ]


def _split(folder: Path, stem: str, **parts: list[Row]) -> Path:
    for part, rows in parts.items():
        _write(folder / f"{stem}_{part}.tsv", rows)
    return folder


@pytest.fixture
def three_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "FOLDS", 3)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Any]]:
    """Record C and the rows of every fit."""
    seen = []
    plain = LogisticRegression.fit

    def fit(self: Any, features: Any, labels: Any) -> Any:
        seen.append((self.C, features.copy()))
        return plain(self, features, labels)

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    return seen


@pytest.mark.usefixtures("three_folds")
def test_linearly_separable_texts_are_classified_perfectly(tmp_path: Path) -> None:
    (task,) = read_transfer([_write(tmp_path / "subj.tsv", _separable(40))])
    score = score_transfer(_Numbers(), task)
    assert (score.task, score.metric, score.value, score.items) == ("SUBJ", "accuracy x100", 100, 40)
    assert score.details["dev accuracy x100"] == 100


def test_random_labels_are_classified_at_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic_regression, "CROSS_VALIDATION_C", (1.0,))
    (task,) = read_transfer([_write(tmp_path / "mr.tsv", _noise(400))])
    assert score_transfer(_Numbers(), task).value == pytest.approx(50, abs=8)


def test_three_labels_are_classified(tmp_path: Path) -> None:
    kinds = ("HUM", "LOC", "NUM")
    _split(tmp_path, "trec", train=_separable(60, labels=kinds), test=_separable(9, seed=1, labels=kinds))
    (task,) = read_transfer([tmp_path])
    assert score_transfer(_Numbers(), task).value == 100


@pytest.mark.usefixtures("three_folds")
def test_cross_validation_tests_every_text_once_and_never_trains_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    plain = logistic_regression._fit_and_test

    def outcome(train: Any, dev: Any, test: Any, grid: Any) -> Any:
        seen.append((train, dev, test, grid))
        return plain(train, dev, test, grid)

    monkeypatch.setattr(logistic_regression, "_fit_and_test", outcome)
    (task,) = read_transfer([_write(tmp_path / "cr.tsv", [*_separable(30), *_noise(30)])])
    score_transfer(_Numbers(), task)
    assert len(seen) == 3
    tested = [tuple(row) for _, _, test, _ in seen for row in test.features]
    assert len(set(tested)) == len(tested) == 60
    for train, dev, test, grid in seen:
        assert dev is None
        assert not {tuple(row) for row in train.features} & {tuple(row) for row in test.features}
        assert grid == (0.25, 0.5, 1, 2, 4, 8)
    shares = [np.mean(test.labels == "1") for _, _, test, _ in seen]
    assert np.ptp(shares) < 0.06  # folds are stratified


@pytest.mark.usefixtures("three_folds")
def test_folds_are_deterministic(tmp_path: Path) -> None:
    (task,) = read_transfer([_write(tmp_path / "mr.tsv", _noise(60))])
    assert score_transfer(_Numbers(), task) == score_transfer(_Numbers(), task)


def test_the_test_split_is_never_trained_on(tmp_path: Path, fitted: list[tuple[float, Any]]) -> None:
    _split(tmp_path, "trec", train=_noise(40, seed=1), test=_noise(20, seed=2))
    (task,) = read_transfer([tmp_path])
    score_transfer(_Numbers(), task)
    held_out = {tuple(row) for row in _Numbers().encode([text for text, _ in _noise(20, seed=2)])}
    assert not any(tuple(row) in held_out for _, rows in fitted for row in rows)
    assert {c for c, _ in fitted} == {0.5, 1, 2, 4, 8, 16, 32}
    assert Counter(len(rows) for _, rows in fitted) == {36: 70, 40: 1}  # ten folds of each C, then all of them


def test_the_development_split_selects_c_and_is_not_trained_on(tmp_path: Path, fitted: list[tuple[float, Any]]) -> None:
    train: list[Row] = [("1 0", "0"), ("2 0", "0"), ("3 0", "0"), ("30 0", "1"), ("40 0", "1")]
    _split(tmp_path, "sst2", train=train, dev=[("1 5", "0"), ("30 5", "1")], test=[("1 7", "0"), ("39 7", "1")])
    (task,) = read_transfer([tmp_path])
    score = score_transfer(_Numbers(), task)
    assert (score.task, score.value, score.items) == ("SST-2", 100, 2)
    assert [c for c, _ in fitted] == [0.25, 0.5, 1, 2, 4, 8, score.details["min C"]]
    assert all(len(rows) == 5 and not rows[:, 1].any() for _, rows in fitted)
    assert score.details["min C"] == score.details["max C"]


def test_the_c_with_the_best_development_accuracy_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(self: Any, features: Any) -> Any:
        return np.full(len(features), "1" if self.C == 4 else "0")

    monkeypatch.setattr(LogisticRegression, "predict", predict)
    rows = logistic_regression.LabeledFeatures(np.eye(4, dtype=np.float32), np.array(["0", "1", "0", "1"]))
    ones = logistic_regression.LabeledFeatures(np.eye(4, dtype=np.float32)[:2], np.array(["1", "1"]))
    found = logistic_regression.fit_and_test(rows, ones, rows)
    assert (found.c, found.dev_accuracy, found.accuracy) == (4, 1, 0.5)


def test_pairs_are_classified_by_difference_and_product(tmp_path: Path, fitted: list[tuple[float, Any]]) -> None:
    header = "sentence1\tsentence2\tlabel"
    alike = [(f"{x} 1", f"{x} 1", "1") for x in range(1, 13)]
    unlike = [(f"{x} 1", f"{x} -5", "0") for x in range(1, 13)]
    wrong = [("1 1", "1 -5", "1")]
    _write(tmp_path / "mrpc_tok_train.tsv", [*alike, *unlike], header)
    _write(tmp_path / "mrpc_tok_test.tsv", [*alike[:3], *unlike[:2], *wrong], header)
    (task,) = read_transfer([tmp_path])
    score = score_transfer(_Numbers(), task)
    assert score.task == "MRPC"
    assert score.value == pytest.approx(100 * 5 / 6)
    truth, found = ["1", "1", "1", "0", "0", "1"], ["1", "1", "1", "0", "0", "0"]
    assert score.details["F1 x100"] == pytest.approx(100 * f1_score(truth, found, pos_label="1"))
    whole = fitted[-1][1]
    assert whole[1].tolist() == [0, 0, 4, 1]
    assert whole[12].tolist() == [0, 6, 1, -5]


def test_each_distinct_text_is_encoded_once(tmp_path: Path) -> None:
    encoder = _Numbers()
    rows = [*_separable(20), *_separable(20)]
    _split(tmp_path, "sst2", train=rows, dev=rows[:4], test=rows[:6])
    (task,) = read_transfer([tmp_path])
    score_transfer(encoder, task)
    assert len(encoder.texts) == len(set(encoder.texts)) == 20


def test_a_classifier_that_does_not_converge_raises_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(logistic_regression, "_classifier", lambda: LogisticRegression(max_iter=1))
    _split(tmp_path, "sst2", train=_noise(20), dev=_noise(6), test=_noise(6))
    (task,) = read_transfer([tmp_path])
    score_transfer(_Numbers(), task)
    assert not recwarn.list


def test_the_tasks_of_a_folder_are_read_in_the_papers_order(tmp_path: Path) -> None:
    _split(tmp_path, "sst2", train=_separable(4), dev=_separable(2), test=_separable(2))
    for stem in ("mpqa", "subj", "cr", "mr", "sst5_train", "notes"):
        _write(tmp_path / f"{stem}.tsv", _separable(24))
    assert [task.name for task in read_transfer([tmp_path])] == ["MR", "CR", "SUBJ", "MPQA", "SST-2"]


@pytest.mark.parametrize("part", ["train", "dev", "test"])
def test_any_split_of_a_task_stands_for_all_splits(tmp_path: Path, part: str) -> None:
    _split(tmp_path, "own", train=_separable(4), dev=_separable(2), test=_separable(6))
    (task,) = read_transfer([tmp_path / f"own_{part}.tsv"])
    assert task.name == f"{tmp_path.name}/own"
    assert [len(each.labels) for each in task.splits] == [4, 2, 6]


def test_an_empty_text_is_kept(tmp_path: Path) -> None:
    (task,) = read_transfer([_write(tmp_path / "cr.tsv", [("", "1"), *_separable(24)])])
    assert task.train.first[0] == ""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"contains none of the transfer tasks; expected one or more of mr\.tsv"),
        ({"trec_train": _separable(20)}, r"trec_train\.tsv has no trec_test\.tsv beside it"),
        ({"sst2_dev": _separable(2), "sst2_test": _separable(2)}, r"sst2_dev\.tsv has no sst2_train\.tsv beside it"),
        ({"mr": []}, "has no rows below its header"),
        ({"mr": [("1 1", "0"), ("1 2", "")]}, "row 2 has no label"),
        ({"mr": [("1 1", "0", "x")]}, "line 2 has 3 tab-separated fields; expected 2"),
        ({"mr": [("1 1", "0")]}, "has one label, '0'"),
        ({"mr": _separable(22)}, "has 11 rows of label '0'; expected at least 12"),
        ({"trec_train": _separable(18), "trec_test": _separable(2)}, "has 9 rows of label '0'; expected at least 10"),
        (
            {"trec_train": _separable(20), "trec_test": [("1 1", "2")]},
            r"TREC: the label '2' is not in .*trec_train\.tsv; expected the same in all splits",
        ),
    ],
)
def test_an_unusable_task_is_a_one_line_error(tmp_path: Path, files: dict[str, list[Row]], message: str) -> None:
    for stem, rows in files.items():
        _write(tmp_path / f"{stem}.tsv", rows)
    with pytest.raises(InputError, match=message) as error:
        read_transfer([tmp_path])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [("text\tkind", "lacks the column label"), ("label\tsentence2", "lacks the column sentence1")],
)
def test_a_missing_column_is_an_error(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_transfer([_write(tmp_path / "own.tsv", [("1", "1")], header)])


def test_mixing_single_texts_and_pairs_is_an_error(tmp_path: Path) -> None:
    _split(tmp_path, "own", train=_separable(20))
    _write(tmp_path / "own_test.tsv", [("1 1", "1 1", "1")], "sentence1\tsentence2\tlabel")
    with pytest.raises(InputError, match="single texts in one split and pairs in another"):
        read_transfer([tmp_path / "own_train.tsv"])


def test_a_task_given_twice_is_an_error(tmp_path: Path) -> None:
    file = _write(tmp_path / "mr.tsv", _separable(24))
    with pytest.raises(InputError, match="MR is given twice"):
        read_transfer([tmp_path, file])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; expected a TSV file or a folder"):
        read_transfer([tmp_path / "absent_train.tsv"])


def test_the_table_shows_missing_tasks_and_names_those_of_the_average(
    tmp_path: Path, name_encoders: NameEncoders
) -> None:
    name_encoders(lambda name: {"teacher": _Numbers(), "student": _Worse()}[name])
    _split(tmp_path, "trec", train=_separable(20), test=_separable(8))
    _split(tmp_path, "sst2", train=_separable(8), dev=_separable(4), test=_separable(8))
    _split(tmp_path, "own", train=_separable(8), dev=_separable(4), test=_separable(8))
    found = evaluate(["student"], Transfer(tmp_path, tmp_path / "own_train.tsv"), against="teacher")
    table, others = found.tables
    assert table.columns[:8] == ("model", "MR", "CR", "SUBJ", "MPQA", "SST-2", "TREC", "MRPC")
    assert table.columns[8:] == ("Avg. (2 of 7)", "% (2 of 7)", "params", "w/o embeddings")
    assert table.rows[0][1:10] == ("-", "-", "-", "-", "100.00", "100.00", "-", "100.00", "100.00")
    assert table.rows[1][5:10] == ("50.00", "50.00", "-", "50.00", "50.00")
    assert "Avg. (2 of 7: SST-2, TREC) is over these sets only" in table.legend
    assert others.columns == ("model", f"{tmp_path.name}/own", f"{tmp_path.name}/own, %")
    content = found.models[0].to_dict()
    assert content["suites"]["transfer"]["values"]["MR"] is None
    assert content["suites"]["transfer"]["average"] == content["suites"]["transfer"]["percent_of_reference"] == 50
    assert "sts" not in content["suites"]
    assert content["percent_of_reference"]["TREC"] == 50
