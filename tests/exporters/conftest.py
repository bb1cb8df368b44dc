from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from edgeembed_exporters import BundleSettings, export
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import InputModule
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn

HF: Any = transformers  # it carries no types

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,()"
SENTENCES = [
    "Return a copy of the list.",
    "a",
    "Raise an error if the file is missing, or cannot be read.",
    "The quick brown fox jumps over the lazy dog 3 times",
    "close()",
    "Open the file, read each line, and count how often each word occurs.",
    "unicode: Zürich",
    "",
    "The socket waits for a client",
    "sort the items by key, then by value",
    "map and filter",
    "x" * 200,
]
MAX_SEQ_LENGTH = 40
HIDDEN = 32
SMALL = {
    "vocab_size": len(SPECIAL) + 2 * len(LETTERS),
    "num_attention_heads": 2,
    "pad_token_id": 0,
    "max_position_embeddings": 600,
}


class Word(InputModule):  # type: ignore[misc]  # read as untyped
    """A first module around any encoder: what an exporter may rely on, and nothing else."""

    def __init__(self, auto_model: nn.Module, tokenizer: Any) -> None:
        super().__init__()
        self.auto_model = auto_model
        self.tokenizer = tokenizer
        self.max_seq_length = MAX_SEQ_LENGTH

    def preprocess(self, inputs: Any, prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        texts = [(prompt or "") + text for text in inputs]
        encoded = self.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.max_seq_length,
            return_tensors="pt",
            return_token_type_ids=False,
        )
        return dict(encoded)

    def forward(self, features: dict[str, torch.Tensor], **_: Any) -> dict[str, torch.Tensor]:
        output = self.auto_model(input_ids=features["input_ids"], attention_mask=features["attention_mask"])
        features["token_embeddings"] = output.last_hidden_state
        return features

    def get_embedding_dimension(self) -> int:
        return HIDDEN

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        raise NotImplementedError


class Factorised(nn.Module):
    """A narrow token table and the layer that widens it, as compact students have."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, 8)
        self.projection = nn.Linear(8, HIDDEN, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        widened: torch.Tensor = self.projection(self.table(ids))
        return widened


def make_tokenizer() -> Any:
    words = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return HF.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        mask_token="[MASK]",
    )


def make_encoder(kind: str) -> Any:
    torch.manual_seed(0)
    layers = {"hidden_size": HIDDEN, "num_hidden_layers": 1, "intermediate_size": 64}
    if kind == "distilbert":
        sizes = {"dim": HIDDEN, "n_layers": 1, "hidden_dim": 64, "n_heads": 2}
        encoder: Any = HF.DistilBertModel(
            HF.DistilBertConfig(**sizes, vocab_size=SMALL["vocab_size"], max_position_embeddings=600, pad_token_id=0)
        )
    elif kind == "roberta":
        encoder = HF.RobertaModel(HF.RobertaConfig(**SMALL, **layers))
    elif kind == "mpnet":
        encoder = HF.MPNetModel(HF.MPNetConfig(**SMALL, **layers))
    else:
        encoder = HF.BertModel(HF.BertConfig(**SMALL, **layers))
    _spread(encoder)
    if kind == "factorised":
        encoder.set_input_embeddings(Factorised(SMALL["vocab_size"]))
        encoder.pooler = None
    return encoder.eval()


def _spread(encoder: nn.Module) -> None:
    # Fresh weights are so small that all sentences get nearly the same vector: spread them.
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 2:
                weight.normal_(std=weight.shape[1] ** -0.5)


def make_model(kind: str = "bert", mode: str = "mean", *, dense: bool = True) -> SentenceTransformer:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    head = [Dense(HIDDEN, 8, activation_function=nn.Tanh())] if dense else []
    modules = [Word(make_encoder(kind), make_tokenizer()), Pooling(HIDDEN, mode), *head, Normalize()]
    model: SentenceTransformer = SentenceTransformer(modules=modules, device="cpu").eval()
    return model


@pytest.fixture(scope="session")
def model() -> SentenceTransformer:
    return make_model()


@pytest.fixture(scope="session")
def exported(model: SentenceTransformer, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the tiny model's bundle at a precision; each is exported once."""
    made: dict[str, Path] = {}

    def bundle(precision: Any) -> Path:
        if precision not in made:
            out = tmp_path_factory.mktemp("bundles") / precision
            export(model, out, BundleSettings(precision=precision, min_cosine=0.9), sentences=SENTENCES)
            made[precision] = out
        return made[precision]

    return bundle
