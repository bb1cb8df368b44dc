"""RelevanceRanker: order, scores and validation."""

from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Hit, InputError, RelevanceRanker, UnknownTextWarning
from hypothesis import given, settings
from hypothesis import strategies as st

_DOCUMENTS = ["open a socket", "read the file", "the dog", "read a file line"]


@pytest.fixture(scope="module")
def ranker(encoder: Encoder) -> RelevanceRanker:
    return RelevanceRanker(encoder)


def test_rank_returns_hits_in_descending_order_of_cosine(ranker: RelevanceRanker, encoder: Encoder) -> None:
    hits = ranker.rank("read the file", _DOCUMENTS)
    assert hits[0].id == 1
    assert hits[0].score == pytest.approx(1)
    assert sorted(hit.id for hit in hits) == [0, 1, 2, 3]
    cosines = encoder.similarity(encoder.encode("read the file"), encoder.encode(_DOCUMENTS))[0]
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines.tolist(), reverse=True), abs=1e-6)
    assert all(hit.text == _DOCUMENTS[hit.id] and type(hit.score) is float for hit in hits)


@settings(max_examples=50, deadline=None)
@given(
    documents=st.lists(st.sampled_from([*_DOCUMENTS, "cat", ""]), max_size=25),
    top_k=st.one_of(st.none(), st.integers(1, 30)),
)
def test_ties_keep_the_order_of_the_documents(ranker: RelevanceRanker, documents: list[str], top_k: int | None) -> None:
    hits = ranker.rank("read the file", documents, top_k)
    assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
    assert hits == ranker.rank("read the file", documents)[:top_k]


def test_no_documents_return_no_hits(ranker: RelevanceRanker) -> None:
    assert ranker.rank("read", []) == []


@pytest.mark.parametrize("top_k", [0, -1, True, 2.0, "3"])
def test_top_k_below_one_is_rejected(ranker: RelevanceRanker, top_k: int) -> None:
    with pytest.raises(InputError, match="expected an integer of at least 1"):
        ranker.rank("read", _DOCUMENTS, top_k)


