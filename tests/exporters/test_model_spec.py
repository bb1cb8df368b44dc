from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edgeembed_exporters import export
from edgeembed_exporters.bundle.hub_files import write_configurations, write_tokenizer
from edgeembed_exporters.model_spec import check_attention, inspect_model, mask_tokens
from edgeembed_exporters.modules import POOLING_MODES
from edgeembed_exporters.onnx.tracing import build_graph
from edgeembed_runtime import Encoder, InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import (
    CNN,
    LSTM,
    LayerNorm,
    Normalize,
    Pooling,
    StaticEmbedding,
    WeightedLayerPooling,
)
from torch import nn

from .conftest import HF, HIDDEN, MAX_SEQ_LENGTH, SENTENCES, SMALL, Word, make_encoder, make_model, make_tokenizer

LAYERS = {"hidden_size": HIDDEN, "num_hidden_layers": 2, "intermediate_size": 64}
OLD_TYPES = "sentence_transformers.models."


def spread(module: nn.Module) -> None:
    # Fresh weights are so small that all sentences get nearly the same vector.
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() == 2:
                weight.normal_(std=weight.shape[1] ** -0.5)


def static_model(*modules: nn.Module) -> SentenceTransformer:
    torch.manual_seed(2)
    static = StaticEmbedding(make_tokenizer()._tokenizer, embedding_dim=HIDDEN)
    model: SentenceTransformer = SentenceTransformer(modules=[static, *modules], device="cpu").eval()
    return model


def plain_folder(folder: Path, limit: int = MAX_SEQ_LENGTH) -> str:
    make_encoder("bert").save_pretrained(folder)
    tokenizer = make_tokenizer()
    tokenizer.model_max_length = limit
    tokenizer.save_pretrained(folder)
    return str(folder)


def assert_faithful(model: SentenceTransformer, folder: Path) -> None:
    given = Encoder.load(folder).encode(SENTENCES, on_truncate="ignore", on_unknown="ignore")
    expected = model.encode(SENTENCES, normalize_embeddings=True)
    np.testing.assert_allclose(given, expected, atol=1e-5)


@pytest.mark.slow
def test_all_pooling_modes_before_a_head_are_exact(tmp_path: Path) -> None:
    width = len(POOLING_MODES) * HIDDEN
    modules = [Dense(width, HIDDEN), LayerNorm(HIDDEN), Dense(HIDDEN, 12, activation_function=nn.GELU())]
    pooling = Pooling(HIDDEN, POOLING_MODES)
    torch.manual_seed(1)
    model = SentenceTransformer(
        modules=[Word(make_encoder("bert"), make_tokenizer()), pooling, *modules], device="cpu"
    ).eval()
    report = export(model, tmp_path / "b", sentences=SENTENCES)
    assert report.dimension == 12
    assert_faithful(model, tmp_path / "b")
    assert Encoder.load(tmp_path / "b").bundle.pooling == "mean+cls+max+mean_sqrt_len_tokens+weightedmean+lasttoken"


def test_a_static_model_is_the_mean_of_its_rows(tmp_path: Path) -> None:
    model = static_model(Normalize())
    export(model, tmp_path / "b", sentences=[text for text in SENTENCES if text])
    assert_faithful(model, tmp_path / "b")
    assert not Encoder.load(tmp_path / "b").encode("").any()  # no tokens, no NaN


def test_a_static_model_has_the_length_limit_of_its_tokenizer() -> None:
    assert inspect_model(static_model()).max_seq_length == 8192
    model = static_model()
    model[0].tokenizer.enable_truncation(17)
    assert inspect_model(model).max_seq_length == 17


def test_a_static_model_adds_no_special_tokens() -> None:
    assert inspect_model(static_model()).tokenizer("a b").input_ids == [5, 6]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # as DeBERTa and ModernBERT are imported
