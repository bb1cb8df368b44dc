"""CMOW students compared with sequential float64 matrix products."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from edgeembed.students.cmow import CMOWConfig, MatrixEmbedding
from edgeembed.students.matrix_chain import chain_matmul, prefix_products
from edgeembed.students.token_table import TokenTable

Numbers = npt.NDArray[np.float64]


@pytest.fixture
def words(tokenizer: Any) -> PreTrainedTokenizerBase:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")


def student(words: PreTrainedTokenizerBase, noise: float = 0.2, **shape: Any) -> MatrixEmbedding:
    """A student whose matrices differ from the identity by more than at first."""
    torch.manual_seed(1)
    module = MatrixEmbedding(words, CMOWConfig(**{"matrix_dim": 4, "vector_dim": 6, **shape}), max_seq_length=2048)
    for name, weight in module.matrices.named_parameters():
        if name.endswith("basis" if module.cmow_config.rank else "weight"):
            torch.nn.init.normal_(weight, std=noise)
    module.eval()
    return module


def rows_of(table: Any) -> Numbers:
    weight = table.weight.detach().double().numpy()
    return np.asarray(weight if table.basis is None else weight @ table.basis.detach().double().numpy())


def matrices_of(module: MatrixEmbedding, direction: str, ids: list[int]) -> list[Numbers]:
    d = module.cmow_config.matrix_dim
    return [np.eye(d) + rows_of(module.matrices[direction])[each].reshape(d, d) for each in ids]


def product(matrices: list[Numbers]) -> Numbers:
    result = np.eye(len(matrices[0]))
    for matrix in matrices:
        result = result @ matrix
    return result


def expected_embedding(module: MatrixEmbedding, ids: list[int]) -> Numbers:
    """The paper's equations of section 2.1."""
    parts = []
    for direction in module.cmow_config.directions:
        order = ids if direction == "forwards" else ids[::-1]
        parts.append(product(matrices_of(module, direction, order)).ravel())
    if module.vectors is not None:
        total = rows_of(module.vectors)[ids].sum(axis=0)
        parts.append(total / len(ids) if module.cmow_config.cbow_pooling == "mean" else total)
    together = np.concatenate(parts)
    if module.head is None:
        return together
    return np.asarray(module.head.weight.detach().numpy() @ together + module.head.bias.detach().numpy())


