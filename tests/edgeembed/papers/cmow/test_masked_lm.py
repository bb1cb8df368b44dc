"""General distillation of CMOW, with a tiny random masked language model."""

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from edgeembed_runtime.errors import InputError
from scipy.special import log_softmax, softmax
from sentence_transformers import SentenceTransformer
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    PreTrainedModel,
)

from edgeembed.distillation import distill, pipeline
from edgeembed.losses.soft_cross_entropy import soft_cross_entropy
from edgeembed.models import load_masked_lm, load_model
from edgeembed.papers.cmow.losses.masked_lm import MaskedLMLoss
from edgeembed.recipe.loading import load_recipe
from edgeembed.recipe.schema import Recipe
from edgeembed.students.cmow import CMOWConfig, MatrixEmbedding

Numbers = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.fixture
def masked_folder(teacher_folder: Path, tmp_path: Path) -> Path:
    """BERT with a head for masked tokens, and the tokenizer of the tiny teacher."""
    torch.manual_seed(4)
    tokenizer = AutoTokenizer.from_pretrained(teacher_folder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    folder = tmp_path / "masked"
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def student(teacher_folder: Path) -> SentenceTransformer:
    torch.manual_seed(5)
    tokenizer = AutoTokenizer.from_pretrained(teacher_folder)
    first = MatrixEmbedding(tokenizer, CMOWConfig(matrix_dim=3, vector_dim=5), max_seq_length=32)
    return SentenceTransformer(modules=[first], device="cpu").eval()


def recipe(folder: Path, *changes: str) -> Recipe:
    sizes = ["student.shape.matrix_dim=3", "student.shape.vector_dim=5", "student.max_seq_length=32"]
    settings = load_recipe("cmow-general", [f'teacher="{folder}"', *sizes, "stages.batch_size=16", *changes])
    return settings.replace(stages=tuple(stage.replace(epochs=2.0) for stage in settings.stages))


def by_hand(
    loss: MaskedLMLoss, teacher: PreTrainedModel, texts: dict[str, torch.Tensor], temperature: float
) -> tuple[float, float]:
    """Return the cross-entropies with the tokens and with the teacher, over the tokens that the same seed masks."""
    torch.manual_seed(6)
    seen, wanted = loss.collator.torch_mask_tokens(texts["input_ids"].clone())
    rows = (wanted != -100).numpy()
    with torch.no_grad():
        vectors = loss.model[0].contextual_embeddings(seen, texts["attention_mask"]).double().numpy()[rows]
        theirs = teacher(input_ids=seen, attention_mask=texts["attention_mask"]).logits.double().numpy()[rows]
    weight, bias = (each.detach().double().numpy() for each in (loss.head.weight, loss.head.bias))
    logits = vectors @ weight.T + bias
    right = wanted.numpy()[rows]
    assert len(right) > 5
    hard = -log_softmax(logits, axis=1)[np.arange(len(right)), right].mean()
    soft = -(softmax(theirs / temperature, axis=1) * log_softmax(logits / temperature, axis=1)).sum(axis=1).mean()
    return float(hard), float(soft)


@pytest.mark.parametrize(("share", "temperature"), [(0.5, 1.0), (0.2, 3.0), (1.0, 1.0), (0.0, 1.0)])
def test_the_loss_is_the_texts_and_the_teachers_cross_entropy(
    student: SentenceTransformer, masked_folder: Path, sentences: list[str], share: float, temperature: float
) -> None:
    teacher = load_masked_lm(str(masked_folder))
    assert teacher is not None
    masked_lm = MaskedLMLoss(student, teacher, hard_label_weight=share, temperature=temperature)
    texts = student.preprocess(sentences[:32])
    hard, soft = by_hand(masked_lm, teacher, texts, temperature)
    torch.manual_seed(6)
    loss = masked_lm([texts], torch.zeros(32))
    assert loss.item() == pytest.approx(share * hard + (1 - share) * soft, rel=1e-5)
    loss.backward()
    assert all(weight.grad is None for weight in teacher.parameters())
    assert all(weight.grad is not None for weight in student.parameters())


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "mobilebert"])
def test_teachers_of_several_architectures_give_the_logits_of_the_predicted_tokens(
    student: SentenceTransformer, sentences: list[str], architecture: str
) -> None:
    torch.manual_seed(4)
    sizes = {"vocab_size": len(student.tokenizer), "pad_token_id": 0, "max_position_embeddings": 64}
    narrow = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    if architecture == "mobilebert":
        narrow |= {"embedding_size": 8, "intra_bottleneck_size": 8}
    if architecture == "distilbert":
        narrow = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    teacher = AutoModelForMaskedLM.from_config(AutoConfig.for_model(architecture, **sizes, **narrow)).eval()
    masked_lm = MaskedLMLoss(student, teacher, hard_label_weight=0.0, temperature=1.0)
    texts = student.preprocess(sentences[:32])
    _, soft = by_hand(masked_lm, teacher, texts, 1.0)
    torch.manual_seed(6)
    assert masked_lm([texts], torch.zeros(32)).item() == pytest.approx(soft, rel=1e-5)


