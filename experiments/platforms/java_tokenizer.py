"""Compare the Java tokenizer in examples/android with the package tokenizers.

    python -m experiments.platforms.java_tokenizer --bundle mini TEXT_FILE...

It needs a JDK. It prints, for each file of one text per line, how many texts have other tokens, and how many of all
Unicode code points have other tokens between two letters and alone.
"""

import json
import subprocess
import tempfile
from itertools import islice
from pathlib import Path

import click
from edgeembed_runtime import Bundle, Encoder
from tokenizers import Tokenizer

from edgeembed.corpus.inputs import iter_texts

_ROOT = Path(__file__).parents[2]
_SOURCES = [_ROOT / "examples" / "android" / "WordPieceTokenizer.java", _ROOT / "experiments/platforms/Tokenize.java"]
_LINE_ENDS = "\n\r"
_SURROGATES = range(0xD800, 0xE000)


def java_tokens(bundle: Bundle, texts: list[str]) -> list[list[int]]:
    """Return the token ids of texts without line ends, as the Java tokenizer gives them."""
    vocabulary = json.loads(bundle.read("tokenizer.json"))["model"]["vocab"]
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder, "vocabulary.txt")
        tokens.write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)), encoding="utf-8")
        subprocess.run(["javac", "-encoding", "UTF-8", "-d", folder, *_SOURCES], check=True)  # noqa: S603, S607
        command = ["java", "-cp", folder, "Tokenize", str(tokens), str(bundle.max_seq_length)]
        lines = "".join(f"{text}\n" for text in texts).encode()
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return [json.loads(line) for line in done.stdout.splitlines()]


def count_differences(bundle: Bundle, texts: list[str]) -> int:
    """Return how many texts have other tokens in Java than in the package tokenizers."""
    tokenizer = Tokenizer.from_buffer(bundle.read("tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(bundle.max_seq_length)
    expected = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    return sum(ids != others for ids, others in zip(expected, java_tokens(bundle, texts), strict=True))


@click.command()
@click.option("--bundle", "name", default="mini", show_default=True, help="Name or folder of a WordPiece bundle.")
@click.option("--limit", default=20_000, show_default=True, help="Texts to read from each file.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(name: str, limit: int, files: tuple[Path, ...]) -> None:
    """Print the comparison as JSON."""
    bundle = Encoder(name).bundle
    characters = [chr(code) for code in range(0x110000) if code not in _SURROGATES and chr(code) not in _LINE_ENDS]
    texts = {"code points": [f"a{character}b {character}" for character in characters]}
    for file in files:
        texts[file.name] = [" ".join(text.splitlines()) for text in islice(iter_texts([file]), limit)]
    report = {
        name: {"texts": len(each), "other_tokens": count_differences(bundle, each)} for name, each in texts.items()
    }
    click.echo(json.dumps({"bundle": bundle.name, "files": report}, indent=2))


if __name__ == "__main__":
    main()
