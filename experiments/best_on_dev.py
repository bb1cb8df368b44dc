"""Print the folder of the student whose last stage scored best on the development set.

python experiments/best_on_dev.py STUDENT...
"""

import json
import sys
from pathlib import Path


def dev_score(folder: str) -> float:
    """Return a student's Spearman correlation x100 on the development set after its last stage."""
    report = json.loads((Path(folder) / "edgeembed_student.json").read_text(encoding="utf-8"))["report"]
    return float(report["dev_spearman"][-1])


if __name__ == "__main__":
    print(max(sys.argv[1:], key=dev_score))
