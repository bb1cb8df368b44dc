"""The name of a model's embedding space."""

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from edgeembed_exporters import space
from edgeembed_exporters.space import embedding_space
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from torch import nn

from .conftest import HIDDEN, make_model


@pytest.fixture(scope="module")
def plain() -> SentenceTransformer:
    return make_model(dense=False)


def test_the_name_states_architecture_dimension_and_a_hash(plain: SentenceTransformer) -> None:
    kind, dimension, digest = embedding_space(plain).split("-")
    assert (kind, int(dimension), len(digest)) == ("bert", HIDDEN, 16)
    assert embedding_space(make_model(dense=False)) == embedding_space(plain)


def _set_pooler(model: SentenceTransformer) -> None:
    nn.init.ones_(model[0].auto_model.pooler.dense.weight)


def _toggle_normalize(model: SentenceTransformer) -> None:
    if isinstance(model[-1], Normalize):
        del model[len(model) - 1]
    else:
        model.append(Normalize())


def _set_prompts(model: SentenceTransformer) -> None:
    model.prompts, model[0].max_seq_length = {"query": "query: "}, 7


@pytest.mark.parametrize("change", [_set_pooler, _toggle_normalize, _set_prompts, SentenceTransformer.double])
def test_what_does_not_change_directions_does_not_change_the_name(
    plain: SentenceTransformer, change: Callable[[SentenceTransformer], object]
) -> None:
    changed = copy.deepcopy(plain)
    change(changed)
    assert embedding_space(changed) == embedding_space(plain)


def _set_weight(model: SentenceTransformer) -> None:
    with torch.no_grad():
        model[0].auto_model.embeddings.word_embeddings.weight[7, 3] += 0.01


def _set_pooling(model: SentenceTransformer) -> None:
    model[1] = Pooling(HIDDEN, "cls")


def _truncate(model: SentenceTransformer) -> None:
    model.truncate_dim = 8


@pytest.mark.parametrize("change", [_set_weight, _set_pooling, _truncate])
def test_other_embeddings_have_another_name(
    plain: SentenceTransformer, change: Callable[[SentenceTransformer], object]
) -> None:
    changed = copy.deepcopy(plain)
    change(changed)
    assert embedding_space(changed) != embedding_space(plain)


def test_the_activation_of_a_dense_module_counts(plain: SentenceTransformer) -> None:
    torch.manual_seed(0)
    dense = Dense(HIDDEN, 8, activation_function=nn.Identity())
    linear = copy.deepcopy(plain)
    linear.append(dense)
    bent = copy.deepcopy(linear)
    bent[len(bent) - 1].activation_function = nn.Tanh()
    assert len({embedding_space(model) for model in (plain, linear, bent)}) == 3


def with_activation(plain: SentenceTransformer, function: Any) -> SentenceTransformer:
    torch.manual_seed(0)
    model = copy.deepcopy(plain)
    model.append(Dense(HIDDEN, 8, activation_function=function))
    return model


def test_the_settings_of_an_activation_count(plain: SentenceTransformer) -> None:
    functions: list[Any] = [
        nn.LeakyReLU(),
        nn.LeakyReLU(0.3),
        nn.GELU(),
        nn.GELU(approximate="tanh"),
        torch.tanh,
        torch.sigmoid,
    ]
    assert len({embedding_space(with_activation(plain, function)) for function in functions}) == len(functions)


def test_the_name_of_a_model_with_a_usual_head_stays_as_it_was(plain: SentenceTransformer) -> None:
    digests = []
    for function in (nn.Identity(), nn.Tanh(), nn.LeakyReLU()):
        settings = [[0, "Pooling", "mean"], [1, "Normalize"], [2, "Dense", type(function).__name__]]
        model = with_activation(plain, function)
        parts = [hashlib.sha256(repr(each).encode()).digest() for each in settings]
        digests.append(set(parts) == set(space._settings(model)))
    assert digests == [True, True, True]
