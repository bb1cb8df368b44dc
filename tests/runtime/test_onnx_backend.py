"""What ONNX Runtime is given to load."""

import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest
from edgeembed_runtime import BundleError
from edgeembed_runtime.backends.onnx import OnnxBackend


def test_an_onnxruntime_that_reads_any_file_is_given_no_model_that_names_one(
    bundle_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = (bundle_path / "onnx" / "model.onnx").read_bytes()
    # A value, then its key, whose length is written in two bytes: protobuf allows both.
    naming = model + b"\x12\x0d/etc/hostname\x0a\x88\x00location"
    monkeypatch.setattr(onnxruntime, "__version__", "1.23.2")
    with pytest.raises(BundleError, match=r"m\.onnx is no model: External data is not read by onnxruntime 1\.23\.2"):
        OnnxBackend(naming, 8, "m.onnx")
    assert OnnxBackend(model, 8, "m.onnx").embed([2, 3]).shape == (8,)


def test_where_there_is_no_onnxruntime_one_line_says_so(bundle_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "from edgeembed_runtime.cli import main\n"
        "sys.exit(main(['encode', '--text', 'the cat', '--bundle', sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, bundle_path], capture_output=True, text=True, errors="replace", check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{bundle_path} needs onnxruntime, which is not here" in done.stderr
    assert "or a bundle for the backend 'numpy'" in done.stderr
