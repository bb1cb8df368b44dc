"""Columns and tables of evaluations, with which the kinds of tasks lay out their scores: a row per model."""

from collections.abc import Callable, Iterable, Sequence

from edgeembed_bench.render.tables import MISSING, Table, fixed, millions

from edgeembed.evaluation.model_evaluation import ModelEvaluation, Rows
from edgeembed.evaluation.scores import Score

Cell = Callable[[ModelEvaluation], str]
Columns = dict[str, Cell]
"""The function that returns a model's cell, by the column's title."""

PARAMETERS: Columns = {
    "params": lambda model: millions(model.parameters.parameters if model.parameters else None),
    "w/o embeddings": lambda model: millions(model.parameters.inner_parameters if model.parameters else None),
}
PARAMETERS_LEGEND = "params: all parameters; w/o embeddings: without token, position and token type embeddings"
INTERVAL_LEGEND = "±: half the width of the 95 % confidence interval"


def first_scores(rows: Rows) -> tuple[Score, ...]:
    """Return the scores of the first row; those of the others are of the same data sets."""
    return next(iter(rows.values())).scores


def reference_name(rows: Rows) -> str | None:
    """Return the name of the first row if it is the reference's; None without a reference."""
    name, first = next(iter(rows.items()))
    return None if first.reference is None else name


def value(at: int, decimals: int = 2) -> Cell:
    """Return the cell of a score, by its index, with its confidence interval if it has one."""
    return lambda model: fixed(model.scores[at].value, decimals) + model.scores[at].margin(decimals)


def fraction(score: Score) -> str:
    """Return a score of 0 to 100 as the fraction that papers print, with its confidence interval if it has one."""
    margin = "" if score.interval is None else f" ±{(score.interval[1] - score.interval[0]) / 200:.4f}"
    return f"{fixed(score.value / 100, 4)}{margin}"


def detail(at: int, name: str, decimals: int = 4) -> Cell:
    """Return the cell of a score's detail, by the score's index and the detail's name."""
    return lambda model: fixed(model.scores[at].details[name], decimals)


def percent(at: int) -> Cell:
    """Return the cell of a score in percent of the reference's."""
    return lambda model: percent_text(model.comparisons[at].percent)


def difference(at: int) -> Cell:
    """Return the cell of a score's difference from the reference's."""
    return lambda model: f"{model.comparisons[at].difference:+.4f}"


def change(at: int) -> Cell:
    """Return the cell of a score's change from the reference's in percent, such as +0.32%."""

    def cell(model: ModelEvaluation) -> str:
        found = model.comparisons[at].percent
        return MISSING if found is None else f"{found - 100:+.2f}%"

    return cell


def percent_text(found: float | None) -> str:
    """Return a percentage with two decimals; a dash if there is none."""
    return MISSING if found is None else f"{found:.2f}"


def table(title: str, rows: Rows, columns: Columns, legends: Iterable[str]) -> Table:
    """Return a table with a row per model.

    Args:
        title: Title of the table.
        rows: The models.
        columns: The columns after the model's name.
        legends: Parts of the legend.
    """
    cells = [(name, *(cell(model) for cell in columns.values())) for name, model in rows.items()]
    measured = any(score.interval for model in rows.values() for score in model.scores)
    legend = [*legends, *([INTERVAL_LEGEND] if measured else [])]
    return Table(title, ("model", *columns), tuple(cells), "; ".join(legend))


def table_of_scores(
    title: str,
    rows: Rows,
    legends: Sequence[str],
    *,
    indices: Sequence[int] | None = None,
    relative: tuple[str, Callable[[int], Cell]] = ("%", percent),
    decimals: int = 2,
    parameters: bool = False,
) -> Table:
    """Return a table with a column per data set and, with a reference, one relative to the reference's score.

    Args:
        title: Title of the table.
        rows: The models.
        legends: Parts of the legend.
        indices: Indices of the scores; None takes all.
        relative: Title of the column relative to the reference, and the function that returns its cell.
        decimals: Decimals of a score.
        parameters: Whether the table ends with the numbers of parameters.
    """
    reference, (relative_title, relative_cell) = reference_name(rows), relative
    columns: Columns = {}
    for at in range(len(first_scores(rows))) if indices is None else indices:
        task = first_scores(rows)[at].task
        columns[task] = value(at, decimals)
        if reference is not None:
            columns[f"{task}, {relative_title}"] = relative_cell(at)
    legends = [*legends, *([] if reference is None else [f"{relative_title}: in percent of {reference}'s"])]
    if parameters:
        columns, legends = columns | PARAMETERS, [*legends, PARAMETERS_LEGEND]
    return table(title, rows, columns, legends)


def table_of_suite(title: str, kind: str, rows: Rows, legend: str) -> Table:
    """Return a table of the sets of a published suite, their average and the parameters; all rows have the same sets.

    Args:
        title: Title of the table.
        kind: Name of the kind of task, by which models have the suite.
        rows: The models.
        legend: What the values are.
    """
    suite, reference = next(iter(rows.values())).suites[kind], reference_name(rows)
    count = "" if len(suite.evaluated) == len(suite.values) else f" ({len(suite.evaluated)} of {len(suite.values)})"
    places = {score.task: at for at, score in enumerate(first_scores(rows))}
    columns: Columns = {
        name: value(places[name]) if name in places else lambda _model: MISSING for name in suite.values
    }
    columns[f"Avg.{count}"] = lambda model: fixed(model.suites[kind].average, 2)
    legends = [legend]
    if count:
        legends.append(
            f"{suite.average_of} is over these sets only, the papers' average is over all {len(suite.values)}"
        )
    if reference is not None:
        columns[f"%{count}"] = lambda model: percent_text(model.suite_percent(kind))
        legends.append(f"%{count}: the average in percent of {reference}'s")
    return table(title, rows, columns | PARAMETERS, [*legends, PARAMETERS_LEGEND])
