"""Write made-up lines of the words of each language, drawn by their frequency, to train vocabularies on.

    python -m experiments.xayn.frequent_words --install build/wordfreq OUT

Installs wordfreq into an environment of its own, and runs there. It has lists of 42 languages. Each gets as much text,
so that vocabularies of ten and of all of them differ in nothing else.
"""

import random
import subprocess
import sys
from pathlib import Path

import click

LINES = 50_000
WORDS = 20


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--install", type=click.Path(path_type=Path), help="Environment to make; without it, this one is used.")
def main(out: Path, install: Path | None) -> None:
    """Write OUT/LANGUAGE.txt for each language."""
    if install is not None:
        python = str(install / "bin/python")
        subprocess.run([sys.executable, "-m", "venv", str(install)], check=True)  # noqa: S603  # our own command
        subprocess.run([python, "-m", "pip", "install", "--quiet", "wordfreq==3.1.1", "click"], check=True)  # noqa: S603  # our own command
        subprocess.run([python, __file__, str(out)], check=True)  # noqa: S603  # our own command
        return
    import wordfreq  # type: ignore[import-not-found]

    out.mkdir(parents=True, exist_ok=True)
    for language in sorted(wordfreq.available_languages("small")):
        frequencies = wordfreq.get_frequency_dict(language, wordlist="small")
        draw = random.Random(language)  # noqa: S311  # no secret
        words = draw.choices(list(frequencies), list(frequencies.values()), k=LINES * WORDS)
        lines = (" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS))
        (out / f"{language}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
