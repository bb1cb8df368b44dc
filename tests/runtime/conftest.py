"""Tiny bundles: random weights from a fixed seed, a real tokenizer and a valid manifest, made without torch."""

import hashlib
import json
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InputError
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.cmow.safetensors import pack_tensors
from onnx import TensorProto, helper, numpy_helper

Make = Callable[..., Path]

_HIDDEN = 16
_DIMENSION = 8
_WORDS = ["read", "file", "line", "open", "cat", "dog", "the", "a", "network", "socket", "##s", "##ing"]
_LABELS = ["animal", "file", "network"]
_VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]"),
    *_WORDS,
    *string.ascii_lowercase[1:],
    *(f"##{letter}" for letter in string.ascii_lowercase if letter != "s"),
    *string.digits,
    *string.punctuation,
]


@pytest.fixture(scope="session")
def make_bundle() -> Make:
    """Return a function that writes a bundle: `make_bundle(path, seed=0, **manifest fields)`."""
    return _make_bundle


@pytest.fixture(scope="session")
def make_numpy_bundle() -> Make:
    """Return a function that writes a NumPy bundle: `make_numpy_bundle(path, seed=0, model=None, **manifest fields)`.

    The model is a bidirectional hybrid, unless `model` is the content of another model file.
    """
    return _make_numpy_bundle


@pytest.fixture(scope="session")
def make_classifier() -> Make:
    """Return a function that writes a classifier's bundle: `make_classifier(path, seed=0, **manifest fields)`."""
    return _make_classifier


@pytest.fixture(scope="session")
def rewrite_manifest() -> Callable[..., None]:
    """Return a function that rewrites a bundle's manifest after its files changed."""
    return _write_manifest


