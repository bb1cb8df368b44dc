"""Semantic retrieval with an IVF index: quality, size and interleaved times."""

import sys
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime.errors import CheckError, InputError, MissingExtraError

from edgeembed.evaluation.evaluate import evaluate
from edgeembed.papers.hpd.ivf import IVFIndex, choose_nlist, mean_reciprocal_rank, search_interleaved
from edgeembed.papers.hpd.tasks.semantic_retrieval import MEMORY, TIME, SemanticRetrieval, reduction_factor

from ..angles import ENCODER, WORSE, Angles, write_lines  # noqa: TID252  # tests are not a package
from ..conftest import NameEncoders  # noqa: TID252  # tests are not a package

HEADER = "id\tquestion1\tquestion2\tis_duplicate"


def test_semantic_retrieval_reports_the_savings_of_a_model(tmp_path: Path, name_encoders: NameEncoders) -> None:
    name_encoders({"teacher": ENCODER, "student": WORSE, "again": ENCODER}.__getitem__)
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    file = write_lines(tmp_path / "pairs.tsv", HEADER, "1\ta\ta\t1", "2\td\tb\t1", "3\tb\td\t0", "4\tb\tc\t0")
    found = evaluate(["again", "student"], SemanticRetrieval(file, nlist=64, nprobe=2), against="teacher")
    score = found.models[0].scores[0]
    # The nearest to a is a itself; to d at 90 degrees d, then c, then b; to the student d is at 20, b at 30.
    assert score.value == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert found.models[1].scores[0].value == pytest.approx(100 * (1 + 1 / 2) / 2)
    assert (score.details["nlist"], score.details["nprobe"], score.details["dimension"]) == (1, 2, 2)
    (comparison,) = found.models[0].comparisons
    assert reduction_factor(comparison, MEMORY) == 1
    assert reduction_factor(comparison, TIME) > 0
    assert found.models[0].to_dict()["percent_of_reference"][score.task] == pytest.approx(100)
    (table,) = found.tables
    assert [row[0] for row in table.rows] == ["teacher", "again", "student"]
    assert table.columns == ("model", "dim", "MRR@10", "%", "time ms", "time", "mem MB", "mem")
    assert table.rows[0][-1] == "1.0x"
    assert "2 queries in 4 documents; faiss IVF on the CPU, nlist 1, nprobe 2" in table.legend


def test_embeddings_that_are_not_finite_fail_semantic_retrieval(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    file = write_lines(tmp_path / "pairs.tsv", HEADER, "1\ta\tb\t1")
    with pytest.raises(CheckError, match="not finite"):
        evaluate(Angles(a=np.nan, b=1), SemanticRetrieval(file))


def test_times_are_not_added_to_those_of_another_run(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    file = write_lines(tmp_path / "pairs.tsv", HEADER, "1\ta\tb\t1")
    with pytest.raises(InputError, match="add_to is given with semantic-retrieval, whose times compare only within a"):
        evaluate(ENCODER, SemanticRetrieval(file), add_to="absent.json")


def test_missing_faiss_is_an_error_before_a_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"edgeembed-runtime\[faiss\]"):
        SemanticRetrieval(write_lines(tmp_path / "pairs.tsv", HEADER, "1\ta\tb\t1"))


def test_mean_reciprocal_rank_equals_a_hand_computed_value() -> None:
    retrieved = np.array([[3, 1, 2], [0, 1, 2], [5, 6, 7]])
    relevant = [frozenset({2, 1}), frozenset({0}), frozenset({1})]
    assert mean_reciprocal_rank(retrieved, relevant) == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_missing_hits_do_not_count_as_relevant() -> None:
    retrieved = np.array([[-1, -1], [4, -1]])
    assert mean_reciprocal_rank(retrieved, [frozenset({1}), frozenset({4})]) == pytest.approx(1 / 2)


def test_nlist_is_at_most_one_list_per_39_documents() -> None:
    assert [choose_nlist(count) for count in (1, 39, 78, 400_000)] == [1, 1, 2, 1024]
    assert choose_nlist(400_000, 16) == 16


def test_search_of_all_lists_finds_the_nearest_document_for_any_vector_length() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    documents = np.random.default_rng(0).normal(size=(160, 8)).astype(np.float32)
    queries = 5 * documents[:20]
    index = IVFIndex(queries, documents, nlist=4, nprobe=4)
    assert mean_reciprocal_rank(index.search(), [frozenset({place}) for place in range(20)]) == 1
    assert index.dimension == 8
    assert len(search_interleaved({"ours": index})["ours"]) == 10
    assert index.size_bytes >= documents.nbytes
