"""An app that PyInstaller builds holds the encoders, without an option that says so."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow

_NAMES = ("mini", "nano", "micro")

_APP = f"""
from edgeembed_runtime import Encoder, Index, RelevanceRanker
for name in {_NAMES}:
    documents = ["paint a wall", "open a file and read it"]
    print(RelevanceRanker(Encoder(name)).rank("how do I read a file", documents, top_k=1)[0].text)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the scripts folder of an environment with PyInstaller and the runtime; skip if it cannot be made."""
    folder = tmp_path_factory.mktemp("pyinstaller")
    wheels = folder / "wheels"
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", wheels, ROOT / "runtime"],
        check=True,
        capture_output=True,
    )
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    scripts = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    (wheel,) = wheels.glob("*.whl")
    install: list[str | Path] = [scripts / "python", "-m", "pip", "install", "--quiet", "pyinstaller>=6,<7", wheel]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"PyInstaller cannot be installed: {(installed.stderr.splitlines() or ['no reason given'])[-1]}")
    return scripts


@pytest.mark.timeout(900)
def test_a_packed_app_finds_the_encoders(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(_APP, encoding="utf-8")
    build: list[str | Path] = [environment / "pyinstaller", "--onedir", "--noconfirm", "--log-level", "WARN", "app.py"]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "dist" / "app").rename(elsewhere)
    # No variable of this process leads the app to the sources.
    done = subprocess.run(
        [elsewhere / "app"], cwd="/", env={"PATH": ""}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["open a file and read it"] * len(_NAMES)
