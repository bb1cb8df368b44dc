"""One bundle's scores beside its teacher's, in the form that `edgeembed export --quality` takes.

python docs/results/wheel_quality.py build/wheel/scores.json build/wheel/bundles/mini > quality.json
"""

import json
import sys
from pathlib import Path


def main() -> None:
    """Print them."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = next(each for each in (report if isinstance(report, list) else [report]) if each["model"] == sys.argv[2])
    reference = {each["task"]: each["value"] for each in found["reference_scores"]}
    scores = {
        f"{each['task']} ({each['metric']})": {
            "student": round(each["value"], 1),
            "teacher": round(reference[each["task"]], 1),
        }
        for each in found["scores"]
    }
    print(json.dumps({"measured_with": "docs/results/wheel.sh scores", "scores": scores}, indent=2))


if __name__ == "__main__":
    main()
