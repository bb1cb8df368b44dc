"""A teacher of random weights, in a shape of its own."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from experiments.teachers.random_teacher import Shape, command, read_lines, train_tokenizer, write_random_teacher

REFUSED = "{} exists already, expected a new path; choose another, or replace it with force=True (--force)"
SMALL = Shape(layers=1, width=16, heads=2, inner=32, tokens=24)


@pytest.fixture(scope="module")
def unigram(sentences: list[str]) -> Tokenizer:
    return train_tokenizer(sentences, size=120)


def test_a_tokenizer_has_the_special_tokens_of_xlm_r(unigram: Tokenizer, sentences: list[str]) -> None:
    assert [unigram.id_to_token(index) for index in range(5)] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    encoding = unigram.encode(sentences[0])
    assert (encoding.ids[0], encoding.ids[-1]) == (0, 2)
    assert 3 not in encoding.ids
    assert unigram.decode(encoding.ids) == sentences[0]


def test_a_teacher_loads_and_is_the_same_each_time(tmp_path: Path, unigram: Tokenizer, sentences: list[str]) -> None:
    for name in ("one", "other"):
        write_random_teacher(tmp_path / name, unigram, SMALL)
    one, other = (SentenceTransformer(str(tmp_path / name), device="cpu") for name in ("one", "other"))
    assert one.max_seq_length == 24
    vectors = one.encode(sentences[:9])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(vectors, other.encode(sentences[:9]))
    assert len(set(map(bytes, vectors))) == 9


def test_an_existing_teacher_is_kept_unless_forced(tmp_path: Path, unigram: Tokenizer) -> None:
    write_random_teacher(tmp_path / "made", unigram, SMALL)
    with pytest.raises(InputError, match="exists already"):
        write_random_teacher(tmp_path / "made", unigram, SMALL)
    write_random_teacher(tmp_path / "made", unigram, SMALL, force=True)
    done = CliRunner().invoke(command, ["--tokenizer", __file__, "--out", str(tmp_path / "made")])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: " + REFUSED.format(tmp_path / "made"))


def test_text_is_read_plain_and_compressed(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt.gz", "c.txt.xz")]
    files[0].write_text("Straße\n\n", encoding="utf-8")
    files[1].write_bytes(gzip.compress(b"two\n"))
    files[2].write_bytes(lzma.compress(b"three"))
    assert list(read_lines(files)) == ["Straße", "two", "three"]


@pytest.mark.parametrize("given", [[], ["--text", "t.txt", "--tokenizer", "t.txt"]])
def test_a_tokenizer_is_trained_or_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text("text")
    done = CliRunner().invoke(command, [*given, "--out", "made"])
    assert done.exit_code == 2
    assert "--text" in done.stderr
    assert not Path("made").exists()
