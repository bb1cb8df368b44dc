"""What evaluations found as tables in the papers' forms, for a terminal and for Markdown."""

from collections.abc import Callable, Sequence
from pathlib import Path

from edgeembed_bench.formats import fixed
from edgeembed_bench.render import Table, markdown_tables
from edgeembed_bench.subjects import unique_names

from edgeembed.evaluation import entity_resolution, geometry, glue, language_tables, semantic_retrieval, word_order
from edgeembed.evaluation.results import Evaluation
from edgeembed.evaluation.scores import Comparison, Score
from edgeembed.evaluation.seven_sets import SETS, SevenSets
from edgeembed.evaluation.table_parts import (
    PARAMETERS,
    PARAMETERS_ARE,
    Columns,
    Rows,
    as_percent,
    change_at,
    detail_at,
    difference_at,
    make_table,
    percent_at,
    reference_name,
    value_at,
)
from edgeembed.evaluation.transfer import TASKS

Row = Callable[[Evaluation], SevenSets | None]
Percent = Callable[[Evaluation], float | None]

_METRICS_OF_THEIR_OWN = (
    semantic_retrieval.METRIC,
    entity_resolution.METRIC,
    geometry.ALIGNMENT,
    geometry.UNIFORMITY,
    word_order.METRIC,
    *language_tables.METRICS,
)


def evaluation_tables(evaluations: Sequence[Evaluation]) -> list[Table]:
    """Lay evaluations out: a table for each kind of task that was scored, a row for each model.

    Args:
        evaluations: Models scored on the same tasks beside the same reference, which has the first row if there is one.

    Returns:
        The tables.
    """
    rows = _rows(evaluations)
    first = next(iter(rows.values()))
    tables = [_sts(rows, first.sts)] if first.sts else []
    if first.transfer:
        tables.append(_transfer(rows, first.transfer))
    if any(score.task.startswith(glue.PREFIX) for score in first.scores):
        tables.append(_glue(rows))
    for place, score in enumerate(first.scores):
        if score.metric == geometry.ALIGNMENT:
            tables.append(_geometry(rows, place))
        if score.metric == semantic_retrieval.METRIC:
            tables.append(_search(rows, place))
        if score.metric == word_order.METRIC:
            tables.append(_word_order(rows, place))
    entities = [place for place, score in enumerate(first.scores) if score.metric == entity_resolution.METRIC]
    others = [place for place, score in enumerate(first.scores) if _is_other(score)]
    tables.extend(language_tables.tables(rows))
    return [*tables, *([_entities(rows, entities)] if entities else []), *([_others(rows, others)] if others else [])]


def evaluation_markdown(evaluations: Sequence[Evaluation]) -> str:
    """Write evaluations as Markdown: what `evaluation_tables` gives, each with how to read it.

    Args:
        evaluations: As for `evaluation_tables`.
    """
    return markdown_tables(evaluation_tables(evaluations)) + "\n"


def _rows(evaluations: Sequence[Evaluation]) -> Rows:
    """Give the evaluations by names that differ, the reference's own first if there is one."""
    first = evaluations[0]
    found = {each.model: each for each in evaluations}
    if first.reference is not None:
        scores, counted = first.reference_scores, first.reference_parameters
        found = {first.reference: Evaluation(first.reference, scores, first.reference, scores, counted, counted)} | {
            name: each for name, each in found.items() if name != first.reference
        }
    names = unique_names([Path(name).name or name for name in found], list(found))
    return dict(zip(names, found.values(), strict=True))


def _is_other(score: Score) -> bool:
    known = score.task in SETS | TASKS or score.task.startswith(glue.PREFIX)
    return not known and score.metric not in _METRICS_OF_THEIR_OWN


def _sts(rows: Rows, sets: SevenSets) -> Table:
    """Give table 1 of SimTDE and of HPD."""
    reading = "Spearman's correlation x100 over all pairs of a set"
    return _seven("STS", reading, rows, sets, lambda each: each.sts, lambda each: each.sts_percent)


def _transfer(rows: Rows, sets: SevenSets) -> Table:
    """Give table 5 of DistilCSE."""
    reading = (
        "accuracy x100 of a logistic regression on frozen vectors, by SentEval's protocol; a set without a test "
        "part is cross-validated"
    )
    return _seven("Transfer", reading, rows, sets, lambda each: each.transfer, lambda each: each.transfer_percent)


def _glue(rows: Rows) -> Table:
    """Give table 4 of CMOW, on vectors that are not trained for the task."""
    columns: Columns = {f"{name}": _value_of_task(f"{glue.PREFIX}{name}") for name in glue.TASKS}
    measures = ", ".join(f"{name}: {measure}" for name, (_, measure) in glue.TASKS.items())
    readings = [
        "x100, of a logistic regression on frozen vectors; of two texts both and their absolute difference",
        measures,
    ]
    return make_table("GLUE", rows, columns | PARAMETERS, [*readings, PARAMETERS_ARE])


def _value_of_task(name: str) -> Callable[[Evaluation], str]:
    return lambda each: fixed(next((score.value for score in each.scores if score.task == name), None), 1)


