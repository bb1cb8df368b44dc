"""A tiny random teacher and a small made-up corpus, for the rooms that train: logic needs no more.

Heavy libraries are imported in the fixtures, because the runtime's tests run where there is no torch.
"""

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# As the command line does: transformers 5 shows a bar when it loads weights.
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

_WORDS = """
the a small large red green old new quick slow cat dog bird house river road train letter garden window
runs sleeps sings falls opens closes carries finds near under over behind quietly today often never
""".split()  # noqa: SIM905  # words read better than a list of strings


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the cache of scores out of the user's."""
    os.environ["EDGEEMBED_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """Three hundred distinct sentences of unlike lengths."""
    draw = random.Random(7)  # noqa: S311  # no secret
    made: set[str] = set()
    while len(made) < 300:
        made.add(" ".join(draw.choices(_WORDS, k=draw.randint(3, 13))))
    return sorted(made)


@pytest.fixture(scope="session")
def tokenizer() -> "Tokenizer":
    """A WordPiece tokenizer that knows the made-up words and every letter."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *_WORDS,
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys(tokens))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # no password
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return made


@pytest.fixture(scope="session")
def teacher_folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: "Tokenizer") -> Path:
    """A sentence-transformers folder: BERT of four layers and 32 dimensions, random weights."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("teacher")
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    raw = folder / "raw"
    BertModel(config).save_pretrained(raw)
    BertTokenizerFast(tokenizer_object=tokenizer).save_pretrained(raw)
    transformer = Transformer(str(raw))
    transformer.max_seq_length = 48
    model = SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()], device="cpu")
    model.save(str(folder / "model"), create_model_card=False)
    return folder / "model"
