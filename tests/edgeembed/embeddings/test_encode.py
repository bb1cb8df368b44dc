"""The public function `encode`: a store of embeddings, resuming, and distillation from it."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from edgeembed_exporters.space import embedding_space
from edgeembed_runtime import Bundle, Encoder, Index
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.store_manifest import Shard

import edgeembed
from edgeembed.corpus import open_corpus
from edgeembed.distillation import comparison, pipeline
from edgeembed.embeddings.encode import TEXTS_PER_SHARD
from edgeembed.embeddings.ray import RayJob, _ShardReader, _ShardWriter
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_encoder import TextEncoder
from edgeembed.models import load_model
from edgeembed.provenance import read_provenance

TINY = {
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 8,
    "student.max_seq_length": 32,
    "head.dim": 6,
    "stages.epochs": 1,
}


@pytest.fixture(autouse=True)
def _float32_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")
    monkeypatch.setattr("edgeembed.hardware.default_device", lambda: "cpu")
    monkeypatch.setattr("edgeembed.hardware.has_bf16", lambda _device: False)


@pytest.fixture
def corpus(sentences: list[str], tmp_path: Path) -> list[Path]:
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file, part in zip(files, (sentences[:70], sentences[70:120]), strict=True):
        file.write_text("\n".join(part) + "\n\n", encoding="utf-8")
    return files


def stored(folder: Path) -> tuple[list[str], Any]:
    store = EmbeddingStore.open(folder)
    return list(store.texts()), store.read(np.arange(len(store)))


def test_the_store_holds_all_texts_in_order_with_the_models_embeddings(
    corpus: list[Path], sentences: list[str], teacher_folder: Path, tmp_path: Path
) -> None:
    report = edgeembed.encode(corpus, teacher_folder, tmp_path / "shards", texts_per_shard=32)
    assert (report.texts, report.shards, report.reused_texts, report.dimension) == (120, 5, 0, 32)
    texts, embeddings = stored(report.path)
    assert texts == sentences[:120]
    expected = load_model(teacher_folder).encode(texts)
    np.testing.assert_allclose(embeddings, expected, atol=1e-3)
    (file,) = report.path.glob("shards/00001-000001-*.parquet")
    table = pq.read_table(file)
    assert table.column_names == ["text", "text_hash", "embedding"]
    assert len(table) == 18
    assert "120 texts in 5 shards" in str(report)


def test_a_bundle_encodes_documents(corpus: list[Path], tmp_path: Path) -> None:
    report = edgeembed.encode(corpus[:1], "nano", tmp_path / "shards")
    texts, embeddings = stored(report.path)
    np.testing.assert_allclose(embeddings, Encoder("nano").encode_document(texts), atol=1e-3)
    assert json.loads((report.path / "manifest.json").read_text())["encoder"]["name"] == "nano"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="such names do not exist there")
@pytest.mark.parametrize("name", ["s3:x", "file:x", "c:x", os.fsdecode(b"caf\xe9")])
def test_shards_are_written_and_read_in_a_folder_of_any_name(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert edgeembed.encode(corpus[:1], "micro", name).texts == 70
    assert edgeembed.encode(corpus[:1], "micro", name).reused_texts == 70
    texts, _ = stored(Path(name))
    assert len(texts) == 70
    assert Index.build_from(Encoder("micro"), name, "index") == 70


def test_shards_of_a_bundle_become_an_index(corpus: list[Path], tmp_path: Path) -> None:
    encoder = Encoder("nano")
    shards = edgeembed.encode(corpus, "nano", tmp_path / "shards", texts_per_shard=50).path
    assert Index.build_from(encoder, shards, tmp_path / "index", precision="int8") == 120
    texts, embeddings = stored(shards)
    hits = Index.open(tmp_path / "index", encoder).search(embeddings.astype(np.float32), top_k=1)
    assert [texts[hit.id] for (hit,) in hits] == texts
    with pytest.raises(InputError, match=r"holds embeddings of 'nano'.*expected the encoder that computed them"):
        Index.build_from(Encoder("mini"), shards, tmp_path / "other")


def test_shards_state_the_embedding_space(corpus: list[Path], teacher_folder: Path, tmp_path: Path) -> None:
    models: list[tuple[Path | str, str | None]]
    models = [(teacher_folder, embedding_space(load_model(teacher_folder))), ("mini", Encoder("mini").bundle.space)]
    for number, (model, space) in enumerate(models):
        shards = edgeembed.encode(corpus[:1], model, tmp_path / str(number)).path
        assert json.loads((shards / "manifest.json").read_text())["encoder"]["space"] == space


def test_an_interrupted_run_writes_only_the_missing_shards(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = edgeembed.encode(corpus, teacher_folder, tmp_path / "whole", texts_per_shard=32)
    encode, calls = TextEncoder.encode, 0

    def fail_at_the_third(encoder: TextEncoder, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return encode(encoder, *arguments)

    monkeypatch.setattr(TextEncoder, "encode", fail_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        edgeembed.encode(corpus, teacher_folder, tmp_path / "store", texts_per_shard=32)
    with pytest.raises(InputError, match="is incomplete; expected all shards: run edgeembed encode again"):
        EmbeddingStore.open(tmp_path / "store")
    report = edgeembed.encode(corpus, teacher_folder, tmp_path / "store", texts_per_shard=32)
    assert (report.shards, report.reused_texts, calls) == (5, 64, 6)
    texts, embeddings = stored(report.path)
    assert texts == stored(whole.path)[0]
    assert np.array_equal(embeddings, stored(whole.path)[1])
    assert (report.path / "manifest.json").read_text() == (whole.path / "manifest.json").read_text()


def test_only_new_texts_of_a_larger_corpus_are_encoded(
    corpus: list[Path], sentences: list[str], teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edgeembed.encode(corpus[:1], teacher_folder, tmp_path / "store")
    encode, counts = TextEncoder.encode, []

    def counting(encoder: TextEncoder, texts: Sequence[str], *arguments: Any) -> Any:
        counts.append(len(texts))
        return encode(encoder, texts, *arguments)

    monkeypatch.setattr(TextEncoder, "encode", counting)
    report = edgeembed.encode(corpus[::-1], teacher_folder, tmp_path / "store")
    assert (report.texts, report.shards, report.reused_texts, counts) == (120, 2, 70, [50])
    texts, embeddings = stored(report.path)
    assert texts == sentences[:120]
    np.testing.assert_allclose(embeddings, load_model(teacher_folder).encode(texts), atol=1e-3)


def test_a_damaged_shard_is_refused_and_encoded_again(
    corpus: list[Path], sentences: list[str], teacher_folder: Path, tmp_path: Path
) -> None:
    out = edgeembed.encode(corpus, teacher_folder, tmp_path / "store", texts_per_shard=50).path
    file = sorted(out.glob("shards/*"))[1]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    settings: dict[str, Any] = {"teacher": teacher_folder, "overrides": TINY}
    with pytest.raises(InputError, match=r"parquet is missing or damaged: .* run edgeembed encode again"):
        edgeembed.distill("compact", corpus, tmp_path / "student", teacher_embeddings=out, **settings)
    report = edgeembed.encode(corpus, teacher_folder, out, texts_per_shard=50)
    assert (report.texts, report.reused_texts) == (120, 100)
    assert sorted(stored(out)[0]) == sorted(sentences[:120])


def test_a_folder_of_another_model_is_an_error_and_stays(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "store"
    edgeembed.encode(corpus, teacher_folder, out)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    with pytest.raises(InputError, match=r"of another model \(fingerprint .*dimension 32 instead of 256"):
        edgeembed.encode(corpus, "nano", out)
    with pytest.raises(InputError, match="normalized True instead of False"):
        edgeembed.encode(corpus, teacher_folder, out, normalize=False)
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "spark"}, "engine is 'spark'; expected one of local, ray"),
        ({"workers": 2}, "address and workers are settings of the engine ray"),
        ({"texts_per_shard": 0}, "texts_per_shard is 0; expected an integer of at least 1"),
        ({"model": "no-such-model"}, "no model called no-such-model"),
        ({"model": "nano", "normalize": False}, "nano is a bundle, whose embeddings are normalized"),
        ({"corpus": "missing.txt"}, "missing.txt does not exist"),
    ],
)
def test_wrong_arguments_are_one_clear_error(
    arguments: dict[str, Any], message: str, corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "shards"
    given: dict[str, Any] = {"corpus": corpus, "model": teacher_folder, **arguments}
    with pytest.raises(InputError, match=message):
        edgeembed.encode(given.pop("corpus"), given.pop("model"), out, **given)
    assert not out.exists()


def test_a_corpus_without_text_and_an_occupied_folder_are_errors(teacher_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n \n")
    with pytest.raises(InputError, match=r"blank.txt holds no text"):
        edgeembed.encode(tmp_path / "blank.txt", teacher_folder, tmp_path / "shards")
    with pytest.raises(InputError, match="is not a store of embeddings; choose another path"):
        edgeembed.encode(tmp_path / "blank.txt", teacher_folder, tmp_path)


def test_a_student_of_shards_equals_one_of_the_teacher(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"teacher": teacher_folder, "overrides": TINY}
    taught = edgeembed.distill("compact", corpus, tmp_path / "taught", **settings)
    shards = edgeembed.encode(corpus, teacher_folder, tmp_path / "shards", texts_per_shard=50).path
    monkeypatch.setattr(TextEncoder, "batches", None)  # nothing is encoded
    for number, source in enumerate((corpus, None)):
        out = tmp_path / str(number)
        report = edgeembed.distill("compact", source, out, teacher_embeddings=shards, **settings)
        assert report.sentences == taught.sentences
        assert report.losses == pytest.approx(taught.losses, rel=1e-3)


def test_shards_replace_the_teacher_of_a_student_that_starts_from_another_model(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    teacher, source = tmp_path / "teacher", tmp_path / "source"
    shutil.copytree(teacher_folder, teacher)
    shutil.copytree(teacher_folder, source)
    settings: dict[str, Any] = {"teacher": teacher, "overrides": {**TINY, "student.source": str(source)}}
    shards = edgeembed.encode(corpus, teacher, tmp_path / "shards").path
    loaded = edgeembed.distill("compact", None, tmp_path / "loaded", teacher_embeddings=shards, **settings)
    teacher.rename(tmp_path / "elsewhere")
    report = edgeembed.distill("compact", None, tmp_path / "student", teacher_embeddings=shards, **settings)
    assert (report.losses, report.space, report.dimension) == (loaded.losses, loaded.space, loaded.dimension)
    assert read_provenance(report.path)["teacher"] == read_provenance(loaded.path)["teacher"]


def test_what_needs_the_weights_of_a_missing_teacher_is_named(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    teacher = tmp_path / "teacher"
    shutil.copytree(teacher_folder, teacher)
    shards = edgeembed.encode(corpus, teacher, tmp_path / "shards").path
    teacher.rename(tmp_path / "elsewhere")
    source = {**TINY, "student.source": str(teacher_folder)}
    for recipe, name, overrides, message in (
        ("compact", str(teacher), TINY, r"the student starts from its weights: set student\.source to another model"),
        ("compact", "another", source, r"embeddings of .*teacher, normalized=True, .* name model and prompt of"),
    ):
        with pytest.raises(InputError, match=message):
            edgeembed.distill(
                recipe, None, tmp_path / "student", teacher=name, overrides=overrides, teacher_embeddings=shards
            )
    assert not (tmp_path / "student").exists()


def test_a_bundle_teaches_through_its_shards(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_MIN_SPACE_COSINE", -1)  # the student hardly trains
    shards = edgeembed.encode(corpus, "nano", tmp_path / "shards").path
    overrides = {**TINY, "student.source": str(teacher_folder), "head.kind": "linear", "head.dim": 256}
    report = edgeembed.distill(
        "compact", None, tmp_path / "student", teacher="nano", overrides=overrides, teacher_embeddings=shards
    )
    assert report.dimension == 256
    assert report.space == Bundle.open(builtin_bundle("nano")).space


def test_the_tokens_of_a_student_without_layers_start_from_its_source(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    shards = edgeembed.encode(corpus, "nano", tmp_path / "shards").path
    overrides = {
        "vocabulary.kind": "teacher",
        "student.source": str(teacher_folder),
        "student.shape.table_bits": 0,
        "student.shape.vector_dim": 32,
        "head.dim": 256,
        "stages.epochs": 0.01,
        "stages.learning_rate": 1e-9,
    }
    report = edgeembed.distill(
        "micro", None, tmp_path / "student", teacher="nano", overrides=overrides, teacher_embeddings=shards
    )
    student, source = load_model(report.path), load_model(teacher_folder)
    assert student.tokenizer.get_vocab() == source.tokenizer.get_vocab()
    ours, theirs = (next(iter(model.parameters())).detach() for model in (student, source))
    assert ours.shape == (len(theirs), 32)
    torch.testing.assert_close(ours @ ours.T, theirs @ theirs.T)


def test_a_student_names_the_bundle_that_taught_it_and_the_model_that_this_is_made_from(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "teachers" / "small"
    shutil.copytree(str(builtin_bundle("nano")), bundle)
    shards = edgeembed.encode(corpus, bundle, tmp_path / "shards").path
    overrides = {**TINY, "student.source": str(teacher_folder), "head.kind": "linear", "head.dim": 256}
    edgeembed.distill(
        "compact", None, tmp_path / "student", teacher=bundle, overrides=overrides, teacher_embeddings=shards
    )
    provenance = read_provenance(tmp_path / "student")
    assert provenance["teacher"] == provenance["recipe"]["teacher"] == "small"
    card = (tmp_path / "student" / "README.md").read_text(encoding="utf-8")
    assert "\nbase_model: sentence-transformers/all-MiniLM-L6-v2\n" in card
    assert "distilled from small" in card


def test_shards_that_do_not_fit_a_distillation_are_errors(
    corpus: list[Path], teacher_folder: Path, tmp_path: Path
) -> None:
    shards = edgeembed.encode(corpus[:1], teacher_folder, tmp_path / "shards").path
    other = edgeembed.encode(corpus[:1], "nano", tmp_path / "other").path
    for source, folder, message in (
        (corpus, shards, r"lacks \d+ of \d+ sentences, the first is"),
        (corpus, other, "holds embeddings of nano, normalized=True, prompt='', which is not the recipe's teacher"),
        (corpus, tmp_path, r"holds no manifest\.json"),
    ):
        with pytest.raises(InputError, match=message):
            edgeembed.distill(
                "compact",
                source,
                tmp_path / "student",
                teacher=teacher_folder,
                overrides=TINY,
                teacher_embeddings=folder,
            )
    assert not (tmp_path / "student").exists()


def test_what_a_killed_worker_left_is_removed(corpus: list[Path], tmp_path: Path) -> None:
    out = edgeembed.encode(corpus, "nano", tmp_path / "shards", texts_per_shard=50).path
    left = out / "shards" / ".00000-000001.parquet.0123abcd.tmp"
    left.mkdir()
    unlisted = out / "shards" / "00007-000001-0123456789abcdef.parquet"
    unlisted.touch()
    assert edgeembed.encode(corpus, "nano", out, texts_per_shard=50).reused_texts == 120
    assert not left.exists()
    assert not unlisted.exists()


def ray_job(out: Path, tmp_path: Path, sentences: list[str]) -> RayJob:
    """Return the job of a folder that holds one shard."""
    (tmp_path / "text.txt").write_text("\n".join(sentences[:3]), encoding="utf-8")
    edgeembed.encode(tmp_path / "text.txt", "nano", out)
    return RayJob(EmbeddingStore.open(out), "nano", True, "", TEXTS_PER_SHARD)


def test_a_worker_that_does_not_see_the_folder_says_so_and_writes_nothing(sentences: list[str], tmp_path: Path) -> None:
    job = ray_job(tmp_path / "shards", tmp_path, sentences)
    shutil.rmtree(tmp_path / "shards")
    shard = {"prefix": ["00000-000001"], "texts": [sentences], "error": [""]}
    (error,) = _ShardWriter(job)(shard)["error"]
    assert error.startswith(
        f"on the machine {socket.gethostname()}: {tmp_path / 'shards'} is missing, or another folder"
    )
    assert not (tmp_path / "shards").exists()


def test_a_worker_that_does_not_see_the_corpus_says_so(
    corpus: list[Path], sentences: list[str], tmp_path: Path
) -> None:
    sources = open_corpus(corpus)
    corpus[1].unlink()
    (row,) = _ShardReader(ray_job(tmp_path / "store", tmp_path, sentences), sources)({"number": [1]})
    assert row["error"][0].endswith(f"{corpus[1]} cannot be read: No such file or directory; expected a readable file")


def test_a_worker_with_another_model_of_the_same_name_says_so(sentences: list[str], tmp_path: Path) -> None:
    job = replace(ray_job(tmp_path / "shards", tmp_path, sentences), model="mini")
    (error,) = _ShardWriter(job)({"prefix": ["00000-000001"], "texts": [sentences], "error": [""]})["error"]
    assert error.endswith("mini is another model there; expected the same one on all machines")


def test_a_shard_that_other_machines_do_not_see_is_an_error(sentences: list[str], tmp_path: Path) -> None:
    store = ray_job(tmp_path / "store", tmp_path, sentences).store
    with pytest.raises(InputError, match=r"00000-000001.parquet was written, but is not there; expected a folder that"):
        store.commit([Shard("00000-000001", 3, "")], is_complete=True)
