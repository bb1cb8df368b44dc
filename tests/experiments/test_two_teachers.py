from pathlib import Path

import numpy as np
import numpy.typing as npt
from click.testing import CliRunner
from sentence_transformers import SentenceTransformer

import edgeembed
from experiments.two_teachers import command, mix


def normalized(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    unit: npt.NDArray[np.floating] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def test_similarities_are_a_mean_of_two_teachers_and_the_target_is_the_first() -> None:
    random = np.random.default_rng(0)
    first, second = random.normal(size=(5, 4)), 3 * random.normal(size=(5, 6))
    mixed, projection = mix(first.astype(np.float16), second.astype(np.float16), share=0.25)
    one, other = normalized(first), normalized(second)
    np.testing.assert_allclose(mixed @ mixed.T, 0.25 * one @ one.T + 0.75 * other @ other.T, atol=3e-3)
    np.testing.assert_allclose(normalized((mixed - projection.mean) @ projection.matrix), one, atol=2e-3)


def test_a_student_of_two_teachers_has_the_dimension_of_the_first(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences), encoding="utf-8")
    edgeembed.encode([str(corpus)], teacher_folder, tmp_path / "vectors")
    arguments = {
        "--corpus": corpus,
        "--teacher": teacher_folder,
        "--teacher-embeddings": tmp_path / "vectors",
        "--second": "nano",
        "--cache": tmp_path / "cache",
        "--out": tmp_path / "student",
    }
    settings = [
        "vocabulary.kind=teacher",
        "student.intermediate_size=0",
        "student.token_dim=16",
        "student.max_seq_length=32",
    ]
    options = [str(each) for pair in arguments.items() for each in pair]
    run = CliRunner().invoke(command, [*options, *[word for each in settings for word in ("--set", each)]])
    assert run.exit_code == 0, run.output
    student = SentenceTransformer(str(tmp_path / "student"), device="cpu", trust_remote_code=True)
    assert student.encode(["A man is playing a guitar."]).shape == (1, 32)
    repeated = CliRunner().invoke(command, options)
    assert repeated.exit_code == 1
    assert "exists already" in repeated.output
