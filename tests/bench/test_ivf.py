import numpy as np
import pytest
from edgeembed_bench.paper_tables.hpd import IVFIndex, choose_nlist, mean_reciprocal_rank, search_interleaved


def test_mean_reciprocal_rank_equals_a_hand_computed_value() -> None:
    found = np.array([[3, 1, 2], [0, 1, 2], [5, 6, 7]])
    relevant = [frozenset({2, 1}), frozenset({0}), frozenset({1})]
    assert mean_reciprocal_rank(found, relevant) == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_missing_hits_do_not_count_as_relevant() -> None:
    found = np.array([[-1, -1], [4, -1]])
    assert mean_reciprocal_rank(found, [frozenset({1}), frozenset({4})]) == pytest.approx(1 / 2)


def test_nlist_is_at_most_one_list_per_39_documents() -> None:
    assert [choose_nlist(count) for count in (1, 39, 78, 400_000)] == [1, 1, 2, 1024]
    assert choose_nlist(400_000, 16) == 16


def test_search_of_all_lists_finds_the_nearest_document_for_any_vector_length() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    documents = np.random.default_rng(0).normal(size=(160, 8)).astype(np.float32)
    queries = 5 * documents[:20]
    index = IVFIndex(queries, documents, nlist=4, nprobe=4)
    relevant = [frozenset({place}) for place in range(20)]
    found = search_interleaved({"ours": index}, relevant)["ours"]
    assert found.mrr_at_10 == 1
    assert found.dimension == 8
    assert len(found.search_ms) == 10
    assert found.index_bytes >= documents.nbytes
