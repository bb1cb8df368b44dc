"""What Pyodide lacks is not needed: a NumPy bundle works without threads, file locks and compiled packages but NumPy.

tests/end_to_end/everywhere runs the same in a browser.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PAGE = """
import sys
import threading
import numpy as np

for missing in ("fcntl", "onnxruntime", "sqlite3", "tokenizers"):
    sys.modules[missing] = None
sys.platform = "emscripten"

def start(self):
    raise RuntimeError("can't start new thread")

threading.Thread.start = start

from edgeembed_runtime import Encoder, Index, RelevanceRanker

documents = ["read the file", "the cat and the dog"] * 100
encoder = Encoder(sys.argv[1], threads=4)
assert RelevanceRanker(encoder).rank("cat", documents, top_k=1)[0].text == documents[1]
index = Index.build(encoder, documents)
index.save(sys.argv[2])
index = Index.open(sys.argv[2], encoder)
assert index.search("cat", top_k=1)[0].text == documents[1]
index.save(sys.argv[2], force=True)
"""


def test_a_numpy_bundle_encodes_and_searches(make_numpy_bundle: Callable[..., Path], tmp_path: Path) -> None:
    bundle = make_numpy_bundle(tmp_path / "bundle")
    command = [sys.executable, "-c", _PAGE, str(bundle), str(tmp_path / "index")]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
