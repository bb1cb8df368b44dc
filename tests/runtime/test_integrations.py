"""Integrations name the extra that installs a missing library, and share encoders; tests/integrations has the rest."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime import InputError, MissingExtraError
from edgeembed_runtime.integrations._loading import bundle_name, shared_encoder

_LIBRARIES = {
    "chroma": "chromadb",
    "haystack": "haystack",
    "lancedb": "lancedb",
    "langchain": "langchain_core",
    "llamaindex": "llama_index",
    "sklearn": "sklearn",
    "spacy": "spacy",
}


@pytest.mark.parametrize("name", _LIBRARIES)
def test_a_missing_library_names_the_extra_that_installs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"edgeembed_runtime.integrations.{name}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    for loaded in [each for each in sys.modules if each.partition(".")[0] == _LIBRARIES[name]]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, _LIBRARIES[name], None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'edgeembed-runtime\[{name}\]'") as caught:
        importlib.import_module(module)
    assert caught.value.extra == name


def test_integrations_are_loaded_only_when_they_are_imported() -> None:
    code = (
        "import sys, edgeembed_runtime.integrations, edgeembed_runtime\n"
        "edgeembed_runtime.Encoder\n"
        f"assert not set({list(_LIBRARIES.values())}) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_equal_arguments_share_one_encoder(bundle_path: Path) -> None:
    encoder = shared_encoder(bundle_path)
    assert shared_encoder(str(bundle_path)) is encoder
    assert shared_encoder(bundle_path, 2) is not encoder
    assert shared_encoder(bundle_path, fingerprint=encoder.bundle.fingerprint) is encoder


def test_a_replaced_bundle_is_loaded_again(make_bundle: Callable[..., Path], tmp_path: Path) -> None:
    first = shared_encoder(make_bundle(tmp_path / "bundle"))
    shutil.rmtree(tmp_path / "bundle")
    second = shared_encoder(make_bundle(tmp_path / "bundle", seed=1))
    assert (first.encode("cat") != second.encode("cat")).any()
    with pytest.raises(InputError, match="is not the encoder of the stored vectors"):
        shared_encoder(tmp_path / "bundle", fingerprint=first.bundle.fingerprint)


def test_a_path_is_never_the_name_of_a_built_in_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert bundle_name("mini") == "mini"
    assert bundle_name(None) is None
    assert bundle_name(Path("mini")) == str(tmp_path / "mini")
