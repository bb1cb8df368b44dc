"""What ONNX Runtime is given to load."""

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
