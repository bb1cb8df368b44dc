"""The role of a bundle decides its maximum length, prompts and rankers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters import BundleSettings, export
from edgeembed_runtime import Encoder, InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from .conftest import SENTENCES, make_model, make_tokenizer

LONG = "the cat and the dog " * 20


PROMPTS = {"query": "ask: ", "document": "", "passage": "tell: "}


def static_model() -> SentenceTransformer:
    """A model of no layers, which is exported in no time."""
    tokenizer = make_tokenizer()._tokenizer
    weights = np.random.default_rng(2).normal(size=(tokenizer.get_vocab_size(), 8))
    modules = [StaticEmbedding(tokenizer, embedding_weights=weights), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu")


@pytest.fixture
def model() -> Iterator[SentenceTransformer]:
    """A model with prompts that reads 200 tokens, which no export may change."""
    made = static_model()
    made.prompts = dict(PROMPTS)
    made[0].tokenizer.enable_truncation(200)
    yield made
    assert (made.prompts, made.default_prompt_name) == (PROMPTS, None)
    assert made[0].tokenizer.truncation["max_length"] == 200


def exported(model: SentenceTransformer, out: Path, **options: Any) -> Encoder:
    export(model, out, BundleSettings(**{"backend": "numpy", **options}), sentences=SENTENCES)
    return Encoder.load(out)


def test_the_relevance_role_has_the_length_and_prompts_of_the_model(model: SentenceTransformer, tmp_path: Path) -> None:
    encoder = exported(model, tmp_path / "b", role="relevance")
    assert (encoder.bundle.role, encoder.bundle.roles, encoder.max_seq_length) == ("relevance", ("relevance",), 200)
    np.testing.assert_allclose(encoder.encode_query("cat"), model.encode("ask: cat"), atol=1e-5)
    np.testing.assert_allclose(encoder.encode_document("cat"), model.encode("tell: cat"), atol=1e-5)
    np.testing.assert_allclose(encoder.encode("cat"), model.encode("cat"), atol=1e-5)


def test_the_semantic_role_reads_less_and_has_one_prompt(model: SentenceTransformer, tmp_path: Path) -> None:
    encoder = exported(model, tmp_path / "b", role="semantic")
    assert (encoder.bundle.role, encoder.bundle.roles, encoder.max_seq_length) == ("semantic", ("semantic",), 128)
    told = model.encode("tell: cat")
    for vector in (encoder.encode("cat"), encoder.encode_query("cat"), encoder.encode_document("cat")):
        np.testing.assert_allclose(vector, told, atol=1e-5)


def test_one_bundle_for_both_is_the_default(model: SentenceTransformer, tmp_path: Path) -> None:
    encoder = exported(model, tmp_path / "b")
    assert (encoder.bundle.role, encoder.bundle.roles) == ("semantic", ("semantic", "relevance"))
    assert (encoder.max_seq_length, encoder.bundle.prompts["document"]) == (200, "tell: ")


def test_length_and_prompts_can_be_chosen(model: SentenceTransformer, tmp_path: Path) -> None:
    chosen = {"max_seq_length": 20, "prompts": {"query": "q: ", "topic": "t: "}}
    encoder = exported(model, tmp_path / "b", role="semantic", backend="onnx", **chosen)
    expected = {"query": "q: ", "document": "tell: ", "passage": "tell: ", "topic": "t: "}
    assert (encoder.max_seq_length, encoder.bundle.prompts) == (20, expected)
    others = json.loads((tmp_path / "b" / "config_sentence_transformers.json").read_text(encoding="utf-8"))
    assert (others["prompts"], others["default_prompt_name"]) == (expected, "document")


@pytest.mark.parametrize("tokens", [2, 201])
def test_a_length_beyond_the_model_raises_an_error(model: SentenceTransformer, tmp_path: Path, tokens: int) -> None:
    with pytest.raises(InputError, match=f"max_seq_length is {tokens}; expected 3 to 200 tokens"):
        exported(model, tmp_path / "b", max_seq_length=tokens)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("backend", ["onnx", "numpy"])
def test_a_bundle_equals_a_model_with_the_same_length_limit(tmp_path: Path, backend: Any) -> None:
    model = static_model()
    encoder = exported(model, tmp_path / "b", role="semantic", backend=backend)
    assert encoder.max_seq_length == 128
    assert model[0].tokenizer.truncation is None
    model[0].tokenizer.enable_truncation(128)
    np.testing.assert_allclose(
        encoder.encode(LONG, on_truncate="ignore", on_unknown="ignore"), model.encode(LONG), atol=1e-5
    )


@pytest.mark.parametrize(("reads", "expected"), [(200, 128), pytest.param(40, 40, marks=pytest.mark.slow)])
def test_a_transformer_reads_the_length_of_the_role_if_it_can(tmp_path: Path, reads: int, expected: int) -> None:
    model = make_model()
    model.max_seq_length = reads
    encoder = exported(model, tmp_path / "b", role="semantic", backend="onnx")
    assert (encoder.max_seq_length, model.max_seq_length) == (expected, reads)
    model.max_seq_length = expected
    np.testing.assert_allclose(
        encoder.encode(LONG, on_truncate="ignore", on_unknown="ignore"), model.encode(LONG), atol=1e-5
    )
