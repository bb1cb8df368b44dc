"""Base of the kinds of students without attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from edgeembed.students.base import StudentContext, StudentKind
from edgeembed.validation import check

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from edgeembed.students.cmow import Architecture, CMOWConfig, MatrixEmbedding
    from edgeembed.students.settings import StudentSettings


class MatrixStudent(StudentKind):
    """Base of the students that sum vectors, multiply matrices, or do both.

    They start at random, and read only `table_init` (for the table of vectors), `max_seq_length` and `dropout` of the
    settings that all kinds share. Source: "Cross-architecture distillation using bidirectional CMOW embeddings".

    Attributes:
        architecture: Name of the architecture in a `CMOWConfig`.
        bidirectional: Whether matrices are multiplied from the end to the beginning too, with a table of their own.
        vector_dim: Width of a token's vector.
        rank: Rank of the embedding tables; `0` for full tables, which make up nearly all of such a student's size.
        cbow_pooling: Whether token vectors are pooled by `sum`, as in the paper, or by `mean`.
        table_bits: Bits per value of the embedding tables, `2` or `4`: the student trains with tables rounded to them,
            and its bundle stores them so. `0` trains float32 tables, which the export quantizes.
    """

    architecture: ClassVar[Architecture]
    predicts_tokens: ClassVar[bool] = True

    bidirectional: bool = True
    vector_dim: int = Field(default=400, ge=1, le=65_536)
    rank: int = Field(default=0, ge=0)
    cbow_pooling: Literal["sum", "mean"] = "sum"
    table_bits: Literal[0, 2, 4] = 0

    @model_validator(mode="after")
    def _fills_whole_bytes(self) -> MatrixStudent:
        per_byte = 8 // self.table_bits if self.table_bits else 1
        if self.rank:
            expected = f"a multiple of {per_byte} with table_bits={self.table_bits}"
            check(self.rank % per_byte == 0, "rank", self.rank, expected)
        else:
            for name, width in self.row_widths().items():
                expected = f"rows of whole bytes with table_bits={self.table_bits}"
                check(width % per_byte == 0, name, getattr(self, name), expected)
        return self

    def row_widths(self) -> dict[str, int]:
        """Return the width of a row of each table by the setting that decides it."""
        return {"vector_dim": self.vector_dim}

    def config(self, head_dim: int) -> CMOWConfig:
        """Return the architecture of the module.

        Args:
            head_dim: Dimension of its linear head; 0 for none.
        """
        from edgeembed.students.cmow import CMOWConfig

        return CMOWConfig(architecture=self.architecture, dimension=head_dim, **dict(self))

    def width(self, settings: StudentSettings, source: SentenceTransformer, head_dim: int) -> int:  # noqa: ARG002
        """Return the width of the concatenated matrices and vectors, before the head."""
        return self.config(head_dim).width

    def build(self, context: StudentContext) -> MatrixEmbedding:
        """Return the module: random matrices near the identity, vectors from the source's embeddings."""
        from edgeembed.students.cmow import MatrixEmbedding
        from edgeembed.students.initialization import fill_vectors

        settings = context.settings
        module = MatrixEmbedding(
            context.tokenizer, self.config(context.head_dim), settings.max_seq_length, settings.dropout
        )
        if module.vectors is not None and settings.table_init == "svd":
            fill_vectors(module.vectors, context.token_targets, context.token_weights)
        return module
