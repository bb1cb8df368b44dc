"""spaCy: a pipeline component, the factory "edgeembed", that sets `doc._.embedding` and `doc.vector`.

The package's entry point registers it, so `nlp.add_pipe("edgeembed")` needs no import.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.integrations._loading import requires, shared_encoder

if TYPE_CHECKING:
    from edgeembed_runtime.encoder import Encoder

with requires("spacy", "spacy"):
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.util import minibatch


class EdgeEmbedComponent:
    """Set the embedding of each document, as `Encoder.encode` returns it.

    `doc._.embedding` is stored with the document and survives `nlp.pipe(n_process=2)`; spaCy stores no `doc.vector`.

    Args:
        name: The component's name in the pipeline.
        encoder: The encoder.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
    """

    def __init__(self, name: str, encoder: "Encoder", truncate_dim: int | None = None) -> None:
        self.name = name
        self._encoder = encoder
        self._truncate_dim = truncate_dim
        # In here, because a process that unpickles the component has to know the extension too.
        if not Doc.has_extension("embedding"):
            Doc.set_extension("embedding", default=None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: the receiving process loads the encoder again."""
        return EdgeEmbedComponent, (self.name, self._encoder, self._truncate_dim)

    def __call__(self, doc: Doc) -> Doc:
        """Set the embedding of a document.

        Args:
            doc: The document, which is modified.

        Returns:
            The document.
        """
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the embeddings of documents.

        Args:
            stream: The documents, which are modified.
            batch_size: The number of documents that are encoded together, on the threads of the encoder.

        Yields:
            The documents.
        """
        for docs in minibatch(stream, size=batch_size):
            embeddings = self._encoder.encode([doc.text for doc in docs], truncate_dim=self._truncate_dim)
            for doc, embedding in zip(docs, embeddings, strict=True):
                _set_embedding(doc, embedding)
                yield doc


def _set_embedding(doc: Doc, embedding: npt.NDArray[np.float32]) -> None:
    doc._.embedding = embedding
    doc.vector = embedding
    doc.vector_norm = float(np.linalg.norm(embedding))


@Language.factory(
    "edgeembed",
    default_config={"bundle": None, "threads": 1, "truncate_dim": None},
    assigns=["doc._.embedding"],
)
def make_component(
    nlp: Language,  # noqa: ARG001 - spaCy passes it
    name: str,
    bundle: str | None,
    threads: int | None,
    truncate_dim: int | None,
) -> EdgeEmbedComponent:
    """Return the component, for `nlp.add_pipe("edgeembed", config={...})` and when spaCy loads a pipeline.

    Args:
        nlp: The pipeline.
        name: The component's name in the pipeline.
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.

    Raises:
        InputError: If there is no such bundle.
    """
    return EdgeEmbedComponent(name, shared_encoder(bundle, threads), truncate_dim)
