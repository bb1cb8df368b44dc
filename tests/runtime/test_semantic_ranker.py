"""SemanticRanker: reactions, scores, stores and validation."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError, InterestSettings, RelevanceRanker, SemanticRanker, UnknownTextWarning
from hypothesis import given, settings
from hypothesis import strategies as st

_DOCUMENTS = ["open a socket", "read the file", "the dog", "read a file line"]
_AXES = np.eye(8, dtype=np.float32)


@pytest.fixture
def ranker(encoder: Encoder) -> SemanticRanker:
    return SemanticRanker(encoder, ":memory:")


def _order(ranker: SemanticRanker, *args: Any, **options: Any) -> list[int]:
    return [hit.id for hit in ranker.rank(*args, **options)]


def test_documents_keep_their_order_without_interests(ranker: SemanticRanker) -> None:
    hits = ranker.rank(None, _DOCUMENTS)
    assert [(hit.id, hit.score, hit.text) for hit in hits] == [(i, 0, d) for i, d in enumerate(_DOCUMENTS)]
    assert ranker.rank(None, iter(_DOCUMENTS), top_k=2) == hits[:2]
    assert ranker.rank(None, []) == []


def test_query_ranks_by_relevance_without_interests(ranker: SemanticRanker, encoder: Encoder) -> None:
    ours, expected = (
        ranker.rank("read the file", _DOCUMENTS),
        RelevanceRanker(encoder).rank("read the file", _DOCUMENTS),
    )
    assert [hit.id for hit in ours] == [hit.id for hit in expected]
    assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in expected], abs=1e-6)


def test_liked_documents_come_first_and_disliked_last(ranker: SemanticRanker) -> None:
    ranker.like("the dog")
    assert ranker.rank(None, _DOCUMENTS)[0].text == "the dog"
    assert ranker.rank(None, _DOCUMENTS)[0].score == pytest.approx(0.5, abs=1e-6)
    ranker.dislike("open a socket")
    assert ranker.rank(None, _DOCUMENTS)[-1].text == "open a socket"


def test_long_view_starts_an_interest(ranker: SemanticRanker) -> None:
    assert ranker.view("the dog", 5) is None
    assert _order(ranker, None, _DOCUMENTS) == [0, 1, 2, 3]
    assert ranker.view("the dog", 50) == 1
    assert ranker.rank(None, _DOCUMENTS)[0].text == "the dog"


def test_interests_decay_to_zero_in_30_days(encoder: Encoder) -> None:
    now = [0.0]
    ranker = SemanticRanker(encoder, ":memory:", clock=lambda: now[0])
    ranker.like("the dog")
    scores = []
    for now[0] in (0, 10 * 86_400, 29.9 * 86_400):
        scores.append(ranker.rank(None, ["the dog"])[0].score)
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < 0.01
    now[0] = 31 * 86_400
    assert _order(ranker, None, _DOCUMENTS) == [0, 1, 2, 3]
    relevance = RelevanceRanker(encoder).rank("read", _DOCUMENTS)
    assert [hit.score for hit in ranker.rank("read", _DOCUMENTS)] == pytest.approx([hit.score for hit in relevance])


def test_score_blends_query_and_interests_by_query_weight(encoder: Encoder) -> None:
    for share in (0.0, 0.25, 1.0):
        ranker = SemanticRanker(encoder, ":memory:", settings=InterestSettings(query_weight=share))
        ranker.like("", embedding=_AXES[0])
        hits = ranker.rank(_AXES[1], ["a", "b", "c"], embeddings=_AXES[:3])
        scores = {hit.id: hit.score for hit in hits}
        assert [scores[i] for i in range(3)] == pytest.approx([(1 - share) * 0.5, share, 0], abs=1e-6)


def test_settings_are_those_of_the_file(encoder: Encoder, tmp_path: Path) -> None:
    settings = InterestSettings(query_weight=0, horizon_days=365)
    ranker = SemanticRanker(encoder, tmp_path / "interests.db", settings=settings)
    ranker.like("the dog")
    other = SemanticRanker(encoder, tmp_path / "interests.db")
    assert other.settings == ranker.settings
    assert other.rank("open a socket", ["open a socket", "the dog"])[0].id == 1
    with pytest.raises(InputError, match=r"has the settings query_weight=0\.0, but query_weight=1\.0 was given"):
        SemanticRanker(encoder, tmp_path / "interests.db", settings=InterestSettings(query_weight=1, horizon_days=365))
    other.change_settings(InterestSettings(query_weight=1, horizon_days=365))
    assert ranker.rank("open a socket", ["open a socket", "the dog"])[0].id == 0


def test_default_query_weight_is_0_8(ranker: SemanticRanker) -> None:
    ranker.like("", embedding=_AXES[0])
    assert [hit.score for hit in ranker.rank(_AXES[1], ["a", "b"], embeddings=_AXES[:2])] == pytest.approx([0.8, 0.1])


@settings(max_examples=50, deadline=None)
@given(documents=st.lists(st.sampled_from([*_DOCUMENTS, "cat", ""]), max_size=25), top_k=st.integers(1, 30))
@pytest.mark.parametrize("query", [None, "read a line"])
def test_ties_keep_the_order_of_the_documents(
    encoder: Encoder, documents: list[str], top_k: int, query: str | None
) -> None:
    ranker = SemanticRanker(encoder, ":memory:", clock=lambda: 0.0)  # no decay between calls
    ranker.like("the dog")
    ranker.dislike("read the file")
    hits = ranker.rank(query, documents)
    assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
    assert all(type(hit.score) is float and -1 <= hit.score <= 1 for hit in hits)
    assert hits[:top_k] == ranker.rank(query, documents, top_k)


def test_given_embeddings_are_used_instead_of_encoding(ranker: SemanticRanker, monkeypatch: Any) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a text was encoded")

    monkeypatch.setattr(Encoder, "encode", fail)
    assert ranker.like("a", embedding=_AXES[0]) == 1
    assert ranker.dislike("b", embedding=2 * _AXES[1]) == 2
    assert ranker.view("c", 60, embedding=_AXES[2].tolist()) == 3
    assert _order(ranker, None, ["x", "y", "z"], embeddings=3 * _AXES[[1, 3, 0]]) == [2, 1, 0]
    assert ranker.rank(None, ["x"], embeddings=np.zeros((1, 8)))[0].score == -1


def test_reaction_returns_the_id_of_its_center(ranker: SemanticRanker) -> None:
    assert [ranker.like("the dog"), ranker.like("the dog"), ranker.dislike("the dog")] == [1, 1, 2]
    assert [(center.kind, center.example, center.uses) for center in ranker.centers()] == [
        ("interest", "the dog", 2),
        ("disinterest", "the dog", 1),
    ]
    assert [center["id"] for center in ranker.export()["centers"]] == [1, 2]


def test_forgotten_centers_do_not_affect_scores(ranker: SemanticRanker) -> None:
    ranker.forget(ranker.like("the dog"))
    assert _order(ranker, None, _DOCUMENTS) == [0, 1, 2, 3]
    ranker.dislike("open a socket")
    assert ranker.forget_all() == 1
    assert (ranker.centers(), _order(ranker, None, _DOCUMENTS)) == ([], [0, 1, 2, 3])


@pytest.mark.parametrize("reaction", ["like", "dislike"])
def test_non_text_is_rejected(ranker: SemanticRanker, reaction: str) -> None:
    for text in (None, ["the dog"], b"the dog", "dog \ud800"):
        with pytest.raises(InputError):
            getattr(ranker, reaction)(text)
        with pytest.raises(InputError):
            ranker.view(text, 60)  # type: ignore[arg-type]
    assert ranker.centers() == []


@pytest.mark.parametrize(
    ("given_arguments", "message"),
    [
        ({"documents": "a text"}, "the documents are str"),
        ({"documents": ["a", None]}, "document 1 is NoneType"),
        ({"documents": ["a"], "query": 7}, "the query "),
        ({"documents": ["a"], "top_k": 0}, "expected an integer of at least 1"),
        ({"documents": ["a"], "embeddings": np.zeros((2, 8))}, r"expected .*\(1, 8\)"),
        ({"documents": ["a"], "embeddings": np.full((1, 8), np.nan)}, "NaN or infinity"),
    ],
)
def test_invalid_rank_arguments_are_rejected(
    ranker: SemanticRanker, given_arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ranker.rank(**{"query": None, **given_arguments})


def test_interests_persist_in_the_file(encoder: Encoder, tmp_path: Path) -> None:
    SemanticRanker(encoder, tmp_path / "interests.db").like("the dog")
    again = SemanticRanker(encoder, str(tmp_path / "interests.db"))
    assert again.rank(None, _DOCUMENTS)[0].text == "the dog"
    assert abs(again.centers()[0].last_used - time.time()) < 600


def test_store_of_another_encoder_is_rejected(encoder: Encoder, tmp_path: Path, make_bundle: Any) -> None:
    SemanticRanker(encoder, tmp_path / "interests.db")
    other = Encoder.load(make_bundle(tmp_path / "other", seed=1, name="other"))
    with pytest.raises(InputError, match=r"belongs to the encoder 'tiny' \(\w{12}\), expected 'other' \(\w{12}\)"):
        SemanticRanker(other, tmp_path / "interests.db")


def test_non_encoder_is_rejected() -> None:
    with pytest.raises(InputError, match="the encoder is str, expected an Encoder"):
        SemanticRanker("encoder", ":memory:")  # type: ignore[arg-type]


def test_query_and_document_prompts_are_applied(tmp_path: Path, make_bundle: Any) -> None:
    prompted = Encoder.load(make_bundle(tmp_path / "b", prompts={"query": "read ", "document": "dog "}))
    ranker = SemanticRanker(prompted, ":memory:")
    ranker.like("cat")
    assert ranker.centers()[0].vector == pytest.approx(prompted.encode("dog cat"), abs=1e-6)
    relevance = float(np.dot(prompted.encode("read cat"), prompted.encode("dog cat")))
    assert ranker.rank("cat", ["cat"])[0].score == pytest.approx(0.2 * 0.5 + 0.8 * relevance, abs=1e-6)


def test_built_in_encoder_separates_topics(shipped: Path) -> None:
    ranker = SemanticRanker(Encoder.load(shipped), ":memory:")
    baking = ranker.like("A simple recipe for sourdough bread")
    football = ranker.like("The goalkeeper saved a penalty in the cup final")
    assert baking != football
    assert ranker.like("How to bake a loaf of rye bread at home") == baking
    ranker.dislike("The film star and the singer have split up")
    documents = [
        "The actress was seen with her new boyfriend",
        "Shares fell on Monday",
        "Which flour is best for baking bread",
        "A late goal decided the football match",
    ]
    assert _order(ranker, None, documents)[:2] == [2, 3]
    assert _order(ranker, None, documents)[-1] == 0


@pytest.mark.parametrize("text", ["", " \n", "\u3000\t", "\u200b\u2060", "\0\x01", "\u0301", "...", "\ufffd", "\ue000"])
def test_blank_text_is_rejected_unless_its_embedding_is_given(ranker: SemanticRanker, text: str) -> None:
    for react in (ranker.like, ranker.dislike, lambda text: ranker.view(text, 60)):
        with pytest.raises(InputError, match="the text is blank"):
            react(text)
    assert ranker.centers() == []
    assert ranker.like(text, embedding=_AXES[0]) == 1
    assert ranker.centers()[0].example == " ".join(text.split())


@pytest.mark.parametrize("query", ["", " \n", "\u200b", "###"])
def test_blank_query_is_rejected_and_blank_document_is_ranked(ranker: SemanticRanker, query: str) -> None:
    ranker.like("the dog")
    with pytest.raises(InputError, match="the query is blank, expected a text"):
        ranker.rank(query, ["the dog"])
    assert [(hit.id, hit.score) for hit in ranker.rank("the dog", ["", "the dog"])][1] == (0, -1)


@pytest.mark.parametrize("query", [None, "the dog"])
@pytest.mark.parametrize("liked", [[], ["the dog"]])
def test_blank_and_unknown_documents_rank_last(ranker: SemanticRanker, query: str | None, liked: list[str]) -> None:
    for text in liked:
        ranker.like(text)
    ranker.dislike("a socket")
    with pytest.warns(UnknownTextWarning, match="1 of 4 texts"):
        hits = ranker.rank(query, ["", "中文", "a socket", "the cat"])
    assert [(hit.id, hit.score) for hit in hits[2:]] == [(0, -1), (1, -1)]
    hits = ranker.rank(query, ["\u200b", "...", "a socket", "the cat"])
    assert [(hit.id, hit.score) for hit in hits[2:]] == [(0, -1), (1, -1)]


def test_nothing_is_learned_from_unknown_text(ranker: SemanticRanker) -> None:
    for react in (ranker.like, ranker.dislike, lambda text: ranker.view(text, 60)):
        with pytest.raises(InputError, match="the vocabulary knows almost none of its words"):
            react("中文")
    assert ranker.centers() == []
    assert ranker.like("中文", embedding=_AXES[0]) == 1


def test_near_cosine_comes_from_the_bundle_unless_the_settings_state_it(tmp_path: Path, make_bundle: Any) -> None:
    def centers(bundle: Path, cosine: float, near_cosine: float | None = None) -> int:
        settings = InterestSettings(near_cosine=near_cosine, horizon_days=1)
        ranker = SemanticRanker(Encoder.load(bundle), ":memory:", settings=settings)
        ranker.like("", embedding=_AXES[0])
        ranker.like("", embedding=cosine * _AXES[0] + np.sqrt(1 - cosine**2) * _AXES[1])
        return len(ranker.centers())

    stated, silent = make_bundle(tmp_path / "stated", near_cosine=0.7), make_bundle(tmp_path / "silent")
    unknown = make_bundle(tmp_path / "unknown", near_cosine=None)
    assert [centers(stated, cosine) for cosine in (0.69, 0.71)] == [2, 1]
    for bundle in (silent, unknown):
        assert [centers(bundle, cosine) for cosine in (0.39, 0.41)] == [2, 1]
    assert [centers(stated, cosine, near_cosine=0.2) for cosine in (0.19, 0.21)] == [2, 1]


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_near_cosine_of_each_built_in_encoder_separates_topics(shipped: Path, name: str) -> None:
    encoder = Encoder(name)
    assert encoder.bundle.near_cosine is not None
    ranker = SemanticRanker(encoder, ":memory:")
    topics = [
        ["A simple recipe for sourdough bread", "How to bake a loaf of rye bread at home"],
        ["The goalkeeper saved a penalty in the cup final", "A late goal decided the football match"],
        ["Astronomers found a planet around a red star", "A new telescope will look for distant planets"],
        ["The central bank raised its interest rate", "Mortgages cost more as banks raise interest rates"],
    ]
    started = [ranker.like(first) for first, _ in topics]
    assert started == [1, 2, 3, 4]
    assert [ranker.like(second) for _, second in topics] == started


def test_settings_of_another_type_are_rejected(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="the settings are float, expected InterestSettings"):
        SemanticRanker(encoder, ":memory:", settings=0.4)  # type: ignore[arg-type]


@pytest.mark.parametrize("documents", ["read the file", None])
def test_swapped_query_and_documents_are_rejected(ranker: SemanticRanker, documents: str | None) -> None:
    with pytest.raises(InputError, match=r"the query is list .* expected rank\(query, documents\): swap them"):
        ranker.rank(_DOCUMENTS, documents)  # type: ignore[arg-type]
