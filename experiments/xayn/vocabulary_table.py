"""Print how many tokens a word has in each language, by vocabulary: a Markdown table; and write the reports to a file.

    python -m experiments.xayn.vocabulary_table NAME.report... --out vocabularies.json

Reads what `edgeembed vocab --json` printed into NAME.report. A vocabulary that the reports compare theirs with
(`--against`) has the last column: its values on the held-out text of the first report.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from edgeembed_bench.render.markdown import markdown_table
from edgeembed_bench.render.tables import Table


def vocabulary_table(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table of tokens per word on held-out text, with a row for each language.

    Args:
        reports: The report of each vocabulary, by the vocabulary's name. All have the same languages.
    """
    columns = dict.fromkeys(reports)
    languages: dict[str, dict[str, float]] = {}
    for name, report in reports.items():
        for row in report["languages"]:
            found = languages.setdefault(row["language"], {})
            for path, coverage in row["coverage"].items():
                found.setdefault(name if path == report["path"] else Path(path).stem, coverage["tokens_per_word"])
    for found in languages.values():
        columns |= dict.fromkeys(found)
    rows = ((language, *(f"{found[name]:.2f}" for name in columns)) for language, found in languages.items())
    return Table("", ("language", *columns), tuple(rows), "")


@click.command(help=__doc__)
@click.argument("reports", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for all reports.")
def main(reports: Sequence[Path], out: Path | None) -> None:
    """Print the table."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in reports}
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    click.echo(markdown_table(vocabulary_table(found)))


if __name__ == "__main__":
    main()