def batch(*texts: list[int]) -> dict[str, torch.Tensor]:
    longest = max(map(len, texts))
    ids = torch.tensor([text + [5] * (longest - len(text)) for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
    return {"input_ids": ids, "attention_mask": mask}


SHAPES = [
    {"architecture": "cbow"},
    {"architecture": "cbow", "cbow_pooling": "mean"},
    {"architecture": "cmow"},
    {"architecture": "cmow", "bidirectional": False},
    {"architecture": "hybrid"},
    {"architecture": "hybrid", "bidirectional": False, "dimension": 3},
    {"architecture": "hybrid", "rank": 3, "dimension": 5},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_embeddings_follow_the_papers_equations_whatever_the_padding(
    words: PreTrainedTokenizerBase, shape: dict[str, Any]
) -> None:
    module = student(words, **shape)
    texts = [[7, 8, 9, 10, 11], [9], [8, 7], [7, 8, 9, 10, 11, 12, 13]]
    found = module(batch(*texts))["sentence_embedding"].detach().numpy()
    for vector, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(vector, expected_embedding(module, text), rtol=1e-5, atol=1e-5)
    assert found.shape[1] == module.get_embedding_dimension()


@pytest.mark.parametrize("shape", SHAPES[3:])
def test_autocast_to_bfloat16_does_not_round_matrix_products(
    words: PreTrainedTokenizerBase, shape: dict[str, Any]
) -> None:
    module, given = student(words, **shape), batch([7, 8, 9, 10, 11], [9])

    def numbers() -> list[torch.Tensor]:
        ids, mask = given["input_ids"], given["attention_mask"]
        return [
            module(dict(given))["sentence_embedding"],
            module.contextual_embeddings(ids, mask),
        ]

    expected = numbers()
    with torch.autocast("cpu", torch.bfloat16):
        found = numbers()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_only_matrices_depend_on_word_order(words: PreTrainedTokenizerBase) -> None:
    orders = batch([7, 8, 9], [9, 8, 7])
    for architecture, matters in (("cbow", False), ("cmow", True), ("hybrid", True)):
        one, other = student(words, architecture=architecture)(dict(orders))["sentence_embedding"]
        assert torch.allclose(one, other, atol=1e-6) != matters


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 64, 511, 512])
def test_the_parallel_product_equals_the_sequential_one(count: int) -> None:
    draw = np.random.default_rng(count)
    matrices = np.eye(4) + 0.05 * draw.normal(size=(2, count, 4, 4))
    found, exponents = chain_matmul(torch.tensor(matrices, dtype=torch.float32))
    for sequence in range(2):
        expected = product(list(matrices[sequence]))
        got = np.ldexp(found[sequence].double().numpy(), int(exponents[sequence]))
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_products_of_two_thousand_matrices_neither_overflow_nor_underflow(scale: float) -> None:
    draw = np.random.default_rng(4)
    matrices = scale * (np.eye(4) + 0.05 * draw.normal(size=(1, 2000, 4, 4)))
    expected, size = np.eye(4), 0.0
    for matrix in matrices[0]:
        expected = expected @ matrix
        largest = np.abs(expected).max()
        expected, size = expected / largest, size + np.log2(largest)
    for found, exponents in (
        chain_matmul(torch.tensor(matrices, dtype=torch.float32)),
        [each[:, -1] for each in prefix_products(torch.tensor(matrices, dtype=torch.float32))],
    ):
        got = found[0].double().numpy()
        assert np.log2(np.abs(got).max()) + int(exponents[0]) == pytest.approx(size, abs=1e-3)
        np.testing.assert_allclose(got / np.abs(got).max(), expected, atol=2e-4)


@pytest.mark.parametrize("shape", SHAPES[2:])
@pytest.mark.parametrize("noise", [0.8, 2.0])
def test_the_embedding_of_a_long_text_is_finite_and_not_zero(
    words: PreTrainedTokenizerBase, shape: dict[str, Any], noise: float
) -> None:
    module = student(words, noise, **shape)
    ids = np.random.default_rng(5).integers(5, module.tokenizer.vocab_size, 2000).tolist()
    (vector,) = module(batch(ids))["sentence_embedding"]
    assert torch.nn.functional.normalize(vector, dim=0).norm().item() == pytest.approx(1, abs=1e-5)
    vector.square().sum().sqrt().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in module.parameters() if weight.grad is not None)


@pytest.mark.parametrize("shape", SHAPES[:1] + SHAPES[2:5])
def test_contextual_embeddings_are_prefix_and_suffix_products(
    words: PreTrainedTokenizerBase, shape: dict[str, Any]
) -> None:
    module = student(words, **shape)
    texts = [[7, 8, 9, 10], [9, 7]]
    given = batch(*texts)
    found = module.contextual_embeddings(given["input_ids"], given["attention_mask"]).detach().numpy()
    assert found.shape == (2, 4, module.contextual_width)
    for row, text in enumerate(texts):
        for place in range(len(text)):
            parts = []
            for direction in module.cmow_config.directions:
                seen = text[: place + 1] if direction == "forwards" else text[place:][::-1]
                parts.append(product(matrices_of(module, direction, seen)).ravel())
            if module.vectors is not None:
                rows = rows_of(module.vectors)
                parts.append(rows[text[: place + 1]].sum(axis=0))
                if module.cmow_config.bidirectional:
                    parts.append(rows[text[place:]].sum(axis=0))
            np.testing.assert_allclose(found[row, place], np.concatenate(parts), rtol=1e-5, atol=1e-5)


def test_matrices_are_initialized_near_the_identity(words: PreTrainedTokenizerBase) -> None:
    for rank in (0, 16):
        module = MatrixEmbedding(words, CMOWConfig(rank=rank), max_seq_length=16)
        noise = rows_of(module.matrices["forwards"])
        assert noise.std() == pytest.approx(0.01, rel=0.1)
        assert abs(noise.mean()) < 1e-3


@pytest.mark.parametrize("rank", [0, 16])
def test_vectors_are_initialized_as_in_the_first_paper_on_cmow(words: PreTrainedTokenizerBase, rank: int) -> None:
    """Mai et al. 2019 draw them from N(0, 0.1^2)."""
    torch.manual_seed(0)
    vectors = rows_of(MatrixEmbedding(words, CMOWConfig(rank=rank), max_seq_length=16).vectors)
    assert vectors.std() == pytest.approx(0.1, rel=0.1)
    assert abs(vectors.mean()) < 5e-3