def test_the_teachers_last_layer_sees_the_predicted_tokens_alone(
    student: SentenceTransformer, masked_folder: Path, sentences: list[str]
) -> None:
    teacher = load_masked_lm(str(masked_folder))
    assert teacher is not None
    rows: list[int] = []
    teacher.get_output_embeddings().register_forward_hook(lambda _layer, _inputs, output: rows.append(len(output)))
    texts = student.preprocess(sentences[:32])
    MaskedLMLoss(student, teacher, hard_label_weight=0.5, temperature=1.0)([texts], torch.zeros(32))
    assert 0 < rows[0] < 0.5 * int(texts["attention_mask"].sum())


def test_soft_cross_entropy_is_least_where_both_agree() -> None:
    teacher = torch.tensor([[2.0, 0.0, -1.0]])
    agreed = soft_cross_entropy(teacher, teacher, 1.0)
    entropy = -(softmax([2.0, 0.0, -1.0]) * log_softmax([2.0, 0.0, -1.0])).sum()
    assert agreed.item() == pytest.approx(entropy, rel=1e-6)
    assert soft_cross_entropy(teacher.flip(1), teacher, 1.0) > agreed


def test_a_text_without_masked_tokens_has_no_loss(student: SentenceTransformer) -> None:
    masked_lm = MaskedLMLoss(student, None, hard_label_weight=0.5, temperature=1.0)
    texts = student.preprocess([""])  # special tokens alone, which are never masked
    assert masked_lm([texts], torch.zeros(1)).item() == 0


def test_a_student_learns_which_tokens_were_masked(masked_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    report = distill(recipe(masked_folder), sentences, tmp_path / "student")
    student = load_model(str(tmp_path / "student"))
    assert student.encode(sentences[:3]).shape == (3, 2 * 9 + 5)
    assert np.isfinite(report.losses).all()
    assert not any("head" in name for name in student.state_dict())


def test_a_teacher_without_a_masked_lm_head_logs_a_warning_and_is_not_used(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        distill(recipe(teacher_folder), sentences, tmp_path / "student")
    assert "has no masked-LM head; the student learns from the text alone" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("vocabulary.kind=trimmed", "vocabulary.kind=teacher, with the loss masked_lm"),
        ("stages.losses={masked_lm=1.0, mse=1.0}", "masked_lm in a stage of its own"),
    ],
)
def test_settings_that_masked_lm_cannot_use_raise(masked_folder: Path, change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recipe(masked_folder, change)


def test_a_loaded_model_cannot_teach_masked_tokens(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    teacher = load_model(str(teacher_folder))
    with pytest.raises(InputError, match="a SentenceTransformer has no head for masked tokens; expected the name"):
        distill("cmow-general", sentences, tmp_path / "student", teacher=teacher)


def test_a_transformer_does_not_predict_masked_tokens() -> None:
    with pytest.raises(InputError, match="'transformer'; expected one of cbow, cmow, hybrid, and"):
        load_recipe("compact", {"vocabulary.kind": "teacher", "stages.losses": {"masked_lm": 1.0}})
