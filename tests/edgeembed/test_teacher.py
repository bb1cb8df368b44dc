"""The on-disk cache of the teacher's embeddings."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer

from edgeembed.models import load_model
from edgeembed.teacher import cache as cache_module
from edgeembed.teacher import encoding as encoding_module
from edgeembed.teacher.cache import model_fingerprint
from edgeembed.teacher.encoding import encode_with_cache


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_CHUNK_ROWS", 64)


def paired_cosines(vectors: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.float64]:
    ours, theirs = (np.asarray(part, dtype=np.float64) for part in (vectors, others))
    products: npt.NDArray[np.float64] = (ours * theirs).sum(1)
    cosines: npt.NDArray[np.float64] = products / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    return cosines


def test_embeddings_are_the_teachers_in_the_order_of_the_sentences(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    cached = encode_with_cache(load_model(str(teacher_folder)), "print", sentences, tmp_path)
    expected = load_model(str(teacher_folder)).encode(sentences)
    assert cached.embeddings.dtype == np.float16
    assert paired_cosines(cached.embeddings, expected).min() > 0.999
    assert cached.reused_sentences == 0


def test_a_second_run_encodes_nothing(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    teacher = load_model(str(teacher_folder))
    first = encode_with_cache(teacher, "print", sentences, tmp_path)
    teacher.encode = None  # anyone who encodes now fails
    again = encode_with_cache(teacher, "print", sentences, tmp_path)
    assert again.reused_sentences == len(sentences)
    np.testing.assert_array_equal(again.embeddings, first.embeddings)


def test_each_text_and_teacher_has_its_own_cache(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    teacher = load_model(str(teacher_folder))
    folders = {
        encode_with_cache(teacher, "one", sentences, tmp_path).folder,
        encode_with_cache(teacher, "two", sentences, tmp_path).folder,
        encode_with_cache(teacher, "one", sentences[1:], tmp_path).folder,
    }
    assert len(folders) == 3


def test_texts_of_an_earlier_list_are_not_encoded_again(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher, encoded, progress = load_model(str(teacher_folder)), list[str](), list[int]()
    encode_texts = encoding_module.encode_texts

    def recording(teacher: SentenceTransformer, texts: list[str], prompt: str) -> npt.NDArray[np.float16]:
        encoded.extend(texts)
        return encode_texts(teacher, texts, prompt)

    first = encode_with_cache(teacher, "print", sentences[:200], tmp_path)
    monkeypatch.setattr(encoding_module, "encode_texts", recording)
    mixed = sentences[::-1]
    second = encode_with_cache(teacher, "print", mixed, tmp_path, progress=progress.append)
    assert sorted(encoded) == sorted(sentences[200:])
    assert second.reused_sentences == progress[0] == 200
    assert progress == sorted(progress)
    assert progress[-1] == len(sentences)
    np.testing.assert_array_equal(second.embeddings[::-1][:200], first.embeddings)
    assert paired_cosines(second.embeddings, teacher.encode(mixed)).min() > 0.999
    assert encode_with_cache(teacher, "print", mixed, tmp_path).reused_sentences == len(sentences)


def test_embeddings_of_another_teacher_are_not_reused(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    encode_with_cache(teacher, "one", sentences, tmp_path)
    assert encode_with_cache(teacher, "two", sentences[1:], tmp_path).reused_sentences == 0


@pytest.mark.parametrize("damage", ["embeddings", "texts", "empty texts", "no texts"])
def test_a_damaged_cache_of_another_list_is_not_reused(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, damage: str
) -> None:
    teacher = load_model(str(teacher_folder))
    folder = encode_with_cache(teacher, "print", sentences, tmp_path).folder
    if damage == "embeddings":
        (folder / "vectors.f16").write_bytes(bytes((folder / "vectors.f16").stat().st_size))
    elif damage == "empty texts":
        (folder / "texts.npy").write_bytes(b"")
    elif damage == "texts":
        (folder / "texts.npy").write_bytes(b"damaged")
    else:
        (folder / "texts.npy").unlink()
    cached = encode_with_cache(teacher, "print", sentences[1:], tmp_path)
    assert cached.reused_sentences == 0
    assert paired_cosines(cached.embeddings, teacher.encode(sentences[1:])).min() > 0.999


def test_a_chunk_that_does_not_match_its_checksum_is_encoded_again(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    first = encode_with_cache(teacher, "print", sentences, tmp_path)
    whole = np.array(first.embeddings)
    damaged = np.memmap(first.folder / "vectors.f16", dtype=np.float16, mode="r+", shape=whole.shape)
    damaged[5] = 0
    damaged.flush()
    again = encode_with_cache(teacher, "print", sentences, tmp_path)
    assert 0 < again.reused_sentences < len(sentences)
    np.testing.assert_array_equal(again.embeddings, whole)


def test_an_incomplete_line_of_the_log_is_ignored(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    teacher = load_model(str(teacher_folder))
    first = encode_with_cache(teacher, "print", sentences, tmp_path)
    log = first.folder / "chunks.jsonl"
    log.write_text(log.read_text()[:-30])
    again = encode_with_cache(teacher, "print", sentences, tmp_path)
    assert 0 < again.reused_sentences < len(sentences)


_KILLED = """
import pathlib, sys
from edgeembed.teacher import cache as cache_module, encoding as teacher
from edgeembed.models import load_model
import torch
torch.set_num_threads(1)
cache_module._CHUNK_ROWS = 64
sentences = open(sys.argv[2], encoding="utf-8").read().splitlines()
def progress(done):
    print(done, flush=True)
    if done >= 128:
        import time
        time.sleep(60)
