"""The result of a search or a ranking."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and how well it matches.

    Attributes:
        id: The document's position in the list that was ranked; for an `Index`, the id that `add` returned for it.
        score: The cosine with the query, or the score of `SemanticRanker`. At most 1; higher is better.
        document: The text.
    """

    id: int
    score: float
    document: str
