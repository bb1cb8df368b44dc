from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from edgeembed_exporters import add_ort
from edgeembed_runtime import Bundle, InputError, VerificationError
from tokenizers import Tokenizer

from .conftest import SENTENCES

Exported = Callable[[str], Path]


# The others take ten seconds to export.
@pytest.fixture(params=["fp32", "int8", *(pytest.param(name, marks=pytest.mark.slow) for name in ("fp16", "int4"))])
def bundle(request: pytest.FixtureRequest, exported: Exported, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported(request.param), tmp_path / "bundle"))


def vectors(file: Path, bundle: Path) -> np.ndarray[Any, Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(bundle / "tokenizer.json"))
    rows = []
    for ids in (tokenizer.encode(sentence).ids for sentence in SENTENCES):
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), dtype=np.int64)}
        rows.append(session.run(["sentence_embedding"], feeds)[0][0])
    return np.array(rows)


def test_the_ort_model_returns_the_embeddings_of_the_onnx_model(bundle: Path) -> None:
    model = add_ort(bundle)
    onnx = bundle / Bundle.open(bundle).model_file
    assert model == onnx.with_suffix(".ort")
    np.testing.assert_array_equal(vectors(model, bundle), vectors(onnx, bundle))


def test_the_operator_list_has_domains_opsets_and_types_but_no_path(bundle: Path) -> None:
    lines = (add_ort(bundle).parent / "required_operators.config").read_text(encoding="utf-8").splitlines()
    assert all(len(line.split(";")) == 3 for line in lines)
    assert any("LayerNormalization" in line for line in lines)
    assert any('"inputs"' in line for line in lines)


def test_the_same_bundle_gives_the_same_bytes(bundle: Path) -> None:
    first = add_ort(bundle).read_bytes()
    assert all(add_ort(bundle).read_bytes() == first for _ in range(3))


def test_both_files_are_in_the_manifest_and_adding_them_again_replaces_them(bundle: Path) -> None:
    for _ in range(2):
        add_ort(bundle)
        names = {file.name for file in Bundle.open(bundle, verify=True).files}
        assert {"onnx/required_operators.config"} < names
        assert len([name for name in names if name.endswith(".ort")]) == 1


def test_a_changed_bundle_raises_an_error(bundle: Path) -> None:
    (bundle / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(VerificationError):
        add_ort(bundle)


def test_a_folder_that_is_not_a_bundle_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        add_ort(tmp_path / "nothing")
