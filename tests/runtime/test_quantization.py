"""Quantized embeddings: their values, and how well cosines are preserved."""

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError
from edgeembed_runtime.quantization import PRECISIONS, Precision, dequantize, quantize

_TEXTS = ["the cat", "a dog", "read the file line", "network socket", ""]


def test_each_precision_has_its_dtype_and_width(encoder: Encoder) -> None:
    vectors = {precision: encoder.encode(_TEXTS, precision=precision) for precision in PRECISIONS}
    assert {precision: (str(array.dtype), array.shape) for precision, array in vectors.items()} == {
        "float32": ("float32", (5, 8)),
        "int8": ("int8", (5, 8)),
        "uint8": ("uint8", (5, 8)),
        "binary": ("int8", (5, 1)),
        "ubinary": ("uint8", (5, 1)),
    }
    assert encoder.encode("the cat", precision="ubinary").shape == (1,)


def test_int8_is_127_times_the_component_rounded() -> None:
    row = np.array([[1, -1, 0, 0.5, -0.25]], dtype=np.float32)
    assert quantize(row, "int8").tolist() == [[127, -127, 0, 64, -32]]
    assert quantize(row, "uint8").tolist() == [[255, 1, 128, 192, 96]]


def test_binary_packs_signs_first_component_in_the_highest_bit() -> None:
    row = np.array([[1, -1, 0, 0.5, -0.25, 1, 1, -1]], dtype=np.float32)
    assert quantize(row, "ubinary").tolist() == [[0b10010110]]
    assert quantize(row, "binary").tolist() == [[0b10010110 - 128]]
    assert dequantize(quantize(row, "binary"), "binary").tolist() == [[1, -1, -1, 1, -1, 1, 1, -1]]


def test_binary_precision_needs_a_dimension_divisible_by_8(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="the dimension is 3, expected a multiple of 8"):
        encoder.encode("the cat", precision="binary", truncate_dim=3)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_embedding_is_batch_invariant_in_any_precision(encoder: Encoder, precision: Precision) -> None:
    together = encoder.encode([*_TEXTS, "cat " * 25], precision=precision)[:-1]
    alone = np.stack([encoder.encode(text, precision=precision) for text in _TEXTS])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("int8", 0.02), ("uint8", 0.02)])
def test_cosines_of_quantized_embeddings_are_close_to_float32(
    encoder: Encoder, precision: Precision, tolerance: float
) -> None:
    expected = encoder.similarity(encoder.encode(_TEXTS), encoder.encode(_TEXTS))
    vectors = encoder.encode(_TEXTS, precision=precision)
    assert np.abs(encoder.similarity(vectors, vectors, precision=precision) - expected).max() < tolerance
    pairwise = encoder.similarity_pairwise(vectors[:-1], vectors[1:], precision=precision)
    assert np.abs(pairwise - np.diagonal(expected, 1)).max() < tolerance


@pytest.mark.parametrize("precision", ["binary", "ubinary"])
def test_binary_cosine_decreases_with_each_differing_bit(encoder: Encoder, precision: Precision) -> None:
    signs = np.where(np.arange(8) < np.array([[0], [1], [4], [8]]), -1, 1).astype(np.float32)
    packed = quantize(signs, precision)
    assert encoder.similarity(packed[0], packed, precision=precision)[0] == pytest.approx([1, 0.75, 0, -1], abs=1e-6)


def test_8_bit_embeddings_without_precision_raise(encoder: Encoder) -> None:
    int8 = encoder.encode(_TEXTS, precision="int8")
    with pytest.raises(InputError, match="a is int8; pass its precision"):
        encoder.similarity(int8, int8)
    with pytest.raises(InputError, match="the vectors are int8, expected uint8 for the precision ubinary"):
        encoder.similarity(int8, int8, precision="ubinary")


def test_similarity_of_vectors_that_are_not_finite_raises(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="b contains NaN or infinity"):
        encoder.similarity(np.ones(2), np.array([np.nan, 1]))


def test_pairwise_similarity_needs_equal_numbers_of_vectors(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="a has 2 vectors and b has 3"):
        encoder.similarity_pairwise(np.ones((2, 4)), np.ones((3, 4)))


def test_components_slightly_above_1_do_not_wrap_around() -> None:
    row = np.array([[1.0095, -1.0095]], dtype=np.float32)
    assert quantize(row, "int8").tolist() == [[127, -127]]
    assert quantize(row, "uint8").tolist() == [[255, 1]]
