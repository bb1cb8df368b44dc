"""Libraries of this environment that read a bundle; tests/end_to_end/everywhere has the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.onnx.tracing import OPSET
from edgeembed_exporters.precision import precision_names
from edgeembed_runtime import Bundle, Encoder
from sentence_transformers import SentenceTransformer

from .conftest import MAX_SEQ_LENGTH, SENTENCES, make_model

pytestmark = pytest.mark.slow  # the default suite has two minutes

Exported = Callable[[str], Path]
PRECISIONS = precision_names()
# In float32 only the order of additions differs.
CLOSE = {"fp32": 1e-5}
OWN = ("", "ai.onnx")


def model_file(bundle: Path) -> Path:
    return bundle / Bundle.open(bundle).model_file


def ours(bundle: Path) -> np.ndarray[Any, Any]:
    return Encoder.load(bundle).encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")


def theirs(bundle: Path, choices: dict[str, str] | None = None) -> np.ndarray[Any, Any]:
    pytest.importorskip("optimum.onnxruntime", reason="pip install 'edgeembed[optimum]' (transformers 4 only)")
    loaded: SentenceTransformer = SentenceTransformer(str(bundle), backend="onnx", device="cpu", model_kwargs=choices)
    vectors: np.ndarray[Any, Any] = loaded.encode(SENTENCES)
    return vectors


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_onnx_backend_of_sentence_transformers_returns_the_same_embeddings(precision: Any, tmp_path: Path) -> None:
    export(
        make_model(dense=False),
        tmp_path / "b",
        BundleSettings(precision=precision, min_cosine=0.9),
        sentences=SENTENCES,
    )
    np.testing.assert_allclose(theirs(tmp_path / "b"), ours(tmp_path / "b"), atol=CLOSE.get(precision, 1e-3))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_onnx_backend_runs_the_head_in_float32(exported: Exported, precision: str) -> None:
    bundle = exported(precision)
    cosines = (theirs(bundle) * ours(bundle)).sum(axis=1)
    assert cosines.min() > {"fp32": 1 - 1e-6, "fp16": 0.999, "int8": 0.999, "int4": 0.99}[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_onnx_backend_loads_the_file_of_the_precision_by_default(exported: Exported, precision: str) -> None:
    bundle = exported(precision)
    settings = json.loads((bundle / "sentence_bert_config.json").read_text(encoding="utf-8"))
    assert bundle / settings["model_args"]["file_name"] == model_file(bundle)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_without_the_onnx_backend_sentence_transformers_names_the_missing_weights(
    exported: Exported, precision: str
) -> None:
    with pytest.raises(OSError, match=r"no file named .*model\.safetensors"):
        SentenceTransformer(str(exported(precision)), device="cpu")


@pytest.mark.parametrize(("precision", "close"), [("fp32", 1e-5), ("int8", 0.1)])
def test_with_torch_weights_sentence_transformers_loads_a_bundle_with_both_backends(
    precision: Any, close: float, tmp_path: Path
) -> None:
    model, bundle = make_model(dense=False), tmp_path / "b"
    export(model, bundle, BundleSettings(precision=precision, min_cosine=0.9, torch_weights=True), sentences=SENTENCES)
    plain: SentenceTransformer = SentenceTransformer(str(bundle), device="cpu")
    np.testing.assert_allclose(plain.encode(SENTENCES), model.encode(SENTENCES), atol=1e-6)
    np.testing.assert_allclose(plain.encode(SENTENCES), ours(bundle), atol=close)
    by_file = {"file_name": str(model_file(bundle).relative_to(bundle))}
    np.testing.assert_allclose(theirs(bundle, by_file), ours(bundle), atol=CLOSE.get(precision, 1e-3))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_tokenizer_states_one_length_limit(exported: Exported, precision: str) -> None:
    settings = json.loads((exported(precision) / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert settings["model_max_length"] == MAX_SEQ_LENGTH
    assert "max_length" not in settings


def test_the_length_limit_of_one_call_is_not_stored(tmp_path: Path) -> None:
    model = make_model()
    first: Any = model[0]
    first.tokenizer.init_kwargs["max_length"] = 3
    export(model, tmp_path / "b", sentences=SENTENCES)
    assert "max_length" not in json.loads((tmp_path / "b/tokenizer_config.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_graph_passes_onnx_own_checker_at_the_stated_opset(exported: Exported, precision: str) -> None:
    graph = onnx.load(model_file(exported(precision)))
    opsets = {entry.domain: entry.version for entry in graph.opset_import}
    assert opsets[""] == OPSET
    assert set(opsets) <= {"", "com.microsoft"}
    # The checker infers no shapes across operators that it does not know.
    onnx.checker.check_model(graph, full_check=set(opsets) == {""})
    assert {node.domain for node in graph.graph.node} <= {*OWN, *opsets}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_and_outputs_have_the_names_types_and_axes_that_loaders_look_for(
    exported: Exported, precision: str
) -> None:
    graph = onnx.load(model_file(exported(precision))).graph

    def shape(value: Any) -> tuple[str, list[Any]]:
        axes = [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        return onnx.helper.tensor_dtype_to_string(value.type.tensor_type.elem_type), axes

    assert {value.name: shape(value) for value in graph.input} == {
        "input_ids": ("TensorProto.INT64", ["batch", "tokens"]),
        "attention_mask": ("TensorProto.INT64", ["batch", "tokens"]),
    }
    outputs = {value.name: shape(value) for value in graph.output}
    assert list(outputs) == ["last_hidden_state", "sentence_embedding"]  # some take the first, some the name
    assert all(kind == "TensorProto.FLOAT" for kind, _ in outputs.values())
    assert outputs["sentence_embedding"][1][0] == "batch"
