"""The layout of the packages, their dependencies and imports."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import edgeembed_runtime
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def project(folder: str) -> dict[str, object]:
    content: dict[str, dict[str, object]] = tomllib.loads(
        (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    )
    return content["project"]


def test_both_distributions_take_their_version_from_the_runtime() -> None:
    assert all(project(folder)["dynamic"] == ["version"] for folder in (".", "runtime"))
    assert metadata.version("edgeembed") == metadata.version("edgeembed-runtime") == edgeembed_runtime.__version__


def test_edgeembed_requires_a_runtime_of_its_own_series() -> None:
    dependencies = [Requirement(line) for line in project(".")["dependencies"]]  # type: ignore[attr-defined]
    (runtime,) = (each for each in dependencies if each.name == "edgeembed-runtime")
    assert edgeembed_runtime.__version__ in runtime.specifier
    assert "0.0.9" not in runtime.specifier


def test_the_runtime_depends_on_two_packages() -> None:
    dependencies = [str(line) for line in project("runtime")["dependencies"]]  # type: ignore[attr-defined]
    assert sorted({line.split(">")[0] for line in dependencies}) == ["numpy", "onnxruntime"]


def test_every_integration_has_an_extra_of_its_name() -> None:
    modules = {path.stem for path in (ROOT / "runtime/edgeembed_runtime/integrations").glob("[a-z]*.py")}
    assert modules
    assert modules <= set(project("runtime")["optional-dependencies"])  # type: ignore[call-overload]


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "command", [[], *([name] for name in ("distill", "vocab", "export", "verify", "evaluate", "bench", "demo"))]
)
def test_help_imports_no_torch(command: list[str]) -> None:
    script = (
        "import sys\n"
        "from edgeembed.cli.main import main\n"
        "try:\n"
        f"    main({[*command, '--help']!r})\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "heavy = {'torch', 'transformers', 'onnxruntime', 'datasets', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def dry_run(*arguments: str) -> str:
    # A make that runs these tests would pass on its variables, and have this one print the folders that it enters.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VENV", "CONSTRAINTS"))
    }
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_demo_installs_nothing_that_only_development_needs(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    planned = dry_run("demo", f"VENV={venv}")
    assert "'.[teacher]'" in planned
    assert "dev" not in planned.replace("/dev/null", "")
    venv.mkdir()
    for stamp in (".installed", ".installed-for-demo"):
        (venv / stamp).touch()
    assert dry_run("demo", f"VENV={venv}").splitlines() == [f"{venv}/bin/edgeembed demo --out demo"]


@pytest.mark.parametrize(
    ("constraints", "venv", "extras"),
    [
        ("constraints.txt", ".venv", "dev"),
        ("constraints-old-generation.txt", ".venv-old-generation", "dev,optimum"),
    ],
)
def test_the_constraints_choose_the_environment_and_its_extras(constraints: str, venv: str, extras: str) -> None:
    *_, install, _, run = dry_run("--always-make", "test", f"CONSTRAINTS={constraints}").splitlines()
    assert install.startswith(f"{venv}/bin/python -m pip install ")
    assert f"--constraint {constraints} " in install
    assert f"'.[{extras}]'" in install
    assert run.startswith(f"{venv}/bin/python -m pytest ")


def test_the_citation_has_the_version_of_the_packages() -> None:
    version = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert version[1] == edgeembed_runtime.__version__
