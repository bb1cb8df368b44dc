import numpy as np
import pytest
from edgeembed_bench.inverted_lists import ListIndex, lists_for, mean_reciprocal_rank, search_by_turns


def test_mean_reciprocal_rank_by_hand() -> None:
    found = np.array([[3, 1, 2], [0, 1, 2], [5, 6, 7]])
    relevant = [frozenset({2, 1}), frozenset({0}), frozenset({1})]
    assert mean_reciprocal_rank(found, relevant) == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_a_place_where_nothing_was_found_answers_nothing() -> None:
    found = np.array([[-1, -1], [4, -1]])
    assert mean_reciprocal_rank(found, [frozenset({1}), frozenset({4})]) == pytest.approx(1 / 2)


def test_there_is_a_list_for_every_39_documents_at_most() -> None:
    assert [lists_for(count) for count in (1, 39, 78, 400_000)] == [1, 1, 2, 1024]
    assert lists_for(400_000, 16) == 16


def test_with_every_list_searched_the_nearest_document_is_found_whatever_the_length_of_vectors() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    documents = np.random.default_rng(0).normal(size=(160, 8)).astype(np.float32)
    queries = 5 * documents[:20]
    index = ListIndex(queries, documents, nlist=4, nprobe=4)
    relevant = [frozenset({place}) for place in range(20)]
    found = search_by_turns({"ours": index}, relevant)["ours"]
    assert found.mrr_at_10 == 1
    assert found.dimension == 8
    assert len(found.search_ms) == 10
    assert found.index_bytes >= documents.nbytes
