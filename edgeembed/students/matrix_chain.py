"""Products of matrix sequences without overflow: the full product in O(log n) steps, all prefix products in O(n)."""

import torch

# Matrices are rescaled to magnitudes between 2**-10 and 2**10 before each matmul, so that a product stays below 2**20
# times its number of rows.
_MAX_EXPONENT = 10
# Largest exponent of a concatenated vector: its squared norm stays near 2**80, far below float32's 2**128.
_MAX_VECTOR_EXPONENT = 40


def chain_matmul(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the product of each sequence of matrices, scaled so that float32 neither overflows nor underflows.

    Matrix multiplication is associative: adjacent pairs are multiplied in parallel until one matrix is left
    ("Cross-architecture distillation using bidirectional CMOW embeddings", section 4). Rescaling divides by powers of
    two, which is exact; the exponents are added up.

    Args:
        matrices: float32 (batch, n, d, d) with n at least 1; padding is the identity.

    Returns:
        Scaled products, float32 (batch, d, d), and their exponents, int32 (batch,): product = scaled * 2**exponent.
    """
    exponents = matrices.new_zeros(len(matrices), dtype=torch.int32)
    while matrices.shape[1] > 1:
        matrices, removed = _rescale(matrices)
        exponents = exponents + removed.sum(dim=1, dtype=torch.int32)
        even = matrices.shape[1] // 2 * 2
        pairs = matrices[:, 0:even:2] @ matrices[:, 1:even:2]
        matrices = torch.cat([pairs, matrices[:, even:]], dim=1)
    return matrices[:, 0], exponents


def prefix_products(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the product of each prefix of a sequence of matrices, scaled as by `chain_matmul`.

    Args:
        matrices: float32 (batch, n, d, d).

    Returns:
        Scaled products, float32 (batch, n, d, d), and their exponents, int32 (batch, n).
    """
    product, exponent = matrices[:, :1], matrices.new_zeros(len(matrices), 1, dtype=torch.int32)
    products, exponents = [product], [exponent]
    for position in range(1, matrices.shape[1]):
        product, removed = _rescale(product @ matrices[:, position : position + 1])
        exponent = exponent + removed
        products.append(product)
        exponents.append(exponent)
    return torch.cat(products, dim=1), torch.cat(exponents, dim=1)


def concat_scaled(parts: list[torch.Tensor], exponents: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Concatenate scaled parts of vectors, each vector divided by a power of two if float32 could not hold it.

    Args:
        parts: float32 (..., width), the widths may differ.
        exponents: int32 (...), one per part: value = part * 2**exponent.

    Returns:
        Concatenated vectors, float32 (..., sum of widths), and the exponent that each was divided by, int32 (...).
        It is 0 for ordinary magnitudes and negative for vectors that would underflow.
    """
    largest = torch.stack(exponents).amax(dim=0)
    divided = (largest - _MAX_VECTOR_EXPONENT).clamp_min(0) + largest.clamp_max(0)
    scaled = [torch.ldexp(part, (each - divided)[..., None]) for part, each in zip(parts, exponents, strict=True)]
    return torch.cat(scaled, dim=-1), divided


def _rescale(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide matrices outside 2**-10..2**10 by a power of two; return them and the exponents, int32 (batch, n)."""
    exponents = torch.frexp(matrices.detach().abs().amax(dim=(-2, -1))).exponent
    exponents = torch.where(exponents.abs() > _MAX_EXPONENT, exponents, 0)
    return torch.ldexp(matrices, -exponents[..., None, None]), exponents
