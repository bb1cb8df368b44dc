"""Torch weights in a bundle; test_loaders loads them with sentence-transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from edgeembed_exporters import BundleSettings, export, inspect_model
from edgeembed_exporters.bundle.writers import check_torch_weights
from edgeembed_runtime import Bundle, InputError
from torch import nn

from .conftest import SENTENCES, make_encoder, make_model


def test_torch_weights_come_with_the_configuration_of_the_whole_encoder(tmp_path: Path) -> None:
    model = make_model()
    export(model, tmp_path / "b", BundleSettings(torch_weights=True), sentences=SENTENCES)
    assert "model.safetensors" in {file.name for file in Bundle.open(tmp_path / "b", verify=True).files}
    config = json.loads((tmp_path / "b" / "config.json").read_text(encoding="utf-8"))
    assert config["max_position_embeddings"] == inspect_model(model).encoder.config.max_position_embeddings


@pytest.mark.parametrize(
    ("kind", "named"),
    [("factorised", r"word_embeddings.* is not as in BertModel"), ("plain", "the encoder is a Linear")],
)
def test_the_error_names_a_weight_that_transformers_would_not_load(kind: str, named: str) -> None:
    encoder = make_encoder(kind) if kind == "factorised" else nn.Linear(2, 2)
    with pytest.raises(InputError, match=named) as raised:
        check_torch_weights(encoder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "distilbert"])
def test_an_encoder_of_transformers_passes_with_and_without_its_pooler(kind: str) -> None:
    encoder = make_encoder(kind)
    check_torch_weights(encoder)
    encoder.pooler = None
    check_torch_weights(encoder)