@pytest.mark.parametrize(
    "kind", ["xlm-roberta", "camembert", "albert", "electra", "deberta", "deberta-v2", "modernbert", "t5"]
)
def test_an_architecture_is_exact(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    special = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    buckets = {"position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0}
    t5 = {"vocab_size": SMALL["vocab_size"], "d_model": HIDDEN, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    encoders = {
        "xlm-roberta": lambda: HF.XLMRobertaModel(HF.XLMRobertaConfig(**SMALL, **LAYERS)),
        "camembert": lambda: HF.CamembertModel(HF.CamembertConfig(**SMALL, **LAYERS)),
        "albert": lambda: HF.AlbertModel(HF.AlbertConfig(**SMALL, **LAYERS, embedding_size=16)),
        "electra": lambda: HF.ElectraModel(HF.ElectraConfig(**SMALL, **LAYERS, embedding_size=16)),
        "deberta": lambda: HF.DebertaModel(HF.DebertaConfig(**SMALL, **LAYERS, **relative)),
        "deberta-v2": lambda: HF.DebertaV2Model(HF.DebertaV2Config(**SMALL, **LAYERS, **relative, **buckets)),
        "modernbert": lambda: HF.ModernBertModel(
            HF.ModernBertConfig(**SMALL, **{**LAYERS, "num_hidden_layers": 4}, **special, local_attention=16)
        ),
        "t5": lambda: HF.T5EncoderModel(HF.T5Config(**t5)),
    }
    encoder = encoders[kind]().eval()
    spread(encoder)
    modules = [Word(encoder, make_tokenizer()), Pooling(HIDDEN, "mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu").eval()
    export(model, tmp_path / "b", sentences=SENTENCES)
    assert_faithful(model, tmp_path / "b")


@pytest.mark.parametrize("modes", ["lasttoken", "mean_sqrt_len_tokens", ("cls", "max"), ("weightedmean", "cls")])
def test_sentence_transformers_loads_the_modules_again(modes: Any, tmp_path: Path) -> None:
    width = HIDDEN * (1 if isinstance(modes, str) else len(modes))
    positions = SMALL["max_position_embeddings"]
    transformer = Transformer(plain_folder(tmp_path / "plain", positions))
    modules = [transformer, Pooling(HIDDEN, modes), Dense(width, 8), LayerNorm(8), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu").eval()
    model.prompts = {"query": "find: "}
    folder = tmp_path / "again"
    source = inspect_model(model)
    graph = build_graph(source)
    source.encoder.save_pretrained(folder)  # all that a bundle lacks: it has its weights in the graph
    write_configurations(source, graph, folder, model_file="onnx/model.onnx")
    write_tokenizer(source, folder)
    # With weights of torch there is no ONNX file to choose.
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": source.max_seq_length}))
    again = loaded(folder)
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-6)
    assert (again.max_seq_length, again.prompts["query"]) == (positions, "find: ")


@pytest.mark.filterwarnings("ignore:Importing from 'sentence_transformers.models'")
@pytest.mark.parametrize("spelling", ["switches", "name"])
def test_old_and_new_configuration_formats_are_equivalent(spelling: str, tmp_path: Path) -> None:
    transformer = Transformer(plain_folder(tmp_path / "plain"))
    model = SentenceTransformer(modules=[transformer, Pooling(HIDDEN, ("cls", "mean"))], device="cpu").eval()
    model.save_pretrained(str(tmp_path / "m"), create_model_card=False)
    if spelling == "switches":
        spell_as_before(tmp_path / "m")
    source = inspect_model(loaded(tmp_path / "m"))
    assert (source.pooling, source.dimension, source.max_seq_length) == ("cls+mean", 2 * HIDDEN, MAX_SEQ_LENGTH)


def spell_as_before(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    for module in modules:
        module["type"] = OLD_TYPES + module["type"].rpartition(".")[2]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    switches = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": HIDDEN, **switches}), encoding="utf-8"
    )
    (folder / "sentence_bert_config.json").unlink()
    (folder / "sentence_roberta_config.json").write_text(json.dumps({"max_seq_length": MAX_SEQ_LENGTH}))


def loaded(folder: Path) -> SentenceTransformer:
    model: SentenceTransformer = SentenceTransformer(str(folder), device="cpu").eval()
    return model


def broken(case: str) -> Any:
    word, pooling = Word(make_encoder("bert"), make_tokenizer()), Pooling(HIDDEN, "mean")
    modules: dict[str, list[nn.Module]] = {
        "weighted layers": [word, WeightedLayerPooling(HIDDEN), pooling],
        "cnn": [word, CNN(HIDDEN), pooling],
        "lstm": [word, LSTM(HIDDEN, 8), pooling],
        "router": [Router({"query": [word, pooling]}, default_route="query")],
        "gpt2": [Word(HF.GPT2Model(HF.GPT2Config(n_embd=HIDDEN, n_layer=1, n_head=2)), make_tokenizer()), pooling],
        "prompt": [word, Pooling(HIDDEN, "mean", include_prompt=False)],
    }
    if case == "slow tokenizer":
        word.tokenizer = object()
    if case == "left padding":
        word.tokenizer.padding_side = "left"
    if case == "cross encoder":
        encoder: Any = word.auto_model
        encoder.config.architectures = ["BertForSequenceClassification"]
    prompts = {"query": "find: "} if case == "prompt" else None
    model = SentenceTransformer(modules=modules.get(case, [word, pooling]), prompts=prompts, device="cpu")
    if case == "truncated":
        model.truncate_dim = 8
    if case == "sum of rows":
        model = static_model()
        model[0].embedding.mode = "sum"
    return model


@pytest.mark.parametrize(
    ("case", "named"),
    [
        ("weighted layers", "WeightedLayerPooling"),
        ("cnn", "is CNN"),
        ("lstm", "is LSTM"),
        ("router", "is a Router"),
        ("gpt2", "GPT2Model, of an architecture that generates text"),
        ("prompt", "include_prompt false"),
        ("slow tokenizer", "tokenizer is a object"),
        ("left padding", "padding_side is 'left'"),
        ("cross encoder", "BertForSequenceClassification, a cross encoder"),
        ("truncated", "truncate_dim 8"),
        ("sum of rows", "computes the sum"),
    ],
)
def test_the_error_names_an_unsupported_part(case: str, named: str) -> None:
    with pytest.raises(InputError, match=named) as raised:
        inspect_model(broken(case))
    assert "\n" not in str(raised.value)


def test_the_error_names_the_type_of_another_model() -> None:
    not_one: Any = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(InputError, match="is a Sequential"):
        inspect_model(not_one)


def test_the_error_names_an_unknown_pooling_mode() -> None:
    model = make_model()
    model[1].pooling_mode = "median"
    with pytest.raises(InputError, match="'median'"):
        inspect_model(model)


@pytest.mark.parametrize("blocks", [1, 3])
def test_block_sparse_attention_is_refused_where_it_is_used(tmp_path: Path, blocks: int) -> None:
    full = (5 + 2 * blocks) * 16  # tokens up to which the attention is full
    sizes = {**SMALL, **LAYERS, "block_size": 16, "num_random_blocks": blocks}
    encoder = HF.BigBirdModel(HF.BigBirdConfig(**sizes), add_pooling_layer=False).eval()
    model = SentenceTransformer(modules=[Word(encoder, make_tokenizer()), Pooling(HIDDEN, "mean")], device="cpu")
    for limit in (full + 1, 500):
        model[0].max_seq_length = limit
        with pytest.raises(
            InputError, match=f"'block_sparse', .* up to {limit} tokens; .* max_seq_length of at most {full}"
        ):
            export(model, tmp_path / "bundle", sentences=SENTENCES)
    check_attention(replace(inspect_model(model), max_seq_length=full))
    encoder.config.attention_type = "original_full"
    check_attention(inspect_model(model))


@pytest.mark.parametrize(
    ("limit", "window", "expected"), [(40, None, 40), (8192, None, 1024), (8192, 128, 1024), (8192, 4096, 8192)]
)
def test_attention_masks_are_looked_at_as_far_as_windows_reach(limit: int, window: int | None, expected: int) -> None:
    """Masks of 8,192 tokens take gigabytes."""
    spec = replace(inspect_model(make_model()), max_seq_length=limit)
    spec.encoder.config.sliding_window = window
    assert mask_tokens(spec) == expected
