"""The product without the papers: a copy of the sources that lacks them, and their entry points, passes its tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import edgeembed_runtime
import pytest

ROOT = Path(__file__).parents[2]
# What losses, students, recipes and plugins concern.
TESTS = (
    "test_registry.py",
    "test_recipe.py",
    "test_recipes.py",
    "test_losses.py",
    "test_contrastive_distillation.py",
    "test_student.py",
    "test_cmow.py",
    "test_distillation_checks.py",
    "test_cli_main.py",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy of the sources and of the product's tests, without the papers."""
    lacking = shutil.ignore_patterns("papers", "__pycache__", "*.egg-info")
    for folder in ("edgeembed", "exporters", "bench", "runtime/edgeembed_runtime", "tests/edgeembed"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=lacking)
    for file in ("pyproject.toml", "tests/conftest.py", "docs/losses.md"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    # First on the path, it hides the installed distribution and with it the entry points of the papers.
    info = tmp_path / "edgeembed.egg-info"
    info.mkdir()
    version = edgeembed_runtime.__version__
    (info / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: edgeembed\nVersion: {version}\n", encoding="utf-8")
    return tmp_path


def run(copy: Path, *command: str) -> str:
    path = os.pathsep.join(str(copy / folder) for folder in (".", "exporters", "bench", "runtime"))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_without_the_papers_edgeembeds_own_recipes_are_all(copy: Path) -> None:
    script = "import edgeembed; print(edgeembed.__file__, *(each.name for each in edgeembed.recipes()))"
    file, *names = run(copy, "-c", script).split()
    assert Path(file).is_relative_to(copy)
    assert names == ["compact", "demo", "micro", "mini", "nano"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_without_the_papers_the_product_passes_its_tests(copy: Path) -> None:
    files = [f"tests/edgeembed/{name}" for name in TESTS]
    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
