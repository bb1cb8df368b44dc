"""Compare the runtime's WordPiece tokenizer with the package `tokenizers` on many sentences and on every code point.

    cd ../shared/data/train && python -m experiments.tokenizer_identity multilingual/*.txt.xz en/wikipedia.txt.xz

Prints a line of JSON for each choice of normalizer settings: the number of texts compared, and of those whose token
ids, truncation, number of unknown tokens or offsets differ. The vocabulary is trained on the sentences, so that the
words of every language are split into many different tokens.
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
import tokenizers
from edgeembed_runtime.tokenization.tokenizer import Tokenizer, load_tokenizer
from edgeembed_runtime.tokenization.wordpiece import WordPieceTokenizer
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

SETTINGS: dict[str, dict[str, bool | None]] = {
    "uncased": {},
    "cased, nothing cleaned": {"lowercase": False, "clean_text": False, "handle_chinese_chars": False},
    "accents kept": {"strip_accents": False},
}
_VOCABULARY = 60_000
_TRAINING_SENTENCES = 300_000
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_MAX_SEQ_LENGTH = 64
_UNLIMITED = 2**20
_CHUNK = 4096


def train(sentences: Iterable[str]) -> dict[str, Any]:
    """Return a tokenizer.json whose vocabulary is trained on sentences, with case and accents, and without."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    plain = normalizers.BertNormalizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=_VOCABULARY, special_tokens=list(_SPECIAL), show_progress=False, limit_alphabet=5000
    )
    tokenizer.train_from_iterator((each for text in sentences for each in (text, plain.normalize_str(text))), trainer)
    tokenizer.normalizer = plain
    cls, sep = (tokenizer.get_vocab()[token] for token in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))
    document: dict[str, Any] = json.loads(tokenizer.to_str())
    return document


def pair(document: dict[str, Any], settings: dict[str, bool | None], limit: int) -> tuple[Tokenizer, Any]:
    """Return the runtime's tokenizer, and that of the package, with the same settings."""
    content = json.dumps({**document, "normalizer": {**document["normalizer"], **settings}}).encode()
    reference = tokenizers.Tokenizer.from_buffer(content)
    reference.enable_truncation(limit)
    tokenizer = load_tokenizer(content, limit, "tokenizer.json")
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise TypeError("the runtime does not run this tokenizer itself")
    return tokenizer, reference


def count_differences(tokenizer: Tokenizer, reference: Any, texts: Iterable[str]) -> dict[str, int]:
    """Return how many texts were compared, and in how many each property differs."""
    counts = dict.fromkeys(("texts", "ids", "truncated", "unknown", "offsets"), 0)
    for text in texts:
        tokens, whole = tokenizer.tokenize(text), reference.encode(text)
        counts["texts"] += 1
        counts["ids"] += tokens.ids != whole.ids
        counts["truncated"] += tokens.truncated != bool(whole.overflowing)
        counts["unknown"] += tokens.unknown != whole.ids.count(reference.token_to_id("[UNK]"))
        counts["offsets"] += tokenizer.token_offsets(text) != _offsets(whole)
    return counts


def _offsets(encoding: Any) -> list[tuple[int, int]]:
    """Return where the tokens of a text start and end, beyond the limit too, without special tokens."""
    parts = (zip(part.special_tokens_mask, part.offsets, strict=True) for part in (encoding, *encoding.overflowing))
    return [offsets for part in parts for is_special, offsets in part if not is_special]


def code_points() -> Iterator[str]:
    """Yield texts with every code point alone, between letters, and before a combining mark."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(characters), _CHUNK):
        some = characters[start : start + _CHUNK]
        for pattern in ("{0}", "a{0}b", "\u0323{0}\u0301"):
            yield " ".join(map(pattern.format, some))


def read(files: Sequence[Path], sentences: int) -> list[str]:
    """Return the same number of sentences of each file, more of the last ones if some are shorter."""
    result: list[str] = []
    for number, file in enumerate(files):
        wanted = (sentences - len(result)) // (len(files) - number)
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            result += islice((line.rstrip("\n") for line in lines), wanted)
    return result


@click.command(help=__doc__)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--sentences", default=1_000_000, help="The number of sentences of all files.")
def main(files: tuple[Path, ...], sentences: int) -> None:
    """Print the comparison."""
    texts = read(files, sentences)
    document = train(texts[:: max(1, len(texts) // _TRAINING_SENTENCES)])
    click.echo(json.dumps({"tokenizers": tokenizers.__version__, "vocabulary": len(document["model"]["vocab"])}))
    for name, settings in SETTINGS.items():
        result = {
            "settings": name,
            "sentences": count_differences(*pair(document, settings, _MAX_SEQ_LENGTH), texts),
            "code points": count_differences(*pair(document, settings, _UNLIMITED), code_points()),
        }
        click.echo(json.dumps(result))


if __name__ == "__main__":
    main()
