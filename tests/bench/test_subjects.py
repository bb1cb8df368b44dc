import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_bench import from_bundle, from_function, from_sentence_transformer
from edgeembed_runtime.errors import BundleError, InputError


class _Model:
    """Stands in for a SentenceTransformer."""

    device = "cpu"

    def __init__(self) -> None:
        self.threads = 0

    def parameters(self) -> list[torch.Tensor]:
        return [torch.zeros(3, 4), torch.zeros(5)]

    def encode(self, _texts: Any, **_: Any) -> Any:
        self.threads = torch.get_num_threads()
        return np.ones(4, np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sentence-transformers folder of known sizes, with files that running it does not need."""
    modules = [{"path": "", "type": "Transformer"}, {"path": "2_Dense", "type": "Dense"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "2_Dense").mkdir()
    (tmp_path / "checkpoint-9").mkdir()
    sizes = {
        "model.safetensors": 1000,
        "pytorch_model.bin": 7000,
        "tokenizer.json": 200,
        "vocab.txt": 90,
        "2_Dense/model.safetensors": 30,
        "checkpoint-9/model.safetensors": 5000,
        "README.md": 400,
    }
    for file, size in sizes.items():
        (tmp_path / file).write_bytes(bytes(size))
    return tmp_path


def test_a_sentence_transformer_is_as_large_as_the_weights_and_tokenizer_it_needs(folder: Path) -> None:
    assert from_sentence_transformer(_Model(), folder).size_bytes == 1000 + 30 + 200


def test_a_sentence_transformer_counts_its_parameters(folder: Path) -> None:
    assert from_sentence_transformer(_Model(), folder, "teacher").parameters == 17


def test_opening_a_sentence_transformer_sets_the_threads_and_closing_restores_them(folder: Path) -> None:
    before = torch.get_num_threads()
    model = _Model()
    try:
        torch.set_num_threads(2)
        with from_sentence_transformer(model, folder).open(1) as encode:
            encode("a text")
        assert model.threads == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no weights"):
        from_sentence_transformer(_Model(), tmp_path)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        from_bundle(tmp_path)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle's manifest and files of known sizes, with a card that running it does not need."""
    sizes = {"onnx/model.onnx": 1000, "onnx/model.onnx_data": 50, "tokenizer.json": 200, "README.md": 400}
    (tmp_path / "onnx").mkdir()
    for file, size in sizes.items():
        (tmp_path / file).write_bytes(bytes(size))
    files = [{"name": file, "bytes": size, "sha256": "0" * 64} for file, size in sizes.items()]
    parity = {"sentences": 1, "worst_cosine": 1.0, "mean_cosine": 1.0, "worst_sentences": []}
    facts: dict[str, Any] = {
        "schema_version": 1,
        "edgeembed_version": "0.1.0",
        "name": "tiny",
        "role": "relevance",
        "dimension": 8,
        "max_seq_length": 16,
        "pooling": "mean",
        "prompts": {},
        "default_prompt_name": None,
        "backend": "onnx",
        "precision": "int8",
        "model_file": "onnx/model.onnx",
        "parameters": 1234,
        "teacher": None,
        "recipe": None,
        "licences": [],
        "parity": parity,
        "quality": None,
        "files": files,
    }
    (tmp_path / "edgeembed.json").write_text(json.dumps(facts))
    return tmp_path


def test_a_bundle_is_as_large_as_the_files_that_the_runtime_reads(bundle: Path) -> None:
    subject = from_bundle(bundle)
    assert subject.size_bytes == 1000 + 50 + 200 + (bundle / "edgeembed.json").stat().st_size
    assert subject.parameters == 1234
    assert subject.kind == "bundle, onnxruntime, int8"


def test_a_bundle_refuses_threads_that_it_would_not_use(bundle: Path) -> None:
    with pytest.raises(InputError, match="on 2 threads"), from_bundle(bundle).open(2):
        pass


def test_a_function_is_measured_as_it_is() -> None:
    subject = from_function("stub", len, size_bytes=5)
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(subject.open(1))("abc") == 3
