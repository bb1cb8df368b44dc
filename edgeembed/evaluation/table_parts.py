"""What tables of evaluations are made of: a row a model, and columns that each know what to write of one."""

from collections.abc import Callable, Iterable, Mapping

from edgeembed_bench.formats import MISSING, fixed, millions
from edgeembed_bench.render import Table

from edgeembed.evaluation.results import Evaluation

Rows = Mapping[str, Evaluation]
Columns = dict[str, Callable[[Evaluation], str]]
"""What to write of a model, by the title of a column."""

PARAMETERS: Columns = {
    "params": lambda each: millions(each.parameters.parameters if each.parameters else None),
    "w/o tables": lambda each: millions(each.parameters.inner_parameters if each.parameters else None),
}
PARAMETERS_ARE = (
    "params: all numbers of the model; w/o tables: those in no table of token, position or token type vectors"
)


def reference_name(rows: Rows) -> str | None:
    """Give the reference's name, which is that of the first row; None without a reference."""
    name, first = next(iter(rows.items()))
    return None if first.reference is None else name


def value_at(place: int, decimals: int = 2) -> Callable[[Evaluation], str]:
    """Give what writes a model's score at a place."""
    return lambda each: fixed(each.scores[place].value, decimals)


def detail_at(place: int, name: str, decimals: int = 4) -> Callable[[Evaluation], str]:
    """Give what writes one of the further figures of a model's score at a place."""
    return lambda each: fixed(each.scores[place].details[name], decimals)


def percent_at(place: int) -> Callable[[Evaluation], str]:
    """Give what writes a model's score at a place as a percentage of the reference's."""
    return lambda each: as_percent(each.comparisons[place].percent)


def difference_at(place: int) -> Callable[[Evaluation], str]:
    """Give what writes how far a model's score at a place is from the reference's."""
    return lambda each: f"{each.comparisons[place].difference:+.4f}"


def change_at(place: int) -> Callable[[Evaluation], str]:
    """Give what writes by how many percent a model's score at a place is above the reference's."""

    def write(each: Evaluation) -> str:
        percent = each.comparisons[place].percent
        return MISSING if percent is None else f"{percent - 100:+.2f}%"

    return write


def as_percent(value: float | None) -> str:
    """Write a percentage, a dash if there is none."""
    return MISSING if value is None else f"{value:.2f}"


def make_table(title: str, rows: Rows, columns: Columns, readings: Iterable[str]) -> Table:
    """Fill a table in.

    Args:
        title: What it is about.
        rows: The models.
        columns: What writes a model's figure, by the column's title.
        readings: How to read it, in parts.
    """
    cells = [(name, *(write(each) for write in columns.values())) for name, each in rows.items()]
    return Table(title, ("model", *columns), tuple(cells), "; ".join(readings))
