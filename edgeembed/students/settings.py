"""Settings of a student."""

from collections.abc import Mapping
from typing import Any, Literal

from edgeembed_runtime.errors import InputError
from pydantic import Field, SerializeAsAny, model_validator

from edgeembed.students.base import STUDENTS, StudentKind
from edgeembed.validation import Settings, validate


class StudentSettings(Settings):
    """The student's architecture and initialization.

    Attributes:
        architecture: The kind of student: `transformer`, `cbow`, or one of a plugin, such as `cmow` and `hybrid`. The
            settings below are those of a transformer; the other kinds say which of them they read.
        shape: Settings of that kind alone; a transformer has none.
        source: Name of the model whose vocabulary, token table and layers the student starts from; empty for the
            teacher.
        layers: Number of the source's last layers that the student takes; `0` for all.
        layer_init: `last` copies the weights of those layers (SimTDE, section 3), `random` does not.
        token_dim: Width of the embedding table, which a linear layer projects to the hidden size. A third of the
            teacher's width keeps most of the quality at a third of the size. `0` for the hidden size, without a
            projection.
        table_bits: Bits per value of the embedding table: with `4` the student trains with its rows rounded to 16
            levels, which the export stores in 4 bits at int8. If `token_dim` is at least the hidden size, the projected
            rows are rounded, and the student is written with one table of the hidden size. `0` trains float32 tables,
            which the export rounds to 8 bits.
        table_init: `svd` starts table and projection at the best low-rank factorization of the teacher's table,
            weighted by token frequency; `random` as SimTDE does.
        hidden_size: Width of the layers; `0` for the source's. Narrower layers start at random.
        intermediate_size: Width of the feed-forward networks, which hold two thirds of the weights of a BERT layer;
            `0` for the source's ratio to the hidden size. Pruning keeps the most important neurons.
        attention_heads: Attention heads of each layer; `0` for as many as keep the source's head width, or else the
            source's number. Layers that start at random may have fewer, since each costs time.
        pooling: How a transformer's token embeddings become a sentence embedding: their `mean`, or that of the first
            token, `cls`.
        max_seq_length: Maximum input length in tokens.
        dropout: Dropout during training. None by default, since a small student underfits.
    """

    architecture: str = "transformer"
    shape: SerializeAsAny[StudentKind] = Field(default_factory=STUDENTS["transformer"])
    source: str = ""
    layers: int = Field(default=3, ge=0)
    layer_init: Literal["last", "random"] = "last"
    token_dim: int = Field(default=128, ge=0)
    table_bits: Literal[0, 4] = 0
    table_init: Literal["svd", "random"] = "svd"
    hidden_size: int = Field(default=0, ge=0)
    intermediate_size: int = Field(default=0, ge=0)
    attention_heads: int = Field(default=0, ge=0)
    pooling: Literal["mean", "cls"] = "mean"
    max_seq_length: int = Field(default=256, ge=3)
    dropout: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _builds_shape(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or not isinstance(value.get("architecture", ""), str):
            return value
        name, shape = value.get("architecture", "transformer"), value.get("shape", {})
        try:
            kind = STUDENTS[name]
        except InputError as error:
            raise InputError(f"architecture is {name!r}: {error}") from None
        return {**value, "shape": shape if isinstance(shape, kind) else validate(kind, shape, "shape")}
