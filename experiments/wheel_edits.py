"""Change one thing in real sentences: a negation, a number, a word by its opposite, less detail, two words exchanged.

    python -m experiments.wheel_edits 100000 ../shared/data/eval build/wheel/text/tatoeba.txt ... > edits.txt

A text at random has few that mean nearly the same, and what sets such texts apart is hardest to learn without them.
Sentences of the test files are left out.
"""

import random
import re
from collections.abc import Callable
from pathlib import Path

import click

from experiments.wheel_scenes import letters_and_digits, test_texts

_LONGEST = 120
"""Characters of a sentence: longer ones hardly change by one word."""
_AUXILIARIES = r"\b(is|are|was|were|am|can|could|will|would|should|must|has|have|had|do|does|did)\b"
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_OPPOSITES = """
    good bad, big small, large small, old new, old young, hot cold, high low, long short, fast slow, early late,
    first last, before after, more less, most least, always never, often rarely, open closed, up down, left right,
    increase decrease, increased decreased, rise fall, rose fell, buy sell, bought sold, win lose, won lost,
    begin end, began ended, came went, come go, give take, gave took, love hate, loves hates, loved hated,
    happy sad, strong weak, rich poor, easy difficult, cheap expensive, light heavy, near far, inside outside,
    east west, north south, male female, men women, man woman, boy girl, brother sister, mother father, husband wife,
    day night, morning evening, summer winter, today yesterday, black white, full empty, same different, right wrong,
    true false, with without, above below, over under, all none, many few, much little, alive dead, war peace,
    import export, maximum minimum, minor major, public private, positive negative, safe dangerous, clean dirty
"""
_OPPOSITE = {word: other for pair in _OPPOSITES.split(",") for word, other in (pair.split(), reversed(pair.split()))}


def negate(text: str, rng: random.Random) -> str:  # noqa: ARG001  # every edit takes a source of randomness
    """Return a sentence with a negation removed, or added after its first auxiliary verb."""
    if re.search(r"\bnot\b", text):
        return re.sub(r"\bnot ", "", text, count=1)
    if re.search(r"n't\b", text):
        return re.sub(r"n't\b", "", text, count=1)
    return re.sub(_AUXILIARIES, r"\1 not", text, count=1)


def renumber(text: str, rng: random.Random) -> str:
    """Return a sentence with another number."""
    if re.search(r"\b\d{1,4}\b", text):
        return re.sub(r"\b\d{1,4}\b", lambda found: _other_number(found[0], rng), text, count=1)
    return re.sub(rf"\b({'|'.join(_NUMBERS)})\b", lambda _: rng.choice(_NUMBERS), text, count=1)


def oppose(text: str, rng: random.Random) -> str:
    """Return a sentence with a word replaced by its opposite."""
    words = [word for word in re.findall(r"\b[a-z]+\b", text) if word in _OPPOSITE]
    if not words:
        return text
    word = rng.choice(words)
    return re.sub(rf"\b{word}\b", _OPPOSITE[word], text, count=1)


def shorten(text: str, rng: random.Random) -> str:
    """Return a sentence without the part after its last comma or preposition, or without a word."""
    found = re.match(r"(.{12,})(,| (?:in|on|at|with|for|from|by|to|because|when|while|after|before)\b).+([.?!])$", text)
    if found and rng.random() < 0.7:
        return found[1] + found[3]
    words = text.split(" ")
    if len(words) < 5:
        return text
    del words[rng.randrange(1, len(words) - 1)]
    return " ".join(words)


def exchange(text: str, rng: random.Random) -> str:
    """Return a sentence with two of its longer words exchanged."""
    found = list(re.finditer(r"\b[A-Za-z]{4,}\b", text))
    if len(found) < 2:
        return text
    first, second = sorted(rng.sample(found, 2), key=lambda each: each.start())
    between = text[first.end() : second.start()]
    return text[: first.start()] + second[0] + between + first[0] + text[second.end() :]


def _other_number(number: str, rng: random.Random) -> str:
    value = int(number)
    return str(rng.choice([value + 1, max(0, value - 1), 2 * value, value + 10]))


# Negations and opposites first: fewer sentences have something to change there.
_EDITS: tuple[tuple[float, Callable[[str, random.Random], str]], ...] = (
    (0.5, oppose),
    (0.4, renumber),
    (0.4, negate),
    (0.6, shorten),
    (1.0, exchange),
)


def edited(text: str, rng: random.Random) -> str:
    """Return a sentence with one thing changed; the sentence itself if nothing can be."""
    for share, edit in _EDITS:
        if rng.random() < share:
            changed = edit(text, rng)
            if changed != text:
                return changed
    return text


@click.command(help=__doc__)
@click.argument("count", type=click.IntRange(min=1))
@click.argument("measured", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(count: int, measured: Path, files: tuple[Path, ...]) -> None:
    """Write the changed sentences."""
    rng = random.Random(0)  # noqa: S311  # no secret depends on it
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    texts = sorted({line for line in lines if len(line) <= _LONGEST and " " in line})
    rng.shuffle(texts)
    left_out = test_texts(measured) | {letters_and_digits(text) for text in texts}
    written = dict[str, None]()
    for text in texts:
        changed = edited(text, rng)
        if letters_and_digits(changed) not in left_out:
            written[changed] = None
        if len(written) == count:
            break
    click.echo("\n".join(written))


if __name__ == "__main__":
    main()
