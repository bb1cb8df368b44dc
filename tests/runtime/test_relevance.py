"""The order of documents."""

from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Hit, InputError, RelevanceRanker
from hypothesis import given, settings
from hypothesis import strategies as st

_DOCUMENTS = ["open a socket", "read the file", "the dog", "read a file line"]


@pytest.fixture(scope="module")
def ranker(encoder: Encoder) -> RelevanceRanker:
    return RelevanceRanker(encoder)


def test_documents_come_best_first_with_their_cosines(ranker: RelevanceRanker, encoder: Encoder) -> None:
    hits = ranker.rank("read the file", _DOCUMENTS)
    assert hits[0].index == 1
    assert hits[0].score == pytest.approx(1)
    assert sorted(hit.index for hit in hits) == [0, 1, 2, 3]
    cosines = encoder.similarity(encoder.encode("read the file"), encoder.encode(_DOCUMENTS))[0]
    assert [hit.score for hit in hits] == pytest.approx(sorted(cosines.tolist(), reverse=True), abs=1e-6)
    assert all(hit.document == _DOCUMENTS[hit.index] and type(hit.score) is float for hit in hits)


@settings(max_examples=50, deadline=None)
@given(
    documents=st.lists(st.sampled_from([*_DOCUMENTS, "cat", ""]), max_size=25),
    top_k=st.one_of(st.none(), st.integers(1, 30)),
)
def test_of_equal_documents_the_earlier_comes_first(
    ranker: RelevanceRanker, documents: list[str], top_k: int | None
) -> None:
    hits = ranker.rank("read the file", documents, top_k)
    assert [(-hit.score, hit.index) for hit in hits] == sorted((-hit.score, hit.index) for hit in hits)
    assert hits == ranker.rank("read the file", documents)[:top_k]


def test_no_documents_give_no_hits(ranker: RelevanceRanker) -> None:
    assert ranker.rank("read", []) == []


@pytest.mark.parametrize("top_k", [0, -1, True, 2.0, "3"])
def test_a_count_below_one_is_refused(ranker: RelevanceRanker, top_k: int) -> None:
    with pytest.raises(InputError, match="expected a whole number of at least 1"):
        ranker.rank("read", _DOCUMENTS, top_k)


def test_what_is_no_text_is_named(ranker: RelevanceRanker) -> None:
    with pytest.raises(InputError, match="document 1 is NoneType"):
        ranker.rank("read", ["a", None])  # type: ignore[list-item]
    with pytest.raises(InputError, match="query 0 is NoneType"):
        ranker.rank(None, ["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the documents are str"):
        ranker.rank("read", "a text")


def test_a_hit_is_a_value(ranker: RelevanceRanker) -> None:
    assert Hit(1, 0.5, "a") == Hit(1, 0.5, "a")
    assert len({Hit(1, 0.5, "a"), Hit(1, 0.5, "a")}) == 1
    with pytest.raises(AttributeError):
        Hit(1, 0.5, "a").score = 1.0  # type: ignore[misc]


def test_queries_and_documents_have_their_own_prompts(tmp_path: Path, make_bundle: object) -> None:
    assert callable(make_bundle)
    prompted = Encoder.load(make_bundle(tmp_path / "b", prompts={"query": "read ", "document": "dog "}))
    hit = RelevanceRanker(prompted).rank("cat", ["cat"])[0]
    assert hit.score == pytest.approx(float(np.dot(prompted.encode("read cat"), prompted.encode("dog cat"))), abs=1e-6)