def test_non_text_is_rejected_with_its_position_and_type(ranker: RelevanceRanker) -> None:
    with pytest.raises(InputError, match="document 1 is NoneType"):
        ranker.rank("read", ["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="the query is NoneType, expected a text, or its vector of 8 finite numbers"):
        ranker.rank(None, ["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the documents are str"):
        ranker.rank("read", "a text")


@pytest.mark.parametrize("encoder", ["x", None, Path()])
def test_non_encoder_is_rejected(encoder: Encoder) -> None:
    with pytest.raises(InputError, match=f"the encoder is {type(encoder).__name__}, expected an Encoder"):
        RelevanceRanker(encoder)


def test_given_embeddings_are_used_instead_of_encoding(ranker: RelevanceRanker, encoder: Encoder) -> None:
    vectors = encoder.encode_document(_DOCUMENTS)
    query = encoder.encode_query("read the file")
    expected = ranker.rank("read the file", _DOCUMENTS)
    assert ranker.rank(query, _DOCUMENTS, embeddings=vectors) == expected
    assert ranker.rank(query, ["x"] * 4, embeddings=vectors)[0] == Hit(expected[0].id, expected[0].score, "x")


@pytest.mark.parametrize("scale", [1e-30, 3, 1e30])
def test_embeddings_need_not_be_normalized(ranker: RelevanceRanker, encoder: Encoder, scale: float) -> None:
    vectors = encoder.encode_document(_DOCUMENTS)
    hits = ranker.rank(encoder.encode_query("cat") * scale, _DOCUMENTS, embeddings=vectors * scale)
    expected = ranker.rank("cat", _DOCUMENTS)
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in expected], abs=1e-6)


def test_zero_embeddings_have_the_lowest_score(ranker: RelevanceRanker) -> None:
    assert ranker.rank(np.zeros(8), ["a"], embeddings=np.ones((1, 8))) == [Hit(0, 0.0, "a")]
    assert ranker.rank(np.zeros(8), ["a"], embeddings=np.zeros((1, 8))) == [Hit(0, -1.0, "a")]
    hits = ranker.rank(np.ones(8), ["a", "b", "c"], embeddings=[[0] * 8, [-1] + [1] * 7, [1] * 8])
    assert [hit.id for hit in hits] == [2, 1, 0]
    assert [hit.score for hit in hits] == pytest.approx([1, 0.75, -1])


def test_blank_and_unknown_documents_rank_last(ranker: RelevanceRanker) -> None:
    with pytest.warns(UnknownTextWarning, match="1 of 4 texts") as warned:
        hits = ranker.rank("the cat", ["", "中文", "open a socket", "the cat 中"])
    assert [warning.filename for warning in warned] == [__file__]
    assert sorted(hit.id for hit in hits[:2]) == [2, 3]
    assert [(hit.id, hit.score) for hit in hits[2:]] == [(0, -1), (1, -1)]


def test_unknown_query_warns(ranker: RelevanceRanker) -> None:
    with pytest.warns(UnknownTextWarning, match="1 of 1 texts"):
        assert len(ranker.rank("中文", ["the cat"])) == 1


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=8, max_size=8), max_size=6),
    query=st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=8, max_size=8),
)
def test_scores_are_cosines_of_any_finite_embeddings(
    ranker: RelevanceRanker, rows: list[list[float]], query: list[float]
) -> None:
    hits = ranker.rank(query, ["text"] * len(rows), embeddings=rows)
    wanted = np.array(query) / (np.linalg.norm(query) or 1)
    expected = [float(wanted @ row / np.linalg.norm(row)) if row.any() else -1 for row in np.array(rows)]
    assert [hit.score for hit in hits] == pytest.approx([expected[hit.id] for hit in hits], abs=1e-5)
    assert all(-1 <= hit.score <= 1 for hit in hits)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((3, 8)), r"the embeddings have shape \(3, 8\), expected \(4, 8\): one embedding per document"),
        (np.ones((4, 9)), r"the embeddings have shape \(4, 9\)"),
        (np.ones(8), r"the embeddings have shape \(8,\)"),
        (np.full((4, 8), np.nan), "embedding 0 contains NaN or infinity"),
        ([[1e300] * 8] * 4, "embedding 0 contains NaN or infinity"),
        (np.ones((4, 8), dtype=np.uint8), "the embeddings are ndarray, expected numbers"),
        ([["a"] * 8] * 4, "the embeddings are list, expected numbers"),
        ([[1], [1, 2], [], []], "the embeddings are list, expected numbers"),
        ("text", "the embeddings are str, expected numbers"),
    ],
)
def test_invalid_embeddings_are_rejected(ranker: RelevanceRanker, vectors: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ranker.rank("read", _DOCUMENTS, embeddings=vectors)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (np.ones(9), r"the query has shape \(9,\), expected a text, or its vector of 8"),
        (np.ones((1, 8)), r"the query has shape \(1, 8\)"),
        (np.full(8, np.inf), "the query contains NaN or infinity"),
        (b"bytes", "the query is bytes"),
        ([None] * 8, "the query is list"),
        (7, r"the query has shape \(\)"),
    ],
)
def test_invalid_query_is_rejected(ranker: RelevanceRanker, query: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ranker.rank(query, _DOCUMENTS)  # type: ignore[arg-type]


def test_no_documents_take_empty_embeddings(ranker: RelevanceRanker) -> None:
    assert ranker.rank("read", [], embeddings=[]) == []


def test_hit_is_immutable_and_hashable(ranker: RelevanceRanker) -> None:
    assert Hit(1, 0.5, "a") == Hit(1, 0.5, "a")
    assert len({Hit(1, 0.5, "a"), Hit(1, 0.5, "a")}) == 1
    with pytest.raises(AttributeError):
        Hit(1, 0.5, "a").score = 1.0  # type: ignore[misc]


def test_query_and_document_prompts_are_applied(tmp_path: Path, make_bundle: object) -> None:
    assert callable(make_bundle)
    prompted = Encoder.load(make_bundle(tmp_path / "b", prompts={"query": "read ", "document": "dog "}))
    hit = RelevanceRanker(prompted).rank("cat", ["cat"])[0]
    assert hit.score == pytest.approx(float(np.dot(prompted.encode("read cat"), prompted.encode("dog cat"))), abs=1e-6)


@pytest.mark.parametrize("query", ["", " \t\n", "\u200b", "\ufe0f", "\u2014", "***"])
def test_blank_query_is_rejected(ranker: RelevanceRanker, query: str) -> None:
    with pytest.raises(InputError, match="the query is blank, expected a text that says what to look for"):
        ranker.rank(query, _DOCUMENTS)


def test_blank_document_has_the_lowest_score(shipped: Path) -> None:
    documents = ["Rye bread", "€", "", " \t", "\u200b\u200b", "\ufeff", "\0\x01", "\u0301", "\ufffd", "...", "\ue000"]
    hits = RelevanceRanker(Encoder()).rank("Count the residential customers that are active", documents)
    assert {hit.id for hit in hits[:2]} == {0, 1}
    assert min(hit.score for hit in hits[:2]) > -1
    assert [(hit.id, hit.score) for hit in hits[2:]] == [(number, -1) for number in range(2, len(documents))]


@pytest.mark.parametrize("documents", ["read the file", None])
def test_swapped_query_and_documents_are_rejected(ranker: RelevanceRanker, documents: str | None) -> None:
    with pytest.raises(InputError, match=r"the query is list .* expected rank\(query, documents\): swap them"):
        ranker.rank(_DOCUMENTS, documents)  # type: ignore[arg-type]
