"""Text encoders: what they return, what they add to a store, and their fingerprints."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from edgeembed_runtime.errors import InputError

from edgeembed.embeddings import text_encoder as module
from edgeembed.embeddings.fingerprint import model_fingerprint, text_fingerprint
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_encoder import TextEncoder, torch_encoder
from edgeembed.embeddings.text_vectors import TextVectors, map_vectors
from edgeembed.models import load_model


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_PER_SHARD", 64)
    monkeypatch.setattr(module, "_BATCH_SIZE", 32)


@pytest.fixture
def encoder(teacher_folder: Path) -> TextEncoder:
    return torch_encoder("teacher", load_model(teacher_folder), teacher_folder, "")


def paired_cosines(vectors: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.float64]:
    ours, theirs = (np.asarray(part, dtype=np.float64) for part in (vectors, others))
    products: npt.NDArray[np.float64] = (ours * theirs).sum(1)
    cosines: npt.NDArray[np.float64] = products / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    return cosines


def fill(encoder: TextEncoder, texts: list[str], folder: Path, progress: Any = lambda _done: None) -> TextVectors:
    store = EmbeddingStore.create(folder / "store", encoder.identity)
    reused = encoder.fill(store, texts, progress)
    return map_vectors(store, texts, folder / "vectors", reused=reused)


def test_embeddings_are_the_models_in_the_order_of_the_texts(
    encoder: TextEncoder, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    found = fill(encoder, sentences, tmp_path)
    assert found.vectors.dtype == np.float16
    assert paired_cosines(found.vectors, load_model(teacher_folder).encode(sentences)).min() > 0.999
    assert found.reused_texts == 0
    assert EmbeddingStore.open(tmp_path / "store").encoder == encoder.identity


def test_the_first_batches_are_as_long_as_the_others(encoder: TextEncoder) -> None:
    texts = ["the cat " * (1 + number // 4) for number in range(960)]
    batches = [places for places, _ in encoder.batches(texts)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(960))
    lengths = [len(texts[place]) for batch in batches[: len(batches) // 3] for place in batch]
    assert np.mean(lengths) == pytest.approx(np.mean([len(text) for text in texts]), rel=0.3)
    spread = [
        max(len(texts[place]) for place in batch) - min(len(texts[place]) for place in batch) for batch in batches
    ]
    assert max(spread) <= 8 * len("the cat ")


def test_a_second_run_encodes_nothing(encoder: TextEncoder, sentences: list[str], tmp_path: Path) -> None:
    first = fill(encoder, sentences, tmp_path)
    idle = TextEncoder(encoder.identity, 32, None)  # type: ignore[arg-type]  # it fails if it encodes
    again = fill(idle, sentences, tmp_path)
    assert again.reused_texts == len(sentences)
    np.testing.assert_array_equal(again.vectors, first.vectors)


def test_texts_of_an_earlier_list_are_not_encoded_again(
    encoder: TextEncoder, sentences: list[str], tmp_path: Path
) -> None:
    encoded, progress = list[str](), list[int]()

    def recording(texts: list[str]) -> Any:
        encoded.extend(texts)
        return encoder.encode_batch(texts)

    first = fill(encoder, sentences[:200], tmp_path)
    mixed = sentences[::-1]
    recorder = TextEncoder(encoder.identity, 32, recording)
    second = fill(recorder, mixed, tmp_path, progress.append)
    assert sorted(encoded) == sorted(sentences[200:])
    assert second.reused_texts == progress[0] == 200
    assert progress == sorted(progress)
    assert progress[-1] == len(sentences)
    np.testing.assert_array_equal(second.vectors[::-1][:200], first.vectors)
    assert paired_cosines(second.vectors, encoder.encode(mixed)).min() > 0.999


def test_a_damaged_shard_is_encoded_again(encoder: TextEncoder, sentences: list[str], tmp_path: Path) -> None:
    whole = np.array(fill(encoder, sentences, tmp_path).vectors)
    file = sorted((tmp_path / "store" / "shards").glob("*.parquet"))[1]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    again = fill(encoder, sentences, tmp_path)
    assert 0 < again.reused_texts < len(sentences)
    assert paired_cosines(again.vectors, whole).min() > 0.999


_KILLED = """
import pathlib, sys
import torch
from edgeembed.embeddings import text_encoder
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.models import load_model
torch.set_num_threads(1)
text_encoder._ROWS_PER_SHARD, text_encoder._BATCH_SIZE = 64, 32
sentences = open(sys.argv[2], encoding="utf-8").read().splitlines()
def progress(done):
    print(done, flush=True)
    if done >= 160:
        import time
        time.sleep(60)
teacher = pathlib.Path(sys.argv[1])
encoder = text_encoder.torch_encoder("teacher", load_model(teacher), teacher, "")
encoder.fill(EmbeddingStore.create(pathlib.Path(sys.argv[3]), encoder.identity), sentences, progress)
"""


@pytest.mark.slow
def test_a_killed_run_resumes(encoder: TextEncoder, teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    text = tmp_path / "sentences.txt"
    text.write_text("\n".join(sentences), encoding="utf-8")
    command = [sys.executable, "-c", _KILLED, str(teacher_folder), str(text), str(tmp_path / "store")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONWARNINGS": "ignore"}
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 160:
            break
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()
    found = fill(encoder, sentences, tmp_path)
    assert found.reused_texts == 128
    assert paired_cosines(found.vectors, encoder.encode(sentences)).min() > 0.999


def test_an_interrupted_run_keeps_its_shards_and_is_not_complete(
    encoder: TextEncoder, sentences: list[str], tmp_path: Path
) -> None:
    def interrupt(done: int) -> None:
        if done >= 160:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(encoder, sentences, tmp_path, interrupt)
    with pytest.raises(InputError, match="is incomplete; expected all shards"):
        EmbeddingStore.open(tmp_path / "store")
    assert fill(encoder, sentences, tmp_path).reused_texts == 128


def test_encoding_in_bfloat16_does_not_change_the_models_weights(
    teacher_folder: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.hardware.has_bf16", lambda _device: True)
    model = load_model(teacher_folder)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    encoder = torch_encoder("teacher", model, teacher_folder, "")
    assert encoder.identity.precision == "bf16"
    assert paired_cosines(encoder.encode(sentences[:40]), model.encode(sentences[:40])).min() > 0.99
    assert all(weight.equal(before[name]) for name, weight in model.state_dict().items())
    assert next(model.parameters()).dtype == torch.float32


def test_encoding_without_sentences_is_an_error(encoder: TextEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sentences"):
        fill(encoder, [], tmp_path)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("No space left on device")])
def test_a_full_disk_is_an_input_error(
    error: OSError, encoder: TextEncoder, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=r"cannot write .*\.f16: No space left on device; expected a writable folder"):
        fill(encoder, sentences[:40], tmp_path)


def test_a_broken_pipe_is_not_reported_as_an_error_of_the_store(
    encoder: TextEncoder, sentences: list[str], tmp_path: Path
) -> None:
    def broken(_count: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        fill(encoder, sentences, tmp_path, broken)


def test_the_fingerprint_changes_with_the_weights(teacher_folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(teacher_folder, tmp_path / "copy")
    assert model_fingerprint(copy) == model_fingerprint(teacher_folder)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "hidden_act": "relu"}))
    assert model_fingerprint(copy) != model_fingerprint(teacher_folder)


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


def test_the_fingerprint_of_texts_tells_where_they_end() -> None:
    lists = [["a b"], ["a", "b"], ["b", "a"], ["a\nb"]]
    assert len({text_fingerprint(texts) for texts in lists}) == len(lists)
