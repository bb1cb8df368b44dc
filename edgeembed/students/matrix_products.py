"""Products of a text's matrices: of all of them in O(log n) steps, and up to each of them in O(n)."""

import torch

# Between two looks at their size two matrices are multiplied, so products stay below 2**20 times their number of rows,
# and what float32 cannot hold is no part of them.
_MODERATE = 10
_LARGEST = 40  # squared norms reach 2**80 times the width, well below float32's 2**128


def chain_matmul(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the products of sequences of matrices, however large or small they are.

    Matrix multiplication is associative: neighbours are multiplied, all pairs at once, until one is left
    ("Cross-architecture distillation using bidirectional CMOW embeddings", section 4). Matrices that leave a moderate
    range on the way are divided by a power of two, which is exact, and the powers are added up.

    Args:
        matrices: float32 (batch, n, d, d), n at least 1; identities pad.

    Returns:
        float32 (batch, d, d), and int32 exponents (batch,): a product is its matrix times two to that power.
    """
    exponents = matrices.new_zeros(len(matrices), dtype=torch.int32)
    while matrices.shape[1] > 1:
        matrices, removed = _moderate(matrices)
        exponents = exponents + removed.sum(dim=1, dtype=torch.int32)
        even = matrices.shape[1] // 2 * 2
        pairs = matrices[:, 0:even:2] @ matrices[:, 1:even:2]
        matrices = torch.cat([pairs, matrices[:, even:]], dim=1)
    return matrices[:, 0], exponents


def prefix_products(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give for each matrix of a sequence the product of those up to it, each multiplied once.

    Args:
        matrices: float32 (batch, n, d, d).

    Returns:
        float32 (batch, n, d, d), and int32 exponents (batch, n): a product is its matrix times two to that power.
    """
    product, exponent = matrices[:, :1], matrices.new_zeros(len(matrices), 1, dtype=torch.int32)
    products, exponents = [product], [exponent]
    for position in range(1, matrices.shape[1]):
        product, removed = _moderate(product @ matrices[:, position : position + 1])
        exponent = exponent + removed
        products.append(product)
        exponents.append(exponent)
    return torch.cat(products, dim=1), torch.cat(exponents, dim=1)


def on_one_scale(parts: list[torch.Tensor], exponents: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Concatenate parts of vectors, each of which float32 can hold; where it could not, the vector is divided.

    Args:
        parts: float32 (..., width of each).
        exponents: Of each, int32 (...): the power of two that it is to be multiplied by.

    Returns:
        float32 (..., widths together), and int32 (...): the power of two that a vector was divided by, below 0 where
        all of it would vanish.
    """
    largest = torch.stack(exponents).amax(dim=0)
    divided = (largest - _LARGEST).clamp_min(0) + largest.clamp_max(0)
    scaled = [torch.ldexp(part, (each - divided)[..., None]) for part, each in zip(parts, exponents, strict=True)]
    return torch.cat(scaled, dim=-1), divided


def _moderate(matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide by powers of two what is not between 2**-10 and 2**10; give the exponents too, int32 (batch, n)."""
    exponents = torch.frexp(matrices.detach().abs().amax(dim=(-2, -1))).exponent
    exponents = torch.where(exponents.abs() > _MODERATE, exponents, 0)
    return torch.ldexp(matrices, -exponents[..., None, None]), exponents