cache = pathlib.Path(sys.argv[3])
teacher.encode_with_cache(load_model(sys.argv[1]), "print", sentences, cache, progress=progress)
"""


@pytest.mark.slow
def test_a_killed_run_resumes(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    text = tmp_path / "sentences.txt"
    text.write_text("\n".join(sentences), encoding="utf-8")
    command = [sys.executable, "-c", _KILLED, str(teacher_folder), str(text), str(tmp_path / "cache")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": "ignore"}
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 128:
            break
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    time.sleep(0.1)
    cached = encode_with_cache(load_model(str(teacher_folder)), "print", sentences, tmp_path / "cache")
    assert cached.reused_sentences == 128
    assert paired_cosines(cached.embeddings, load_model(str(teacher_folder)).encode(sentences)).min() > 0.999


def test_encoding_does_not_change_the_teachers_weights(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    encode_with_cache(teacher, "print", sentences, tmp_path)
    assert all(weight.equal(before[name]) for name, weight in teacher.state_dict().items())


def test_encoding_without_sentences_is_an_error(teacher_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentences"):
        encode_with_cache(load_model(str(teacher_folder)), "print", [], tmp_path)


def test_a_full_disk_is_an_input_error(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _start: int, _length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match="No space left on device"):
        encode_with_cache(load_model(str(teacher_folder)), "print", sentences, tmp_path)


def test_the_fingerprint_changes_with_the_weights(teacher_folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(teacher_folder, tmp_path / "copy")
    assert model_fingerprint(copy) == model_fingerprint(teacher_folder)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    assert model_fingerprint(copy) != model_fingerprint(teacher_folder)


def test_an_incomplete_line_of_the_log_costs_only_its_own_chunk(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.teacher.cache._CHUNK_ROWS", 64)
    teacher = load_model(str(teacher_folder))
    cached = encode_with_cache(teacher, "print", sentences, tmp_path)
    log = cached.folder / "chunks.jsonl"
    log.write_bytes(log.read_bytes()[:-10])
    lost = len(sentences) % 64
    assert encode_with_cache(teacher, "print", sentences, tmp_path).reused_sentences == len(sentences) - lost
    assert encode_with_cache(teacher, "print", sentences, tmp_path).reused_sentences == len(sentences)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "cannot read or write the teacher cache .*: Permission denied"),
        (OSError("no such device"), "cannot read or write the teacher cache .*: no such device"),
    ],
)
def test_the_error_of_the_file_system_is_passed_on(
    error: OSError,
    message: str,
    teacher_folder: Path,
    sentences: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(cache_module, "_open_embeddings", failing)
    with pytest.raises(InputError, match=message):
        encode_with_cache(load_model(str(teacher_folder)), "print", sentences, tmp_path)


def test_a_broken_pipe_is_not_reported_as_a_cache_error(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    def broken(_count: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        encode_with_cache(load_model(str(teacher_folder)), "print", sentences, tmp_path, progress=broken)


def test_the_fingerprint_of_a_loaded_model_changes_with_weights_and_settings(teacher_folder: Path) -> None:
    model = load_model(teacher_folder)
    before = model_fingerprint(model)
    assert before == model_fingerprint(load_model(teacher_folder)) != model_fingerprint(model, normalize=False)
    model.encode(["one text", "another one of more words"])
    assert model_fingerprint(model) == before
    model.max_seq_length = 7
    assert model_fingerprint(model) != before
    model = load_model(teacher_folder)
    next(model.parameters()).data[0] += 1
    assert model_fingerprint(model) != before
