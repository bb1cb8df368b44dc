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

from edgeembed import teacher as teacher_module
from edgeembed.models import load_model
from edgeembed.teacher import teacher_fingerprint, teacher_vectors


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_module, "_CHUNK", 64)


def paired_cosines(vectors: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.float64]:
    ours, theirs = (np.asarray(part, dtype=np.float64) for part in (vectors, others))
    products: npt.NDArray[np.float64] = (ours * theirs).sum(1)
    cosines: npt.NDArray[np.float64] = products / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    return cosines


def test_vectors_are_the_teachers_in_the_order_of_the_sentences(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    cached = teacher_vectors(load_model(str(teacher_folder)), "print", sentences, tmp_path)
    expected = load_model(str(teacher_folder)).encode(sentences)
    assert cached.vectors.dtype == np.float16
    assert paired_cosines(cached.vectors, expected).min() > 0.999
    assert cached.reused_sentences == 0


def test_a_second_run_encodes_nothing(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    teacher = load_model(str(teacher_folder))
    first = teacher_vectors(teacher, "print", sentences, tmp_path)
    teacher.encode = None  # anyone who encodes now fails
    again = teacher_vectors(teacher, "print", sentences, tmp_path)
    assert again.reused_sentences == len(sentences)
    np.testing.assert_array_equal(again.vectors, first.vectors)


def test_other_text_or_another_teacher_gets_a_cache_of_its_own(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    folders = {
        teacher_vectors(teacher, "one", sentences, tmp_path).folder,
        teacher_vectors(teacher, "two", sentences, tmp_path).folder,
        teacher_vectors(teacher, "one", sentences[1:], tmp_path).folder,
    }
    assert len(folders) == 3


def test_a_chunk_that_does_not_match_its_checksum_is_encoded_again(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    first = teacher_vectors(teacher, "print", sentences, tmp_path)
    whole = np.array(first.vectors)
    damaged = np.memmap(first.folder / "vectors.f16", dtype=np.float16, mode="r+", shape=whole.shape)
    damaged[5] = 0
    damaged.flush()
    again = teacher_vectors(teacher, "print", sentences, tmp_path)
    assert 0 < again.reused_sentences < len(sentences)
    np.testing.assert_array_equal(again.vectors, whole)


def test_a_line_that_a_kill_cut_short_counts_as_not_done(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    first = teacher_vectors(teacher, "print", sentences, tmp_path)
    log = first.folder / "chunks.jsonl"
    log.write_text(log.read_text()[:-30])
    again = teacher_vectors(teacher, "print", sentences, tmp_path)
    assert 0 < again.reused_sentences < len(sentences)


_KILLED = """
import pathlib, sys
from edgeembed import teacher
from edgeembed.models import load_model
import torch
torch.set_num_threads(1)
teacher._CHUNK = 64
sentences = open(sys.argv[2], encoding="utf-8").read().splitlines()
def progress(done):
    print(done, flush=True)
    if done >= 128:
        import time
        time.sleep(60)
cache = pathlib.Path(sys.argv[3])
teacher.teacher_vectors(load_model(sys.argv[1]), "print", sentences, cache, progress=progress)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
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
    cached = teacher_vectors(load_model(str(teacher_folder)), "print", sentences, tmp_path / "cache")
    assert cached.reused_sentences == 128
    assert paired_cosines(cached.vectors, load_model(str(teacher_folder)).encode(sentences)).min() > 0.999


def test_encoding_leaves_the_teachers_weights_as_they_were(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    teacher_vectors(teacher, "print", sentences, tmp_path)
    assert all(weight.equal(before[name]) for name, weight in teacher.state_dict().items())


def test_no_sentences_are_refused(teacher_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentences"):
        teacher_vectors(load_model(str(teacher_folder)), "print", [], tmp_path)


def test_a_full_disk_is_told_in_one_line(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _start: int, _length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match="No space left on device"):
        teacher_vectors(load_model(str(teacher_folder)), "print", sentences, tmp_path)


def test_the_fingerprint_changes_with_the_weights(teacher_folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(teacher_folder, tmp_path / "copy")
    assert teacher_fingerprint(copy) == teacher_fingerprint(teacher_folder)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    assert teacher_fingerprint(copy) != teacher_fingerprint(teacher_folder)


def test_a_line_that_was_cut_short_costs_its_own_chunk_and_no_other(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.teacher._CHUNK", 64)
    teacher = load_model(str(teacher_folder))
    cached = teacher_vectors(teacher, "print", sentences, tmp_path)
    log = cached.folder / "chunks.jsonl"
    log.write_bytes(log.read_bytes()[:-10])
    lost = len(sentences) % 64
    assert teacher_vectors(teacher, "print", sentences, tmp_path).reused_sentences == len(sentences) - lost
    assert teacher_vectors(teacher, "print", sentences, tmp_path).reused_sentences == len(sentences)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "cannot read or write the teacher cache .*: Permission denied"),
        (OSError("no such device"), "cannot read or write the teacher cache .*: no such device"),
    ],
)
def test_what_the_system_says_of_the_cache_is_passed_on(
    error: OSError,
    message: str,
    teacher_folder: Path,
    sentences: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(teacher_module, "_open_vectors", failing)
    with pytest.raises(InputError, match=message):
        teacher_vectors(load_model(str(teacher_folder)), "print", sentences, tmp_path)


def test_a_closed_pipe_is_no_fault_of_the_cache(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    def gone(_done: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        teacher_vectors(load_model(str(teacher_folder)), "print", sentences, tmp_path, progress=gone)
