from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from edgeembed_exporters import BundleSettings, GateError, export
from edgeembed_exporters.model_spec import inspect_model
from edgeembed_runtime import Encoder, InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dropout, Pooling
from transformers import AutoConfig, AutoTokenizer

from .conftest import HIDDEN, MAX_SEQ_LENGTH, SENTENCES, make_model
from .quantization.conftest import assert_no_saturation, int8_matmuls

Exported = Callable[[str], Path]


def manifest(bundle: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    return content


def run(file: Path, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    feeds = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
    return np.asarray(session.run(["sentence_embedding"], feeds)[0])


def random_batch(batch: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(batch * 1000 + tokens)
    ids = torch.randint(5, 80, (batch, tokens), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(1, batch):
        mask[row, max(1, tokens * row // batch) :] = 0
    return ids * mask, mask


def expected(model: SentenceTransformer, ids: torch.Tensor, mask: torch.Tensor) -> np.ndarray[Any, Any]:
    with torch.no_grad():
        vectors: np.ndarray[Any, Any] = model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"].numpy()
    return vectors


def test_fp32_vectors_equal_torch(model: SentenceTransformer, exported: Exported) -> None:
    vectors = Encoder.load(exported("fp32")).encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    np.testing.assert_allclose(vectors, model.encode(SENTENCES), atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("tokens", [1, 2, 9, MAX_SEQ_LENGTH])
def test_batch_and_length_are_dynamic(model: SentenceTransformer, exported: Exported, batch: int, tokens: int) -> None:
    ids, mask = random_batch(batch, tokens)
    vectors = run(exported("fp32") / "onnx/model.onnx", ids, mask)
    np.testing.assert_allclose(vectors, expected(model, ids, mask), atol=1e-5)


def test_int8_vectors_are_close_to_torch(model: SentenceTransformer, exported: Exported) -> None:
    vectors = Encoder.load(exported("int8")).encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    assert (vectors * model.encode(SENTENCES)).sum(axis=1).min() > 0.995


def test_an_int8_vector_does_not_depend_on_its_batch(exported: Exported) -> None:
    file = exported("int8") / "onnx/model_quantized.onnx"
    ids, mask = random_batch(4, 30)
    together = run(file, ids, mask)
    for row in range(4):
        length = int(mask[row].sum())
        alone = run(file, ids[row : row + 1, :length], mask[row : row + 1, :length])
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


def test_int8_matmuls_do_not_saturate(exported: Exported) -> None:
    model = onnx.load(exported("int8") / "onnx/model_quantized.onnx")
    assert len(int8_matmuls(model)) == 5  # Q, K and V in one, the attention's output, two of the layer, the Dense head
    for ids in ([[2, 7, 9, 3]], [[2, *range(5, 40), 3]]):
        assert_no_saturation(model, ids)


def test_the_quantized_file_is_smaller(exported: Exported) -> None:
    large, small = exported("fp32") / "onnx/model.onnx", exported("int8") / "onnx/model_quantized.onnx"
    assert small.stat().st_size < large.stat().st_size


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_onnx_checker_passes_and_only_operators_of_every_build_are_used(exported: Exported, precision: str) -> None:
    model = onnx.load(exported(precision) / manifest(exported(precision))["model_file"])
    onnx.checker.check_model(model, full_check=True)
    assert {entry.domain for entry in model.opset_import} == {"", "com.microsoft"}
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)


@pytest.mark.parametrize(("precision", "attention"), [("fp32", "MultiHeadAttention"), ("int8", "QAttention")])
def test_every_layer_is_fused(exported: Exported, precision: str, attention: str) -> None:
    graph = onnx.load(exported(precision) / manifest(exported(precision))["model_file"]).graph
    kinds = [node.op_type for node in graph.node]
    assert (kinds.count(attention), kinds.count("Gelu"), kinds.count("Softmax")) == (1, 1, 0)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_manifest_lists_every_file_with_its_checksum(exported: Exported, precision: str) -> None:
    bundle = exported(precision)
    listed = {file["name"]: (file["size_bytes"], file["sha256"]) for file in manifest(bundle)["files"]}
    present = {
        path.relative_to(bundle).as_posix(): (
            path.stat().st_size,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in bundle.rglob("*")
        if path.is_file() and not path.name.startswith("edgeembed.json")
    }
    assert listed == present


def test_the_manifest_states_the_parity(exported: Exported) -> None:
    said = manifest(exported("int8"))
    assert said["parity"]["sentences"] == len(SENTENCES) - 2  # two of twelve calibrated
    assert 0.9 < said["parity"]["min_cosine"] <= said["parity"]["mean_cosine"] <= 1
    cosines = [sentence["cosine"] for sentence in said["parity"]["worst_sentences"]]
    assert cosines == sorted(cosines)
    assert cosines[0] == said["parity"]["min_cosine"]
    assert (said["dimension"], said["max_seq_length"], said["pooling"]) == (8, MAX_SEQ_LENGTH, "mean")


def test_pruned_positions_and_the_pooler_do_not_count_as_parameters(
    model: SentenceTransformer, exported: Exported
) -> None:
    encoder: Any = model[0].auto_model
    unused = sum(p.numel() for p in encoder.pooler.parameters())
    unused += (600 - MAX_SEQ_LENGTH) * HIDDEN + HIDDEN  # positions, and the second token type
    everything = sum(parameter.numel() for parameter in model.parameters())
    assert manifest(exported("int8"))["num_parameters"] == everything - unused


def test_transformers_reads_the_configuration_and_the_tokenizer(model: SentenceTransformer, exported: Exported) -> None:
    bundle = exported("fp32")
    config = AutoConfig.from_pretrained(bundle)
    assert (config.model_type, config.hidden_size, config.num_hidden_layers) == ("bert", HIDDEN, 1)
    tokenizer = AutoTokenizer.from_pretrained(bundle)
    assert tokenizer.model_max_length == MAX_SEQ_LENGTH
    assert tokenizer(SENTENCES[0])["input_ids"] == model.tokenizer(SENTENCES[0])["input_ids"]


def test_sentence_transformers_reads_the_pooling(exported: Exported) -> None:
    pooling = Pooling.load(str(exported("fp32") / "1_Pooling"))
    assert (pooling.pooling_mode, pooling.get_embedding_dimension()) == ("mean", HIDDEN)


def test_the_tokenizer_truncates_at_the_limit_and_never_pads(exported: Exported) -> None:
    content = json.loads((exported("fp32") / "tokenizer.json").read_text(encoding="utf-8"))
    assert content["padding"] is None
    assert content["truncation"]["max_length"] == MAX_SEQ_LENGTH


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["factorised", "mpnet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("roberta", "distilbert"))]
)
def test_other_encoders_export_at_int8(kind: str, tmp_path: Path) -> None:
    report = export(
        make_model(kind), tmp_path / "b", BundleSettings(precision="int8", min_cosine=0.98), sentences=SENTENCES
    )
    assert report.size_bytes > 0


def test_cls_pooling_without_a_head_equals_torch(tmp_path: Path) -> None:
    model = make_model(mode="cls", dense=False)
    export(model, tmp_path / "b", sentences=SENTENCES)
    vectors = Encoder.load(tmp_path / "b").encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    np.testing.assert_allclose(vectors, model.encode(SENTENCES), atol=1e-5)


def test_the_model_is_not_changed(model: SentenceTransformer, exported: Exported) -> None:
    exported("int8")
    encoder: Any = model[0].auto_model
    assert encoder.pooler is not None
    assert encoder.embeddings.position_embeddings.weight.shape == (600, HIDDEN)
    assert encoder.config.max_position_embeddings == 600


def test_a_missed_gate_writes_nothing(model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"is 0\.9.*required is 1; nothing was written"):
        export(model, tmp_path / "b", BundleSettings(precision="int8", min_cosine=1.0), sentences=SENTENCES)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_in_a_folder_with_other_files_is_never_replaced(
    model: SentenceTransformer, exported: Exported, tmp_path: Path
) -> None:
    shutil.copytree(exported("fp32"), tmp_path / "b")
    (tmp_path / "b" / ".git").mkdir()
    (tmp_path / "b" / ".git" / "HEAD").write_text("ref", encoding="utf-8")
    with pytest.raises(InputError, match=r"holds \.git/HEAD, which its edgeembed\.json does not list"):
        export(model, tmp_path / "b", sentences=SENTENCES, force=True)
    assert (tmp_path / "b" / ".git" / "HEAD").exists()


@pytest.mark.slow
def test_a_missed_gate_leaves_the_bundle_that_force_would_replace(
    model: SentenceTransformer, exported: Exported, tmp_path: Path
) -> None:
    shutil.copytree(exported("fp32"), tmp_path / "b")
    before = (tmp_path / "b/edgeembed.json").read_bytes()
    with pytest.raises(GateError):
        export(model, tmp_path / "b", BundleSettings(max_size_mb=0.01), sentences=SENTENCES, force=True)
    assert (tmp_path / "b/edgeembed.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_an_existing_folder_raises_an_error(model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        export(model, tmp_path, sentences=SENTENCES)


def test_the_error_names_an_unsupported_module() -> None:
    model = make_model()
    model.append(Dropout())
    with pytest.raises(InputError, match="Dropout"):
        inspect_model(model)


def test_the_error_names_a_decoder() -> None:
    model = make_model()
    encoder: Any = model[0].auto_model
    encoder.config.is_decoder = True
    with pytest.raises(InputError, match="BertModel, of an architecture that generates text"):
        inspect_model(model)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"precision": "int3"}, "precision is 'int3'"),
        ({"role": "ranker"}, "role is 'ranker'"),
        ({"min_cosine": 2.0}, "min_cosine is 2.0"),
        ({"min_cosine": float("nan")}, "min_cosine is nan"),
        ({"max_size_mb": 0}, "max_size_mb is 0"),
        ({"name": " "}, "name is empty"),
        ({"sentences": []}, "no sentences"),
    ],
)
def test_the_error_names_an_impossible_setting(
    model: SentenceTransformer, tmp_path: Path, options: dict[str, Any], named: str
) -> None:
    sentences = options.pop("sentences", SENTENCES)
    with pytest.raises(InputError, match=named):
        export(model, tmp_path / "b", BundleSettings(**options), sentences=sentences)
    assert list(tmp_path.iterdir()) == []


def test_max_seq_length_is_limited_by_the_positions() -> None:
    model = make_model("roberta")
    first: Any = model[0]
    first.max_seq_length = 10_000
    assert inspect_model(model).max_seq_length == 600 - 1  # the padding has row 0
