"""The kind `transformer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from edgeembed.students.base import STUDENTS, StudentContext, StudentKind

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from edgeembed.students.settings import StudentSettings
    from edgeembed.students.transformer import CompactTransformer


@STUDENTS.register("transformer")
class Transformer(StudentKind):
    """A transformer encoder with a narrow embedding table, which starts from the source's layers (SimTDE)."""

    outputs_tokens: ClassVar[bool] = True

    def width(self, settings: StudentSettings, source: SentenceTransformer, head_dim: int) -> int:  # noqa: ARG002
        """Return the width of the layers."""
        from edgeembed.students.initialization import check_source_model

        check_source_model(source, settings)
        return settings.hidden_size or int(source[0].auto_model.config.hidden_size)

    def build(self, context: StudentContext) -> CompactTransformer:
        """Return the encoder, initialized from the source."""
        from edgeembed.students.initialization import build_transformer

        return build_transformer(
            context.source.cpu(),
            context.tokenizer,
            context.token_targets,
            context.token_weights,
            context.settings,
            context.sentences,
        )
