"""Tables of evaluations, in the form of the papers: one per kind of task, with a row per model."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from edgeembed_bench.render.tables import MISSING, Table, fixed, millions

from edgeembed.evaluation import (
    bitext,
    cross_lingual,
    entity_resolution,
    geometry,
    glue,
    retrieval,
    semantic_retrieval,
    word_order,
)
from edgeembed.evaluation.cross_lingual import ACROSS, AVERAGE, WITHIN, split_task_name
from edgeembed.evaluation.report import ModelEvaluation, SuiteScores
from edgeembed.evaluation.scores import Score, ScoreComparison
from edgeembed.evaluation.sts import STS_SETS
from edgeembed.evaluation.transfer import TRANSFER_TASKS

Rows = Mapping[str, ModelEvaluation]
"""The models by the name that the tables show, the reference first."""
Cell = Callable[[ModelEvaluation], str]
Columns = dict[str, Cell]
"""The function that returns a model's cell, by the column's title."""

_MEANS = {WITHIN: "within", ACROSS: "across", AVERAGE: "Avg."}
_PARAMETERS: Columns = {
    "params": lambda model: millions(model.parameters.parameters if model.parameters else None),
    "w/o embeddings": lambda model: millions(model.parameters.inner_parameters if model.parameters else None),
}
_PARAMETERS_LEGEND = "params: all parameters; w/o embeddings: without token, position and token type embeddings"


def make_tables(rows: Rows) -> list[Table]:
    """Return one table per kind of task that was evaluated.

    Args:
        rows: The models, all evaluated on the same tasks.
    """
    first = next(iter(rows.values()))
    tables = [_sts(rows, first.sts)] if first.sts else []
    tables += [_transfer(rows, first.transfer)] if first.transfer else []
    tables += [_glue(rows)] if any(score.task.startswith(glue.PREFIX) for score in first.scores) else []
    by_metric = {geometry.ALIGNMENT: _geometry, semantic_retrieval.METRIC: _search, word_order.METRIC: _word_order}
    tables += [by_metric[score.metric](rows, at) for at, score in enumerate(first.scores) if score.metric in by_metric]
    tables += [_cross_lingual_sts(rows, name, pairs) for name, pairs in _language_pairs(first.scores).items()]
    listed = {*by_metric, geometry.UNIFORMITY, cross_lingual.STS_METRIC}
    for metrics, make in (
        ({retrieval.METRIC, cross_lingual.RETRIEVAL_METRIC}, _retrieval),
        ({bitext.METRIC}, _bitext),
        ({entity_resolution.METRIC}, _entities),
    ):
        indices = [at for at, score in enumerate(first.scores) if score.metric in metrics]
        tables += [make(rows, indices)] if indices else []
        listed |= metrics
    others = [at for at, score in enumerate(first.scores) if score.metric not in listed and not _in_suite(score)]
    return [*tables, *([_others(rows, others)] if others else [])]


def _in_suite(score: Score) -> bool:
    return score.task in STS_SETS | TRANSFER_TASKS or score.task.startswith(glue.PREFIX)


def _sts(rows: Rows, suite: SuiteScores) -> Table:
    """Return table 1 of SimTDE and of HPD."""
    legend = "Spearman correlation x100 over all pairs of a set"
    return _suite("STS", legend, rows, suite, lambda model: model.sts, lambda model: model.sts_percent)


def _transfer(rows: Rows, suite: SuiteScores) -> Table:
    """Return table 5 of DistilCSE."""
    legend = (
        "accuracy x100 of a logistic regression on frozen embeddings, by SentEval's protocol; tasks without a test "
        "split are cross-validated"
    )
    return _suite("Transfer", legend, rows, suite, lambda model: model.transfer, lambda model: model.transfer_percent)


def _suite(
    title: str,
    legend: str,
    rows: Rows,
    suite: SuiteScores,
    of_model: Callable[[ModelEvaluation], SuiteScores | None],
    percent: Callable[[ModelEvaluation], float | None],
) -> Table:
    """Return a table of seven sets, their average and the parameters; all rows have the same sets."""
    reference = _reference_name(rows)
    count = "" if len(suite.evaluated) == len(suite.values) else f" ({len(suite.evaluated)} of {len(suite.values)})"

    def value_of(name: str) -> Cell:
        return lambda model: fixed(found.values[name] if (found := of_model(model)) else None, 2)

    columns: Columns = {name: value_of(name) for name in suite.values}
    columns[f"Avg.{count}"] = lambda model: fixed(found.average if (found := of_model(model)) else None, 2)
    legends = [legend]
    if count:
        legends.append(f"{suite.average_of} is over these sets only, the papers' average is over all seven")
    if reference is not None:
        columns[f"%{count}"] = lambda model: _percent_text(percent(model))
        legends.append(f"%{count}: the average in percent of {reference}'s")
    return _table(title, rows, columns | _PARAMETERS, [*legends, _PARAMETERS_LEGEND])


def _glue(rows: Rows) -> Table:
    """Return table 4 of CMOW, but of encoders that are not fine-tuned."""

    def value_of(task: str) -> Cell:
        return lambda model: fixed(next((score.value for score in model.scores if score.task == task), None), 1)

    columns = {name: value_of(f"{glue.PREFIX}{name}") for name in glue.GLUE_TASKS}
    legends = [
        "x100, of a logistic regression on frozen embeddings; of pairs both embeddings and their absolute difference",
        ", ".join(f"{name}: {metric}" for name, (_, metric) in glue.GLUE_TASKS.items()),
    ]
    return _table("GLUE", rows, columns | _PARAMETERS, [*legends, _PARAMETERS_LEGEND])


def _geometry(rows: Rows, at: int) -> Table:
    """Return the values of figure 2 of DistilCSE: alignment at an index, uniformity at the next."""
    scores, reference = _scores(rows), _reference_name(rows)
    alignment, uniformity = scores[at], scores[at + 1]
    columns: Columns = {}
    for index in (at, at + 1):
        columns[f"{scores[index].metric} ↓"] = _value(index, 4)
        if reference is not None:
            columns[f"{scores[index].metric}, difference"] = _difference(index)
    legends = [
        "↓: lower is better",
        (
            f"alignment: mean squared distance of the normalized embeddings of {alignment.items:,} pairs scored above "
            f"{alignment.details['positives above']:g}"
        ),
        (
            f"uniformity: log of the mean of exp(-2 squared distance) over the {uniformity.details['pairs']:,} pairs "
            f"of {uniformity.items:,} distinct sentences"
        ),
        *([] if reference is None else [f"difference: from {reference}'s, below 0 is better"]),
    ]
    return _table(f"Geometry, {alignment.task.removesuffix(f', {geometry.ALIGNMENT}')}", rows, columns, legends)


def _word_order(rows: Rows, at: int) -> Table:
    score = _scores(rows)[at]
    columns: Columns = {score.metric: _value(at, 1)}
    columns |= {detail: _detail(at, detail) for detail in (word_order.SWAPPED, word_order.SHUFFLED)}
    legend = (
        f"a logistic regression on frozen embeddings detects which of {score.items:,} sentences have two adjacent "
        "words swapped (chance: 50); mean cosine: similarity to the unchanged sentence, 1 if word order is ignored"
    )
    return _table(f"Word order, {score.task.removesuffix(', word order')}", rows, columns, [legend])


def _search(rows: Rows, at: int) -> Table:
    """Return table 3 of HPD."""
    score, reference = _scores(rows)[at], _reference_name(rows)
    details, time, memory = score.details, semantic_retrieval.TIME, semantic_retrieval.MEMORY
    columns: Columns = {
        "dim": lambda model: f"{model.scores[at].details['dimension']:.0f}",
        "MRR@10": lambda model: fixed(model.scores[at].value / 100, 3),
    }
    if reference is not None:
        columns["%"] = _percent(at)
    columns["time ms"] = _detail(at, time, 1)
    if reference is not None:
        columns["time"] = lambda model: _factor(model.comparisons[at], time)
    columns["mem MB"] = _detail(at, memory, 2)
    if reference is not None:
        columns["mem"] = lambda model: _factor(model.comparisons[at], memory)
    legends = [
        (
            f"{score.items:,} queries in {details['documents']:,} documents; faiss IVF on the CPU, "
            f"nlist {details['nlist']}, nprobe {details['nprobe']}"
        ),
        "time ms: 1,000 queries in one batch on one thread, without encoding, median of ten",
        "mem MB: size of the index, 10^6 bytes",
        *([] if reference is None else [f"%: MRR@10 in percent of {reference}'s; x: {reference}'s divided by this"]),
    ]
    return _table(f"Semantic retrieval, {score.task.removesuffix(', IVF')}", rows, columns, legends)


def _language_pairs(scores: Sequence[Score]) -> dict[str, dict[str, int]]:
    """Return the index of each score of cross-lingual STS, by set and language pair."""
    sets: dict[str, dict[str, int]] = {}
    for at, score in enumerate(scores):
        if score.metric == cross_lingual.STS_METRIC:
            name, pair = split_task_name(score.task)
            sets.setdefault(name, {})[pair] = at
    return sets


def _cross_lingual_sts(rows: Rows, name: str, pairs: Mapping[str, int]) -> Table:
    """Return table 1 of Xayn's paper, for one set."""
    reference = _reference_name(rows)
    columns: Columns = {_MEANS.get(pair, pair.upper()): _value(at) for pair, at in pairs.items()}
    legends = ["Spearman correlation x100; ES-EN: first sentences in es, second ones in en, or as in the file"]
    if WITHIN in pairs:
        legends.append("within, across: means over pairs of one language and of two languages")
    legends.append("Avg.: mean over all pairs of languages")
    if reference is not None:
        columns["%"] = _percent(pairs[AVERAGE])
        legends.append(f"%: Avg. in percent of {reference}'s")
    return _table(f"Similarity across languages, {name}", rows, columns | _PARAMETERS, [*legends, _PARAMETERS_LEGEND])


