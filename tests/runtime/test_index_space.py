"""Indexes that one encoder built and another one of the same embedding space searches."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError, PassageSettings

Make = Callable[..., Path]

_DOCUMENTS = ["the cat", "open a file", "read a file"]
_SPACE = "bert-8-0123456789abcdef"


@pytest.fixture
def teacher(tmp_path: Path, make_bundle: Make) -> Encoder:
    return Encoder.load(make_bundle(tmp_path / "teacher", seed=1, name="teacher", space=_SPACE))


@pytest.fixture
def student(tmp_path: Path, make_bundle: Make) -> Encoder:
    return Encoder.load(make_bundle(tmp_path / "student", seed=2, name="student", space=_SPACE))


@pytest.fixture
def saved(tmp_path: Path, teacher: Encoder) -> Path:
    Index.build(teacher, _DOCUMENTS).save(tmp_path / "index")
    return tmp_path / "index"


def _encoder(index: Path) -> dict[str, str]:
    content: dict[str, str] = json.loads((index / "index.json").read_text(encoding="utf-8"))["encoder"]
    return content


def test_an_encoder_of_the_same_space_searches_the_index_of_another(
    saved: Path, teacher: Encoder, student: Encoder
) -> None:
    index = Index.open(saved, student)
    expected = student.similarity(student.encode_query("read"), teacher.encode_document(_DOCUMENTS))[0]
    found = {hit.id: hit.score for hit in index.search("read", top_k=3)}
    np.testing.assert_allclose([found[i] for i in range(3)], expected, atol=1e-6)


def test_the_index_keeps_the_name_of_its_builder_when_another_encoder_adds_documents(
    saved: Path, teacher: Encoder, student: Encoder
) -> None:
    assert _encoder(saved) == {"name": "teacher", "fingerprint": teacher.bundle.fingerprint, "space": _SPACE}
    index = pickle.loads(pickle.dumps(Index.open(saved, student)))  # noqa: S301 - our own
    index.add(["a dog"])
    index.save(saved, force=True)
    Index.append_to(saved, ["a bird"], student)
    assert _encoder(saved)["name"] == "teacher"
    assert len(Index.open(saved, teacher)) == 5


def test_an_encoder_of_another_space_is_refused_with_the_expected_one(
    saved: Path, tmp_path: Path, make_bundle: Make
) -> None:
    for number, space in enumerate([None, "bert-8-fedcba9876543210"]):
        other = Encoder.load(make_bundle(tmp_path / str(number), seed=3, name="other", space=space))
        with pytest.raises(InputError, match=f"built by the encoder 'teacher'.*or another one of the space {_SPACE}"):
            Index.open(saved, other)


def test_without_a_space_only_the_builder_is_accepted(tmp_path: Path, make_bundle: Make) -> None:
    folders = [make_bundle(tmp_path / str(seed), seed=seed, space=None) for seed in (1, 2)]
    Index.build(Encoder.load(folders[0]), _DOCUMENTS).save(tmp_path / "index")
    Index.open(tmp_path / "index", Encoder.load(folders[0]))
    with pytest.raises(InputError, match="expected the encoder that built it: pass that one"):
        Index.open(tmp_path / "index", Encoder.load(folders[1]))


def test_the_same_space_in_another_dimension_is_refused(saved: Path, student: Encoder) -> None:
    wide = Encoder("mini")
    object.__setattr__(wide.bundle, "space", student.bundle.space)
    with pytest.raises(InputError, match="'edgeembed-mini'"):
        Index.open(saved, wide)


def test_the_built_in_encoder_states_the_space_of_its_teacher() -> None:
    assert Encoder("mini").bundle.space == "bert-384-c2226e0d82332510"
    assert Encoder("micro").bundle.space == Encoder("mini").bundle.space
    assert Encoder("nano").bundle.space != Encoder("mini").bundle.space  # it learned principal components


def test_an_encoder_that_reads_fewer_tokens_makes_shorter_passages(
    tmp_path: Path, make_bundle: Make, student: Encoder
) -> None:
    teacher = Encoder.load(make_bundle(tmp_path / "long", seed=1, name="long", space=_SPACE, max_seq_length=64))
    Index.build(teacher, ["cat"], passages=PassageSettings(max_tokens=50)).save(tmp_path / "index")
    index = Index.open(tmp_path / "index", student)
    index.add(["the cat " * 40])
    hits = index.search("the cat")
    passage = next(hit.passage for hit in hits if hit.id == 1)
    assert passage is not None
    assert len(student.tokenizer.tokenize(passage.text).ids) <= student.max_seq_length
    index.save(tmp_path / "index", force=True)
    assert json.loads((tmp_path / "index" / "index.json").read_bytes())["passages"]["max_tokens"] == 50
