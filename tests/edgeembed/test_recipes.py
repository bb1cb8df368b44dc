"""Each recipe that comes with edgeembed, run on a tiny random teacher."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError
from sklearn.decomposition import PCA
from transformers import AutoConfig, AutoModel

from edgeembed import distillation
from edgeembed.distillation import distil
from edgeembed.models import load_model
from edgeembed.recipe import Recipe, load_recipe, recipe_names
from edgeembed.students.encoders import layers_of, reshaped
from edgeembed.students.transformer import compact_encoder
from edgeembed.teacher import with_length

TEACHER_WIDTH = 32
QUICK = ("lmx-kd", "projection-128", "whitening-128", "hpd-128-no-augmentation", "simtde-small-hidden-states")


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "default_device", lambda: "cpu")


@pytest.fixture
def pairs(tmp_path: Path, sentences: list[str]) -> Path:
    """Triplets of made-up sentences."""
    file = tmp_path / "pairs.tsv"
    rows = zip(sentences[:64], sentences[64:128], sentences[128:192], strict=True)
    file.write_text("anchor\tpositive\thard_negative\n" + "".join("\t".join(row) + "\n" for row in rows))
    return file


@pytest.fixture
def dev(tmp_path: Path, sentences: list[str]) -> Path:
    """Scored pairs."""
    file = tmp_path / "dev.tsv"
    rows = [
        f"{first}\t{other}\t{score}\n"
        for score, (first, other) in enumerate(zip(sentences, sentences[9:19], strict=False))
    ]
    file.write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    return file


def tiny(name: str, teacher_folder: Path, *changes: str) -> Recipe:
    """A recipe with its sizes shrunk to fit the tiny teacher."""
    whole = load_recipe(name)
    sizes = [
        f'teacher="{teacher_folder}"',
        "augmentation.required=false",
        "student.max_seq_length=32",
        "vocabulary.size=100",
    ]
    for key, size in {
        "student.token_dim": 8 if whole.student.token_dim else 0,
        "student.hidden_size": 16 if whole.student.hidden_size else 0,
        "head.dim": TEACHER_WIDTH if whole.head.dim == 384 else 6,
        "head.whiten_dim": 6 if whole.head.whiten_dim else 0,
    }.items():
        sizes.append(f"{key}={size}")
    recipe = load_recipe(name, [*sizes, *changes])
    stages = tuple(replace(stage, epochs=1.0, batch_size=32) for stage in recipe.stages)
    return replace(recipe, stages=stages)


def made(recipe: Recipe, sentences: list[str], folder: Path, pairs: Path) -> distillation.DistilReport:
    labelled = [pairs] if any(stage.contrastive for stage in recipe.stages) else []
    domains = {sentence: row % 2 for row, sentence in enumerate(sentences)}
    return distil(recipe, sentences, folder / "student", pairs=labelled, domains=domains)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in recipe_names()]
)
def test_a_recipe_gives_a_student_that_encodes(
    name: str, teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    recipe = tiny(name, teacher_folder)
    report = made(recipe, sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    vectors = student.encode(sentences[:10])
    assert vectors.shape == (10, report.dimension)
    assert np.isfinite(vectors).all()
    assert np.ptp(vectors, axis=0).max() > 0
    if recipe.student.architecture == "transformer":
        assert len(layers_of(student[0].auto_model)) == (recipe.student.layers or 4)
    assert np.isfinite(report.losses).all()


def test_lmx_is_narrow_and_learns_the_teachers_width(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    report = made(tiny("lmx-kd", teacher_folder), sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    assert student[0].auto_model.config.hidden_size == 16
    assert report.dimension == TEACHER_WIDTH
    assert not any("matrices" in name for name in student.state_dict())


def test_a_second_stage_can_start_from_the_student_of_a_first(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first" / "student"
    recipe = tiny("distilcse", teacher_folder)
    distil(replace(recipe, stages=recipe.stages[:1]), sentences, first)
    unmoved = tiny("simcse", teacher_folder, f'student.source="{first}"', "stages.learning_rate=1e-12")
    stages = tuple(replace(stage, learning_rate=1e-12) for stage in unmoved.stages)
    made(replace(unmoved, stages=stages), sentences, tmp_path, pairs)
    before, after = (load_model(str(folder)).encode(sentences) for folder in (first, tmp_path / "student"))
    np.testing.assert_allclose(after, before, atol=1e-5)


@pytest.mark.slow
def test_hpd_learns_the_teachers_principal_components(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, "student.layers=0")
    stage = replace(recipe.stages[0], epochs=40.0, learning_rate=5e-3, batch_size=64)
    distil(replace(recipe, stages=(stage,)), sentences, tmp_path / "student")
    raw = with_length(load_model(str(teacher_folder)), unit=False).encode(sentences)
    vectors = load_model(str(tmp_path / "student")).encode(sentences)
    components = PCA(6, svd_solver="full").fit_transform(raw)
    # Up to the sign of each component, which a PCA leaves open.
    distances = np.minimum(np.square(vectors - components).mean(axis=0), np.square(vectors + components).mean(axis=0))
    assert (distances < 0.1 * components.var(axis=0)).all()


def test_whitened_vectors_have_identity_covariance_on_the_corpus(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    report = made(tiny("whitening-128", teacher_folder), sentences, tmp_path, pairs)
    vectors = load_model(str(tmp_path / "student")).encode(sorted(sentences, key=len))
    fitted = np.array([vector for index, vector in enumerate(vectors) if index % 8])
    np.testing.assert_allclose(np.cov(fitted, rowvar=False, bias=True), np.eye(6), atol=1e-3)
    assert report.whitening is not None
    assert report.whitening["whitened"]


def test_the_checkpoint_that_does_best_on_the_development_set_is_kept(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path
) -> None:
    from edgeembed.evaluation.encoders import open_encoder
    from edgeembed.evaluation.sts import read_sts, score_sts

    recipe = tiny("simtde-small", teacher_folder, "stages.checkpoint_steps=2", "stages.learning_rate=0.01")
    report = distil(recipe, sentences, tmp_path / "student", dev=dev)
    (best,) = report.dev_spearman
    found = score_sts(open_encoder(str(tmp_path / "student")), read_sts(dev))[0].value
    assert best == pytest.approx(found, abs=0.01)


def test_a_recipe_for_labelled_pairs_asks_for_them(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"projection-128 learns from labelled pairs; expected --pairs FILE.tsv"):
        distil(tiny("projection-128", teacher_folder), sentences, tmp_path / "student")


def test_pairs_that_no_stage_reads_are_refused(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="simtde-small has no contrastive stage"):
        distil(tiny("simtde-small", teacher_folder), sentences, tmp_path / "student", pairs=[pairs])


def test_a_recipe_for_augmented_text_asks_for_it(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"learns from augmented text; expected --wordnet FOLDER"):
        distil(tiny("hpd-128", teacher_folder, "augmentation.required=true"), sentences, tmp_path / "student")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("student.hidden_size=16", "the student is 16 wide and the teacher's vectors have 32 dimensions"),
        ("head.whiten_dim=40", "head.whiten_dim is 40, but the student's vectors have 32 dimensions"),
    ],
)
def test_dimensions_that_do_not_meet_are_refused(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, change: str, message: str
) -> None:
    recipe = tiny("simtde-small-no-token-loss", teacher_folder, change)
    with pytest.raises(InputError, match=message):
        distil(recipe, sentences, tmp_path / "student")


def test_a_student_can_start_from_a_model_other_than_its_teacher(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, f'student.source="{teacher_folder}"', "student.layers=2")
    report = distil(recipe, sentences, tmp_path / "student")
    assert report.dimension == 6


@pytest.mark.parametrize(
    ("name", "width", "depth", "papers"),
    [
        ("simtde-base", 768, 12, 34.1e6),
        ("simtde-small", 384, 6, 9.5e6),
        ("simtde-64-L2(128)", 128, 2, 2.4e6),
        ("simtde-32-L2(128)", 128, 2, 1.4e6),
    ],
)
def test_students_are_of_the_papers_size(name: str, width: int, depth: int, papers: float) -> None:
    shape = load_recipe(name).student
    sizes = {"hidden_size": width, "num_hidden_layers": depth, "num_attention_heads": 2, "intermediate_size": 4 * width}
    with torch.device("meta"):  # shapes without weights
        teacher = AutoModel.from_config(AutoConfig.for_model("bert", **sizes))
        config = reshaped(teacher, layers=shape.layers or depth, hidden_size=width, dropout=0.0)
        student = compact_encoder(config, shape.token_dim)
    # The paper's figures have two digits, and may count a pooler, which no student needs.
    assert sum(weight.numel() for weight in student.parameters()) == pytest.approx(papers, rel=0.04)
