"""`edgeembed verify`, with the encoder that the runtime ships."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import VerificationError

from edgeembed.cli.main import main
from edgeembed.exporting import verify

Captured = pytest.CaptureFixture[str]


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return shutil.copytree(str(builtin_bundle()), tmp_path / "bundle")


def test_verify_prints_the_distance_to_the_golden_vectors(bundle: Path, capsys: Captured) -> None:
    assert run("verify", bundle) == 0
    files, vectors = capsys.readouterr().out.splitlines()
    assert files.endswith("as exported; it encodes")
    assert vectors.startswith("golden vectors: minimum cosine ")
    assert run("verify", bundle, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["bundle"], result["verified"], result["differences"]) == (str(bundle), True, [])
    assert result["golden"]["texts"] == 12
    assert 0.99 < result["golden"]["min_cosine"] <= 1


def test_verify_lists_differences_as_json_and_exits_with_1(bundle: Path, capsys: Captured) -> None:
    (bundle / "config.json").write_text("changed by hand", encoding="utf-8")
    assert run("verify", bundle, "--json") == 1
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["verified"], result["golden"]) == (False, None)
    assert len(result["differences"]) == 1
    assert result["differences"][0] in err
    assert err.count("\n") == 1


def test_verify_detects_a_manifest_that_changes_the_embeddings(bundle: Path, capsys: Captured) -> None:
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    manifest |= {"prompts": {"query": "Write a poem about "}, "default_prompt_name": "query"}
    (bundle / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    (bundle / "edgeembed.json.sha256").unlink()
    assert run("verify", bundle) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "edgeembed.json was changed" in err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda bundle: (bundle / "edgeembed.json").write_text("{", encoding="utf-8"), "may be truncated"),
        (lambda bundle: (bundle / "tokenizer.json").unlink(), "tokenizer.json is missing"),
        (shutil.rmtree, "is not a folder"),
    ],
)
def test_verify_exits_with_2_if_the_folder_is_not_a_bundle(
    bundle: Path, capsys: Captured, damage: Callable[[Path], object], said: str
) -> None:
    damage(bundle)
    assert run("verify", bundle) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert run("verify", bundle, "--json") == 2
    result = json.loads(capsys.readouterr().out)
    assert (result["bundle"], result["verified"], result["golden"]) == (str(bundle), False, None)
    assert said in err
    assert said in result["differences"][0]


def test_a_report_raises_for_its_differences(bundle: Path) -> None:
    verify(bundle).raise_for_differences()
    (bundle / "config.json").write_text("changed by hand", encoding="utf-8")
    with pytest.raises(VerificationError, match=r"config\.json"):
        verify(bundle).raise_for_differences()