def _seven(title: str, reading: str, rows: Rows, sets: SevenSets, row: Row, percent: Percent) -> Table:
    """Give a table of seven sets, their average and parameters; all rows have those sets that the first one has."""
    reference = reference_name(rows)
    of_seven = "" if len(sets.present) == len(sets.values) else f" ({len(sets.present)} of {len(sets.values)})"
    columns: Columns = {name: _value_of_set(row, name) for name in sets.values}
    columns[f"Avg.{of_seven}"] = lambda each: fixed(found.average if (found := row(each)) else None, 2)
    readings = [reading]
    if of_seven:
        readings.append(f"{sets.average_of} is over these sets alone, the papers' average over all seven")
    if reference is not None:
        columns[f"%{of_seven}"] = lambda each: as_percent(percent(each))
        readings.append(f"%{of_seven}: that average as a share of {reference}'s")
    return make_table(title, rows, columns | PARAMETERS, [*readings, PARAMETERS_ARE])


def _value_of_set(row: Row, name: str) -> Callable[[Evaluation], str]:
    return lambda each: fixed(found.values[name] if (found := row(each)) else None, 2)


def _geometry(rows: Rows, place: int) -> Table:
    """Give the figures of figure 2 of DistilCSE: alignment at a place, uniformity at the next."""
    scores, reference = next(iter(rows.values())).scores, reference_name(rows)
    alignment, uniformity = scores[place], scores[place + 1]
    columns: Columns = {}
    for at in (place, place + 1):
        columns[f"{scores[at].metric} ↓"] = value_at(at, 4)
        if reference is not None:
            columns[f"{scores[at].metric}, difference"] = difference_at(at)
    readings = [
        "↓: lower is better",
        (
            f"alignment: mean squared distance of the unit vectors of {alignment.items:,} pairs that are scored above "
            f"{alignment.details['positives above']:g}"
        ),
        (
            f"uniformity: log of the mean of exp(-2 squared distance) over the {uniformity.details['pairs']:,} pairs "
            f"of {uniformity.items:,} distinct sentences"
        ),
        *([] if reference is None else [f"difference: from {reference}'s, below 0 is better"]),
    ]
    return make_table(f"Geometry, {alignment.task.removesuffix(f', {geometry.ALIGNMENT}')}", rows, columns, readings)


def _word_order(rows: Rows, place: int) -> Table:
    score = next(iter(rows.values())).scores[place]
    columns: Columns = {
        score.metric: value_at(place, 1),
        word_order.EXCHANGED: detail_at(place, word_order.EXCHANGED),
        word_order.SHUFFLED: detail_at(place, word_order.SHUFFLED),
    }
    reading = (
        f"a logistic regression on frozen vectors tells which of {score.items:,} sentences have two neighbouring words "
        "exchanged (chance: 50); cosines of 1: order changes nothing"
    )
    return make_table(f"Word order, {score.task.removesuffix(', word order')}", rows, columns, [reading])


def _search(rows: Rows, place: int) -> Table:
    """Give table 3 of HPD."""
    reference, score = reference_name(rows), next(iter(rows.values())).scores[place]
    details, time, memory = score.details, semantic_retrieval.TIME, semantic_retrieval.MEMORY
    columns: Columns = {
        "dim": lambda each: f"{each.scores[place].details['dimension']:.0f}",
        "MRR@10": lambda each: fixed(each.scores[place].value / 100, 3),
    }
    if reference is not None:
        columns["%"] = lambda each: as_percent(each.comparisons[place].percent)
    columns["time ms"] = lambda each: fixed(each.scores[place].details[time], 1)
    if reference is not None:
        columns["time"] = lambda each: _times(each.comparisons[place], time)
    columns["mem MB"] = lambda each: fixed(each.scores[place].details[memory], 2)
    if reference is not None:
        columns["mem"] = lambda each: _times(each.comparisons[place], memory)
    readings = [
        (
            f"{score.items:,} queries in {details['documents']:,} documents; faiss IVF on the CPU, "
            f"nlist {details['nlist']}, nprobe {details['nprobe']}"
        ),
        "time ms: 1,000 queries at once on one thread, encoding not included, the median of ten",
        "mem MB: the index, 10^6 bytes",
        *([] if reference is None else [f"%: of {reference}'s; x: times less than {reference}"]),
    ]
    return make_table(f"Semantic retrieval, {score.task.removesuffix(', IVF')}", rows, columns, readings)


def _entities(rows: Rows, places: Sequence[int]) -> Table:
    """Give table 3 of SimTDE."""
    scores, reference = next(iter(rows.values())).scores, reference_name(rows)
    columns: Columns = {}
    for place in places:
        columns[scores[place].task] = value_at(place)
        if reference is not None:
            columns[f"{scores[place].task}, change"] = change_at(place)
    readings = ["R@1 x100: queries whose nearest entity is one that they mean"]
    if reference is not None:
        readings.append(f"change: in percent of {reference}'s")
    return make_table("Entity resolution", rows, columns | PARAMETERS, [*readings, PARAMETERS_ARE])


def _others(rows: Rows, places: Sequence[int]) -> Table:
    scores, reference = next(iter(rows.values())).scores, reference_name(rows)
    columns: Columns = {}
    for place in places:
        columns[scores[place].task] = value_at(place, 1)
        if reference is not None:
            columns[f"{scores[place].task}, %"] = percent_at(place)
    readings = [f"{each.task}: {each.metric}, {each.items:,} items" for each in (scores[place] for place in places)]
    if reference is not None:
        readings.append(f"%: percent of {reference}'s")
    return make_table("Scores", rows, columns, readings)


def _times(comparison: Comparison, figure: str) -> str:
    return f"{semantic_retrieval.times_less(comparison, figure):.1f}x"
