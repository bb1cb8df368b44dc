"""Students without attention: a text is the product of its tokens' matrices, or the sum of their vectors, or both."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from edgeembed.students.matrix_products import chain_matmul, on_one_scale, prefix_products
from edgeembed.students.matrix_tables import TokenTable
from edgeembed.students.tokenizing import TokenizingModule

INITIAL_NOISE = 0.01  # the paper's, on matrices beside the identity
Architecture = Literal["cbow", "cmow", "hybrid"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Shape:
    """What a matrix student is made of ("Cross-architecture distillation using bidirectional CMOW embeddings", 2.1).

    Attributes:
        architecture: `cbow` adds vectors up, `cmow` multiplies matrices, `hybrid` does both.
        bidirectional: Whether another table of matrices is multiplied from the end to the beginning.
        matrix_dim: Rows of a token's matrix.
        vector_dim: Width of a token's vector.
        rank: Rank of the tables; 0 for whole ones.
        cbow_pooling: Whether the vectors' `sum` is taken, as the paper does, or their `mean`.
        dimension: Dimensions that a linear layer gives the vector; 0 for none, and all parts as they are.
    """

    architecture: Architecture = "hybrid"
    bidirectional: bool = True
    matrix_dim: int = 20
    vector_dim: int = 400
    rank: int = 0
    cbow_pooling: Literal["sum", "mean"] = "sum"
    dimension: int = 0

    @property
    def directions(self) -> tuple[str, ...]:
        """Which products there are."""
        if self.architecture == "cbow":
            return ()
        return ("forwards", "backwards") if self.bidirectional else ("forwards",)

    @property
    def width(self) -> int:
        """Width of all parts together."""
        vectors = 0 if self.architecture == "cmow" else self.vector_dim
        return len(self.directions) * self.matrix_dim**2 + vectors


def afresh(model: Any, seed: int) -> Any:
    """Give a matrix student of the same shape with random tables, as the paper's from scratch.

    Args:
        model: A sentence-transformer whose first module is a `MatrixEmbedding`; its other modules are kept.
        seed: Decides the tables.

    Raises:
        InputError: If it is another.
    """
    first, *rest = list(model)
    if not isinstance(first, MatrixEmbedding):
        raise InputError(f"the model starts with {type(first).__name__}; expected a matrix student, to start it afresh")
    torch.manual_seed(seed)
    fresh = MatrixEmbedding(first.tokenizer, first.shape, first.max_seq_length, first.dropout.p)
    return SentenceTransformer(modules=[fresh, *rest], device=model.device, trust_remote_code=True)


def _unrounded(method: _Method) -> _Method:
    # bfloat16 has no room for what a matrix differs from the identity by, and a product adds up the rounding of each.
    @wraps(method)
    def unrounded(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(next(self.parameters()).device.type, enabled=False):
            return method(self, *args, **kwargs)

    return cast("_Method", unrounded)


class MatrixEmbedding(TokenizingModule):
    """CBOW, CMOW or their hybrid as the first module of a student.

    Args:
        tokenizer: The student's tokenizer.
        shape: What it is made of.
        max_seq_length: Longest input in tokens, special ones included.
        dropout: Share of numbers that are left out while training: of what a matrix differs from the identity by, of
            vectors, and of the parts put together.
    """

    config_file_name = "matrix_embedding.json"

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, shape: Shape, max_seq_length: int, dropout: float = 0.0
    ) -> None:
        super().__init__(tokenizer, max_seq_length)
        self.shape = shape
        size, width = len(tokenizer), shape.matrix_dim**2
        self.matrices = nn.ModuleDict(
            {name: TokenTable(size, width, shape.rank, INITIAL_NOISE) for name in shape.directions}
        )
        self.vectors = None
        if shape.architecture != "cmow":
            self.vectors = TokenTable(size, shape.vector_dim, shape.rank, shape.vector_dim**-0.5)
        self.head = nn.Linear(shape.width, shape.dimension) if shape.dimension else None
        self.dropout = nn.Dropout(dropout)

    @_unrounded
    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        """Add float32 `sentence_embedding` (batch, dimension) to the features."""
        token_ids, mask = features["input_ids"], features["attention_mask"]
        parts, exponents = [], []
        for name in self.shape.directions:
            product, exponent = chain_matmul(self._matrices(name, token_ids, mask))
            parts.append(product.flatten(1))
            exponents.append(exponent)
        if self.vectors is not None:
            total = self._vectors(token_ids, mask).sum(dim=1)
            mean = self.shape.cbow_pooling == "mean"
            parts.append(total / mask.sum(dim=1, keepdim=True).clamp_min(1) if mean else total)
            exponents.append(torch.zeros(len(total), dtype=torch.int32, device=total.device))
        features["sentence_embedding"] = self._together(parts, exponents)
        return features

    @_unrounded
    def token_vectors(self, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Give a vector for each token, of what stands before it and of what stands after it, itself included.

        Args:
            token_ids: int64 (batch, tokens).
            mask: int64 (batch, tokens), 1 on tokens and 0 on padding.

        Returns:
            float32 (batch, tokens, width): prefix products, suffix products, prefix sums, suffix sums, those that there
            are (section 2.1, the equations of per-token representations). Its width is `token_width`.
        """
        parts, exponents = [], []
        for name in self.shape.directions:
            products, powers = prefix_products(self._matrices(name, token_ids, mask))
            if name == "backwards":
                products, powers = products.flip(1), powers.flip(1)
            parts.append(products.flatten(2))
            exponents.append(powers)
        if self.vectors is not None:
            vectors = self._vectors(token_ids, mask)
            before = vectors.cumsum(dim=1)
            sums = [before]
            if self.shape.bidirectional:
                sums.append(before[:, -1:] - before + vectors)
            parts += sums
            exponents += [torch.zeros(mask.shape, dtype=torch.int32, device=mask.device)] * len(sums)
        together, _ = on_one_scale(parts, exponents)
        dropped: torch.Tensor = self.dropout(together)
        return dropped

    @_unrounded
    def token_rows(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Give what the tables hold of each token, identities included: float32 (batch, tokens, width of all parts)."""
        mask = torch.ones_like(token_ids)
        rows = [self._matrices(name, token_ids, mask).flatten(2) for name in self.shape.directions]
        rows = [
            each.flip(1) if name == "backwards" else each
            for name, each in zip(self.shape.directions, rows, strict=True)
        ]
        if self.vectors is not None:
            rows.append(self._vectors(token_ids, mask))
        return torch.cat(rows, dim=-1)

    @property
    def token_width(self) -> int:
        """Width of a vector that `token_vectors` gives."""
        again = self.shape.bidirectional and self.vectors is not None
        return self.shape.width + (self.shape.vector_dim if again else 0)

    def _matrices(self, name: str, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Give a direction's matrices in the order in which they are multiplied; padding is the identity."""
        table = self.matrices[name]
        beside = self.dropout(table(token_ids)) * mask[..., None]
        d = self.shape.matrix_dim
        matrices: torch.Tensor = beside.unflatten(-1, (d, d)) + torch.eye(d, device=beside.device)
        return matrices.flip(1) if name == "backwards" else matrices

    def _vectors(self, token_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.dropout(self.vectors(token_ids)) * mask[..., None]  # type: ignore[misc]
        return rows

    def _together(self, parts: list[torch.Tensor], exponents: list[torch.Tensor]) -> torch.Tensor:
        # The head's bias is a part of the vector too, and what the others' sizes are measured by.
        bias = [] if self.head is None else [torch.zeros_like(exponents[0])]
        together, divided = on_one_scale([*parts, *(parts[0][:, :0] for _ in bias)], [*exponents, *bias])
        dropped: torch.Tensor = self.dropout(together)
        if self.head is None:
            return dropped
        mapped: torch.Tensor = nn.functional.linear(dropped, self.head.weight)
        return mapped + self.head.bias * torch.exp2(-divided[:, None].float())

    def matrix_tensors(self) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        """Give tensors and settings as docs/tensor-file.md names them, tables beside the identity."""
        tables: dict[str, Any] = {f"cmow.{name.removesuffix('s')}": table for name, table in self.matrices.items()}
        if self.vectors is not None:
            tables["cbow"] = self.vectors
        tensors: dict[str, torch.Tensor] = {}
        for name, table in tables.items():
            tensors[f"{name}.weight" if table.basis is None else f"{name}.factors"] = table.weight
            if table.basis is not None:
                tensors[f"{name}.basis"] = table.basis
            if name != "cbow":
                tensors[f"{name}.bias"] = torch.eye(self.shape.matrix_dim).flatten()
        if self.head is not None:
            tensors |= {"head.weight": self.head.weight, "head.bias": self.head.bias}
        pooling = {} if self.vectors is None else {"cbow_pooling": self.shape.cbow_pooling}
        return tensors, {"architecture": self.shape.architecture, **pooling}

    def get_embedding_dimension(self) -> int:
        """Give the dimensions of a vector."""
        return self.shape.dimension or self.shape.width

    def get_config_dict(self) -> dict[str, Any]:
        """Give what `load` needs besides the weights and the tokenizer."""
        return {"shape": asdict(self.shape), "max_seq_length": self.max_seq_length}

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> MatrixEmbedding:
        """Read a module that `save` wrote."""
        folder = os.path.join(model_name_or_path, subfolder)  # noqa: PTH118  # sentence-transformers gives strings
        settings = cls.load_config(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        module = cls(tokenizer, Shape(**settings["shape"]), settings["max_seq_length"])
        cls.load_torch_weights(folder, model=module)
        return module
