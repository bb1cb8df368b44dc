"""Reports, comparisons and tables as HTML: a self-contained page, or the part of a page that a notebook shows."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import jinja2
from edgeembed_runtime.errors import one_line
from markupsafe import Markup, escape

from edgeembed_bench.compare import Comparison
from edgeembed_bench.render.summary import build_content
from edgeembed_bench.render.tables import Table, comparison_notes, comparison_table
from edgeembed_bench.report import BenchmarkReport


def html_report(report: BenchmarkReport, *, is_page: bool = True) -> str:
    """Render a report as HTML: summary, warnings, plots, tables and notes.

    Args:
        report: The report.
        is_page: Whether to return a whole page, or its content for a notebook.

    Returns:
        The HTML. It loads no other files. A page follows the reader's light or dark color scheme, and fits phones and
        paper.
    """
    from edgeembed_bench.render.plots import build_plots  # matplotlib takes half a second to import
    from edgeembed_bench.render.svg import draw_marker

    content = build_content(report)
    positions = {subject.name: position for position, subject in enumerate(report)}
    threads = report.settings.threads
    date = f"{datetime.fromisoformat(report.created_utc):%B %d, %Y, %H:%M} UTC"
    return _render(
        is_page=is_page,
        title="Benchmark report",
        subtitle=f"{date} · {one_line(report.machine.cpu)} · {threads} {'thread' if threads == 1 else 'threads'}",
        names=list(positions),
        summary=[
            (draw_marker(positions[name]), *sentence.partition(name)) for name, sentence in content.summary.items()
        ],
        warnings=content.warnings,
        plots=build_plots(report),
        tables=content.tables,
        notes=content.notes,
        files=[
            one_line(f"{subject.name}: {file.name}, {file.size_bytes:,} bytes, SHA-256 {file.sha256}")
            for subject in report
            for file in subject.size.files
        ],
    )


def html_comparison(comparison: Comparison, *, is_page: bool = True) -> str:
    """Render a comparison as HTML.

    Args:
        comparison: The comparison.
        is_page: Whether to return a whole page, or its content for a notebook.

    Returns:
        The HTML, like that of `html_report`.
    """
    table, notes = comparison_table(comparison), comparison_notes(comparison)
    return html_document("Benchmark comparison", table, notes, is_page=is_page)


def html_document(title: str, table: Table, notes: Sequence[str], *, is_page: bool = True) -> str:
    """Render a title, one table with its legend, and notes as HTML.

    Args:
        title: The title.
        table: The table.
        notes: The notes, one line each.
        is_page: Whether to return a whole page, or its content for a notebook.

    Returns:
        The HTML, like that of `html_report`.
    """
    return _render(
        is_page=is_page, title=title, tables=[table], notes={"Notes": list(map(one_line, notes))} if notes else {}
    )


def _render(*, is_page: bool, **content: Any) -> str:
    from edgeembed_bench.render.svg import DARK, LIGHT

    loader = jinja2.PackageLoader("edgeembed_bench.render", package_path="")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = _prose
    template = environment.get_template("report.html.j2" if is_page else "content.html.j2")
    return template.render(is_page=is_page, light=LIGHT, dark=DARK, **content)


def _prose(text: str) -> Markup:
    """Escape plain text; keep a number and its unit on one line and set command-line options in a fixed-width font."""
    unbroken = re.sub(r"(?<=\d) (?=%|MB\b|ms\b)", "&nbsp;", str(escape(text)))
    return Markup(re.sub(r"(?<!\S)--[a-z-]+", r"<code>\g<0></code>", unbroken))  # noqa: S704  # escaped above
