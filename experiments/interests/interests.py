"""Simulate users who react to real texts, and measure how a `SemanticRanker` represents them and ranks for them.

Run with `python -m experiments.interests.interests DATA --out docs/results/interests.json`. DATA is a folder with
`en/wikipedia.txt.xz`, `pairs/wikipedia_title_lead.tsv.xz` and `wordnet/oewn_synsets.tsv.xz`.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest import mock

import click
import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Center, Encoder, InterestSettings, SemanticRanker
from edgeembed_runtime.interests.centers import cheapest_merge
from rich.console import Console
from rich.table import Table

from experiments.interests.interests_topics import Split, read_topics

Embeddings = dict[str, npt.NDArray[np.float32]]
MergeRule = Callable[[Sequence[Center]], tuple[Center, Center]]

_KEYS = ("split", "encoder", "topics", "liked", "setting", "reactions")
_SEEDS = (0, 1, 2)
_USERS = 5
_DISINTERESTS, _DISLIKES = 2, 0.2
_HELD_OUT = 15
_UNLIMITED = 10**9
_NEAR_COSINES = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)


@dataclass(frozen=True)
class Setting:
    """What a simulated user's ranker does.

    Attributes:
        name: Its name in the table.
        max_centers: The maximum number of interests, and of disinterests.
        near_cosine: The cosine from which a text joins a center; None takes the bundle's.
        merge: Chooses the two centers that merge.
    """

    name: str
    max_centers: int
    near_cosine: float | None = None
    merge: MergeRule = cheapest_merge


@dataclass(frozen=True)
class Score:
    """How well a user is represented, and documents are ranked, after some reactions.

    Attributes:
        interests: The number of interest centers.
        disinterests: The number of disinterest centers.
        purity: The share of likes that are in a center most of whose likes are of the same topic.
        pairwise: The share of pairs of a held-out text of a liked topic and one of another topic that are in order.
        ndcg: The normalized discounted cumulative gain of the held-out texts of liked topics, over as many hits.
    """

    interests: float
    disinterests: float
    purity: float
    pairwise: float
    ndcg: float


@dataclass(frozen=True)
class User:
    """A simulated user: the topics, the order of the reactions, and the texts to rank.

    Attributes:
        liked: The liked topics.
        reactions: For each reaction its topic and embedding.
        documents: The held-out texts of all topics, (documents, dimension).
        topics: Their topics.
    """

    liked: frozenset[str]
    reactions: list[tuple[str, npt.NDArray[np.float32]]]
    documents: npt.NDArray[np.float32]
    topics: list[str]


def nearest_merge(centers: Sequence[Center]) -> tuple[Center, Center]:
    """Return the two centers with the highest cosine, whatever they weigh: the rule to compare with."""
    return cheapest_merge([replace(center, weight=1.0) for center in centers])


def make_users(embeddings: Embeddings, interests: int, seed: int, reactions: int) -> Iterator[User]:
    """Yield users with some interests and two disinterests; a reaction is a dislike with probability 0.2."""
    random = np.random.default_rng(seed)
    names = sorted(embeddings)
    for _ in range(_USERS):
        order = random.permutation(names).tolist()
        liked, disliked = order[:interests], order[interests : interests + _DISINTERESTS]
        texts = {name: random.permutation(embeddings[name]) for name in names}
        unread = {name: list(texts[name][_HELD_OUT:]) for name in names}
        reacted: list[tuple[str, npt.NDArray[np.float32]]] = []
        while len(reacted) < reactions:
            choices = [name for name in (disliked if random.random() < _DISLIKES else liked) if unread[name]]
            topic = choices[random.integers(len(choices))]
            reacted.append((topic, unread[topic].pop()))
        held_out = np.concatenate([texts[name][:_HELD_OUT] for name in names])
        yield User(frozenset(liked), reacted, held_out, [name for name in names for _ in range(_HELD_OUT)])


def simulate(encoder: Encoder, user: User, setting: Setting, counts: Sequence[int]) -> list[Score]:
    """Let a user react, and return a score after each of some numbers of reactions."""
    settings = InterestSettings(max_centers=setting.max_centers, near_cosine=setting.near_cosine)
    ranker = SemanticRanker(encoder, ":memory:", settings=settings, clock=lambda: 0.0)
    absorbed_by: dict[int, int] = {}

    def merge(centers: Sequence[Center]) -> tuple[Center, Center]:
        chosen = {center.id for center in setting.merge(centers)}
        survivor, absorbed = cheapest_merge([center for center in centers if center.id in chosen])
        absorbed_by[absorbed.id] = survivor.id
        return survivor, absorbed

    likes: list[tuple[int, str]] = []
    scores = []
    with mock.patch("edgeembed_runtime.interests.store.cheapest_merge", merge):
        for number, (topic, embedding) in enumerate(user.reactions, 1):
            if topic in user.liked:
                likes.append((ranker.like("", embedding=embedding), topic))
            else:
                ranker.dislike("", embedding=embedding)
            if number in counts:
                scores.append(_score(ranker, user, [(_final(center, absorbed_by), topic) for center, topic in likes]))
    return scores


def _final(center: int, absorbed_by: dict[int, int]) -> int:
    while center in absorbed_by:
        center = absorbed_by[center]
    return center


def _score(ranker: SemanticRanker, user: User, likes: list[tuple[int, str]]) -> Score:
    kinds = Counter(center.kind for center in ranker.centers())
    per_center: dict[int, Counter[str]] = {}
    for center, topic in likes:
        per_center.setdefault(center, Counter())[topic] += 1
    majority = sum(topics.most_common(1)[0][1] for topics in per_center.values())
    hits = ranker.rank(None, user.topics, embeddings=user.documents)
    is_liked = np.array([hit.text in user.liked for hit in hits])
    liked, others = int(is_liked.sum()), int((~is_liked).sum())
    misplaced = np.cumsum(~is_liked)[is_liked].sum()  # ties do not occur between distinct texts
    discounts = 1 / np.log2(np.arange(liked) + 2)
    return Score(
        interests=kinds["interest"],
        disinterests=kinds["disinterest"],
        purity=majority / len(likes),
        pairwise=float(1 - misplaced / (liked * others)),
        ndcg=float((is_liked[:liked] * discounts).sum() / discounts.sum()),
    )


def run(
    encoder: Encoder, embeddings: Embeddings, setting: Setting, interests: int, counts: Sequence[int]
) -> dict[int, list[Score]]:
    """Return for each number of reactions the mean score of the users of each seed."""
    means: dict[int, list[Score]] = {count: [] for count in counts}
    for seed in _SEEDS:
        users = make_users(embeddings, interests, seed, max(counts))
        scores = [simulate(encoder, user, setting, counts) for user in users]
        for count, of_users in zip(counts, zip(*scores, strict=True), strict=True):
            rows = np.array([list(asdict(score).values()) for score in of_users])
            means[count].append(Score(*(round(float(mean), 4) for mean in rows.mean(axis=0))))
    return means


def _parts() -> list[tuple[Split, int, Sequence[int], list[Setting]]]:
    """Return the split, the interests of a user, the numbers of reactions, and the settings of each part."""
    chosen_from = [Setting(f"near_cosine {cosine}", 12, cosine) for cosine in _NEAR_COSINES]
    reported = [
        Setting("no maximum", _UNLIMITED),
        Setting("12, nearest merge", 12, merge=nearest_merge),
        Setting("12, cheapest merge", 12),
    ]
    return [
        ("dev", 6, (16, 180), chosen_from),
        ("test", 3, (16, 180), reported),  # an article has too few texts for more
        ("test", 6, (16, 180, 500), reported),
        ("test", 10, (16, 180, 500), reported),
    ]


@click.command()
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--encoder", "encoders", multiple=True, default=("mini", "nano"), show_default=True, help="Repeatable.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file for the scores.")
def command(data: Path, encoders: tuple[str, ...], out: Path) -> None:
    """Choose near_cosine on half of the topics, report the other half, and write all scores to a JSON file."""
    results = []
    table = Table(*_KEYS, *Score.__annotations__)
    topics = {name: read_topics(name, data) for name in ("articles", "definitions")}
    for encoder_name, topic_set in itertools.product(encoders, topics):
        encoder = Encoder(encoder_name)
        embedded = {
            split: {topic: encoder.encode_document(texts) for topic, texts in topics[topic_set][split].items()}
            for split in topics[topic_set]
        }
        for split, interests, counts, settings in _parts():
            for setting in settings:
                for count, scores in run(encoder, embedded[split], setting, interests, counts).items():
                    keys = (split, encoder_name, topic_set, interests, setting.name, count)
                    seeds = [asdict(score) for score in scores]
                    results.append({**dict(zip(_KEYS, keys, strict=True)), "seeds": seeds})
                    means = np.mean([list(seed.values()) for seed in seeds], axis=0)
                    table.add_row(*map(str, keys), *(f"{mean:.3f}" for mean in means))
                click.echo(f"{encoder_name}, {topic_set}, {split}, {interests} interests: {setting.name}", err=True)
    out.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n", encoding="utf-8")
    Console(width=160).print(table)


if __name__ == "__main__":
    command()
