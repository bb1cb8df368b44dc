"""Documents in the order in which they interest the user."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.given_vectors import check_encoder, document_vectors, query_vector
from edgeembed_runtime.hits import Hit, best_first, check_count
from edgeembed_runtime.interests.centres import Centre, InterestSettings, interest_scores
from edgeembed_runtime.interests.store import InterestStore
from edgeembed_runtime.interests.tables import EncoderIdentity
from edgeembed_runtime.roles import check_role
from edgeembed_runtime.texts import as_texts


class SemanticRanker:
    """Ranks documents by what the user liked, disliked and viewed, all of which stays in one file on the device.

    What is known of the user is a list of centres of interest and of disinterest, directions among texts:

    - `like(text)` moves the nearest interest a tenth of the way towards the text, if their cosine is at least 0.4,
      and adds 1 to its uses: c <- unit(c + 0.1 (v - c)). If none is that near, the text starts a new interest.
    - `dislike(text)` does the same among the disinterests.
    - `viewed(text, seconds)` adds the seconds, at most 300, to those of the nearest interest, if their cosine is at
      least 0.4; it moves nothing. From 20 s on it also counts as the last use, and starts an interest (of no uses)
      where none is near. A glance at something new changes nothing.

    Each centre has a weight, which grows with how often and how long it was used and fades within 30 days:

        weight = (uses + viewed seconds / 60) * max(0, 1 - days since the last use / 30)

    A document's score by interest alone is from -1 to 1:

        interest = pull of the interests - pull of the disinterests
        pull     = the largest max(0, cosine(document, centre)) * weight / (weight + 1) of these centres

    so that one strong centre suffices, a like made just now has half the pull that is possible, ten have ten
    elevenths, and a disinterest takes away what an interest as near and as heavy gives. With a query, the score is

        score = 0.2 * interest + 0.8 * cosine(query, document)

    As long as no centre has any weight, documents keep their order, with the score 0, and with a query the score is
    the cosine. Of equal scores the earlier document comes first. `InterestSettings` holds these numbers.

    Threads may share a ranker, several processes may use one store, and a ranker may be used after a fork. Every
    reaction is on the disk when the call returns, and is there wholly or not at all, whatever ends the process.

    Args:
        encoder: What gives the vectors.
        store: The file, an SQLite database that is created if it is absent; ":memory:" keeps nothing. A store that
            exists and cannot be written serves for ranking.
        settings: How reactions become centres and scores; None stands for the defaults.
        clock: Gives the time in seconds since the epoch. Where it goes backwards, centres are as if just used.

    Raises:
        InputError: If the file is no store, is damaged, or belongs to another encoder.

    Warns:
        RoleWarning: If the encoder's bundle was exported for relevance ranking alone.

    Example:
        >>> ranker = SemanticRanker(Encoder(), ":memory:")
        >>> centre = ranker.like("A simple recipe for sourdough bread")
        >>> ranker.rank(["Shares fell on Monday", "How to bake a loaf of rye bread"])[0].index
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
        check_encoder(encoder)
        check_role(encoder, "semantic")
        self._encoder = encoder
        self._settings = InterestSettings() if settings is None else settings
        identity = EncoderIdentity(encoder.bundle.name, encoder.bundle.fingerprint, encoder.dimension)
        self._store = InterestStore(store, identity, settings=self._settings, clock=clock)

    def like(self, text: str, *, vector: npt.ArrayLike | None = None) -> int:
        """Learn that the user likes a text.

        Args:
            text: The text. Its first 120 characters are kept as the example of a centre that it starts.
            vector: Its vector, (dimension,), where that is known already; the text may then be "", to keep none.

        Returns:
            The number of the centre that took it.

        Raises:
            InputError: If this is no text or no vector, or the store cannot be written.
        """
        return self._store.like(text, self._vector(text, vector))

    def dislike(self, text: str, *, vector: npt.ArrayLike | None = None) -> int:
        """Learn that the user dislikes a text; otherwise as `like`."""
        return self._store.dislike(text, self._vector(text, vector))

    def viewed(self, text: str, seconds: float, *, vector: npt.ArrayLike | None = None) -> int | None:
        """Learn that the user looked at a text.

        Args:
            text: As in `like`.
            seconds: For how long.
            vector: As in `like`.

        Returns:
            The number of the centre that took it, or None if it changed nothing.

        Raises:
            InputError: As `like`, or if `seconds` is no finite number of at least 0.
        """
        return self._store.viewed(text, self._vector(text, vector), seconds)

    def rank(
        self,
        documents: Iterable[str],
        query: str | npt.ArrayLike | None = None,
        top_k: int | None = None,
        *,
        vectors: npt.ArrayLike | None = None,
    ) -> list[Hit]:
        """Give the documents, best first; of equally good ones the earlier first.

        Args:
            documents: The texts to rank.
            query: What is looked for: a text, or its vector, (dimension,). None, the default, ranks by interest
                alone.
            top_k: How many hits to give at most; None, the default, ranks all.
            vectors: The documents' vectors, (documents, dimension), where they are known already: the texts are
                then not encoded. They need not have unit length. A vector of zeros is near nothing.

        Returns:
            Hits, none if there are no documents.

        Raises:
            InputError: If the query or a document is no text, a vector is of another shape, type or not finite,
                `top_k` is below 1, or the store cannot be read.
        """
        check_count(top_k)
        texts = as_texts(documents, "document")
        scores = self._scores(document_vectors(self._encoder, texts, vectors), query)
        return [Hit(int(i), float(scores[i]), texts[i]) for i in best_first(scores, top_k)]

    def centres(self) -> list[Centre]:
        """Give all centres, the oldest first, with the weights that they have now."""
        return self._store.centres()

    def export(self) -> dict[str, Any]:
        """Give all that the store holds, as what JSON can say: the user may ask for it."""
        return self._store.export()

    def forget(self, *centres: int) -> None:
        """Remove centres, all of them or on an error none, and overwrite what the file held of them.

        Args:
            centres: Their numbers.

        Raises:
            InputError: If there is no such centre, or the store cannot be written.
        """
        self._store.forget(*centres)

    def forget_all(self) -> int:
        """Remove all centres, overwrite what the file held of them, and give how many there were."""
        return self._store.forget_all()

    def _vector(self, text: str, vector: npt.ArrayLike | None) -> npt.ArrayLike:
        if vector is not None:
            return vector
        row: npt.NDArray[np.float32] = document_vectors(self._encoder, as_texts([text], "text"), None)[0]
        return row

    def _scores(self, vectors: npt.NDArray[np.float32], query: str | npt.ArrayLike | None) -> npt.NDArray[np.float32]:
        centres = self._store.centres()
        interests = interest_scores(centres, vectors)
        if query is None:
            return interests
        # Not a matrix product: BLAS may score two equal rows differently, and then ties depend on their place.
        relevances: npt.NDArray[np.float32] = np.einsum("nd,d->n", vectors, query_vector(self._encoder, query))
        if not any(centre.weight for centre in centres):
            return relevances
        share = self._settings.relevance_share
        return (1 - share) * interests + share * relevances
