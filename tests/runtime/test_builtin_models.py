"""The encoders inside the wheel."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import edgeembed_runtime.builtin_models
import numpy as np
import pytest
from edgeembed_runtime import Bundle, BundleError, Encoder, InputError, VerificationError
from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.storage.folder import DiskFolder

_WITHOUT_NETWORK = """
import sys
def forbid(event, args):
    if event.startswith("socket."):
        raise RuntimeError(f"network: {event}")
sys.addaudithook(forbid)
from edgeembed_runtime import Encoder, RelevanceRanker
hits = RelevanceRanker(Encoder()).rank("how do I read a file", ["open a file and read it", "paint a wall"])
assert hits[0].id == 0, hits
"""


def test_build_without_an_encoder_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.builtin_models, "_MODELS", DiskFolder(tmp_path))
    with pytest.raises(BundleError, match="this build contains no encoder"):
        Encoder()


def build_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "edgeembed.json").touch()
    return folder


def test_build_with_two_encoders_but_no_default_raises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(edgeembed_runtime.builtin_models, "_MODELS", DiskFolder(build_with(tmp_path, "one", "two")))
    with pytest.raises(BundleError, match=r"2 encoders \(one, two\) but not mini"):
        Encoder()


def test_mini_is_the_default_among_several_encoders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        edgeembed_runtime.builtin_models, "_MODELS", DiskFolder(build_with(tmp_path, "a", "mini", "nano"))
    )
    assert str(builtin_bundle()) == str(tmp_path / "mini")
    assert str(builtin_bundle("nano")) == str(tmp_path / "nano")
    assert builtin_names() == ["a", "mini", "nano"]


def test_unknown_name_raises_with_a_suggestion(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        edgeembed_runtime.builtin_models, "_MODELS", DiskFolder(build_with(tmp_path / "models", "mini", "nano"))
    )
    expected = r"expected one of 'mini', 'nano', or the path of a bundle$"
    neither = "is neither a built-in encoder nor a folder;"
    with pytest.raises(InputError, match=rf"^'Minni' {neither} did you mean 'mini'\? {expected}"):
        Encoder("Minni")
    with pytest.raises(InputError, match=rf"^'large' {neither} {expected}"):
        Encoder("large")
    with pytest.raises(InputError, match=expected):
        Encoder("")
    with pytest.raises(InputError, match=r"the bundle is int, expected the name of a built-in encoder, the path"):
        Encoder(3)  # type: ignore[arg-type]


def test_path_is_loaded(bundle_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoder: Encoder) -> None:
    expected = encoder.encode("the cat")
    for path in (bundle_path, str(bundle_path), f"{bundle_path}/"):
        assert np.array_equal(Encoder(path).encode("the cat"), expected)
    shutil.copytree(bundle_path, tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    for path in (Path("tiny"), "tiny", "./tiny"):
        again = pickle.loads(pickle.dumps(Encoder(path)))  # noqa: S301  # our own bytes
        assert np.array_equal(again.encode("the cat"), expected)
    for path in (Path("absent"), "./absent", "some/path/absent"):
        with pytest.raises(BundleError, match="absent is not a folder; expected a bundle"):
            Encoder(path)


def test_checksums_of_a_path_are_compared(bundle_copy: Path) -> None:
    tokenizer = bundle_copy / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes().replace(b'"cat"', b'"dog"'))
    with pytest.raises(VerificationError, match=r"tokenizer\.json has SHA-256"):
        Encoder(bundle_copy)


def test_built_in_name_takes_precedence_over_a_folder(
    bundle_path: Path, shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(bundle_path, "mini")
    assert Encoder("mini").bundle.name == "edgeembed-mini"
    assert Encoder(Path("mini")).bundle.name == Encoder("./mini").bundle.name == "tiny"


def test_built_in_encoder_is_the_default(monkeypatch: pytest.MonkeyPatch, bundle_path: Path, encoder: Encoder) -> None:
    monkeypatch.setattr(edgeembed_runtime.builtin_models, "_MODELS", DiskFolder(bundle_path.parent))
    assert np.array_equal(Encoder().encode("the cat"), encoder.encode("the cat"))


@pytest.mark.parametrize(("name", "most_bytes"), [("mini", 5_300_000), ("nano", 2_400_000), ("micro", 1_500_000)])
def test_built_in_encoders_are_complete_and_small(name: str, most_bytes: int, shipped: Path) -> None:
    assert str(shipped) == str(builtin_bundle("mini"))
    assert Bundle.open(builtin_bundle(name), verify=True).size_bytes <= most_bytes


def test_built_in_encoder_is_loaded_by_name(shipped: Path) -> None:
    nano = Encoder("nano")
    assert nano.bundle.path == shipped.parent / "nano"
    again = pickle.loads(pickle.dumps(nano))  # noqa: S301  # our own bytes
    assert np.array_equal(again.encode("the cat"), nano.encode("the cat"))


def test_built_in_encoder_works_without_a_network(shipped: Path) -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_NETWORK], check=True)
