import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed.evaluation import (
    ModelEvaluation,
    Score,
    compare_scores,
    read_retrieval,
    read_sts,
)
from edgeembed.evaluation.tasks.retrieval import score_retrieval
from edgeembed.evaluation.tasks.sts import score_sts


class _Table:
    """An encoder that looks up two-dimensional embeddings by angle in degrees."""

    def __init__(self, **degrees: float) -> None:
        self.degrees = degrees

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:
        assert batch_size == 32
        angles = np.radians([self.degrees[text.replace(" ", "_")] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    encode_query = encode
    encode_document = encode


def _sts_file(folder: Path, *rows: str, header: str = "sentence1\tsentence2\tscore") -> Path:
    file = folder / "pairs.tsv"
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return file


def _retrieval_folder(folder: Path) -> Path:
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"_id": "1", "title": "far", "text": "away"}\n'
        '{"_id": "2", "title": "", "text": "near"}\n'
        '{"_id": "3", "text": "middle"}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "ask"}\n{"_id": "u", "text": "unjudged"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\nq\t3\t2\nq\t2\t0\n")
    return folder


def test_spearman_equals_the_hand_computed_rank_correlation(tmp_path: Path) -> None:
    # Cosines of 0, 60, 30, 90 degrees rank 4, 2, 3, 1 against 4, 3, 2, 1: 1 - 6 * sum(d^2) / (n (n^2 - 1)).
    file = _sts_file(tmp_path, "a\ta\t4", "a\tc\t3", "a\tb\t2", "a\td\t1")
    score = score_sts(_Table(a=0, b=30, c=60, d=90), read_sts(file))[0]
    assert score.value == pytest.approx(100 * (1 - 6 * 2 / (4 * 15)))
    assert (score.task, score.items) == (f"{tmp_path.name}/pairs", 4)


def test_pairs_outside_stsb_are_scored_separately_if_the_file_marks_them(tmp_path: Path) -> None:
    rows = ("a\ta\t4\tnone", "a\tc\t3\tnone", "a\tb\t2\ttrain", "a\td\t1\tnone")
    file = _sts_file(tmp_path, *rows, header="sentence1\tsentence2\tscore\tin_stsb")
    everything, outside = score_sts(_Table(a=0, b=30, c=60, d=90), read_sts(file))
    assert everything.value == pytest.approx(80)
    assert outside.value == pytest.approx(100)
    assert outside.items == 3
    assert outside.task.endswith("outside STS-B")


def test_quotes_are_text(tmp_path: Path) -> None:
    pairs = read_sts(_sts_file(tmp_path, '"Then he left.\tHe went.\t1', "a\tb\t2"))
    assert pairs.first[0] == '"Then he left.'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sentence1\tscore\na\t1\n", "lacks the column sentence2"),
        ("", "lacks the column sentence1"),
        ("sentence1\tsentence2\tscore\n", "holds no pairs"),
        ("sentence1\tsentence2\tscore\na\tb\thigh\n", "pair 1: score 'high' is not a number"),
        ("sentence1\tsentence2\tscore\na\tb\t1\na\tb\n", "line 3 has 2 tab-separated fields; expected 3"),
        ("sentence1\tsentence2\tscore\na\tb\tnan\n", "pair 1: score 'nan' is not a number"),
        ("sentence1\tsentence2\tscore\na\tb\t1\nc\td\t1\n", "2 pairs, 1 different scores"),
    ],
)
def test_a_malformed_sts_file_is_a_one_line_error(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "bad.tsv"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_sts(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00bad", r"bad\.tsv line 1 is not UTF-8"),
        (None, r"bad\.tsv cannot be read"),
        (b"sentence1\tsentence2\tscore\na\tb\t1\tc\n", "line 2 has 4 tab-separated fields; expected 3"),
    ],
)
def test_an_unreadable_sts_file_is_an_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "bad.tsv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_sts(file)


