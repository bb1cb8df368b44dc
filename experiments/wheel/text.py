"""Gathers the text that the encoders in the wheel learn from: license classes A and B of `../shared/data/train`.

    python -m experiments.wheel.text ../shared/data/train build/experiments/wheel/text

Writes one .txt a kind of text, one text a line: sentences, questions, what people say, definitions, names, passages.
"""

import lzma
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LONGEST = 900  # characters of a passage: of the teacher's 256 tokens about 200


@click.command(help=__doc__)
@click.argument("train", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def main(train: Path, out: Path) -> None:
    """Write every kind of text."""
    out.mkdir(parents=True, exist_ok=True)
    for name, (count, texts) in _kinds(train).items():
        rng = random.Random(name)  # noqa: S311  # no secret depends on it
        kept = sorted(set(texts()))
        rng.shuffle(kept)
        (out / f"{name}.txt").write_text("".join(f"{text}\n" for text in kept[:count]), encoding="utf-8")
        click.echo(f"{name}: {min(count, len(kept)):,} of {len(kept):,}", err=True)


def _kinds(train: Path) -> dict[str, tuple[int, Callable[[], Iterable[str]]]]:
    """Give what there is: how many texts to take, and where they come from."""
    english, pairs = train / "en", train / "pairs"
    return {
        "wikipedia": (130_000, lambda: _lines(english / "wikipedia.txt.xz")),
        "wikipedia-passages": (25_000, lambda: _passages(_lines(english / "wikipedia.txt.xz"))),
        "wikipedia-titles": (30_000, lambda: _column(pairs / "wikipedia_title_lead.tsv.xz", 0)),
        "wikipedia-leads": (15_000, lambda: _column(pairs / "wikipedia_title_lead.tsv.xz", 1)),
        "wikisplit": (10_000, lambda: _column(pairs / "wikisplit.tsv.xz", 1)),
        "tatoeba": (120_000, lambda: _lines(english / "tatoeba.txt.xz")),
        "dialogue": (30_000, lambda: _lines(english / "dialogue_sgd.txt.xz")),
        "questions": (65_000, lambda: _questions(_lines(english / "questions_titles.txt.xz"))),
        "trivia": (25_000, lambda: _column(pairs / "opentrivia_qa.tsv.xz", 0)),
        "commonvoice": (50_000, lambda: _lines(english / "commonvoice.txt.xz")),
        "books": (15_000, lambda: _lines(english / "books.txt.xz")),
        "wordnet-examples": (31_000, lambda: _lines(english / "wordnet_examples.txt.xz")),
        "wordnet-definitions": (60_000, lambda: _column(pairs / "wordnet_gloss.tsv.xz", 1)),
        "wordnet-terms": (30_000, lambda: _column(pairs / "wordnet_gloss.tsv.xz", 0)),
        "medquad-questions": (16_000, lambda: _column(pairs / "medquad_qa.tsv.xz", 0)),
        "medquad-sentences": (30_000, lambda: _sentences(_column(pairs / "medquad_qa.tsv.xz", 1))),
        "medquad-passages": (15_000, lambda: _passages(_sentences(_column(pairs / "medquad_qa.tsv.xz", 1)))),
    }


def _lines(file: Path) -> Iterator[str]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from (line.rstrip("\n") for line in lines)


def _column(file: Path, number: int) -> Iterator[str]:
    rows = _lines(file)
    next(rows)
    return (row.split("\t")[number] for row in rows)


def _questions(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lines that end in a question mark: titles of Stack Overflow, which state no license, mostly do not."""
    return (text for text in texts if text.endswith("?"))


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    return (sentence for text in texts for sentence in _SENTENCE.split(text))


def _passages(sentences: Iterable[str]) -> Iterator[str]:
    """Join sentences that follow each other, up to a length drawn anew for each passage."""
    rng = random.Random(0)  # noqa: S311
    passage, longest = "", rng.randint(300, _LONGEST)
    for sentence in sentences:
        if passage and len(passage) + len(sentence) > longest:
            yield passage
            passage, longest = "", rng.randint(300, _LONGEST)
        passage = f"{passage} {sentence}".strip()


if __name__ == "__main__":
    main()
