import subprocess
import sys

import edgeembed_exporters
import pytest


def test_every_public_name_loads_and_no_other() -> None:
    assert edgeembed_exporters.__all__ == sorted(edgeembed_exporters.__all__)
    for name in edgeembed_exporters.__all__:
        assert getattr(edgeembed_exporters, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'expert'"):
        _ = edgeembed_exporters.expert


def test_vocabulary_tools_load_no_torch() -> None:
    code = (
        "import sys, edgeembed_exporters.reduction.tokenizer_trimming, edgeembed_exporters.reduction.coverage\n"
        "print([name for name in ('torch', 'transformers', 'onnx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