@pytest.mark.parametrize("rank", [16, 96, 288])
def test_rows_of_a_factorized_table_move_no_faster_than_those_of_a_full_one(rank: int) -> None:
    torch.manual_seed(0)
    tokens, wanted = torch.arange(40), torch.randn(40, 400)
    moved = []
    for each in (0, rank):
        table = TokenTable(40, 400, each, 0.01)
        before = table(tokens).detach()
        adam = torch.optim.Adam(table.parameters(), lr=1e-3)
        (table(tokens) * wanted).sum().backward()
        adam.step()
        moved.append(float((table(tokens) - before).detach().square().mean().sqrt()))
    assert 0.1 < moved[1] / moved[0] < 1.5


@pytest.mark.parametrize("bits", [2, 4])
def test_rows_of_few_bits_have_few_values_and_all_of_the_gradient(bits: int) -> None:
    torch.manual_seed(0)
    table = TokenTable(40, 400, 0, 0.1, bits)
    levels = table.values().detach() / table.scale()[:, None]
    assert set(levels.mul(2).round().int().ravel().tolist()) == set(range(1 - 2**bits, 2**bits, 2))
    # The mean squared errors of Max's quantizers for a Gaussian of variance 1.
    error = (table.values() - table.weight).detach().square().mean() / 0.1**2
    assert float(error) == pytest.approx({2: 0.1188, 4: 0.01154}[bits], rel=0.05)
    table(torch.tensor([3, 3, 5])).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.sum(dim=1).nonzero().ravel().tolist() == [3, 5]
    assert float(table.weight.grad[3].mean()) == 2


def test_a_row_of_zeros_stays_finite_at_few_bits() -> None:
    table = TokenTable(2, 8, 0, 0.1, 2)
    torch.nn.init.zeros_(table.weight)
    assert float(table.values().detach().abs().max()) < 1e-6


@pytest.mark.parametrize("shape", [{}, {"rank": 3}, {"architecture": "cbow", "table_bits": 2}])
def test_a_student_of_some_tokens_trains_their_rows_alone_as_the_whole_would(
    shape: dict[str, Any], words: PreTrainedTokenizerBase
) -> None:
    modules = [student(words, **shape).train() for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    before = {name: weight.clone() for name, weight in modules[0].state_dict().items()}
    for module, context in zip(modules, (nullcontext(), modules[1].narrowed(torch.tensor([8, 5, 7]))), strict=True):
        with context:
            optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.0)
            for _ in range(3):
                optimizer.zero_grad()
                module(batch([7, 8], [8]))["sentence_embedding"].square().sum().backward()
                optimizer.step()
    whole, narrowed = (module.state_dict() for module in modules)
    assert whole.keys() == narrowed.keys() == before.keys()
    for name, weight in whole.items():
        torch.testing.assert_close(narrowed[name], weight)
        assert not torch.equal(before[name], weight)


def test_other_tokens_than_those_of_a_narrowed_student_are_an_error(words: PreTrainedTokenizerBase) -> None:
    module = student(words)
    with module.narrowed(torch.tensor([5, 7])), pytest.raises(IndexError):
        module(batch([8]))
    module(batch([8]))


def test_dropout_does_not_affect_the_identity(words: PreTrainedTokenizerBase) -> None:
    shape = CMOWConfig(architecture="cmow", matrix_dim=3)
    module = MatrixEmbedding(words, shape, max_seq_length=16, dropout=1.0).train()
    matrices = module._matrices("forwards", *batch([7, 8]).values())
    torch.testing.assert_close(matrices, torch.eye(3).expand(1, 2, 3, 3))


def test_a_saved_student_loads(words: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    module = student(words, rank=3, dimension=5, cbow_pooling="mean")
    module.save(str(tmp_path))
    again = MatrixEmbedding.load(str(tmp_path)).eval()
    texts = batch([7, 8, 9], [8])
    torch.testing.assert_close(again(dict(texts))["sentence_embedding"], module(dict(texts))["sentence_embedding"])
    assert again.cmow_config == module.cmow_config
