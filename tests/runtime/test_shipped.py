"""The encoder inside the wheel."""

import subprocess
import sys
from pathlib import Path

import edgeembed_runtime.shipped
import numpy as np
import pytest
from edgeembed_runtime import Bundle, BundleError, Encoder

_WITHOUT_NETWORK = """
import sys
def refuse(event, args):
    if event.startswith("socket."):
        raise RuntimeError(f"network: {event}")
sys.addaudithook(refuse)
from edgeembed_runtime import Encoder, RelevanceRanker
hits = RelevanceRanker(Encoder()).rank("how do I read a file", ["open a file and read it", "paint a wall"])
assert hits[0].index == 0, hits
"""


def test_a_build_without_an_encoder_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", tmp_path)
    with pytest.raises(BundleError, match="this build carries no encoder"):
        Encoder()


def test_a_build_with_two_encoders_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "edgeembed.json").touch()
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", tmp_path)
    with pytest.raises(BundleError, match=r"2 encoders \(one, two\)"):
        Encoder()


def test_the_encoder_in_the_build_is_the_default(
    monkeypatch: pytest.MonkeyPatch, bundle_path: Path, encoder: Encoder
) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", bundle_path.parent)
    assert np.array_equal(Encoder().encode("the cat"), encoder.encode("the cat"))


def test_the_shipped_encoder_is_whole_and_small(shipped: Path) -> None:
    assert Bundle.open(shipped, verify=True).size_bytes <= 8_000_000


def test_the_shipped_encoder_works_without_a_network(shipped: Path) -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_NETWORK], check=True)
