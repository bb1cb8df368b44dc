"""Names of language pairs, the choice of those to score, and means over the pairs of a set."""

import statistics
from collections.abc import Collection, Sequence
from pathlib import Path

from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.scores import Score

PIVOT = "en"
"""The language that the others are paired with by default, as in the table of Xayn's paper."""
WITHIN, ACROSS, AVERAGE = "within", "across", "average"


def choose_language_pairs(
    path: Path, languages: Collection[str], names: Sequence[str], *, both_directions: bool
) -> dict[str, tuple[str, str]]:
    """Return the language pairs to score.

    Args:
        path: Path of the set, for error messages.
        languages: Its languages.
        names: The selected pairs, such as `de-en`. If empty: each language with itself and with English; without
            English, each with every other.
        both_directions: Whether the default pairs include `en-de` as well as `de-en`.

    Returns:
        The two languages of each pair, by its name.

    Raises:
        InputError: If a selected pair has an unknown language.
    """
    known = {f"{first}-{second}": (first, second) for first in languages for second in languages}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"{path} has no pair {unknown[0]}; expected two of {', '.join(sorted(languages))}: de-en")
    if names:
        return {name: known[name] for name in names}
    every, has_pivot = sorted(languages), PIVOT in languages
    across = [(first, second) for first in every for second in every if first != second]
    if has_pivot:
        across = [pair for pair in across if PIVOT in pair]
    if not both_directions:
        across = [(first, second) for first, second in across if (second == PIVOT if has_pivot else first < second)]
    return {f"{first}-{second}": (first, second) for first, second in [*((each, each) for each in every), *across]}


def is_monolingual(pair: str) -> bool:
    """Return whether both languages of a pair are the same, as in `es-es` or `es-es-news`."""
    parts = pair.split("-")
    return any(parts[:count] == parts[count : 2 * count] for count in range(1, len(parts) // 2 + 1))


def task_name(name: str, pair: str) -> str:
    """Return the task name of a language pair of a set."""
    return f"{name}, {pair}"


def split_task_name(task: str) -> tuple[str, str]:
    """Return the set and the language pair of a task name made by `task_name`."""
    name, _, pair = task.rpartition(", ")
    return name, pair


def with_means(name: str, scores: Sequence[Score]) -> list[Score]:
    """Return the scores of a set, followed by their means within languages, across languages and over all pairs.

    Args:
        name: Name of the set.
        scores: One score per language pair, with task names made by `task_name`.
    """
    within = [score for score in scores if is_monolingual(split_task_name(score.task)[1])]
    across = [score for score in scores if score not in within]
    means = {WITHIN: within, ACROSS: across} if within and across else {}
    return [*scores, *(_mean(task_name(name, kind), each) for kind, each in (means | {AVERAGE: scores}).items())]


def _mean(task: str, scores: Sequence[Score]) -> Score:
    details = {key: statistics.fmean(score.details[key] for score in scores) for key in scores[0].details}
    value = statistics.fmean(score.value for score in scores)
    return Score(task, scores[0].metric, value, sum(score.items for score in scores), details)
