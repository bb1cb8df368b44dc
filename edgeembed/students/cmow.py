"""CMOW students: text encoders without attention, built from word matrices, word vectors, or both.

CBOW adds up the vectors of a text's tokens. CMOW (continual multiplication of words) multiplies their matrices, so that
word order counts. Source: "Cross-architecture distillation using bidirectional CMOW embeddings", section 2.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from edgeembed.students.matrix_chain import chain_matmul, concat_scaled, prefix_products
from edgeembed.students.token_table import TokenTable
from edgeembed.students.transformer import TokenizerModule

INITIAL_NOISE = 0.01
"""Standard deviation of a matrix's initial distance from the identity, as in the paper."""
INITIAL_VECTOR_STD = 0.1
"""Initial standard deviation of the vectors, as in the code of CMOW's first paper (Mai et al. 2019, word2mat): the
paper on the bidirectional model states that of the matrices alone."""

Architecture = Literal["cbow", "cmow", "hybrid"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class CMOWConfig:
    """Architecture of a CMOW student (section 2.1 of the paper).

    Attributes:
        architecture: `cbow` sums vectors, `cmow` multiplies matrices, `hybrid` concatenates both.
        bidirectional: Whether a second table of matrices is multiplied from the last token to the first.
        matrix_dim: Rows, and columns, of a token's matrix.
        vector_dim: Width of a token's vector.
        rank: Rank of the factorized tables; 0 for full tables.
        cbow_pooling: Whether vectors are pooled by `sum`, as in the paper, or by `mean`.
        dimension: Output width of a final linear layer; 0 for no such layer.
        table_bits: Bits per value of the tables, 2 or 4, to which each step of the training rounds them; 0 for float32.
    """

    architecture: Architecture = "hybrid"
    bidirectional: bool = True
    matrix_dim: int = 20
    vector_dim: int = 400
    rank: int = 0
    cbow_pooling: Literal["sum", "mean"] = "sum"
    dimension: int = 0
    table_bits: int = 0

    @property
    def directions(self) -> tuple[str, ...]:
        """Names of the matrix tables, one per direction of multiplication."""
        if self.architecture == "cbow":
            return ()
        return ("forwards", "backwards") if self.bidirectional else ("forwards",)

    @property
    def width(self) -> int:
        """Width of the concatenated matrices and vectors, before the final linear layer."""
        vectors = 0 if self.architecture == "cmow" else self.vector_dim
        return len(self.directions) * self.matrix_dim**2 + vectors


def reinitialize(model: Any, seed: int) -> Any:
    """Return a CMOW student of the same architecture with newly initialized tables, to train it from scratch.

    Args:
        model: A SentenceTransformer whose first module is a `MatrixEmbedding`. Its other modules are shared.
        seed: Seed of the random tables.

    Raises:
        InputError: If the first module is of another class.
    """
    first, *rest = list(model)
    if not isinstance(first, MatrixEmbedding):
        raise InputError(
            f"the model starts with {type(first).__name__}; expected a CMOW student (MatrixEmbedding), the only kind "
            "that can be trained from scratch"
        )
    torch.manual_seed(seed)
    fresh = MatrixEmbedding(first.tokenizer, first.cmow_config, first.max_seq_length, first.dropout.p)
    return SentenceTransformer(modules=[fresh, *rest], device=model.device, trust_remote_code=True)


def _stored_name(name: str, table: TokenTable) -> str:
    return f"{name}.weight" if table.basis is None else f"{name}.factors"


def _in_float32(method: _Method) -> _Method:
    """Disable autocast: bfloat16 cannot represent small distances from the identity, and products add up the errors."""

    @wraps(method)
    def in_float32(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(next(self.parameters()).device.type, enabled=False):
            return method(self, *args, **kwargs)

    return cast("_Method", in_float32)


class MatrixEmbedding(TokenizerModule):
    """CBOW, CMOW or their hybrid as the first module of a student: text -> sentence embedding.

    Matrices are stored as their difference from the identity.

    Args:
        tokenizer: The student's tokenizer.
        cmow_config: The architecture.
        max_seq_length: Maximum number of tokens, special tokens included.
        dropout: Dropout rate in training, applied to each matrix's difference from the identity, to the vectors, and
            to the concatenated result.
    """

    config_file_name = "matrix_embedding.json"

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, cmow_config: CMOWConfig, max_seq_length: int, dropout: float = 0.0
    ) -> None:
        super().__init__(tokenizer, max_seq_length)
        self.cmow_config = config = cmow_config
        size, width = len(tokenizer), config.matrix_dim**2
        self.matrices = nn.ModuleDict(
            {name: TokenTable(size, width, config.rank, INITIAL_NOISE, config.table_bits) for name in config.directions}
        )
        self.vectors = None
        if config.architecture != "cmow":
            self.vectors = TokenTable(size, config.vector_dim, config.rank, INITIAL_VECTOR_STD, config.table_bits)
        self.head = nn.Linear(config.width, config.dimension) if config.dimension else None
        self.dropout = nn.Dropout(dropout)

    @_in_float32
    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add float32 `sentence_embedding` (batch, dimension) to the features."""
        token_ids, mask = features["input_ids"], features["attention_mask"]
        parts, exponents = [], []
        for name in self.cmow_config.directions:
            product, exponent = chain_matmul(self._matrices(name, token_ids, mask))
            parts.append(product.flatten(1))
            exponents.append(exponent)
        if self.vectors is not None:
            total = self._vectors(token_ids, mask).sum(dim=1)
            mean = self.cmow_config.cbow_pooling == "mean"
            parts.append(total / mask.sum(dim=1, keepdim=True).clamp_min(1) if mean else total)
            exponents.append(torch.zeros(len(total), dtype=torch.int32, device=total.device))
        features["sentence_embedding"] = self._combine(parts, exponents)
        return features

    @_in_float32
    def contextual_embeddings(self, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return an embedding of each token in its context: what precedes it and what follows it, itself included.

        Args:
            token_ids: int64 (batch, tokens).
            mask: int64 (batch, tokens), 1 on tokens and 0 on padding.

        Returns:
            float32 (batch, tokens, contextual_width): prefix products, suffix products, prefix sums and suffix sums, as
            far as the architecture has them (section 2.1, per-token representations).
        """
        parts, exponents = [], []
        for name in self.cmow_config.directions:
            products, powers = prefix_products(self._matrices(name, token_ids, mask))
            if name == "backwards":
                products, powers = products.flip(1), powers.flip(1)
            parts.append(products.flatten(2))
            exponents.append(powers)
        if self.vectors is not None:
            vectors = self._vectors(token_ids, mask)
            before = vectors.cumsum(dim=1)
            sums = [before]
            if self.cmow_config.bidirectional:
                sums.append(before[:, -1:] - before + vectors)
            parts += sums
            exponents += [torch.zeros(mask.shape, dtype=torch.int32, device=mask.device)] * len(sums)
        combined, _ = concat_scaled(parts, exponents)
        dropped: torch.Tensor = self.dropout(combined)
        return dropped

    @property
    def contextual_width(self) -> int:
        """Width of the embeddings that `contextual_embeddings` returns."""
        has_suffix_sums = self.cmow_config.bidirectional and self.vectors is not None
        return self.cmow_config.width + (self.cmow_config.vector_dim if has_suffix_sums else 0)

    def _matrices(self, name: str, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return a direction's matrices, (batch, tokens, d, d), in order of multiplication; padding is the identity."""
        table = self.matrices[name]
        offsets = self.dropout(table(token_ids)) * mask[..., None]
        d = self.cmow_config.matrix_dim
        matrices: torch.Tensor = offsets.unflatten(-1, (d, d)) + torch.eye(d, device=offsets.device)
        return matrices.flip(1) if name == "backwards" else matrices

    def _vectors(self, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.dropout(self.vectors(token_ids)) * mask[..., None]  # type: ignore[misc]
        return rows

    def _combine(self, parts: list[torch.Tensor], exponents: list[torch.Tensor]) -> torch.Tensor:
        """Concatenate scaled parts, apply dropout and the linear layer; extreme vectors keep only their direction."""
        if self.head is None:
            combined, _ = concat_scaled(parts, exponents)
            dropped: torch.Tensor = self.dropout(combined)
            return dropped
        # An empty part of exponent 0 stands for the bias, which must not vanish or overflow after scaling either.
        empty, no_exponent = parts[0][:, :0], torch.zeros_like(exponents[0])
        combined, divided = concat_scaled([*parts, empty], [*exponents, no_exponent])
        mapped: torch.Tensor = nn.functional.linear(self.dropout(combined), self.head.weight)
        return mapped + self.head.bias * torch.exp2(-divided[:, None].float())

    @contextmanager
    def narrowed(self, token_ids: torch.Tensor) -> Iterator[None]:
        """Hold the rows of some tokens alone within the context; see `TokenTable.narrowed`."""
        with ExitStack() as stack:
            for table in self._tables().values():
                stack.enter_context(table.narrowed(token_ids))
            yield

    def matrix_tensors(self) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """Return the tensors and settings of the runtime's tensor file, named as in docs/tensor-file.md."""
        tensors: dict[str, torch.Tensor] = {}
        for name, table in self._tables().items():
            tensors[_stored_name(name, table)] = table.values()
            if table.basis is not None:
                tensors[f"{name}.basis"] = table.basis
            if name != "cbow":
                tensors[f"{name}.bias"] = torch.eye(self.cmow_config.matrix_dim).flatten()
        if self.head is not None:
            tensors |= {"head.weight": self.head.weight, "head.bias": self.head.bias}
        pooling = {} if self.vectors is None else {"cbow_pooling": self.cmow_config.cbow_pooling}
        return tensors, {"architecture": self.cmow_config.architecture, **pooling}

    def table_scales(self) -> tuple[int, dict[str, torch.Tensor]]:
        """Return the bits per value of the tables, 0 for float32, and the scales of their rows by the tensor's name."""
        bits = self.cmow_config.table_bits
        return bits, {_stored_name(name, table): table.scale() for name, table in self._tables().items() if bits}

    def _tables(self) -> dict[str, Any]:
        """Return the tables by their names in docs/tensor-file.md."""
        tables: dict[str, Any] = {f"cmow.{name.removesuffix('s')}": table for name, table in self.matrices.items()}
        return tables if self.vectors is None else {**tables, "cbow": self.vectors}

    def get_embedding_dimension(self) -> int:
        """Return the dimension of a sentence embedding."""
        return self.cmow_config.dimension or self.cmow_config.width

    def get_config_dict(self) -> dict[str, Any]:
        """Return what `load` needs besides the weights and the tokenizer."""
        return {"cmow": asdict(self.cmow_config), "max_seq_length": self.max_seq_length}

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> MatrixEmbedding:
        """Load a module that `save` wrote."""
        folder = os.path.join(model_name_or_path, subfolder)  # noqa: PTH118  # sentence-transformers passes strings
        settings = cls.load_config(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        module = cls(tokenizer, CMOWConfig(**settings["cmow"]), settings["max_seq_length"])
        cls.load_torch_weights(folder, model=module)
        return module