@pytest.fixture(scope="session")
def bundle_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bundle that no test changes."""
    return _make_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture(scope="session")
def encoder(bundle_path: Path) -> Encoder:
    """Return the encoder of that bundle."""
    return Encoder.load(bundle_path)


@pytest.fixture(scope="session")
def library() -> Any:
    """Return the package `tokenizers`; skip where it is not installed, as it is an extra."""
    return pytest.importorskip("tokenizers", reason="needs the package tokenizers")


@pytest.fixture
def bundle_copy(bundle_path: Path, tmp_path: Path) -> Path:
    """Return a copy of the bundle for tests that modify it."""
    return shutil.copytree(bundle_path, tmp_path / "copy")


@pytest.fixture(scope="session")
def shipped() -> Path:
    """Return the folder of the default built-in bundle; skip if this build contains none."""
    try:
        return Path(str(builtin_bundle()))
    except InputError as error:
        pytest.skip(str(error))


def _make_bundle(path: Path, seed: int = 0, **fields: Any) -> Path:
    (path / "onnx").mkdir(parents=True)
    (path / "onnx" / "model.onnx").write_bytes(_graph(seed))
    _write_tokenizer(path / "tokenizer.json")
    (path / "README.md").write_text("# Tiny\n", encoding="utf-8")
    _write_manifest(path, **fields)
    return path


def _make_classifier(path: Path, seed: int = 0, **fields: Any) -> Path:
    (path / "onnx").mkdir(parents=True)
    (path / "onnx" / "model.onnx").write_bytes(_graph(seed, ("logits", len(_LABELS))))
    _write_tokenizer(path / "tokenizer.json")
    (path / "README.md").write_text("# Tiny\n", encoding="utf-8")
    parity = {
        "sentences": 2,
        "label_agreement": 1.0,
        "max_probability_difference": 0.01,
        "mean_probability_difference": 0.005,
        "worst_sentences": [{"text": "the cat", "probability_difference": 0.01}],
    }
    classifier = {"task": "classification", "labels": _LABELS, "is_pairs": False, "role": None, "roles": []}
    _write_manifest(path, **{**classifier, "parity": parity, **fields})
    return path


def _make_numpy_bundle(path: Path, seed: int = 0, model: bytes | None = None, **fields: Any) -> Path:
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(_hybrid(seed) if model is None else model)
    _write_tokenizer(path / "tokenizer.json")
    (path / "README.md").write_text("# Tiny\n", encoding="utf-8")
    _write_manifest(path, **{"backend": "numpy", "model_file": "model.safetensors", **fields})
    return path


def _hybrid(seed: int) -> bytes:
    """Return a model file: forward and backward 3 x 3 matrices, vectors of 7, and a head."""
    random = np.random.default_rng(seed)
    identity = np.eye(3).ravel()
    tensors = {
        "cmow.forward.weight": identity + 0.3 * random.standard_normal((len(_VOCABULARY), 9)),
        "cmow.backward.weight": identity + 0.3 * random.standard_normal((len(_VOCABULARY), 9)),
        "cbow.weight": random.standard_normal((len(_VOCABULARY), 7)),
        "head.weight": random.standard_normal((_DIMENSION, 25)),
        "head.bias": random.standard_normal(_DIMENSION),
    }
    settings = {"format": "edgeembed-matrix", "format_version": "1", "architecture": "hybrid", "cbow_pooling": "sum"}
    return pack_tensors({name: tensor.astype(np.float32) for name, tensor in tensors.items()}, settings)


def _write_tokenizer(file: Path) -> None:
    cls, text, sep = {"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}
    single = [cls, text, sep]
    ids = {token: _VOCABULARY.index(token) for token in ("[CLS]", "[SEP]")}
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        # As many published tokenizers do; the runtime must ignore it.
        "padding": {
            "strategy": {"Fixed": 16},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": _with_type(0, single),
            "pair": [*_with_type(0, single), *_with_type(1, [{"Sequence": {"id": "B"}}, sep])],
            "special_tokens": {
                token: {"id": token, "ids": [number], "tokens": [token]} for token, number in ids.items()
            },
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(_VOCABULARY)},
        },
    }
    file.write_text(json.dumps(document), encoding="utf-8")


def _with_type(number: int, parts: list[dict[str, dict[str, str]]]) -> list[dict[str, dict[str, object]]]:
    return [{kind: {**part, "type_id": number} for kind, part in each.items()} for each in parts]


def _graph(seed: int, logits: tuple[str, int] | None = None) -> bytes:
    """Return an ONNX graph: embedding table, masked mean, head, L2 normalization; or logits without normalization."""
    random = np.random.default_rng(seed)
    name, size = logits or ("sentence_embedding", _DIMENSION)
    weights: dict[str, np.ndarray[Any, Any]] = {
        "table": random.standard_normal((len(_VOCABULARY), _HIDDEN)).astype(np.float32),
        "head": random.standard_normal((_HIDDEN, size)).astype(np.float32),
        "one": np.array([1], dtype=np.int64),
        "last": np.array([-1], dtype=np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["mask"]),
        helper.make_node("Mul", ["tokens", "mask"], ["masked"]),
        helper.make_node("ReduceSum", ["masked", "one"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["mask", "one"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("MatMul", ["mean", "head"], [name if logits else "projected"]),
    ]
    if not logits:
        nodes += [
            helper.make_node("ReduceL2", ["projected"], ["length"], axes=[-1]),
            helper.make_node("Div", ["projected", "length"], [name]),
        ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "tokens"])
            for each in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _write_manifest(path: Path, **fields: Any) -> None:
    manifest = {
        "schema_version": 2,
        "edgeembed_version": "0.1.0",
        "name": "tiny",
        "role": "semantic",
        "roles": ["semantic", "relevance"],
        "dimension": _DIMENSION,
        "max_seq_length": 32,
        "pooling": "mean",
        "prompts": {},
        "default_prompt_name": None,
        "backend": "onnx",
        "precision": "fp32",
        "model_file": "onnx/model.onnx",
        "num_parameters": (len(_VOCABULARY) + _DIMENSION) * _HIDDEN,
        "teacher": None,
        "recipe": None,
        "licenses": ["CC0-1.0"],
        "parity": {
            "sentences": 2,
            "min_cosine": 0.999,
            "mean_cosine": 0.9995,
            "worst_sentences": [{"text": "the cat", "cosine": 0.999}],
            "p01_cosine": None,
            "spearman": None,
            "top_10_overlap": None,
        },
        "quality": None,
        "latency": None,
        "near_cosine": None,
        "files": [_record(file, path) for file in sorted(path.rglob("*")) if _is_listed(file)],
        **fields,
    }
    (path / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")


def _record(file: Path, folder: Path) -> dict[str, Any]:
    content = file.read_bytes()
    name = file.relative_to(folder).as_posix()
    return {"name": name, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _is_listed(file: Path) -> bool:
    return file.is_file() and file.name != "edgeembed.json"
