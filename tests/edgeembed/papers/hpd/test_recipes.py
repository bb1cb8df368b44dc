"""The recipes of hpd, on a tiny random teacher."""

from pathlib import Path

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError
from sklearn.decomposition import PCA
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from edgeembed.distillation import comparison, distill, pipeline
from edgeembed.embeddings.text_encoder import with_normalization
from edgeembed.models import load_model
from edgeembed.vocabulary import train_wordpiece

from ...tiny_recipes import (  # noqa: TID252
    INDEPENDENT_WIDTH,
    TEACHER_WIDTH,
    made,
    prepared,
    tiny,
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


@pytest.fixture
def independent_encoder(sentences: list[str], tmp_path: Path) -> Path:
    """A transformers encoder without pooling, of another width, depth and vocabulary than the teacher."""
    folder = tmp_path / "encoder"
    tokenizer = train_wordpiece(sentences, 80)
    config = AutoConfig.for_model(
        "bert",
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=INDEPENDENT_WIDTH,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=40,
        max_position_embeddings=64,
    )
    AutoModel.from_config(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_hpd_learns_the_teachers_principal_components(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, "student.layers=0")
    stage = recipe.stages[0].replace(epochs=40.0, learning_rate=5e-3, batch_size=64)
    distill(recipe.replace(stages=(stage,)), sentences, tmp_path / "student")
    raw = with_normalization(load_model(str(teacher_folder)), normalize=False).encode(sentences)
    vectors = load_model(str(tmp_path / "student")).encode(sentences)
    components = PCA(6, svd_solver="full").fit_transform(raw)
    # Up to the sign of each component, which a PCA leaves open.
    distances = np.minimum(np.square(vectors - components).mean(axis=0), np.square(vectors + components).mean(axis=0))
    assert (distances < 0.1 * components.var(axis=0)).all()


def test_hpds_target_is_the_centered_pca_at_the_teachers_own_width_too(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-384", teacher_folder)
    assert recipe.head.dim == TEACHER_WIDTH
    start = prepared(recipe, sentences, tmp_path)
    assert start.projection is not None
    assert start.cached is not None
    raw = np.asarray(start.cached.vectors, dtype=np.float64)
    learned = (raw - start.projection.mean) @ start.projection.matrix
    # Up to the sign of each component, which a PCA leaves open.
    components = PCA(svd_solver="full").fit_transform(raw)
    np.testing.assert_allclose(np.abs(learned), np.abs(components), atol=1e-4)
    np.testing.assert_allclose(learned.mean(axis=0), 0, atol=1e-5)


@pytest.mark.slow
def test_a_head_of_the_teachers_width_learns_its_embeddings_themselves_unless_they_are_centered(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_MIN_SPACE_COSINE", -1)  # these students hardly train
    centered = made(tiny("hpd-384", teacher_folder), sentences, tmp_path / "centered", tmp_path)
    recipe = tiny("hpd-384", teacher_folder, "head.center=false")
    same = made(recipe, sentences, tmp_path / "same", tmp_path)
    assert (centered.space, same.explained_variance) == (None, None)
    assert centered.explained_variance == pytest.approx(1)
    assert same.space is not None


def test_hpds_student_is_an_encoder_of_its_own(
    teacher_folder: Path, independent_encoder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, f'student.source="{independent_encoder}"')
    start = prepared(recipe, sentences, tmp_path)
    source = load_model(str(independent_encoder))
    assert start.student.tokenizer.get_vocab() == source.tokenizer.get_vocab()
    tokens = start.student.preprocess(sentences[:5])
    ours, theirs = (model[0](dict(tokens))["token_embeddings"].detach() for model in (start.student.eval(), source))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    named = source[0].auto_model.named_parameters()
    encoder = sum(weight.numel() for name, weight in named if not name.startswith("pooler"))
    head = INDEPENDENT_WIDTH * 6 + 6  # W and b of h = W e + b
    assert sum(weight.numel() for weight in start.student.parameters()) == encoder + head
    assert start.projection is not None
    assert start.projection.matrix.shape == (TEACHER_WIDTH, 6)


def test_whitened_vectors_have_identity_covariance_on_the_corpus(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    report = made(tiny("whitening-128", teacher_folder), sentences, tmp_path, pairs)
    vectors = load_model(str(tmp_path / "student")).encode(sorted(sentences, key=len))
    fitted = np.array([vector for index, vector in enumerate(vectors) if index % 8])
    np.testing.assert_allclose(np.cov(fitted, rowvar=False, bias=True), np.eye(6), atol=1e-3)
    assert report.whitening is not None
    assert report.whitening["whitened"]


def test_a_recipe_for_labeled_pairs_needs_them(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"projection-128 learns from labeled pairs; expected --pairs FILE.tsv"):
        distill(tiny("projection-128", teacher_folder), sentences, tmp_path / "student")


def test_a_recipe_for_augmented_text_needs_it(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"learns from augmented text; expected --wordnet FOLDER"):
        distill(tiny("hpd-128", teacher_folder, "augmentation.required=true"), sentences, tmp_path / "student")


def test_a_student_can_start_from_a_model_other_than_its_teacher(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, f'student.source="{teacher_folder}"', "student.layers=2")
    report = distill(recipe, sentences, tmp_path / "student")
    assert report.dimension == 6
