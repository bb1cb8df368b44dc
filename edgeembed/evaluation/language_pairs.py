"""Pairs of languages: which are scored, and their means."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.corpus.sources import split_columns
from edgeembed.evaluation.scores import Score

PIVOT = "en"
"""The language that is paired with all others unless pairs are asked for, as in the table of Xayn's paper."""

WITHIN, ACROSS, AVERAGE = "within", "across", "average"

Pair = tuple[str, str]


def split_pairs(given: str | Path) -> tuple[Path, tuple[str, ...]]:
    """Split `DIR#de-en,es-es` into the folder and the pairs; no pairs where none are named."""
    return split_columns(str(given))


def choose_pairs(where: Path, languages: Collection[str], names: Sequence[str], *, both_ways: bool) -> dict[str, Pair]:
    """Give the pairs of languages to score.

    Args:
        where: What errors call the set.
        languages: Its languages.
        names: The pairs that are asked for, such as `de-en`; none: each language with itself and with English, or with
            every other where there is no English.
        both_ways: Whether, unless pairs are asked for, `en-de` is wanted beside `de-en`.

    Returns:
        Both languages of each pair, by its name.

    Raises:
        InputError: If a pair that is asked for has another language.
    """
    known = {f"{first}-{second}": (first, second) for first in languages for second in languages}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"{where} has no pair {unknown[0]}; expected two of {', '.join(sorted(languages))}: de-en")
    if names:
        return {name: known[name] for name in names}
    every, has_pivot = sorted(languages), PIVOT in languages
    across = [(first, second) for first in every for second in every if first != second]
    if has_pivot:
        across = [pair for pair in across if PIVOT in pair]
    if not both_ways:
        across = [(first, second) for first, second in across if (second == PIVOT if has_pivot else first < second)]
    return {f"{first}-{second}": (first, second) for first, second in [*((each, each) for each in every), *across]}


def is_within(name: str) -> bool:
    """Tell whether both languages of a pair are one, as in `es-es` or `es-es-news`."""
    parts = name.split("-")
    return any(parts[:count] == parts[count : 2 * count] for count in range(1, len(parts) // 2 + 1))


def task_name(name: str, pair: str) -> str:
    """Give what a set's score of one pair is called."""
    return f"{name}, {pair}"


def split_task(task: str) -> tuple[str, str]:
    """Give the set and the pair of what `task_name` gave."""
    name, _, pair = task.rpartition(", ")
    return name, pair


def with_means(name: str, scores: Sequence[Score]) -> list[Score]:
    """Add to the scores of a set their means: within languages, across languages, and of all pairs.

    Args:
        name: The set's name.
        scores: One a pair, named by `task_name`.
    """
    within = [score for score in scores if is_within(split_task(score.task)[1])]
    across = [score for score in scores if score not in within]
    means = {WITHIN: within, ACROSS: across} if within and across else {}
    return [*scores, *(_mean(task_name(name, kind), each) for kind, each in (means | {AVERAGE: scores}).items())]


def _mean(task: str, scores: Sequence[Score]) -> Score:
    details = {key: _mean_of(score.details[key] for score in scores) for key in scores[0].details}
    value = _mean_of(score.value for score in scores)
    return Score(task, scores[0].metric, value, sum(score.items for score in scores), details)


def _mean_of(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
