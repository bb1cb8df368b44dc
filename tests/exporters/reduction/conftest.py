"""Tokenizers of each kind that can be trimmed, trained on a few sentences, and tiny random models around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from ..conftest import Factorised  # noqa: TID252  # the tests are no package

HF: Any = transformers  # it carries no types

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

# What the tokenizers know, and what they are trimmed to: the first part of it.
WIDE = [
    "The ferry crosses the river twice a day, at eight and at five.",
    "On market days the ferry is crowded, and the ferryman sings.",
    "A river without a ferry is a river without a song.",
    "Nobody sings at five in the morning, not even the ferryman.",
    "The market opens at eight and closes when the songs are over.",
    "Twice a day the crowd crosses to the market and back.",
    "He opened 12 letters in 1998 and closed none of them!",
    "Crossing the street, she was singing: 'over, and over again'.",
    "Letters from the mountains arrive by train (mostly in winter).",
    "Winter nights are long; the mountain railway closes after dark.",
    "Die Fähre überquert den Fluss zweimal täglich.",
    "Größere Züge fahren über die Brücke, kleinere darunter.",
    "Das Mädchen hört die Lieder des Fährmanns über dem Fluss.",
    "Train drivers whistle before the tunnel and again behind it.",
    "The quick keeper of the jazz museum mixes every fizzy juice.",
    "Behind the tunnel the railway bridge spans 340 metres of nothing.",
]
NARROW = WIDE[:8]

KINDS = ["wordpiece", "bpe", "bpe-affixes", "bpe-fallback", "bpe-bytes", "unigram", "unigram-fallback"]


def train(kind: str) -> Tokenizer:
    """Return a tokenizer trained on the corpus, most of whose words are one or two tokens."""
    special = BERT if kind == "wordpiece" else ROBERTA
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    elif kind.startswith("unigram"):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    else:
        tokenizer, trainer = _bpe(kind, special)
    tokenizer.train_from_iterator(WIDE, trainer)
    if kind.endswith("fallback"):
        tokenizer = _falling_back(tokenizer)
    first, last = (special[2], special[3]) if kind == "wordpiece" else (special[0], special[2])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B:1 {last}:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    return tokenizer


def _bpe(kind: str, special: list[str]) -> tuple[Tokenizer, Any]:
    affixes: dict[str, Any] = {}
    if kind == "bpe-affixes":
        affixes = {"continuing_subword_prefix": "@@", "end_of_word_suffix": "</w>"}
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bpe-bytes" else []
    unknown = None if kind == "bpe-bytes" else "<unk>"
    tokenizer = Tokenizer(models.BPE(unk_token=unknown, **affixes))
    splitter = {"bpe-bytes": pre_tokenizers.ByteLevel(), "bpe-fallback": pre_tokenizers.Metaspace()}
    tokenizer.pre_tokenizer = splitter.get(kind, pre_tokenizers.BertPreTokenizer())
    if kind == "bpe-bytes":
        tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False, **affixes
    )
    return tokenizer, trainer


def _falling_back(tokenizer: Tokenizer) -> Tokenizer:
    """Add a token for each byte, which unknown characters fall back to, as in SentencePiece."""
    # tokenizers' trainers know no such tokens: they are set into the file.
    import json

    described = json.loads(tokenizer.to_str())
    model = described["model"]
    model["byte_fallback"] = True
    for byte in range(256):
        if model["type"] == "BPE":
            model["vocab"][f"<0x{byte:02X}>"] = len(model["vocab"])
        else:
            model["vocab"].append([f"<0x{byte:02X}>", -20.0])
    return Tokenizer.from_str(json.dumps(described))


def make_model(kind: str, folder: Path) -> SentenceTransformer:
    """Return a tiny random model of a published architecture."""
    torch.set_num_threads(1)
    torch.manual_seed(2)
    if kind == "static":
        tokenizer = train("wordpiece")
        rows = torch.randn(tokenizer.get_vocab_size(), 16)
        return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=rows)], device="cpu")
    shapes = {
        "bert": ("wordpiece", HF.BertTokenizerFast, HF.BertConfig, HF.BertModel),
        "roberta": ("bpe-bytes", HF.RobertaTokenizerFast, HF.RobertaConfig, HF.RobertaModel),
        "xlm-roberta": ("unigram", HF.XLMRobertaTokenizerFast, HF.XLMRobertaConfig, HF.XLMRobertaModel),
    }
    tokenizer_kind, wrapper, configuration, architecture = shapes["bert" if kind == "factorised" else kind]
    tokenizer = train(tokenizer_kind)
    wrapped = HF.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **_names(tokenizer_kind))
    wrapped.save_pretrained(folder)
    config = configuration(
        vocab_size=len(wrapped),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=wrapped.pad_token_id,
        initializer_range=0.2,
    )
    architecture(config).save_pretrained(folder)
    wrapper.from_pretrained(folder).save_pretrained(folder)
    module = Transformer(str(folder))
    module.max_seq_length = 64
    if kind == "factorised":
        module.auto_model.set_input_embeddings(Factorised(len(wrapped)))
    modules = [module, Pooling(32, "mean"), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu").eval()


def _names(kind: str) -> dict[str, str]:
    padding, unknown, first, last, mask = BERT if kind == "wordpiece" else (ROBERTA[i] for i in (1, 3, 0, 2, 4))
    return {
        "pad_token": padding,
        "unk_token": unknown,
        "cls_token": first,
        "sep_token": last,
        "mask_token": mask,
    }


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer of each kind."""
    return train(request.param)