def _retrieval(rows: Rows, indices: Sequence[int]) -> Table:
    """Return table 2 of Xayn's paper, with a row per set and model."""
    reference = _reference_name(rows)
    titles = ("model", "set", "queries", "MRR@10", "nDCG@10", "MAP@100", *([] if reference is None else ["%"]))
    cells = []
    for at in indices:
        for name, model in rows.items():
            score = model.scores[at]
            metrics = (score.details[retrieval.MRR], score.value, score.details[retrieval.MAP])
            relative = [] if reference is None else [_percent(at)(model)]
            cells.append((name, score.task, f"{score.items:,}", *(fixed(each / 100, 4) for each in metrics), *relative))
    legends = [
        "exact search by cosine similarity, binary relevance",
        "of a cross-lingual set, de-en: German queries, English documents",
        *([] if reference is None else [f"%: nDCG@10 in percent of {reference}'s"]),
    ]
    return Table("Retrieval", titles, tuple(cells), "; ".join(legends))


def _bitext(rows: Rows, indices: Sequence[int]) -> Table:
    scores = [_scores(rows)[at] for at in indices]
    sizes = {score.items for score in scores if split_task_name(score.task)[1] != AVERAGE}
    legends = [
        "accuracy x100: sentences whose nearest neighbor by cosine similarity is a translation",
        f"sentences: {' to '.join(f'{size:,}' for size in sorted({min(sizes), max(sizes)}))} per column",
    ]
    return _table_of_tasks("Bitext retrieval", rows, indices, "%", _percent, legends)


