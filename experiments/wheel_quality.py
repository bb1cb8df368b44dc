"""A bundle's scores beside its teacher's, in the form that `edgeembed export --quality` takes.

python experiments/wheel_quality.py build/wheel/mini.json build/wheel/teacher.json > quality.json
"""

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Print them."""
    ours, theirs = (_scores(Path(name)) for name in sys.argv[1:])
    scores = {name: {"student": ours[name], "teacher": theirs[name]} for name in ours}
    print(json.dumps({"measured_with": "experiments/wheel.sh teacher scores", "scores": scores}, indent=2))


def _scores(file: Path) -> dict[str, float]:
    report: Any = json.loads(file.read_text(encoding="utf-8"))
    found = report[0] if isinstance(report, list) else report
    return {f"{each['task']} ({each['metric']})": round(each["value"], 1) for each in found["scores"]}


if __name__ == "__main__":
    main()
