"""Evaluations across languages as tables in the forms of Xayn's paper."""

from collections.abc import Mapping, Sequence

from edgeembed_bench.formats import fixed
from edgeembed_bench.render import Table

from edgeembed.evaluation import bitext, cross_lingual_retrieval, cross_lingual_sts, retrieval
from edgeembed.evaluation.language_pairs import ACROSS, AVERAGE, WITHIN, split_task
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.table_parts import (
    PARAMETERS,
    PARAMETERS_ARE,
    Columns,
    Rows,
    make_table,
    percent_at,
    reference_name,
    value_at,
)

METRICS = (cross_lingual_sts.METRIC, cross_lingual_retrieval.METRIC, retrieval.METRIC, bitext.METRIC)
"""Metrics whose scores are in these tables."""

_MEANS = {WITHIN: "within", ACROSS: "across", AVERAGE: "Avg."}


def tables(rows: Rows) -> list[Table]:
    """Lay out similarity across languages, retrieval and bitext retrieval, those that were scored.

    Args:
        rows: The models, by the names that they are shown by.
    """
    scores = next(iter(rows.values())).scores
    found = [_sts(rows, name, places) for name, places in _by_set(scores, cross_lingual_sts.METRIC).items()]
    searched = _places(scores, retrieval.METRIC) | _places(scores, cross_lingual_retrieval.METRIC)
    if searched:
        found.append(_retrieval(rows, searched))
    translated = _places(scores, bitext.METRIC)
    if translated:
        found.append(_bitext(rows, translated))
    return found


def _places(scores: Sequence[Score], metric: str) -> dict[str, int]:
    return {score.task: place for place, score in enumerate(scores) if score.metric == metric}


def _by_set(scores: Sequence[Score], metric: str) -> dict[str, dict[str, int]]:
    sets: dict[str, dict[str, int]] = {}
    for task, place in _places(scores, metric).items():
        name, pair = split_task(task)
        sets.setdefault(name, {})[pair] = place
    return sets


def _sts(rows: Rows, name: str, places: Mapping[str, int]) -> Table:
    """Give table 1 of Xayn's paper, of one set."""
    reference = reference_name(rows)
    columns: Columns = {_MEANS.get(pair, pair.upper()): value_at(place) for pair, place in places.items()}
    readings = [
        "Spearman's correlation x100; ES-EN: first sentences in es, second ones in en, or as the file has them",
    ]
    if WITHIN in places:
        readings.append("within, across: the means over pairs of one language and of two")
    readings.append("Avg.: the mean over all pairs of languages")
    if reference is not None:
        columns["%"] = percent_at(places[AVERAGE])
        readings.append(f"%: that as a share of {reference}'s")
    return make_table(f"Similarity across languages, {name}", rows, columns | PARAMETERS, [*readings, PARAMETERS_ARE])


def _retrieval(rows: Rows, places: Mapping[str, int]) -> Table:
    """Give table 2 of Xayn's paper, a row a set and model."""
    reference = reference_name(rows)
    titles = ("model", "set", "queries", "MRR@10", "NDCG@10", "MAP@100", *([] if reference is None else ["%"]))
    cells = []
    for task, place in places.items():
        for name, each in rows.items():
            score = each.scores[place]
            figures = (score.details[retrieval.MRR], score.value, score.details[retrieval.MAP])
            beside = [] if reference is None else [percent_at(place)(each)]
            cells.append((name, task, f"{score.items:,}", *(fixed(figure / 100, 4) for figure in figures), *beside))
    readings = [
        "exact search by cosine, relevance is yes or no",
        "of a set in languages, de-en: German queries, English documents",
        *([] if reference is None else [f"%: NDCG@10 as a share of {reference}'s"]),
    ]
    return Table("Retrieval", titles, tuple(cells), "; ".join(readings))


def _bitext(rows: Rows, places: Mapping[str, int]) -> Table:
    reference, scores = reference_name(rows), next(iter(rows.values())).scores
    columns: Columns = {}
    for task, place in places.items():
        columns[task] = value_at(place)
        if reference is not None:
            columns[f"{task}, %"] = percent_at(place)
    sizes = {scores[place].items for task, place in places.items() if split_task(task)[1] != AVERAGE}
    readings = [
        "accuracy x100: sentences whose nearest neighbour by cosine is a translation of theirs",
        f"sentences: {' to '.join(f'{size:,}' for size in sorted({min(sizes), max(sizes)}))} a column",
        *([] if reference is None else [f"%: as a share of {reference}'s"]),
    ]
    return make_table("Bitext retrieval", rows, columns, readings)
