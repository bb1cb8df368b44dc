"""Documents in the order in which they answer a query."""

from collections.abc import Iterable

from edgeembed_runtime.encoder import Encoder
from edgeembed_runtime.hits import Hit, best_hits, check_count
from edgeembed_runtime.texts import as_texts


class RelevanceRanker:
    """Ranks documents by the cosine of their vectors with a query's.

    Args:
        encoder: What gives the vectors.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def rank(self, query: str, documents: Iterable[str], top_k: int | None = None) -> list[Hit]:
        """Give the documents, best first; of equally good ones the earlier first.

        Args:
            query: What is looked for.
            documents: The texts to rank.
            top_k: How many hits to give at most; None, the default, ranks all.

        Returns:
            Hits, none if there are no documents.

        Raises:
            InputError: If the query or a document is no text, or `top_k` is below 1.
        """
        check_count(top_k)
        texts = as_texts(documents, "document")
        wanted = self._encoder.encode_query(as_texts([query], "query")[0])
        return best_hits(self._encoder.encode_document(texts), wanted, texts, top_k)