def test_scored_pairs_may_be_csv(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text('sentence1,score,sentence2\n"Then, he left.",1,"He ""went""."\na,2,b\n', encoding="utf-8")
    pairs = read_sts(file)
    assert (pairs.first[0], pairs.second[0], list(pairs.scores)) == ("Then, he left.", 'He "went".', [1, 2])


def test_equal_similarities_of_all_pairs_fail(tmp_path: Path) -> None:
    pairs = read_sts(_sts_file(tmp_path, "a\tb\t1", "b\ta\t2"))
    with pytest.raises(CheckError, match="same cosine"):
        score_sts(_Table(a=0, b=30), pairs)


def test_embeddings_that_are_not_finite_fail(tmp_path: Path) -> None:
    pairs = read_sts(_sts_file(tmp_path, "a\tb\t1", "b\ta\t2"))
    with pytest.raises(CheckError, match=r"embeddings are not finite, the first is of the text 'a'"):
        score_sts(_Table(a=math.nan, b=30), pairs)


def test_retrieval_metrics_equal_the_hand_computed_values(tmp_path: Path) -> None:
    # Ranking of the query at 0 degrees: near, middle, far away; relevant are the second and the third.
    task = read_retrieval(_retrieval_folder(tmp_path))
    score = score_retrieval(_Table(ask=0, near=10, middle=40, far_away=80), task)
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert score.value == pytest.approx(100 * gain / (1 + 1 / math.log2(3)))
    assert score.details["MRR@10 x100"] == pytest.approx(50)
    assert score.details["MAP@100 x100"] == pytest.approx(100 * (1 / 2 + 2 / 3) / 2)
    assert score.details["recall@10 x100"] == score.details["recall@100 x100"] == pytest.approx(100)


def _overlapping_folder(folder: Path, judgments: str) -> Path:
    """Write a set whose query `1` is also a document, beside a hundred others."""
    (folder / "qrels").mkdir()
    texts = {"1": "ask", **{str(number): f"text {number}" for number in range(2, 102)}}
    rows = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    (folder / "queries.jsonl").write_text('{"_id": "1", "text": "ask"}\n')
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgments}")
    return folder


# The query is at 0 degrees, document n at n: the nearest is the query itself.
_OVERLAPPING = _Table(ask=0, **{f"text_{number}": number / 2 for number in range(2, 102)})


def test_a_query_that_is_also_a_document_does_not_find_itself(tmp_path: Path) -> None:
    task = read_retrieval(_overlapping_folder(tmp_path, "1\t2\t1\n1\t101\t1\n"))
    score = score_retrieval(_OVERLAPPING, task)
    assert score.value == pytest.approx(100 / (1 + 1 / math.log2(3)))  # ranks 1 and 100
    assert score.details["MRR@10 x100"] == pytest.approx(100)
    assert score.details["MAP@100 x100"] == pytest.approx(100 * (1 + 2 / 100) / 2)
    assert score.details["recall@100 x100"] == pytest.approx(100)


def test_a_judged_document_is_found_though_its_id_is_the_querys(tmp_path: Path) -> None:
    score = score_retrieval(_OVERLAPPING, read_retrieval(_overlapping_folder(tmp_path, "1\t1\t1\n")))
    assert score.value == pytest.approx(100)


def test_queries_without_judgments_are_left_out_and_title_and_text_are_joined(tmp_path: Path) -> None:
    task = read_retrieval(_retrieval_folder(tmp_path))
    assert task.queries == {"q": "ask"}
    assert task.documents == {"1": "far away", "2": "near", "3": "middle"}
    assert task.relevant == {"q": {"1", "3"}}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", None, "corpus.jsonl cannot be read"),
        ("corpus.jsonl", "{", "corpus.jsonl, line 1 is malformed"),
        ("corpus.jsonl", '{"_id": "1"}', "corpus.jsonl, line 1 is malformed"),
        ("corpus.jsonl", '{"_id": "1", "text": "a"}', "refers to an unknown query or document"),
        ("queries.jsonl", '{"_id": "x", "text": "a"}', "refers to an unknown query or document"),
        ("qrels/test.tsv", None, "test.tsv cannot be read"),
        ("qrels/test.tsv", "a\tb\n1\t2\n", "is malformed"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\t1\thigh\n", "is malformed"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\t1\t0\n", "judges no document relevant"),
    ],
)
def test_a_malformed_retrieval_folder_is_an_error(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    folder = _retrieval_folder(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        read_retrieval(folder)


def test_percentages_are_of_the_reference_task_by_task() -> None:
    evaluation = ModelEvaluation("s", (Score("t", "m", 78.09, 9),), "r", (Score("t", "m", 78.87, 9),))
    assert evaluation.comparisons[0].percent == pytest.approx(99.01, abs=0.01)
    assert evaluation.to_dict()["percent_of_reference"]["t"] == pytest.approx(99.01, abs=0.01)


def test_there_is_no_percentage_of_a_reference_score_that_is_not_positive() -> None:
    assert compare_scores([Score("t", "m", 5.0, 9)], [Score("t", "m", -1.0, 9)])[0].percent is None


def test_scores_of_different_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same tasks in the same order"):
        compare_scores([Score("t", "m", 5.0, 9)], [Score("u", "m", 5.0, 9)])
