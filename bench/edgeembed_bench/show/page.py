"""A report as one page of HTML that asks for nothing from elsewhere."""

import re
from datetime import datetime

import jinja2
from markupsafe import Markup, escape

from edgeembed_bench.report import BenchReport
from edgeembed_bench.show.contents import contents
from edgeembed_bench.show.notes import CARE


def report_page(report: BenchReport) -> str:
    """Write a report as a page: findings, plots, tables, and what it takes to read them.

    Args:
        report: What a run found.

    Returns:
        The whole page; readable on a phone, in light and in dark, and on paper.
    """
    from edgeembed_bench.show.plots import plots, swatch  # matplotlib takes half a second to import

    shown = contents(report)
    loader = jinja2.PackageLoader("edgeembed_bench.show", package_path="")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    # Only what matplotlib drew goes through the first; that escapes names itself.
    environment.filters |= {"svg": Markup, "prose": _prose}
    return environment.get_template("page.html.j2").render(
        report=report,
        created=datetime.fromisoformat(report.created_utc).strftime("%d %B %Y, %H:%M UTC"),
        findings=[(name, line, swatch(position)) for position, (name, line) in enumerate(shown.findings.items())],
        care=shown.notes.get(CARE, []),
        plots=plots(report),
        tables=shown.tables,
        notes={heading: lines for heading, lines in shown.notes.items() if heading != CARE},
    )


def _prose(text: str) -> Markup:
    kept_together = str(escape(text)).replace(" %", "&nbsp;%")
    return Markup(re.sub(r"(?<!\S)--[a-z-]+", r"<code>\g<0></code>", kept_together))  # noqa: S704  # escaped above
