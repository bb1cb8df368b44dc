"""Alignment and uniformity, compared with the equations in NumPy float64."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed.evaluation import Score, compare_scores
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.papers.distilcse.tasks import geometry
from edgeembed.papers.distilcse.tasks.geometry import Geometry, GeometrySet, read_geometry, score_geometry

from ..conftest import NameEncoders  # noqa: TID252  # tests are not a package

EVAL = Path(__file__).parents[3].parent / "shared" / "data" / "eval"
HEADER = "sentence1\tsentence2\tscore"


class _Lookup:
    """An encoder that looks up embeddings and records the texts."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        self.vectors = vectors
        self.texts: list[str] = []

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        self.texts.extend(texts)
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    encode_query = encode
    encode_document = encode


# Scores do not depend on the norms of the embeddings, here 1 to 3.
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


def test_the_threshold_selects_the_positive_pairs(tmp_path: Path) -> None:
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
    assert sorted(encoder.texts) == ["east", "north", "south", "west"]


@pytest.mark.parametrize("rows", [1, 7, 256])
def test_block_size_does_not_change_uniformity(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(geometry, "_BLOCK_ROWS", rows)
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


def test_equal_embeddings_have_alignment_0_and_uniformity_0(tmp_path: Path) -> None:
    encoder = _Lookup(dict.fromkeys(("east", "north", "west", "south"), (1.0, 2.0)))
    figures = score_geometry(encoder, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS)))
    assert [score.value for score in figures] == pytest.approx([0, 0], abs=1e-6)


def test_an_embedding_of_zeros_fails(tmp_path: Path) -> None:
    encoder = _Lookup(SQUARE.vectors | {"north": (0, 0)})
    with pytest.raises(
        CheckError, match="1 of 4 embeddings are all zeros and cannot be normalized, the first is of the text 'north'"
    ):
        score_geometry(encoder, read_geometry(_file(tmp_path / "pairs.tsv", *ROWS)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ("a\tb\t1", "b\tc\t4"),
            "has no pair scored above 4, the highest score is 4; expected a lower positives_above",
        ),
        (("a\ta\t1", "a\ta\t5"), "has one distinct sentence"),
        (("a\tb\tmuch",), "score 'much' is not a number"),
    ],
)
def test_a_file_without_positive_pairs_or_sentences_is_a_one_line_error(
    tmp_path: Path, rows: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_geometry(_file(tmp_path / "pairs.tsv", *rows))
    assert "\n" not in str(error.value)


def test_a_score_of_which_lower_is_better_has_no_percentage() -> None:
    ours = Score("t", "alignment", 0.2, 9, lower_is_better=True)
    theirs = Score("t", "alignment", 0.3, 9, lower_is_better=True)
    (comparison,) = compare_scores([ours], [theirs])
    assert comparison.percent is None
    assert comparison.difference == pytest.approx(-0.1)


def test_the_table_shows_differences_and_that_lower_is_better(tmp_path: Path, name_encoders: NameEncoders) -> None:
    together = _Lookup(SQUARE.vectors | {"north": (1, 0)})
    name_encoders({"teacher": SQUARE, "student": together}.__getitem__)
    found = evaluate(["student"], Geometry(_file(tmp_path / "pairs.tsv", *ROWS)), against="teacher")
    (table,) = found.tables
    assert table.title == f"Geometry, {tmp_path.name}/pairs"
    assert table.columns == ("model", "alignment ↓", "alignment, difference", "uniformity ↓", "uniformity, difference")
    teacher, student = table.rows
    assert teacher[1:3] == ("1.0000", "+0.0000")
    assert student[1:3] == ("0.0000", "-1.0000")
    assert "lower is better" in table.legend
    assert "2 pairs scored above 4" in table.legend
    assert "6 pairs of 4 distinct sentences" in table.legend
    assert "%" not in found.to_markdown()
    content = found.models[0].to_dict()
    assert set(content["percent_of_reference"].values()) == {None}
    assert content["difference_from_reference"][f"{tmp_path.name}/pairs, alignment"] == pytest.approx(-1)
    assert all(score["lower_is_better"] for score in content["scores"])


def test_without_a_reference_there_are_no_differences(tmp_path: Path, name_encoders: NameEncoders) -> None:
    name_encoders(lambda _: SQUARE)
    found = evaluate(["model"], Geometry(_file(tmp_path / "pairs.tsv", *ROWS)))
    assert found.tables[0].columns == ("model", "alignment ↓", "uniformity ↓")


@pytest.mark.slow
@pytest.mark.skipif(not EVAL.is_dir(), reason=f"needs the evaluation sets in {EVAL}")
def test_geometry_of_stsb_equals_torch() -> None:
    task, encoder = read_geometry(EVAL / "stsb" / "dev.tsv"), Encoder()
    alignment, uniformity = score_geometry(encoder, task)
    points = torch.nn.functional.normalize(torch.from_numpy(np.asarray(encoder.encode(list(task.sentences)))))
    assert uniformity.value == pytest.approx(torch.pdist(points).square().mul(-2).exp().mean().log().item(), abs=1e-5)
    assert (uniformity.items, alignment.items) == (2_910, 208)
    assert 0 < alignment.value < 0.5
