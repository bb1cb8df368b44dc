"""The tokenizer of ONNX Runtime Extensions in front of a model returns the embeddings of the runtime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
EXTENSIONS = ROOT / "build" / "everywhere" / "extensions"


@pytest.mark.skipif(not EXTENSIONS.is_dir(), reason="run: make test-everywhere")
def test_tokenizer_in_front_of_the_model_returns_the_same_embeddings(tmp_path: Path, sentences: list[str]) -> None:
    texts = ["one [two] three-four: $5!", "a" * 300, "", "word " * 400, "caf\u00e9", *sentences[:100]]
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "experiments.platforms.mobile_model",
        "--bundle",
        "nano",
        "--out",
        str(tmp_path / "out"),
    ]
    path = os.pathsep.join([str(EXTENSIONS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, str(tmp_path / "texts.txt")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    report = json.loads(done.stdout)["files"]["texts.txt"]
    assert report["texts"] > 100
    assert (report["other_tokens"], report["max_difference_with_equal_tokens"]) == (0, 0)
