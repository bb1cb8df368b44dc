"""Reports as one self-contained page of HTML."""

import re
from datetime import datetime

import jinja2
from markupsafe import Markup, escape

from edgeembed_bench.render.summary import build_content
from edgeembed_bench.report import BenchmarkReport


def html_report(report: BenchmarkReport) -> str:
    """Render a report as a page of HTML: summary, warnings, plots, tables and notes.

    Args:
        report: The report.

    Returns:
        The page. It loads no other files, follows the reader's light or dark color scheme, and fits phones and paper.
    """
    from edgeembed_bench.render.plots import build_plots  # matplotlib takes half a second to import
    from edgeembed_bench.render.svg import DARK, LIGHT, draw_marker

    content = build_content(report)
    positions = {subject.name: position for position, subject in enumerate(report)}
    loader = jinja2.PackageLoader("edgeembed_bench.render", package_path="")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = _prose
    return environment.get_template("report.html.j2").render(
        report=report,
        date=f"{datetime.fromisoformat(report.created_utc):%B %d, %Y, %H:%M} UTC",
        light=LIGHT,
        dark=DARK,
        summary=[
            (draw_marker(positions[name]), *sentence.partition(name)) for name, sentence in content.summary.items()
        ],
        warnings=content.warnings,
        plots=build_plots(report),
        tables=content.tables,
        notes=content.notes,
    )


def _prose(text: str) -> Markup:
    """Escape plain text; keep a number and its unit on one line and set command-line options in a fixed-width font."""
    unbroken = re.sub(r"(?<=\d) (?=%|MB\b|ms\b)", "&nbsp;", str(escape(text)))
    return Markup(re.sub(r"(?<!\S)--[a-z-]+", r"<code>\g<0></code>", unbroken))  # noqa: S704  # escaped above
