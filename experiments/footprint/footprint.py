"""Measure what `pip install edgeembed-runtime` brings, how fast an encoder starts, and how fast it encodes.

    python -m experiments.footprint.footprint --before REVISION > docs/results/footprint.json

Builds the wheel of this checkout and that of an earlier revision, installs each into a fresh environment, and prints
JSON: the packages and megabytes of each installation; the time from process start to a loaded `Encoder()`, beside that
of a process that only imports NumPy and ONNX Runtime; and the time of `encode` for a short and a long text. Rounds are
interleaved, so that a drift of the machine meets all of them. Processor times are printed too; they depend less on what
else the machine does. `--rounds 0` measures no time.
"""

import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

ROOT = Path(__file__).parents[2]
_NOT_OURS = {"pip", "setuptools", "wheel"}
_COLD_STARTS = {
    "imports": "import numpy, onnxruntime",
    "encoder": "from edgeembed_runtime import Encoder; Encoder()",
    "first embedding": "from edgeembed_runtime import Encoder; Encoder().encode('The cat reads a file.')",
}
_LATENCY = """
import json, statistics, time
from edgeembed_runtime import Encoder
encoder = Encoder()
texts = {
    "short text": "How do I read a file line by line?",
    "long text": "The cat reads a long file, line by line. " * 200,
}
result = {}
for name, text in texts.items():
    for _ in range(20):
        encoder.encode(text, on_truncate="ignore")
    times = []
    for _ in range(100):
        start = time.perf_counter()
        encoder.encode(text, on_truncate="ignore")
        times.append(1000 * (time.perf_counter() - start))
    result[name] = statistics.median(times)
print(json.dumps(result))
"""


@dataclass
class Installation:
    """What an installation consists of, and its times.

    Attributes:
        command: What was installed.
        packages: The names of the packages that it brought, with itself.
        size_mb: The size of their files in megabytes (10^6 bytes), compiled modules included.
        cold_start_ms: The time of whole processes in milliseconds, by what they do: one value per round.
        cold_start_cpu_ms: Their processor time, user and system of all threads, likewise.
        encode_ms: The median time of `encode` in milliseconds, by text: one value per round.
    """

    command: str
    packages: list[str]
    size_mb: float
    cold_start_ms: dict[str, list[float]] = field(default_factory=dict)
    cold_start_cpu_ms: dict[str, list[float]] = field(default_factory=dict)
    encode_ms: dict[str, list[float]] = field(default_factory=dict)

    def summary(self) -> dict[str, object]:
        """Return the values with medians of the times, and the ratio of the cold start to that of the imports."""
        return {
            "number_of_packages": len(self.packages),
            "median_cold_start_ms": _medians(self.cold_start_ms),
            "median_ratio_of_encoder_to_imports": _median_ratio(self.cold_start_ms),
            "median_cold_start_cpu_ms": _medians(self.cold_start_cpu_ms),
            "median_cpu_ratio_of_encoder_to_imports": _median_ratio(self.cold_start_cpu_ms),
            "median_encode_ms": _medians(self.encode_ms),
            **asdict(self),
        }


def build(source: Path, out: Path) -> Path:
    """Build the wheel of a folder and return its path."""
    _run([sys.executable, "-m", "build", "--wheel", "--outdir", out, source])
    (wheel,) = out.glob("*.whl")
    return wheel


def install(folder: Path, *what: str) -> tuple[Path, Installation]:
    """Install packages into a new environment and return its Python, and what was installed."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    _run([python, "-m", "pip", "install", "--quiet", *what])
    listed = json.loads(_run([python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]))
    packages = sorted(package["name"] for package in listed if package["name"] not in _NOT_OURS)
    command = " ".join(["pip install", *(Path(each).name for each in what)])
    return python, Installation(command, packages, round(_size_bytes(python) / 1e6, 1))


def measure(pythons: Mapping[str, Path], installations: Mapping[str, Installation], rounds: int) -> None:
    """Add the times of some rounds to installations, one process after the other."""
    for _ in range(rounds):
        for name, python in pythons.items():
            installation = installations[name]
            for what, script in _COLD_STARTS.items():
                start, cpu_start = time.perf_counter(), _children_cpu_s()
                _run([python, "-c", script])
                installation.cold_start_ms.setdefault(what, []).append(1000 * (time.perf_counter() - start))
                installation.cold_start_cpu_ms.setdefault(what, []).append(1000 * (_children_cpu_s() - cpu_start))
            for what, value in json.loads(_run([python, "-c", _LATENCY])).items():
                installation.encode_ms.setdefault(what, []).append(value)


def _size_bytes(python: Path) -> int:
    """Return the size of the files of an environment's packages, without pip and setuptools."""
    folder = Path(_run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    left_out = (*_NOT_OURS, "pkg_resources", "_distutils_hack", "distutils-precedence")
    files = (file for each in folder.iterdir() if not each.name.startswith(left_out) for file in _files(each))
    return sum(file.stat().st_size for file in files)


def _files(path: Path) -> Sequence[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def _run(command: Sequence[str | Path]) -> str:
    """Run a command outside this checkout, without its variables, and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    folder = tempfile.gettempdir()
    done = subprocess.run(  # noqa: S603 - our own commands
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise click.ClickException(f"{' '.join(map(str, command))[:200]} failed: {done.stderr[-2000:]}")
    return done.stdout


def _checkout(revision: str, folder: Path) -> Path:
    """Write the files of a revision into a folder, and return its runtime."""
    archive = folder.with_suffix(".tar")
    _run(["git", "-C", ROOT, "archive", "--output", archive, revision])
    folder.mkdir()
    _run(["tar", "-xf", archive, "-C", folder])
    return folder / "runtime"


def _children_cpu_s() -> float:
    times = os.times()  # that of children is 0 on Windows
    return times.children_user + times.children_system


def _medians(times: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    return {name: _rounded(values) for name, values in times.items()}


def _median_ratio(times: Mapping[str, Sequence[float]]) -> float | None:
    """Return the median over the rounds of the ratio of `Encoder()` to the imports."""
    pairs = zip(times.get("encoder", []), times.get("imports", []), strict=True)
    return _rounded([encoder / imports for encoder, imports in pairs if imports])


def _rounded(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


@click.command(help=__doc__)
@click.option("--before", metavar="REVISION", help="An earlier revision to compare with.")
@click.option("--rounds", default=40, help="The number of measurements of each time.")
def main(before: str | None, rounds: int) -> None:
    """Print the footprint."""
    if importlib.util.find_spec("build") is None:
        raise click.ClickException("the package build is not installed; install edgeembed[dev]")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = str(build(ROOT / "runtime", folder / "wheel"))
        wanted = {
            "now": (wheel,),
            "now, with the extra tokenizers": (f"{wheel}[tokenizers]",),
            "now, for NumPy bundles": ("--no-deps", wheel, "numpy"),
        }
        if before:
            wanted["before"] = (str(build(_checkout(before, folder / "checkout"), folder / "old")),)
        made = {each: install(folder / str(i), *what) for i, (each, what) in enumerate(wanted.items())}
        installations = {each: installation for each, (_, installation) in made.items()}
        timed: dict[str, Path] = {each: made[each][0] for each in ("now", "before") if each in made}
        measure(timed, installations, rounds)
        machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
        results = {each: installation.summary() for each, installation in installations.items()}
        click.echo(json.dumps({**machine, "before": before, "rounds": rounds, "installations": results}, indent=2))


if __name__ == "__main__":
    main()
