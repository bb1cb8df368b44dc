"""Write made-up lines of the words of each language, drawn by their frequency, to train vocabularies on.

Run with the Python of an environment that has wordfreq: `python experiments/frequent_words.py OUT`. It has lists of
42 languages. Each gets as much text, so that vocabularies of ten and of all of them differ in nothing else.
"""

import random
from pathlib import Path

import click
import wordfreq  # type: ignore[import-not-found]  # in an environment of its own

LINES = 50_000
WORDS = 20


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
def main(out: Path) -> None:
    """Write OUT/LANGUAGE.txt for each language."""
    out.mkdir(parents=True, exist_ok=True)
    for language in sorted(wordfreq.available_languages("small")):
        frequencies = wordfreq.get_frequency_dict(language, wordlist="small")
        draw = random.Random(language)  # noqa: S311  # no secret
        words = draw.choices(list(frequencies), list(frequencies.values()), k=LINES * WORDS)
        lines = (" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS))
        (out / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
