"""Measure the resident memory of a process that encodes one text, beside that of its imports alone. On Linux.

    python -m experiments.wheel.resident_memory > docs/results/resident-memory.json

Each value is that of a new process, right after what it does. Processes take turns.
"""

import compileall
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import click
import edgeembed_runtime

SUBJECTS = {
    "import numpy": "import numpy",
    "import numpy, onnxruntime": "import numpy, onnxruntime",
    "from edgeembed_runtime import Encoder": "from edgeembed_runtime import Encoder",
    **{
        name: f"from edgeembed_runtime import Encoder; kept = Encoder({name!r}); kept.encode('The cat reads a file.')"
        for name in ("micro", "nano", "mini")
    },
}
_FLOOR = {
    "micro": "import numpy",
    "nano": "import numpy, onnxruntime",
    "mini": "import numpy, onnxruntime",
}
_PRINT_RESIDENT = """
import resource
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]) * resource.getpagesize())
"""


def resident_mb(code: str) -> float:
    """Return the resident memory in megabytes (10^6 bytes) of a new process after it ran some code."""
    command = [sys.executable, "-c", code + "\n" + _PRINT_RESIDENT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    return int(done.stdout) / 1e6


@click.command(help=__doc__)
@click.option("--rounds", default=20, help="The number of processes of each kind.")
def main(rounds: int) -> None:
    """Print the resident memory of each subject."""
    if not Path("/proc/self/statm").exists():
        raise click.ClickException("this system has no /proc/self/statm; run it on Linux")
    # As pip does when it installs the package: compiling a module on import takes memory that is not given back.
    compileall.compile_dir(Path(edgeembed_runtime.__file__).parent, quiet=1)
    samples: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(rounds):
        for name, code in SUBJECTS.items():
            samples[name].append(resident_mb(code))
    medians = {name: round(statistics.median(values), 1) for name, values in samples.items()}
    ratios = {
        f"{name} / {floor}": round(
            statistics.median(a / b for a, b in zip(samples[name], samples[floor], strict=True)), 3
        )
        for name, floor in _FLOOR.items()
    }
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    click.echo(json.dumps({**machine, "median_mb": medians, "median_ratios": ratios, "resident_mb": samples}, indent=1))


if __name__ == "__main__":
    main()
