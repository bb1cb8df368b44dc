"""Alignment and uniformity, beside what NumPy gives in float64 by the equations as they stand."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed.evaluation import (
    GeometrySet,
    Score,
    TaskPaths,
    compare,
    evaluate_models,
    evaluation_markdown,
    evaluation_tables,
    geometry,
    read_geometry,
    score_geometry,
    suite,
)

HEADER = "sentence1\tsentence2\tscore"


class _Lookup:
    """An encoder that looks vectors up, and remembers what it was asked for."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        self.asked.extend(texts)
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    encode_query = encode
    encode_document = encode


# The lengths of the vectors, 2 and 3, are nothing to the figures.
SQUARE = _Lookup({"east": (2, 0), "north": (0, 3), "west": (-1, 0), "south": (0, -1)})
ROWS = ("east\tnorth\t4.2", "east\twest\t4", "east\teast\t5", "south\tnorth\t0")


def _file(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return path


def _random(count: int, dimension: int = 12) -> _Lookup:
    return _Lookup(
        {f"s{number}": row for number, row in enumerate(np.random.default_rng(3).normal(size=(count, dimension)))}
    )


def test_alignment_is_the_mean_squared_distance_of_pairs_scored_above_four(tmp_path: Path) -> None:
    # Two pairs lie above 4: a right angle has a squared distance of 2, equal sentences have 0.
    alignment, _ = score_geometry(SQUARE, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS)))
    assert alignment.value == pytest.approx(1)
    assert (alignment.task, alignment.items) == (f"{tmp_path.name}/pairs, alignment", 2)
    assert alignment.details == {"positives above": 4}


def test_another_threshold_takes_other_pairs(tmp_path: Path) -> None:
    task = read_geometry(_file(tmp_path / "pairs.tsv", *ROWS), above=3.9)
    alignment, _ = score_geometry(SQUARE, task)
    assert alignment.value == pytest.approx((2 + 4 + 0) / 3)


def test_uniformity_is_over_every_pair_of_distinct_sentences_once(tmp_path: Path) -> None:
    # Of the six pairs of four points on the axes two lie opposite, at a squared distance of 4, the others at 2.
    _, uniformity = score_geometry(SQUARE, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS, *ROWS)))
    assert uniformity.value == pytest.approx(math.log((4 * math.exp(-4) + 2 * math.exp(-8)) / 6))
    assert (uniformity.items, uniformity.details) == (4, {"pairs": 6})


def test_each_distinct_sentence_is_encoded_once(tmp_path: Path) -> None:
    encoder = _Lookup(SQUARE.vectors)
    score_geometry(encoder, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS, *ROWS)))
    assert sorted(encoder.asked) == ["east", "north", "south", "west"]


@pytest.mark.parametrize("rows", [1, 7, 256])
def test_blocks_give_what_the_equation_gives(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(geometry, "_ROWS", rows)
    encoder = _random(300)
    names = tuple(encoder.vectors)
    positives = tuple(itertools.pairwise(names[:40]))
    alignment, uniformity = score_geometry(encoder, GeometrySet("set", positives, names, 4))

    points = np.array(list(encoder.vectors.values()), dtype=np.float32).astype(np.float64)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    squared = [np.sum((first - second) ** 2) for first, second in itertools.combinations(points, 2)]
    assert uniformity.value == pytest.approx(math.log(np.mean(np.exp(-2 * np.array(squared)))), rel=1e-6)
    apart = [np.linalg.norm(points[place] - points[place + 1]) ** 2 for place in range(39)]
    assert alignment.value == pytest.approx(np.mean(apart), rel=1e-6)


def test_vectors_that_all_lie_together_are_aligned_and_not_uniform(tmp_path: Path) -> None:
    encoder = _Lookup(dict.fromkeys(("east", "north", "west", "south"), (1.0, 2.0)))
    figures = score_geometry(encoder, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS)))
    assert [score.value for score in figures] == pytest.approx([0, 0], abs=1e-6)


def test_a_vector_of_zeros_is_on_no_sphere(tmp_path: Path) -> None:
    encoder = _Lookup(SQUARE.vectors | {"north": (0, 0)})
    with pytest.raises(CheckError, match="1 of 4 vectors are all zeros and on no sphere, the first: 'north'"):
        score_geometry(encoder, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("a\tb\t1", "b\tc\t4"), "holds no pair scored above 4, the highest score is 4; expected a lower --positives-"),
        (("a\ta\t1", "a\ta\t5"), "holds one distinct sentence"),
        (("a\tb\tmuch",), "score 'much' is no number"),
    ],
)
def test_a_file_without_geometry_is_refused_in_a_line(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        read_geometry(_file(tmp_path / "pairs.tsv", *rows))
    assert "\n" not in str(refusal.value)


def test_a_figure_of_which_less_is_better_is_no_percentage_of_a_references() -> None:
    ours = Score("t", "alignment", 0.2, 9, lower_is_better=True)
    theirs = Score("t", "alignment", 0.3, 9, lower_is_better=True)
    (comparison,) = compare([ours], [theirs])
    assert comparison.percent is None
    assert comparison.difference == pytest.approx(-0.1)


def test_the_table_tells_differences_and_which_way_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = _Lookup(SQUARE.vectors | {"north": (1, 0)})
    monkeypatch.setattr(suite, "open_encoder", {"teacher": SQUARE, "student": together}.__getitem__)
    paths = TaskPaths(geometry=[_file(tmp_path / "pairs.tsv", *ROWS)])
    found = evaluate_models(["student"], paths, against="teacher")
    (table,) = evaluation_tables(found)
    assert table.title == f"Geometry, {tmp_path.name}/pairs"
    assert table.columns == ("model", "alignment ↓", "alignment, difference", "uniformity ↓", "uniformity, difference")
    teacher, student = table.rows
    assert teacher[1:3] == ("1.0000", "+0.0000")
    assert student[1:3] == ("0.0000", "-1.0000")
    assert "lower is better" in table.legend
    assert "2 pairs that are scored above 4" in table.legend
    assert "6 pairs of 4 distinct sentences" in table.legend
    assert "%" not in evaluation_markdown(found)
    told = found[0].as_dict()
    assert set(told["percent_of_reference"].values()) == {None}
    assert told["difference_from_reference"][f"{tmp_path.name}/pairs, alignment"] == pytest.approx(-1)
    assert all(score["lower_is_better"] for score in told["scores"])


def test_without_a_reference_there_are_no_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "open_encoder", lambda _: SQUARE)
    (found,) = evaluate_models(["model"], TaskPaths(geometry=[_file(tmp_path / "pairs.tsv", *ROWS)]))
    assert evaluation_tables([found])[0].columns == ("model", "alignment ↓", "uniformity ↓")
