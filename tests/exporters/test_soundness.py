"""Models in memory whose weights or limits cannot be read as they are."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_exporters import BundleSettings, add_pca_head, export, trim_vocabulary
from edgeembed_exporters.model_spec import inspect_model
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_exporters.soundness import sound_model
from edgeembed_runtime import Encoder, InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from torch import nn

from .conftest import HF, HIDDEN, SENTENCES, SMALL, Word, make_encoder, make_model, make_tokenizer


def test_a_sound_model_is_returned_as_it_is(model: SentenceTransformer) -> None:
    assert sound_model(model) is model


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_is_exported_as_its_float32_copy(tmp_path: Path, dtype: torch.dtype) -> None:
    half = make_model().to(dtype)
    export(half, tmp_path / "b", sentences=SENTENCES)
    expected = copy.deepcopy(half).float().encode(SENTENCES)
    given = Encoder.load(tmp_path / "b").encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    np.testing.assert_allclose(given, expected, atol=1e-5)
    assert {weight.dtype for weight in half.parameters()} == {dtype}


def test_a_model_in_half_precision_gets_a_head_in_float32() -> None:
    texts = [f"{a} {b}" for a in "abcdefghij" for b in "abcdefghij"]
    reduced, _ = add_pca_head(make_model(dense=False).bfloat16(), texts, dim=4)
    vectors = reduced.encode(texts)
    assert (vectors.shape, vectors.dtype) == ((100, 4), np.float32)


def long_roberta() -> SentenceTransformer:
    """Return a RoBERTa that states as many tokens as it has rows of positions, two of which no token uses."""
    torch.manual_seed(0)
    sizes = {**SMALL, "hidden_size": HIDDEN, "num_hidden_layers": 1, "intermediate_size": 64}
    config = HF.RobertaConfig(**{**sizes, "max_position_embeddings": 42, "pad_token_id": 1}, initializer_range=0.5)
    word = Word(HF.RobertaModel(config, add_pooling_layer=False).eval(), make_tokenizer())
    word.max_seq_length = 42
    return SentenceTransformer(modules=[word, Pooling(HIDDEN, "mean"), Normalize()], device="cpu").eval()


def test_text_beyond_the_positions_is_not_read(tmp_path: Path) -> None:
    model, texts = long_roberta(), [*SENTENCES, "a b c d e f g h " * 20]
    report = export(model, tmp_path / "b", BundleSettings(max_seq_length=20), sentences=texts)
    assert report.parity.min_cosine > 0.9999
    assert model[0].max_seq_length == 42
    limited = sound_model(model)
    assert limited[0].max_seq_length == 40
    assert (
        limited[0].auto_model.embeddings.word_embeddings.weight is model[0].auto_model.embeddings.word_embeddings.weight
    )
    trimmed, _ = trim_vocabulary(model, texts, held_out=texts)
    np.testing.assert_allclose(trimmed.encode(texts), limited.encode(texts), atol=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_an_error_before_any_work(tmp_path: Path, value: float) -> None:
    model = make_model()
    with torch.no_grad():
        model[0].auto_model.embeddings.word_embeddings.weight[60, 3] = value
        model[2].linear.bias[:] = value
    with pytest.raises(InputError, match=r"9 NaN or infinite values: 1 in 0\.auto_model\.\S+, 8 in 2\.linear\.bias;"):
        export(model, tmp_path / "b", sentences=iter(()))  # sentences are read later
    assert list(tmp_path.iterdir()) == []


def test_a_token_without_a_row_is_named(tmp_path: Path) -> None:
    model = make_model()
    model[0].tokenizer.add_tokens(["<new>"])
    with pytest.raises(
        InputError, match=r"tokens without a row in the embedding table of 85 rows \(1\), such as '<new>'"
    ):
        export(model, tmp_path / "b", sentences=SENTENCES)


def test_a_head_that_cannot_be_traced_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    modules: list[Any] = [Word(make_encoder("bert"), make_tokenizer()), Pooling(HIDDEN, "mean")]
    head = Dense(HIDDEN, 8, activation_function=nn.RReLU())
    spec = inspect_model(SentenceTransformer(modules=[*modules, head], device="cpu"))
    with pytest.raises(
        InputError, match=r"cannot trace the model \(BertModel, \S+, .*RReLU.*rrelu_with_noise"
    ) as error:
        trace(build_graph(spec), spec.max_seq_length)
    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""
