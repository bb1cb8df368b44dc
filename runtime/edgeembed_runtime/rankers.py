"""Rank documents by a query (`RelevanceRanker`) or by the user's interests (`SemanticRanker`)."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._retrieval_inputs import document_vectors, query_vector, validate_encoder
from edgeembed_runtime._validation import validate_texts, validate_top_k
from edgeembed_runtime.characters import is_blank
from edgeembed_runtime.documents import Hit
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError, warn_of_other_role
from edgeembed_runtime.index.vectors import GrowingArray, StoredVectors
from edgeembed_runtime.interests.centers import DEFAULT_NEAR_COSINE, Center, InterestSettings, interest_scores
from edgeembed_runtime.similarity import top_k_indices

_LOWEST_SCORE = -1


class RelevanceRanker:
    """Rank documents by the cosine similarity of their embeddings and the query's.

    Args:
        encoder: The encoder of the texts.

    Raises:
        InputError: If `encoder` is not an Encoder.

    Warns:
        RoleWarning: If the encoder's bundle was exported only for semantic ranking.

    Examples:
        >>> ranker = RelevanceRanker(Encoder())
        >>> ranker.rank("bread recipe", ["Shares fell on Monday", "How to bake a loaf of rye bread"])[0].id
        1
    """

    def __init__(self, encoder: Encoder) -> None:
        validate_encoder(encoder)
        warn_of_other_role(encoder, "relevance")
        self._encoder = encoder

    def rank(
        self,
        query: str | npt.ArrayLike,
        documents: Iterable[str],
        top_k: int | None = None,
        *,
        embeddings: npt.ArrayLike | None = None,
    ) -> list[Hit]:
        """Return the documents in descending order of their cosine with the query. Ties keep their order.

        Args:
            query: A text, or its embedding, (dimension,).
            documents: The texts to rank. One that is blank, or of which the vocabulary knows almost no word, scores -1.
            top_k: The maximum number of hits; None, the default, returns all documents.
            embeddings: The documents' embeddings, (documents, dimension), if you have them already: the texts are then
                not encoded. They need not be normalized. An embedding of zeros scores -1.

        Returns:
            Hits with scores from -1 to 1; an empty list if there are no documents.

        Raises:
            InputError: If the query or a document is not a text, the query is blank, an embedding has another shape or
                type or is not finite, or `top_k` is below 1.
        """
        validate_top_k(top_k)
        _check_argument_order(query, documents)
        texts = validate_texts(documents, "document")
        query_embedding = query_vector(self._encoder, query)
        scores = _cosines(document_vectors(self._encoder, texts, embeddings), query_embedding)
        return _best_hits(texts, scores, top_k)


class SemanticRanker:
    """Rank documents by what the user liked, disliked and viewed. All of it stays in one file on the device.

    The user is represented by centers of interest and of disinterest. A center is a vector c of unit length; v is the
    embedding of a text, and unit(x) is x divided by its L2 norm:

    - `like(text)` finds the interest with the highest cosine. If that cosine is at least `near_cosine`, the interest
      gets one more use and moves toward the text: c <- unit(c + 0.1 (v - c)). Otherwise the text starts an interest.
    - `dislike(text)` does the same with the disinterests.
    - `view(text, seconds)` adds the seconds, at most 300, to the nearest interest whose cosine is at least
      `near_cosine`; the interest does not move. A view of 20 s or more also counts as the last use, and starts an
      interest with 0 uses if none is near. A shorter view of something new changes nothing.

    A center weighs more the more it is used. Without use, its weight decays to 0 in 30 days:

        weight = (uses + view seconds / 60) * max(0, 1 - days since the last use / 30)

    After 30 days a center has expired: it is no longer listed, and the next reaction deletes it.

    There are at most 12 interests and 12 disinterests. If a reaction starts one more, the two of that kind with the
    lowest cost merge, where w is the weight of a center:

        cost = w1 w2 / (w1 + w2) * ||c1 - c2||^2

    Then c <- unit((w1 c1 + w2 c2) / (w1 + w2)). Uses and views are added up, and the last use is the later one. The id
    is that of the center with more uses and views, or else of the older one; the example is that of the heavier one.

    The score of a document without a query is between -1 and 1:

        interest = pull of the interests - pull of the disinterests
        pull     = max over these centers of max(0, cosine(document, center)) * weight / (weight + 1)

    The score with a query is:

        score = 0.2 * interest + 0.8 * cosine(query, document)

    While no center has any weight, documents score 0 and keep their order; with a query the score is then the cosine.
    Documents with equal scores keep their order. `InterestSettings` contains the constants.

    Sources:

    - Idea: ranking documents on the device by stored interests and disinterests is the "semantic ranker" of Chaulwar
      et al., "Extreme compression of sentence-transformer ranker models" (2022), section 2. The paper does not state
      the formulas.
    - Rules and constants from Xayn, the authors' company, which published the scheme of its product: separate centers
      for interests and disinterests; a like moves the nearest center by a factor of 0.1 or starts a new center; weights
      grow with the number and length of uses and decay over 30 days; disinterests count against a document.
    - `near_cosine` is our choice. Xayn uses 0.67, which suits its encoder: with ours, only 5 to 22 % of adjacent
      passages of one article reach it. So it is measured for each encoder; see `InterestSettings.near_cosine`.
    - Merging, and the maximum of 12, are our choices. Without them, 500 reactions of simulated users with six interests
      made 18 to 29 centers; with them, documents were ranked as well (`docs/results/interests.md`). The cost is that of
      Ward, "Hierarchical grouping to optimize an objective function" (1963). Merging the two nearest instead joined
      heavy centers of different topics.
    - The linear decay is our choice, because it needs no further constant.
    - weight / (weight + 1) is our choice, because a first like then has half the greatest pull, ten likes have 10/11 of
      it, and no amount of use outweighs everything else.
    - The maximum is our choice, because one matching interest is enough, and different interests are not averaged.
    - The difference of the pulls is our choice, because a disinterest then cancels an interest of the same cosine and
      weight.
    - 20 s, 60 s, 300 s and the weights 0.2 and 0.8 are our choices. They were not measured.

    Threads may share a ranker, several processes may use one store, and a ranker may be used after a fork. A reaction
    is on the disk when the call returns. If the process ends earlier, the store is unchanged.

    Args:
        encoder: The encoder of the texts.
        store: The file, an SQLite database, which is created if it is absent. ":memory:" keeps everything in memory. A
            read-only store can still be used for ranking.
        settings: The constants. They are stored in the file and must be those of an existing one; `change_settings`
            changes them. None takes those of the file, and the defaults for a new one.
        clock: Returns the time in seconds since the epoch, from 0 to the end of the year 9999. If the clock goes
            backwards, no last use is set back, and a center whose last use lies in the future has its full weight.

    Raises:
        InputError: If the file is not a store, is damaged, has other settings, or belongs to an encoder of another
            space.

    Warns:
        RoleWarning: If the encoder's bundle was exported only for relevance ranking.

    Examples:
        >>> ranker = SemanticRanker(Encoder(), ":memory:")
        >>> center_id = ranker.like("A simple recipe for sourdough bread")
        >>> ranker.rank(None, ["Shares fell on Monday", "How to bake a loaf of rye bread"])[0].id
        1
    """

    def __init__(
        self,
        encoder: Encoder,
        store: str | os.PathLike[str],
        *,
        settings: InterestSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # Imported here because RelevanceRanker does not need sqlite3.
        from edgeembed_runtime.bundle import EncoderIdentity
        from edgeembed_runtime.interests.store import InterestStore

        validate_encoder(encoder)
        warn_of_other_role(encoder, "semantic")
        self._encoder = encoder
        self._store: InterestStore = InterestStore(
            store,
            EncoderIdentity.of(encoder.bundle),
            settings=settings,
            near_cosine=encoder.bundle.near_cosine or DEFAULT_NEAR_COSINE,
            clock=clock,
        )

    def like(self, text: str, *, embedding: npt.ArrayLike | None = None) -> int:
        """Record that the user likes a text.

        Args:
            text: The text. If it starts a center, its first 120 characters are stored as the center's example.
            embedding: The text's embedding, (dimension,), if you have it already. The text may then be "".

        Returns:
            The id of the center that the text is in afterwards. It is an older one if there were too many and the
            text's own was merged into that.

        Raises:
            InputError: If the text is not a str; if it is blank, or the vocabulary knows almost none of its words,
                while `embedding` is None; if the embedding has another shape or is not finite; or if the store cannot
                be written. The store is then unchanged.
        """
        return self._store.like(text, self._embedding(text, embedding))

    def dislike(self, text: str, *, embedding: npt.ArrayLike | None = None) -> int:
        """Record that the user dislikes a text. Arguments, result and errors are those of `like`."""
        return self._store.dislike(text, self._embedding(text, embedding))

    def view(self, text: str, seconds: float, *, embedding: npt.ArrayLike | None = None) -> int | None:
        """Record that the user viewed a text.

        Args:
            text: As in `like`.
            seconds: How long the text was viewed.
            embedding: As in `like`.

        Returns:
            The id of the center, or None for a short view of something new, which changes nothing.

        Raises:
            InputError: As in `like`, or if `seconds` is not a finite number of at least 0.
        """
        return self._store.view(text, self._embedding(text, embedding), seconds)

    def rank(
        self,
        query: str | npt.ArrayLike | None,
        documents: Iterable[str],
        top_k: int | None = None,
        *,
        embeddings: npt.ArrayLike | None = None,
    ) -> list[Hit]:
        """Return the documents in descending order of score. Ties keep their order.

        Args:
            query: A text, or its embedding, (dimension,). None ranks by interests alone.
            documents: The texts to rank. One that is blank, or of which the vocabulary knows almost no word, scores -1.
            top_k: The maximum number of hits; None, the default, returns all documents.
            embeddings: The documents' embeddings, (documents, dimension), if you have them already: the texts are then
                not encoded. They need not be normalized. An embedding of zeros scores -1.

        Returns:
            Hits; an empty list if there are no documents.

        Raises:
            InputError: If the query or a document is not a text, the query is blank, an embedding has another shape or
                type or is not finite, `top_k` is below 1, or the store cannot be read.
        """
        validate_top_k(top_k)
        _check_argument_order(query, documents)
        texts = validate_texts(documents, "document")
        query_embedding = None if query is None else query_vector(self._encoder, query)
        scores = self._scores(document_vectors(self._encoder, texts, embeddings), query_embedding)
        return _best_hits(texts, scores, top_k)

    @property
    def settings(self) -> InterestSettings:
        """The settings in the file."""
        return self._store.settings

    def change_settings(self, settings: InterestSettings) -> None:
        """Replace the settings in the file, for everybody who uses it. Centers follow at the next reaction.

        Args:
            settings: The new settings. A `near_cosine` of None keeps that of the file.

        Raises:
            InputError: If they are not InterestSettings, or the store cannot be written.
        """
        self._store.change_settings(settings)

    def centers(self) -> list[Center]:
        """Return all centers that have not expired, the oldest first, with their present weights."""
        return self._store.centers()

    def export(self) -> dict[str, Any]:
        """Return the whole content of the file as values that JSON can represent. The user may ask for it."""
        return self._store.export()

    def forget(self, *ids: int) -> None:
        """Remove centers, and nothing else, and overwrite their bytes in the file. On an error, remove none.

        Args:
            ids: The ids of the centers.

        Raises:
            InputError: If an id is unknown, or the store cannot be written.
        """
        self._store.forget(*ids)

    def forget_all(self) -> int:
        """Remove all centers, overwrite their bytes in the file, and return how many `export` showed."""
        return self._store.forget_all()

    def _embedding(self, text: str, embedding: npt.ArrayLike | None) -> npt.ArrayLike:
        if embedding is not None:
            return embedding
        texts = validate_texts([text], "text")
        if is_blank(texts[0]):
            raise InputError("the text is blank, expected a text with a letter, a digit or a symbol")
        row: npt.NDArray[np.float32] = self._encoder.encode_document(texts, on_unknown="error")[0]
        return row

    def _scores(
        self, embeddings: npt.NDArray[np.float32], query: npt.NDArray[np.float32] | None
    ) -> npt.NDArray[np.float32]:
        """Return the weighted sum of interest and relevance; or only one, if there is no query or all weights are 0."""
        centers = self._store.centers()
        scores = interest_scores(centers, embeddings)
        if query is not None:
            relevances, weight = _cosines(embeddings, query), self._store.settings.query_weight
            has_interests = any(center.weight for center in centers)
            scores = (1 - weight) * scores + weight * relevances if has_interests else relevances
        scores[~embeddings.any(axis=1)] = _LOWEST_SCORE
        return scores


def _check_argument_order(query: object, documents: object) -> None:
    """Raise InputError if the two look swapped."""
    is_query = query is None or isinstance(query, str)
    if not is_query and (documents is None or isinstance(documents, str)):
        raise InputError(
            f"the query is {type(query).__name__} and the documents are {type(documents).__name__}, expected "
            "rank(query, documents): swap them, and pass the documents as a list of str"
        )


def _cosines(embeddings: npt.NDArray[np.float32], query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the cosine of each document with the query, with the arithmetic of an `Index`, so that scores agree."""
    return StoredVectors(GrowingArray(embeddings)).cosine_similarity(query)


def _best_hits(texts: list[str], scores: npt.NDArray[np.float32], top_k: int | None) -> list[Hit]:
    return [Hit(int(i), float(scores[i]), texts[i]) for i in top_k_indices(scores, top_k)]
