"""Matrix students and static embeddings as bundles for NumPy and for ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.cmow import MatrixEncoder, read_matrices
from edgeembed_exporters.precision import PRECISIONS
from edgeembed_runtime import Encoder, InputError
from edgeembed_runtime.cmow.safetensors import unpack_tensors
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from torch import nn

from edgeembed.students.cmow import CMOWConfig, MatrixEmbedding

from .conftest import SENTENCES, make_model, make_tokenizer

SHAPES: dict[str, dict[str, Any]] = {
    "cbow": {"architecture": "cbow"},
    "cmow": {"architecture": "cmow", "bidirectional": False},
    "hybrid": {"architecture": "hybrid", "cbow_pooling": "mean"},
    "headed": {"architecture": "hybrid", "dimension": 7, "rank": 3},
}
LONG = " ".join(SENTENCES) * 20


def student(name: str, *modules: nn.Module, noise: float = 0.1) -> SentenceTransformer:
    torch.manual_seed(1)
    shape = CMOWConfig(**{"matrix_dim": 5, "vector_dim": 11, **SHAPES[name]})
    first = MatrixEmbedding(make_tokenizer(), shape, max_seq_length=200)
    for weight in first.matrices.parameters():
        nn.init.normal_(weight, std=noise)
    model: SentenceTransformer = SentenceTransformer(modules=[first, *modules, Normalize()], device="cpu").eval()
    return model


def static(*modules: nn.Module) -> SentenceTransformer:
    torch.manual_seed(2)
    first = StaticEmbedding(make_tokenizer()._tokenizer, embedding_dim=12)
    model: SentenceTransformer = SentenceTransformer(modules=[first, *modules, Normalize()], device="cpu").eval()
    return model


def assert_faithful(model: SentenceTransformer, folder: Path, tolerance: float = 1e-5) -> None:
    texts = [*SENTENCES, LONG]
    given = Encoder.load(folder).encode(texts, on_truncate="ignore", on_unknown="ignore")
    np.testing.assert_allclose(given, model.encode(texts), atol=tolerance)


@pytest.mark.parametrize("name", SHAPES)
def test_numpy_embeddings_equal_torch(name: str, tmp_path: Path) -> None:
    model = student(name)
    report = export(model, tmp_path / "b", BundleSettings(backend="numpy"), sentences=SENTENCES)
    assert Encoder.load(tmp_path / "b", verify=True).bundle.backend == "numpy"
    assert report.parity.min_cosine > 0.999999
    assert_faithful(model, tmp_path / "b")
    assert not (tmp_path / "b" / "config.json").exists()
    assert "NumPy alone runs it" in (tmp_path / "b" / "README.md").read_text()


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("rank", [0, 4])
def test_tables_trained_with_few_bits_keep_them_exactly_at_int8(bits: int, rank: int, tmp_path: Path) -> None:
    torch.manual_seed(1)
    shape = CMOWConfig(architecture="hybrid", matrix_dim=4, vector_dim=12, rank=rank, table_bits=bits)
    first = MatrixEmbedding(make_tokenizer(), shape, max_seq_length=200)
    model: SentenceTransformer = SentenceTransformer(modules=[first, Normalize()], device="cpu").eval()
    export(model, tmp_path / "b", BundleSettings(backend="numpy", precision="int8"), sentences=SENTENCES)
    assert_faithful(model, tmp_path / "b", tolerance=1e-3 if rank else 1e-5)  # a basis has 16 bits at int8
    stored = unpack_tensors((tmp_path / "b" / "model.safetensors").read_bytes(), "b")
    packed = stored.tensors["cbow.factors" if rank else "cbow.weight"]
    assert packed.dtype == np.uint8
    assert packed.shape[1] == (rank or 12) * bits // 8
    export(model, tmp_path / "c", BundleSettings(backend="numpy"), sentences=SENTENCES)
    assert_faithful(model, tmp_path / "c")


@pytest.mark.parametrize("name", SHAPES)
def test_the_graph_of_a_student_keeps_the_lengths_of_embeddings(name: str) -> None:
    """A classification head reads more than the direction."""
    (first, *_) = student(name)
    encoder = MatrixEncoder(read_matrices([first]), first.max_seq_length)
    inputs = first.tokenizer(SENTENCES, padding=True, return_tensors="pt")
    given = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    expected = first(dict(given))["sentence_embedding"]
    torch.testing.assert_close(encoder(**given).last_hidden_state[:, 0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_onnx_embeddings_equal_torch_without_a_loop(name: str, tmp_path: Path) -> None:
    model = student(name)
    export(model, tmp_path / "b", sentences=SENTENCES)
    assert_faithful(model, tmp_path / "b")
    graph = onnx.load(tmp_path / "b" / "onnx" / "model.onnx").graph
    assert not {node.op_type for node in graph.node} & {"Loop", "Scan", "If"}


@pytest.mark.slow
def test_sentence_transformers_reads_the_onnx_file_of_a_matrix_student(tmp_path: Path) -> None:
    pytest.importorskip("optimum.onnxruntime", reason="needs optimum-onnx: edgeembed[optimum]")
    model = student("headed")
    export(model, tmp_path / "b", sentences=SENTENCES)
    again = SentenceTransformer(str(tmp_path / "b"), backend="onnx", device="cpu")
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("onnx", marks=pytest.mark.slow)])
def test_matmul_chains_beyond_float32_neither_overflow_nor_vanish(backend: Any, tmp_path: Path) -> None:
    model = student("cmow", noise=3.0)
    export(model, tmp_path / "b", BundleSettings(backend=backend), sentences=SENTENCES)
    given, expected = (
        Encoder.load(tmp_path / "b").encode([LONG], on_truncate="ignore", on_unknown="ignore"),
        model.encode([LONG]),
    )
    assert (given * expected).sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("modules", [[], [Dense(12, 5, activation_function=nn.Identity())]])
def test_numpy_runs_a_static_model_and_a_linear_head(modules: list[nn.Module], tmp_path: Path) -> None:
    model = static(*modules)
    export(model, tmp_path / "b", BundleSettings(backend="numpy"), sentences=SENTENCES)
    assert_faithful(model, tmp_path / "b")


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_lower_precisions_are_smaller_and_nearly_equal(precision: Any, tmp_path: Path) -> None:
    model = student("headed")
    whole = export(model, tmp_path / "whole", BundleSettings(backend="numpy"), sentences=SENTENCES)
    cut = export(model, tmp_path / "b", BundleSettings(backend="numpy", precision=precision), sentences=SENTENCES)
    files = [folder / "model.safetensors" for folder in (tmp_path / "b", tmp_path / "whole")]
    assert files[0].stat().st_size < 0.8 * files[1].stat().st_size
    assert cut.parity.min_cosine > 0.99
    assert cut.parameters == whole.parameters


def test_int8_rows_equal_the_table_within_half_a_scale(tmp_path: Path) -> None:
    from edgeembed_exporters.cmow import pack, read_matrices
    from edgeembed_runtime.cmow.safetensors import unpack_tensors

    read = read_matrices(student("hybrid"))
    tensors = unpack_tensors(pack(read, PRECISIONS["int8"]), "it").tensors
    table, codes, scale = read.tensors["cbow.weight"], tensors["cbow.weight"], tensors["cbow.scale"]
    assert (np.abs(codes * scale[:, None] - table) <= scale[:, None] * 0.5001).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, "which the numpy backend does not run"),
        ({"tracer": "optimum"}, "the numpy backend needs no tracing"),
        ({"torch_weights": True}, "for the numpy backend, but it has none"),
        ({"backend": "torch"}, "backend is 'torch'; expected one of: onnx, numpy"),
    ],
)
def test_settings_without_numpy_support_raise_an_error(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        export(static(), tmp_path / "b", BundleSettings(**{"backend": "numpy", **options}), sentences=SENTENCES)


def test_models_that_numpy_cannot_run_raise_an_error(tmp_path: Path) -> None:
    for model, message in (
        (make_model(), "which NumPy alone cannot run"),
        (static(Dense(12, 5)), "are Dense; expected at most one linear Dense"),
        (student("headed", Dense(7, 5, activation_function=nn.Identity())), "are Dense"),
    ):
        with pytest.raises(InputError, match=message):
            export(model, tmp_path / "b", BundleSettings(backend="numpy"), sentences=SENTENCES)
    assert not (tmp_path / "b").exists()
