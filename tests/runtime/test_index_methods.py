"""Search by keywords and hybrid search in an index."""

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError, MissingExtraError, PassageSettings, UnknownTextWarning
from edgeembed_runtime.index import collection
from edgeembed_runtime.index.bm25 import BM25
from edgeembed_runtime.index.engine import EngineName, IndexPrecision, SearchMethod
from edgeembed_runtime.index.hybrid import HIGHEST_FUSED_SCORE

pytest.importorskip("bm25s")

_TEXTS = ["the cat", "the dog", "read a file", "open a socket", "a file of cats", ""]
_METADATA = [{"n": position} for position in range(len(_TEXTS))]
_KEYWORDS: list[SearchMethod] = ["bm25", "hybrid"]


@pytest.fixture
def index(encoder: Encoder) -> Index:
    return Index.build(encoder, _TEXTS, metadata=_METADATA)


def _ids(index: Index, query: str, method: SearchMethod = "bm25") -> list[int]:
    return [hit.id for hit in index.search(query, method=method)]


def test_bm25_finds_the_documents_that_share_words_with_the_query(index: Index) -> None:
    hits = index.search("the cat", method="bm25")
    assert [hit.id for hit in hits] == [0, 1, 4]
    expected = BM25(_TEXTS).scores("the cat")
    assert [hit.score for hit in hits] == pytest.approx([expected[0], expected[1], expected[4]])
    assert index.search("unseen", method="bm25") == []


def test_hybrid_scores_are_sums_of_reciprocal_ranks(index: Index) -> None:
    near = [hit.id for hit in index.search("the cat", top_k=None) if hit.score > -1]
    keywords = [hit.id for hit in index.search("the cat", top_k=None, method="bm25")]
    hits = index.search("the cat", top_k=None, method="hybrid")
    assert {hit.id for hit in hits} == {*near, *keywords}
    assert len(near) > len(keywords)  # so that some documents are found by one ranking alone
    for hit in hits:
        expected = sum(1 / (61 + ranking.index(hit.id)) for ranking in (near, keywords) if hit.id in ranking)
        assert hit.score == pytest.approx(expected)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))


def test_keywords_alone_find_a_document_that_the_encoder_does_not_know(encoder: Encoder) -> None:
    with pytest.warns(UnknownTextWarning):
        index = Index.build(encoder, ["日本", "the dog", ""])
    (hit,) = (hit for hit in index.search("日本 dog", method="hybrid") if hit.id == 0)
    assert hit.score == pytest.approx(1 / 61)
    assert _ids(index, "the dog", "hybrid") == [1]


def test_the_first_hits_do_not_depend_on_top_k(index: Index) -> None:
    hits = index.search("a cat", top_k=None, method="hybrid")
    assert index.search("a cat", top_k=2, method="hybrid") == hits[:2]


@pytest.mark.parametrize("method", _KEYWORDS)
def test_filters_and_minimum_scores_apply(index: Index, method: SearchMethod) -> None:
    wanted = {"n": {"$in": [1, 4, 5]}}
    found = index.search("the cats", filter=wanted, method=method)
    assert {hit.id for hit in found} == {1, 4}  # not the blank document
    assert index.search("the cats", top_k=1, filter=wanted, method=method) == found[:1]
    best = [hit for hit in found if hit.score >= found[0].score]
    assert index.search("the cats", filter=wanted, min_score=found[0].score, method=method) == best
    assert index.search("the cats", filter={"n": 99}, method=method) == []


@pytest.mark.parametrize("method", _KEYWORDS)
def test_several_queries_give_a_list_for_each(index: Index, method: SearchMethod) -> None:
    queries = ["the cat", "open a file"]
    assert index.search(queries, method=method) == [index.search(query, method=method) for query in queries]
    assert index.search([], method=method) == []


@pytest.mark.parametrize("method", _KEYWORDS)
def test_invalid_queries_are_errors(index: Index, encoder: Encoder, method: SearchMethod) -> None:
    with pytest.raises(InputError, match="needs; pass the text, or search with method='embedding'"):
        index.search(np.zeros(encoder.dimension), method=method)
    with pytest.raises(InputError, match="query 1 is float"):
        index.search(["the cat", 1.5], method=method)  # type: ignore[list-item]
    for blank in (" ", "\u200b", "..."):
        with pytest.raises(InputError, match="the query is blank"):
            index.search(blank, method=method)
        with pytest.raises(InputError, match="query 1 is blank"):
            index.search(["the cat", blank], method=method)