def _entities(rows: Rows, indices: Sequence[int]) -> Table:
    """Return table 3 of SimTDE."""
    legends = ["R@1 x100: queries whose nearest entity is one that they mean"]
    return _table_of_tasks("Entity resolution", rows, indices, "change", _change, legends, parameters=True)


def _others(rows: Rows, indices: Sequence[int]) -> Table:
    legends = [
        f"{score.task}: {score.metric}, {score.items:,} items" for score in (_scores(rows)[at] for at in indices)
    ]
    return _table_of_tasks("Scores", rows, indices, "%", _percent, legends, decimals=1)


def _table_of_tasks(
    title: str,
    rows: Rows,
    indices: Sequence[int],
    relative: str,
    relative_cell: Callable[[int], Cell],
    legends: Sequence[str],
    *,
    decimals: int = 2,
    parameters: bool = False,
) -> Table:
    """Return a table with a column per task and, with a reference, one relative to the reference's score."""
    reference = _reference_name(rows)
    columns: Columns = {}
    for at in indices:
        task = _scores(rows)[at].task
        columns[task] = _value(at, decimals)
        if reference is not None:
            columns[f"{task}, {relative}"] = relative_cell(at)
    legends = [*legends, *([] if reference is None else [f"{relative}: in percent of {reference}'s"])]
    if parameters:
        columns, legends = columns | _PARAMETERS, [*legends, _PARAMETERS_LEGEND]
    return _table(title, rows, columns, legends)


def _scores(rows: Rows) -> tuple[Score, ...]:
    return next(iter(rows.values())).scores


def _reference_name(rows: Rows) -> str | None:
    """Return the name of the first row if it is the reference's; None without a reference."""
    name, first = next(iter(rows.items()))
    return None if first.reference is None else name


def _value(at: int, decimals: int = 2) -> Cell:
    return lambda model: fixed(model.scores[at].value, decimals)


def _detail(at: int, name: str, decimals: int = 4) -> Cell:
    return lambda model: fixed(model.scores[at].details[name], decimals)


def _percent(at: int) -> Cell:
    return lambda model: _percent_text(model.comparisons[at].percent)


def _difference(at: int) -> Cell:
    return lambda model: f"{model.comparisons[at].difference:+.4f}"


def _change(at: int) -> Cell:
    def cell(model: ModelEvaluation) -> str:
        percent = model.comparisons[at].percent
        return MISSING if percent is None else f"{percent - 100:+.2f}%"

    return cell


def _percent_text(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _factor(comparison: ScoreComparison, detail: str) -> str:
    return f"{semantic_retrieval.reduction_factor(comparison, detail):.1f}x"


def _table(title: str, rows: Rows, columns: Columns, legends: Iterable[str]) -> Table:
    cells = [(name, *(cell(model) for cell in columns.values())) for name, model in rows.items()]
    return Table(title, ("model", *columns), tuple(cells), "; ".join(legends))
