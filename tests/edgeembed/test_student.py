from pathlib import Path

import pytest
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer

from edgeembed.models import load_model
from edgeembed.students.transformer import CompactTransformer, check_teacher


def student_of(
    teacher: SentenceTransformer, tokenizer: Tokenizer, *, layers: int, token_dim: int
) -> SentenceTransformer:
    table = teacher[0].auto_model.get_input_embeddings().weight.detach()
    transformer = CompactTransformer.from_teacher(
        teacher[0].auto_model,
        tokenizer,
        table,
        token_weights=torch.ones(len(table)),
        token_dim=token_dim,
        layers=layers,
        max_seq_length=48,
        dropout=0.0,
    )
    return SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()], device="cpu").eval()


def test_a_student_of_all_layers_and_full_width_is_its_teacher(
    teacher_folder: Path, tokenizer: Tokenizer, sentences: list[str]
) -> None:
    teacher = load_model(str(teacher_folder))
    student = student_of(teacher, tokenizer, layers=4, token_dim=32)
    torch.testing.assert_close(
        torch.tensor(student.encode(sentences[:20])),
        torch.tensor(teacher.encode(sentences[:20])),
        atol=2e-5,
        rtol=0,
    )


def test_a_student_takes_the_teachers_last_layers(teacher_folder: Path, tokenizer: Tokenizer) -> None:
    teacher = load_model(str(teacher_folder))
    student = student_of(teacher, tokenizer, layers=1, token_dim=8)
    (ours,) = student[0].auto_model.encoder.layer
    for mine, theirs in zip(ours.parameters(), teacher[0].auto_model.encoder.layer[3].parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_saved_student_loads_with_sentence_transformers_and_gives_the_same_vectors(
    teacher_folder: Path, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    student = student_of(load_model(str(teacher_folder)), tokenizer, layers=2, token_dim=8)
    student.save(str(tmp_path / "student"), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path / "student"), device="cpu", trust_remote_code=True)
    ours = load_model(str(tmp_path / "student"))
    expected = student.encode(sentences[:8])
    for model in (loaded, ours):
        torch.testing.assert_close(torch.tensor(model.encode(sentences[:8])), torch.tensor(expected))
    assert loaded.max_seq_length == 48


def test_the_table_is_as_narrow_as_asked_for(teacher_folder: Path, tokenizer: Tokenizer) -> None:
    student = student_of(load_model(str(teacher_folder)), tokenizer, layers=1, token_dim=5)
    embedding = student[0].auto_model.get_input_embeddings()
    assert tuple(embedding.table.weight.shape) == (tokenizer.get_vocab_size(), 5)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"layers": 5, "token_dim": 8, "max_seq_length": 8},
            "student.layers is 5, but the teacher has only 4",
        ),
        ({"layers": 1, "token_dim": 33, "max_seq_length": 8}, "student.token_dim is 33"),
        ({"layers": 1, "token_dim": 8, "max_seq_length": 65}, "student.max_seq_length is 65"),
    ],
)
def test_a_student_larger_than_its_teacher_is_refused(
    teacher_folder: Path, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_teacher(load_model(str(teacher_folder))[0].auto_model, **sizes)


def test_an_architecture_without_encoder_layers_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="the teacher is a Linear"):
        check_teacher(torch.nn.Linear(2, 2), layers=1, token_dim=1, max_seq_length=8)