def test_the_best_document_by_both_rankings_has_the_highest_possible_score(index: Index) -> None:
    (best,) = index.search("the dog", top_k=1, method="hybrid")
    assert best.score == HIGHEST_FUSED_SCORE
    assert index.search("the dog", min_score=HIGHEST_FUSED_SCORE, method="hybrid") == [best]


def test_a_minimum_that_no_hybrid_score_reaches_is_an_error(index: Index) -> None:
    for minimum in (0.45, 0.033, np.float32(1), 1e300):
        with pytest.raises(
            InputError, match=r"min_score is .*, expected at most 0\.0328 with method='hybrid'"
        ) as caught:
            index.search("the dog", min_score=minimum, method="hybrid")  # type: ignore[call-overload]
        assert "\n" not in str(caught.value)
    assert index.search("the dog", min_score=45, method="bm25") == []
    assert len(index.search("the dog", min_score=-5, method="hybrid")) > 0


def test_an_unknown_method_is_an_error(index: Index) -> None:
    with pytest.raises(InputError, match="the method is 'dense', expected one of embedding, bm25, hybrid"):
        index.search("the cat", method="dense")  # type: ignore[call-overload]


def test_keywords_follow_changes_of_the_documents(index: Index) -> None:
    assert _ids(index, "network") == []
    (added,) = index.add(["the network"])
    assert _ids(index, "network") == [added]
    index.update([1], ["a network of dogs"])
    assert _ids(index, "network") == [added, 1]
    index.remove([added])
    assert _ids(index, "network") == [1]


def test_words_are_counted_once_until_texts_change(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    def counted(texts: object) -> BM25:
        nonlocal built
        built += 1
        return BM25(texts)  # type: ignore[arg-type]

    monkeypatch.setattr(collection, "BM25", counted)
    index.search("the cat")
    assert built == 0
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: _ids(index, "the cat", "hybrid"), range(32)))
    assert all(result == results[0] for result in results)
    index.update([0], metadata=[{"n": -1}])
    assert _ids(index, "the cat") == [0, 1, 4]
    assert built == 1


def test_the_passage_of_a_long_document_is_found(encoder: Encoder) -> None:
    long = "the network reads a line. " * 30 + "a dog and a cat. " + "open the socket. " * 30
    index = Index.build(encoder, ["the line", long, "the network"], passages=PassageSettings(24, 4))
    (hit,) = index.search("dogs", method="bm25")
    assert hit.id == 1
    assert hit.passage is not None
    assert "a dog and a cat." in hit.passage.text
    (hit,) = index.search("dogs", 1, method="hybrid")
    assert hit.id == 1
    assert hit.score == pytest.approx(2 / 61)
    assert hit.passage is not None


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_every_precision_supports_keywords(encoder: Encoder, precision: IndexPrecision, tmp_path: Path) -> None:
    Index.build(encoder, _TEXTS, precision=precision).save(tmp_path / "index")
    index = Index.open(tmp_path / "index", encoder)
    assert _ids(index, "the cat") == [0, 1, 4]
    assert _ids(index, "the cat", "hybrid")[0] == 0


@pytest.mark.parametrize("engine", ["faiss-ivf", "faiss-hnsw"])
def test_every_engine_supports_keywords(encoder: Encoder, engine: EngineName) -> None:
    pytest.importorskip("faiss")
    index = Index.build(encoder, _TEXTS * 500, engine=engine)
    assert _ids(index, "the cat")[:2] == [0, 6]
    assert _ids(index, "the cat", "hybrid")[0] == 0


def test_a_pickled_index_searches_by_keywords(index: Index) -> None:
    expected = index.search("the cat", method="hybrid")
    assert pickle.loads(pickle.dumps(index)).search("the cat", method="hybrid") == expected  # noqa: S301


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_searches_by_keywords(index: Index) -> None:
    with index._collection._keywords_lock:  # as if another thread counted words
        child = os.fork()
        if child == 0:
            os._exit(0 if _ids(index, "the cat") == [0, 1, 4] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("method", _KEYWORDS)
def test_a_missing_package_is_an_error(index: Index, monkeypatch: pytest.MonkeyPatch, method: SearchMethod) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtraError, match=r"edgeembed-runtime\[hybrid\]"):
        index.search("the cat", method=method)


def test_hybrid_search_for_an_unknown_query_ranks_by_keywords_alone(encoder: Encoder) -> None:
    with pytest.warns(UnknownTextWarning):
        index = Index.build(encoder, ["the cat", "日本 語"])
    with pytest.warns(UnknownTextWarning):
        assert _ids(index, "日本", "hybrid") == [1]
