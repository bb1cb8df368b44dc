import hashlib
import json
import zlib
from pathlib import Path

import pytest
from edgeembed_bench import Subject
from edgeembed_bench.sizes import measure_size
from edgeembed_bench.subjects import Adapter
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import InputError


def _write(folder: Path, sizes: dict[str, int]) -> None:
    for file, size in sizes.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(bytes(size))


def _names(folder: Path, adapter: Adapter) -> set[str]:
    return {file.name for file in measure_size(Subject("a", adapter, str(folder))).files}


def test_sentence_transformer_size_is_weights_and_tokenizer(tmp_path: Path) -> None:
    modules = [{"path": "", "type": "Transformer"}, {"path": "2_Dense", "type": "Dense"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    needed = {"model.safetensors": 1000, "tokenizer.json": 200, "2_Dense/model.safetensors": 30}
    others = {"pytorch_model.bin": 7000, "vocab.txt": 90, "checkpoint-9/model.safetensors": 5000, "README.md": 400}
    _write(tmp_path, needed | others)
    size = measure_size(Subject("a", "sentence-transformer", str(tmp_path)))
    assert {file.name: file.size_bytes for file in size.files} == needed
    assert size.size_bytes == 1230


def test_file_has_hash_and_download_size(tmp_path: Path) -> None:
    content = b"all work and no play " * 500
    (tmp_path / "model.safetensors").write_bytes(content)
    (file,) = measure_size(Subject("a", "model2vec", str(tmp_path))).files
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.size_bytes == len(content)
    assert file.download_bytes == len(zlib.compress(content))


def test_onnx_size_includes_external_weights(tmp_path: Path) -> None:
    _write(
        tmp_path, {"onnx/model.onnx": 10, "onnx/model.onnx_data": 90, "onnx/model_quantized.onnx": 5, "vocab.txt": 7}
    )
    assert _names(tmp_path, "onnx") == {"onnx/model.onnx", "onnx/model.onnx_data", "vocab.txt"}


@pytest.mark.parametrize("argument", ["", "path"])
def test_bundle_size_is_the_files_that_the_runtime_reads(argument: str) -> None:
    folder = Path(str(builtin_bundle()))
    size = measure_size(Subject("a", "bundle", str(folder) if argument else ""))
    names = {file.name for file in size.files}
    assert {"tokenizer.json", "edgeembed.json"} < names
    assert "README.md" not in names
    assert size.size_bytes == sum((folder / name).stat().st_size for name in names)
    assert (size.download_bytes or 0) < size.size_bytes


@pytest.mark.parametrize("subject", [Subject("a", "function", "m:f"), Subject("a", "fastembed", "BAAI/bge")])
def test_unknown_size_is_none_with_a_reason(subject: Subject) -> None:
    size = measure_size(subject)
    assert size.size_bytes is None
    assert size.download_bytes is None
    assert "names no files" in (size.reason or "")


@pytest.mark.parametrize(
    ("adapter", "message"), [("sentence-transformer", "contains no weights"), ("onnx", r"contains no model\.onnx")]
)
def test_folder_without_a_required_file_raises_input_error(tmp_path: Path, adapter: Adapter, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_size(Subject("a", adapter, str(tmp_path)))


def test_unreadable_module_list_raises_input_error(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(InputError, match=r"modules\.json cannot be read"):
        measure_size(Subject("a", "sentence-transformer", str(tmp_path)))
