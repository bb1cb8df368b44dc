"""The wheels hold our packages and nothing else, and the runtime's installs alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow


def wheel(folder: Path, out: Path) -> list[str]:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, folder], check=True, capture_output=True, text=True
    )
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_the_wheel_of_edgeembed_holds_the_three_rooms(tmp_path: Path) -> None:
    names = wheel(ROOT, tmp_path)
    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {
        "edgeembed",
        "edgeembed_exporters",
        "edgeembed_bench",
    }
    assert "edgeembed/recipes/compact.toml" in names
    assert "edgeembed/py.typed" in names


def test_the_wheel_of_the_runtime_holds_one_package_and_its_encoder(tmp_path: Path) -> None:
    names = wheel(ROOT / "runtime", tmp_path)
    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"edgeembed_runtime"}
    assert any(name.startswith("edgeembed_runtime/models/") and name.endswith("edgeembed.json") for name in names)
