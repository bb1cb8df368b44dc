"""The encoder inside the wheel."""

import pickle
import subprocess
import sys
from pathlib import Path

import edgeembed_runtime.shipped
import numpy as np
import pytest
from edgeembed_runtime import Bundle, BundleError, Encoder, InputError
from edgeembed_runtime.shipped import shipped_bundle, shipped_names

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


def build_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "edgeembed.json").touch()
    return folder


def test_a_build_with_two_encoders_and_no_default_one_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", build_with(tmp_path, "one", "two"))
    with pytest.raises(BundleError, match=r"2 encoders \(one, two\) and none is mini"):
        Encoder()


def test_mini_is_the_default_of_several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", build_with(tmp_path, "a", "mini", "nano"))
    assert shipped_bundle() == tmp_path / "mini"
    assert shipped_bundle("nano") == tmp_path / "nano"
    assert shipped_names() == ["a", "mini", "nano"]


def test_an_encoder_that_the_wheel_does_not_carry_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", build_with(tmp_path, "mini", "nano"))
    with pytest.raises(
        InputError, match=r"no encoder 'micro' in the wheel; expected of 'mini', 'nano', or Encoder.load"
    ):
        Encoder("micro")
    with pytest.raises(InputError, match=r"the bundle is \w*Path, expected a Bundle"):
        Encoder(tmp_path)  # type: ignore[arg-type]


def test_the_encoder_in_the_build_is_the_default(
    monkeypatch: pytest.MonkeyPatch, bundle_path: Path, encoder: Encoder
) -> None:
    monkeypatch.setattr(edgeembed_runtime.shipped, "_MODELS", bundle_path.parent)
    assert np.array_equal(Encoder().encode("the cat"), encoder.encode("the cat"))


@pytest.mark.parametrize(("name", "most_bytes"), [("mini", 6_000_000), ("nano", 2_500_000)])
def test_the_shipped_encoders_are_whole_and_small(name: str, most_bytes: int, shipped: Path) -> None:
    assert shipped == shipped_bundle("mini")
    assert Bundle.open(shipped_bundle(name), verify=True).size_bytes <= most_bytes


def test_an_encoder_in_the_wheel_is_had_by_its_name(shipped: Path) -> None:
    nano = Encoder("nano")
    assert nano.bundle.path == shipped.parent / "nano"
    again = pickle.loads(pickle.dumps(nano))  # noqa: S301  # our own bytes
    assert np.array_equal(again.encode("the cat"), nano.encode("the cat"))


def test_the_shipped_encoder_works_without_a_network(shipped: Path) -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_NETWORK], check=True)
