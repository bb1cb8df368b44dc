"""Torch weights beside the graph; test_loaders has sentence-transformers load them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from edgeembed_exporters import export, take_apart
from edgeembed_exporters.torch_weights import check_plain
from edgeembed_runtime import Bundle, InputError
from torch import nn

from .conftest import SENTENCES, make_encoder, make_model


def test_weights_are_listed_and_the_configuration_is_that_of_the_whole_encoder(tmp_path: Path) -> None:
    model = make_model()
    export(model, tmp_path / "b", sentences=SENTENCES, torch_weights=True)
    assert "model.safetensors" in {file.name for file in Bundle.open(tmp_path / "b", verify=True).files}
    config = json.loads((tmp_path / "b" / "config.json").read_text(encoding="utf-8"))
    assert config["max_position_embeddings"] == take_apart(model).encoder.config.max_position_embeddings


@pytest.mark.parametrize(
    ("kind", "named"),
    [("factorised", r"word_embeddings.* is not as in BertModel"), ("plain", "the encoder is a Linear")],
)
def test_what_transformers_would_not_build_again_is_refused_by_name(kind: str, named: str) -> None:
    encoder = make_encoder(kind) if kind == "factorised" else nn.Linear(2, 2)
    with pytest.raises(InputError, match=named) as raised:
        check_plain(encoder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "distilbert"])
def test_an_encoder_of_transformers_passes_with_and_without_its_pooler(kind: str) -> None:
    encoder = make_encoder(kind)
    check_plain(encoder)
    encoder.pooler = None
    check_plain(encoder)
