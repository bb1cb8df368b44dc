"""Simulated users of a SemanticRanker."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder

from experiments.interests.interests import Embeddings, Setting, make_users, nearest_merge, simulate
from experiments.interests.interests_topics import read_topics


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder("nano")


@pytest.fixture
def embeddings(encoder: Encoder) -> Embeddings:
    """Ten topics of 40 texts each, far apart."""
    random = np.random.default_rng(0)
    axes = np.eye(encoder.dimension, dtype=np.float32)
    noise = random.standard_normal((10, 40, encoder.dimension)).astype(np.float32) / 100
    return {f"topic {i}": axes[i] + noise[i] for i in range(10)}


def test_users_like_and_dislike_unread_texts_of_their_topics(embeddings: Embeddings) -> None:
    for user in make_users(embeddings, interests=4, seed=0, reactions=50):
        assert len(user.liked) == 4
        assert len({topic for topic, _ in user.reactions} - user.liked) <= 2
        read = {embedding.tobytes() for _, embedding in user.reactions}
        assert len(read) == 50
        assert not read & {embedding.tobytes() for embedding in user.documents}
        assert len(user.documents) == len(user.topics) == 150


def test_topics_far_apart_become_one_center_each_and_rank_first(encoder: Encoder, embeddings: Embeddings) -> None:
    user = next(make_users(embeddings, interests=4, seed=0, reactions=50))
    early, late = simulate(encoder, user, Setting("default", 12), (2, 50))
    assert early.interests < 4
    assert (late.interests, late.disinterests, late.purity, late.pairwise) == (4, 2, 1, 1)
    assert late.ndcg == pytest.approx(1)


def test_merges_keep_the_topics_of_both_centers(encoder: Encoder, embeddings: Embeddings) -> None:
    user = next(make_users(embeddings, interests=4, seed=0, reactions=50))
    for setting in (Setting("one", 1), Setting("nearest", 1, merge=nearest_merge)):
        (score,) = simulate(encoder, user, setting, (50,))
        assert (score.interests, score.disinterests) == (1, 1)
        assert 0.25 <= score.purity < 0.6


def test_topics_are_read_from_articles(tmp_path: Path) -> None:
    articles = {title: [f"{title}, sentence {i}, is long enough to be recognized." for i in range(300)]
                for title in ("Ada", "Bee", "Cat")}  # fmt: skip
    _write(tmp_path / "en" / "wikipedia.txt.xz", [sentence for each in articles.values() for sentence in each])
    leads = [f"{title}\t{sentences[0]} {sentences[1]}" for title, sentences in articles.items()]
    _write(tmp_path / "pairs" / "wikipedia_title_lead.tsv.xz", ["title\tlead", *leads])
    topics = read_topics("articles", tmp_path)
    assert {split: list(texts) for split, texts in topics.items()} == {"dev": ["Ada"], "test": ["Bee"]}
    assert topics["test"]["Bee"][-1] == " ".join(articles["Bee"][238:240])


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
