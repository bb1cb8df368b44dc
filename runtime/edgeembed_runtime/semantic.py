"""Documents in the order in which they interest the user."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._validation import (
    document_vectors,
    query_vector,
    validate_encoder,
    validate_texts,
    validate_top_k,
)
from edgeembed_runtime._warnings import warn_of_other_role
from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.hits import Hit
from edgeembed_runtime.interests.centers import Center, InterestSettings, interest_scores
from edgeembed_runtime.interests.store import InterestStore
from edgeembed_runtime.interests.tables import EncoderIdentity
from edgeembed_runtime.similarity import top_k_indices


class SemanticRanker:
    """Rank documents by what the user liked, disliked and viewed, all of which stays in one file on the device.

    The user is represented by a list of centers of interest and of disinterest, unit vectors c in embedding space;
    v is the vector of a text:

    - `like(text)` finds the interest with the highest cosine. If that is at least `near_cosine`, it adds 1 to the
      interest's uses and moves it toward the text, c <- unit(c + 0.1 (v - c)). Otherwise the text starts an interest.
    - `dislike(text)` does the same among the disinterests.
    - `view(text, seconds)` adds the seconds, at most 300, to those of the nearest interest from `near_cosine` on,
      and does not move it. From 20 s on the view also counts as the last use, and starts an interest (of 0 uses)
      where none is near. A shorter view of something new changes nothing.

    The weight of a center grows with how often and how long it was used, and decays to 0 in 30 days without use:

        weight = (uses + viewed seconds / 60) * max(0, 1 - days since the last use / 30)

    A document's score without a query is from -1 to 1:

        interest = pull of the interests - pull of the disinterests
        pull     = max over these centers of max(0, cosine(document, center)) * weight / (weight + 1)

    and with a query:

        score = 0.2 * interest + 0.8 * cosine(query, document)

    While no center has any weight, documents keep their order, with the score 0; with a query the score is then the
    cosine. Of equal scores the earlier document comes first. `InterestSettings` holds the constants.

    Sources: ranking documents by stored interests and disinterests, on the device, is the "semantic ranker" of
    Chaulwar et al., "Extreme compression of sentence-transformer ranker models" (2022), section 2, which leaves the
    formulas out. Xayn, where they work, published a scheme with the product: centers per kind; a like that moves the
    nearest center by a factor of 0.1 if their cosine is at least 0.67 and otherwise starts a center; weights that
    grow with the number and the length of uses and decay over 30 days; disinterests that count against. These rules
    and constants are theirs, except for the threshold: 0.67 suits their encoder; with ours only 5 to 22 % of adjacent
    passages of one article reach it, so it was measured for each encoder (`InterestSettings.near_cosine`). The rest
    is ours: the linear decay, which needs no further constant; weight / (weight + 1), so that a first like has half
    the greatest pull, ten have 10/11, and no amount of use outweighs everything else; the maximum, so that one center
    suffices and interests are not averaged; pulls that are subtracted, so that a disinterest takes away what an
    interest as near and as heavy gives; and 60, 20 and 300 s and the blend of 0.2 and 0.8, which are choices.

    Threads may share a ranker, several processes may use one store, and a ranker may be used after a fork. Every
    reaction is on the disk when the call returns, and is there wholly or not at all, however the process ends.

    Args:
        encoder: Encodes the texts.
        store: The file, an SQLite database, which is created if it is absent; ":memory:" stores nothing. A store
            that cannot be written can still be used for ranking.
        settings: The constants; None takes the defaults. A `near_cosine` of None is replaced by that of the encoder's
            bundle.
        clock: Returns the time in seconds since the epoch, from 0 to the end of the year 9999. If it goes backwards,
            no last use is set back, and a center that was last used later than now has its full weight.

    Raises:
        InputError: If the file is not a store, is damaged, or belongs to another encoder.

    Warns:
        RoleWarning: If the encoder's bundle was exported for relevance ranking alone.

    Example:
        >>> ranker = SemanticRanker(Encoder(), ":memory:")
        >>> center = ranker.like("A simple recipe for sourdough bread")
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
        validate_encoder(encoder)
        warn_of_other_role(encoder, "semantic")
        self._encoder = encoder
        if settings is not None and not isinstance(settings, InterestSettings):
            raise InputError(f"the settings are {type(settings).__name__}, expected InterestSettings")
        self._settings = InterestSettings() if settings is None else settings
        if self._settings.near_cosine is None:
            self._settings = replace(self._settings, near_cosine=encoder.bundle.near_cosine)
        identity = EncoderIdentity(encoder.bundle.name, encoder.bundle.fingerprint, encoder.dimension)
        self._store = InterestStore(store, identity, settings=self._settings, clock=clock)

    def like(self, text: str, *, embedding: npt.ArrayLike | None = None) -> int:
        """Record that the user likes a text.

        Args:
            text: The text. Its first 120 characters are stored as the example of a center that it starts.
            embedding: Its embedding, (dimension,), if it is known already. The text may then be "" (no example).

        Returns:
            The number of the center that the text joined or started.

        Raises:
            InputError: If the text is not a text, or is blank and has no embedding; if that has another shape or
                is not finite; or if the store cannot be written. Then the store is as it was.
        """
        return self._store.like(text, self._vector(text, embedding))

    def dislike(self, text: str, *, embedding: npt.ArrayLike | None = None) -> int:
        """Record that the user dislikes a text; otherwise as `like`."""
        return self._store.dislike(text, self._vector(text, embedding))

    def view(self, text: str, seconds: float, *, embedding: npt.ArrayLike | None = None) -> int | None:
        """Record that the user viewed a text.

        Args:
            text: As in `like`.
            seconds: For how long.
            embedding: As in `like`.

        Returns:
            The number of the center, or None for a glance at something new, which changes nothing.

        Raises:
            InputError: As `like`, or if `seconds` is not a finite number of at least 0.
        """
        return self._store.view(text, self._vector(text, embedding), seconds)

    def rank(
        self,
        query: str | npt.ArrayLike | None,
        documents: Iterable[str],
        top_k: int | None = None,
        *,
        embeddings: npt.ArrayLike | None = None,
    ) -> list[Hit]:
        """Return the documents, best first; of equal scores the earlier first.

        Args:
            query: The query: a text, or its embedding, (dimension,). None ranks by interest alone.
            documents: The texts to rank. A blank one has the cosine 0 with everything.
            top_k: The maximum number of hits; None, the default, returns all.
            embeddings: The documents' embeddings, (documents, dimension), if they are known already: the texts are then
                not encoded. They need not be normalized. An embedding of zeros has the cosine 0 with everything.

        Returns:
            Hits, none if there are no documents.

        Raises:
            InputError: If the query or a document is not a text, the query is blank, an embedding has another shape
                or type or is not finite, `top_k` is below 1, or the store cannot be read.
        """
        validate_top_k(top_k)
        texts = validate_texts(documents, "document")
        wanted = None if query is None else query_vector(self._encoder, query)
        scores = self._scores(document_vectors(self._encoder, texts, embeddings), wanted)
        return [Hit(int(i), float(scores[i]), texts[i]) for i in top_k_indices(scores, top_k)]

    def centers(self) -> list[Center]:
        """Return all centers, the oldest first, with their present weights."""
        return self._store.centers()

    def export(self) -> dict[str, Any]:
        """Return all that the store holds, as values that JSON can represent: the user may ask for it."""
        return self._store.export()

    def forget(self, *centers: int) -> None:
        """Remove centers, all of them or on an error none, and overwrite their bytes in the file.

        Args:
            centers: Their numbers.

        Raises:
            InputError: If there is no such center, or the store cannot be written.
        """
        self._store.forget(*centers)

    def forget_all(self) -> int:
        """Remove all centers, overwrite their bytes in the file, and return how many there were."""
        return self._store.forget_all()

    def _vector(self, text: str, embedding: npt.ArrayLike | None) -> npt.ArrayLike:
        if embedding is not None:
            return embedding
        texts = validate_texts([text], "text")
        if not texts[0].strip():
            raise InputError("the text is blank, expected a text that says something; leave it out")
        row: npt.NDArray[np.float32] = document_vectors(self._encoder, texts, None)[0]
        return row

    def _scores(
        self, vectors: npt.NDArray[np.float32], query: npt.NDArray[np.float32] | None
    ) -> npt.NDArray[np.float32]:
        centers = self._store.centers()
        interests = interest_scores(centers, vectors)
        if query is None:
            return interests
        # Not a matmul: BLAS may give two equal rows different scores, and ties would depend on their positions.
        relevances: npt.NDArray[np.float32] = np.einsum("nd,d->n", vectors, query)
        if not any(center.weight for center in centers):
            return relevances
        share = self._settings.relevance_share
        return (1 - share) * interests + share * relevances
