"""Environments with less than all dependencies: NumPy bundles need NumPy alone, and the encoders no tokenizers."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.builtin_models import builtin_bundle

from experiments.footprint.footprint import build, install
from experiments.runtime.random_students import write_random_student

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow

_TEXTS = ["The cat reads a file.", "Größe, naïve café", "Прочитать 中文 [MASK]", "x" * 300, ""]
_ENCODE = """
import json, sys
from edgeembed_runtime import Encoder
vectors = Encoder(sys.argv[1]).encode(json.loads(sys.argv[2]))
assert not {"tokenizers", "onnxruntime"} & set(sys.modules)
print(json.dumps(vectors.tolist()))
"""
_DEFAULT = "from edgeembed_runtime import Encoder; Encoder()"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "runtime", tmp_path_factory.mktemp("wheel"))


def test_numpy_bundles_run_where_numpy_is_the_only_dependency(wheel: Path, tmp_path: Path) -> None:
    write_random_student(tmp_path / "bundle", "hybrid", Bundle.open(builtin_bundle()))
    python, installation = install(tmp_path / "venv", "--no-deps", str(wheel), "numpy")
    assert installation.packages == ["edgeembed-runtime", "numpy"]
    command: list[str | Path] = [python, "-I", "-c", _ENCODE, str(tmp_path / "bundle"), json.dumps(_TEXTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = Encoder(tmp_path / "bundle").encode(_TEXTS, on_unknown="ignore")
    assert np.allclose(json.loads(done.stdout), expected, atol=1e-6)
    failed = subprocess.run([python, "-I", "-c", _DEFAULT], capture_output=True, text=True, check=False)
    assert "needs onnxruntime, which cannot be imported" in failed.stderr.splitlines()[-1]


def test_an_installation_brings_at_most_five_packages(wheel: Path, tmp_path: Path) -> None:
    python, installation = install(tmp_path / "venv", str(wheel))
    assert len(installation.packages) <= 1 + 5
    assert "tokenizers" not in installation.packages
    subprocess.run([python, "-I", "-c", _DEFAULT], check=True)
