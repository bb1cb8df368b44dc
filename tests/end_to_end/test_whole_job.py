"""Text and a teacher in, a ranking and a bill of costs out, through the commands that a user types."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Encoder

pytestmark = pytest.mark.slow


def call(script: str, arguments: Sequence[str | Path], *, code: int = 0) -> Any:
    """Run a command and give its JSON; a failing one gives its last line on stderr."""
    command = [str(Path(sys.executable).with_name(script)), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr.strip().splitlines()[-1]


def edgeembed(*arguments: str | Path, code: int = 0) -> Any:
    return call("edgeembed", [*arguments], code=code)


def runtime(*arguments: str | Path) -> Any:
    return call("edgeembed-runtime", [*arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("job")


@pytest.fixture(scope="module")
def corpus(folder: Path, sentences: list[str]) -> Path:
    file = folder / "corpus.txt"
    file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def student(folder: Path, corpus: Path, teacher_folder: Path) -> Path:
    settings = "student.layers=2 student.token_dim=16 student.max_seq_length=48 head.dim=8 corpus.heldout=20"
    stage = "vocabulary.kind=trained vocabulary.size=120 stages.batch_size=16 stages.epochs=3"
    overrides = [part for setting in f"{settings} {stage}".split() for part in ("--set", setting)]
    out = folder / "student"
    edgeembed("distill", "--corpus", corpus, "--teacher", teacher_folder, "--out", out, *overrides, "--json")
    return out


@pytest.fixture(scope="module")
def bundle(folder: Path, student: Path, corpus: Path) -> Path:
    out = folder / "bundle"
    arguments = ("--precision", "int8", "--sentences", corpus, "--min-cosine", "0.9")
    report = edgeembed("export", student, "--out", out, *arguments, "--json")
    assert report["dimension"] == 8
    assert report["parity"]["min_cosine"] >= 0.9
    return out


def test_the_bundle_tells_where_it_comes_from(bundle: Path, teacher_folder: Path) -> None:
    manifest = json.loads((bundle / "edgeembed.json").read_text())
    assert manifest["teacher"] == teacher_folder.name
    assert manifest["recipe"]["head"]["dim"] == 8
    assert manifest["precision"] == "int8"


def test_the_bundle_gives_nearly_the_students_vectors(bundle: Path, student: Path, sentences: list[str]) -> None:
    from edgeembed.models import load_model

    ours, theirs = Encoder.load(bundle).encode(sentences[:50]), load_model(str(student)).encode(sentences[:50])
    assert (ours * theirs).sum(axis=1).min() > 0.9


def test_verify_passes_on_the_bundle_and_fails_on_a_damaged_copy(bundle: Path, folder: Path) -> None:
    import shutil

    verified = edgeembed("verify", bundle, "--json")
    assert verified["verified"] is True
    assert verified["golden"]["min_cosine"] == runtime("verify", bundle, "--json")["golden"]["min_cosine"] == 1
    damaged = shutil.copytree(bundle, folder / "damaged", dirs_exist_ok=True)
    tokenizer = damaged / "tokenizer.json"
    content = bytearray(tokenizer.read_bytes())
    content[-2] ^= 1
    tokenizer.write_bytes(content)
    assert "tokenizer.json" in edgeembed("verify", damaged, code=1)


def test_a_truncated_bundle_is_refused(bundle: Path, folder: Path) -> None:
    import shutil

    truncated = shutil.copytree(bundle, folder / "truncated", dirs_exist_ok=True)
    model = truncated / "onnx" / "model_quantized.onnx"
    model.write_bytes(model.read_bytes()[:1000])
    assert "model_quantized.onnx" in edgeembed("verify", truncated, code=1)


def test_a_gate_that_is_missed_writes_nothing(student: Path, corpus: Path, folder: Path) -> None:
    out = folder / "gated"
    arguments = ("--precision", "int8", "--sentences", corpus, "--min-cosine", "0.99999")
    message = edgeembed("export", student, "--out", out, *arguments, code=1)
    assert "0.99999" in message
    assert not list(folder.glob("*gated*"))


def test_the_runtime_indexes_searches_and_ranks_with_the_bundle(bundle: Path, corpus: Path, folder: Path) -> None:
    index = folder / "index"
    runtime("index", corpus, "--out", index, "--bundle", bundle, "--json")
    question = corpus.read_text(encoding="utf-8").splitlines()[7]
    hits = runtime("search", index, question, "--bundle", bundle, "-k", "3", "--json")
    ranked = runtime("rank", question, corpus, "--bundle", bundle, "-k", "3", "--json")
    for found in (hits, ranked):
        rows = found["hits"] if isinstance(found, dict) else found
        assert rows[0]["text"] == question
        assert rows[0]["score"] == pytest.approx(1, abs=1e-3)


def test_evaluate_and_bench_put_bundle_and_teacher_side_by_side(
    bundle: Path, teacher_folder: Path, corpus: Path, folder: Path, sentences: list[str]
) -> None:
    pairs = folder / "pairs.tsv"
    rows = [f"{sentences[i]}\t{sentences[i + 1]}\t{i % 5}" for i in range(40)]
    pairs.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    scores = edgeembed("evaluate", bundle, "--against", teacher_folder, "--sts", pairs, "--json")
    assert len(scores["scores"]) == len(scores["reference_scores"]) == 1

    quick = "--runs", "20", "--processes", "1"
    report = edgeembed("bench", bundle, "--against", teacher_folder, "--texts", corpus, *quick, "--json")
    ours, theirs = report["derived"][bundle.name], report["derived"][teacher_folder.name]
    assert len(report["subjects"][0]["processes"][0]["latency_ms"]) == 20
    assert ours["size_bytes"] < theirs["size_bytes"]
    assert ours["mj_per_inference"] is None or ours["energy_source"]


def test_the_runtime_loads_no_heavy_library_and_opens_no_socket(bundle: Path) -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise AssertionError('a socket was opened')\n"
        "socket.socket = refuse\n"
        "from edgeembed_runtime import Encoder\n"
        "assert Encoder.load(sys.argv[1]).encode('offline').shape == (8,)\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, bundle], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
