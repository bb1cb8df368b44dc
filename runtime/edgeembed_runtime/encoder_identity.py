"""Which encoder computed stored embeddings, and which others may be used with them."""

from dataclasses import dataclass

from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import one_line, short_repr


@dataclass(frozen=True)
class EncoderIdentity:
    """The encoder that computed stored embeddings.

    Attributes:
        name: The name of its bundle.
        fingerprint: The fingerprint of its bundle.
        dimension: The dimension of its embeddings.
        space: The embedding space that its bundle states; None if it states none.
    """

    name: str
    fingerprint: str
    dimension: int
    space: str | None = None

    @classmethod
    def of(cls, bundle: Bundle) -> "EncoderIdentity":
        """Return the identity of a bundle's encoder."""
        return cls(bundle.name, bundle.fingerprint, bundle.dimension, bundle.space)

    def is_comparable(self, other: "EncoderIdentity") -> bool:
        """Return whether embeddings of both encoders may be compared.

        They may if both are the same encoder, or state the same embedding space and have the same dimension.
        """
        if self.fingerprint == other.fingerprint:
            return True
        return self.space is not None and (self.space, self.dimension) == (other.space, other.dimension)

    def __str__(self) -> str:
        """Return the name, the beginning of the fingerprint, and the space if there is one, for messages."""
        space = "" if self.space is None else f", space {one_line(self.space)}"
        return f"{short_repr(self.name)} ({one_line(self.fingerprint[:12])}{space})"
