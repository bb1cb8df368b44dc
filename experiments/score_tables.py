"""Tables of scores on the pages of docs/results, from the JSON files beside them.

A page has a table between the marks `<!-- table: NAME -->` and `<!-- end -->`; experiments/score_tables.yaml says which
files, rows and columns each has. `python -m experiments.result_pages` writes them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from experiments.seed_table import group_seeds

FILE = Path(__file__).with_suffix(".yaml")
RESULTS = Path(__file__).parents[1] / "docs/results"
_SETS = {"sts12/test": "STS12", "sts14/test": "STS14", "stsb/test": "STS-B", "sickr/test": "SICK-R"}
_APART = ", outside STS-B"


@dataclass(frozen=True)
class ScoreTable:
    """A table of scores.

    Attributes:
        page: Name of the page, without its ending.
        name: Name in the mark.
        scores: Name of the JSON file of scores, or of the scores on the development set of each rate.
        rows: Label of each student in the order of the table, by its name without the seed.
        columns: Its columns after the first; the sets and those outside STS-B are meant by "sets" and "outside". Empty
            for a table of rates.
        teacher: Name of the model whose average is 100 %.
        rates: The learning rates, which are the columns of a table of rates.
        first: Title of the first column.
    """

    page: str
    name: str
    scores: str
    rows: Mapping[str, str]
    columns: Sequence[str] = ()
    teacher: str = ""
    rates: Sequence[str] = ()
    first: str = "model"


def pages_of_scores() -> dict[str, list[ScoreTable]]:
    """Return the tables of each page by its name."""
    pages: dict[str, list[ScoreTable]] = defaultdict(list)
    for each in yaml.safe_load(FILE.read_text(encoding="utf-8")):
        pages[each["page"]].append(ScoreTable(**each))
    return dict(pages)


def fill_tables(text: str, tables: Iterable[ScoreTable]) -> str:
    """Return a page with its tables filled.

    Raises:
        ValueError: If a mark is missing.
    """
    for table in tables:
        begin = f"<!-- table: {table.name} -->"
        before, found, rest = text.partition(begin)
        _, end, after = rest.partition("<!-- end -->")
        if not found or not end:
            raise ValueError(f"{table.page}.md lacks a mark; expected the line {begin}, and below it <!-- end -->")
        text = f"{before}{begin}\n\n{render(table)}\n\n{end}{after}"
    return text


def render(table: ScoreTable) -> str:
    """Return a table as Markdown."""
    found = json.loads((RESULTS / f"{table.scores}.json").read_text(encoding="utf-8"))
    return _rates(table, found) if table.rates else _scores(table, found)


def _scores(table: ScoreTable, evaluations: Sequence[Mapping[str, Any]]) -> str:
    groups = group_seeds(evaluations)
    full = _average(groups[table.teacher])
    columns = [title for column in table.columns for title in _titles(column)]
    rows = [
        (label, *(cell for column in table.columns for cell in _cells(column, groups[name], full)))
        for name, label in table.rows.items()
    ]
    return _markdown([(table.first, *columns), *rows])


def _titles(column: str) -> list[str]:
    if column == "sets":
        return list(_SETS.values())
    return ["STS12" + _APART, "STS14" + _APART] if column == "outside" else [column]


def _cells(column: str, seeds: Sequence[Mapping[str, Any]], full: float) -> list[str]:
    if column == "sets":
        return [f"{_mean(seeds, task):.2f}" for task in _SETS]
    if column == "outside":
        return [f"{_mean(seeds, task + _APART):.2f}" for task in list(_SETS)[:2]]
    average, counts = _average(seeds), seeds[0]["parameters"]
    cells = {
        "seeds": str(len(seeds)) if re.search(r"-seed-\d+$", seeds[0]["model"]) else "",
        "average": f"{average:.2f}",
        "%": f"{100 * average / full:.1f}",
        "parameters": _millions(counts["parameters"]),
        "other parameters": _millions(counts["inner_parameters"]),
    }
    return [cells[column]]


def _millions(count: int) -> str:
    return f"{count / 1e6:#.3g}".removesuffix(".") + "M"


def _mean(seeds: Sequence[Mapping[str, Any]], task: str) -> float:
    return fmean(score["value"] for each in seeds for score in each["scores"] if score["task"] == task)


def _average(seeds: Sequence[Mapping[str, Any]]) -> float:
    return fmean(_mean(seeds, task) for task in _SETS)


def _rates(table: ScoreTable, found: Iterable[Mapping[str, Any]]) -> str:
    scores = {each["name"]: each["dev_spearman"][-1] for each in found}
    rows = [
        (label, *(_rate_cell(scores.get(f"{name}-rate-{rate}")) for rate in table.rates))
        for name, label in table.rows.items()
    ]
    return _markdown([(table.first, *table.rates), *rows])


def _rate_cell(score: float | None) -> str:
    return "-" if score is None else f"{score:.2f}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table without padding: a changed cell changes one line."""
    header, *body = ("|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in rows)
    return "\n".join([header, "|" + "---|" * len(rows[0]), *body])
