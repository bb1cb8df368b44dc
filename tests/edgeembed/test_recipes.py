"""Each recipe that comes with edgeembed, run on a tiny random teacher."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError
from sklearn.decomposition import PCA
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast, TrainerCallback, TrainerState

from edgeembed.corpus.parallel import LanguageCounts, ParallelText
from edgeembed.distillation import DistillationReport, comparison, distill, pipeline
from edgeembed.distillation.data import DistillationData
from edgeembed.embeddings.text_encoder import with_normalization
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter, TimedSteps
from edgeembed.recipe.loading import load_recipe, recipe_names
from edgeembed.recipe.schema import Recipe
from edgeembed.students.architectures import encoder_layers, resized_config
from edgeembed.students.transformer import build_encoder
from edgeembed.training.callbacks import StepCallback
from edgeembed.training.data import LabeledData
from edgeembed.vocabulary import train_wordpiece

TEACHER_WIDTH = 32
INDEPENDENT_WIDTH = 24
QUICK = (
    "lmx-kd",
    "projection-128",
    "whitening-128",
    "hpd-128-no-augmentation",
    "simtde-small-hidden-states",
    "xayn-semantic-teacher",
    "xayn-relevance-teacher",
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


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


@pytest.fixture
def parallel(sentences: list[str]) -> ParallelText:
    """Made-up sentences, and what stands for translations into two languages: other words, with accents."""
    sources = sentences[:80]
    translations = [" ".join(f"é{word.capitalize()}" for word in sentence.split()) for sentence in sources]
    return ParallelText(sources, translations, (LanguageCounts("xx", 80, 80, 80),), ("en-xx.tsv",))


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


def tiny(name: str, teacher_folder: Path, *changes: str) -> Recipe:
    """Return a recipe with its sizes reduced to fit the tiny teacher."""
    whole = load_recipe(name)
    sizes = [
        f'teacher="{teacher_folder}"',
        "augmentation.required=false",
        "corpus.heldout=0",
        "student.max_seq_length=32",
        "vocabulary.size=100",
    ]
    for key, size in {
        "student.token_dim": 8 if whole.student.token_dim else 0,
        "student.hidden_size": 16 if whole.student.hidden_size else 0,
        "student.intermediate_size": 32 if whole.student.intermediate_size else 0,
        "head.dim": {"teacher_pca": 16}.get(whole.head.kind, TEACHER_WIDTH if whole.head.dim == 384 else 6),
        "head.whiten_dim": 6 if whole.head.whiten_dim else 0,
    }.items():
        sizes.append(f"{key}={size}")
    if whole.student.source:
        sizes.append(f'student.source="{teacher_folder}"')
    if whole.vocabulary.file:
        sizes.append(f'vocabulary.file="{teacher_folder}"')
    if name == "xayn-semantic-teacher":
        sizes.append("stages.losses.gold_similarity.max_score=9")
    recipe = load_recipe(name, [*sizes, *changes])
    stages = tuple(stage.replace(epochs=1.0, batch_size=32) for stage in recipe.stages)
    return recipe.replace(stages=stages)


def made(
    recipe: Recipe,
    sentences: list[str],
    folder: Path,
    pairs: Path,
    *,
    dev: Path | None = None,
    parallel: ParallelText | None = None,
) -> DistillationReport:
    labeled = [pairs] if any(stage.uses_pairs for stage in recipe.stages) else []
    scored = [dev] if dev and any(stage.uses_scored_pairs for stage in recipe.stages) else []
    corpus: Sequence[str | Path] = sentences
    if recipe.name == "distilcse-prototype-kd":  # each file is a domain
        corpus = [folder / "one.txt", folder / "other.txt"]
        for number, file in enumerate(map(Path, corpus)):
            file.write_text("\n".join(sentences[number::2]))
    translated = parallel if recipe.parallel.required else None
    out = folder / "student"
    return distill(recipe, corpus, out, parallel=translated or (), pairs=labeled, scored=scored)


def prepared(recipe: Recipe, sentences: list[str], folder: Path) -> pipeline.Prepared:
    """Return the student of a recipe before its first step, and what it is going to learn."""
    data = DistillationData(sentences, [], {}, None, LabeledData(None, (), None), ())
    steps = TimedSteps(SilentReporter())
    models_ = pipeline.load_models(recipe, recipe.teacher)
    return pipeline.prepare_student(recipe, models_, data, folder, steps, seed=0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in recipe_names()]
)
def test_every_recipe_trains_a_student_that_encodes(
    name: str,
    teacher_folder: Path,
    sentences: list[str],
    pairs: Path,
    dev: Path,
    parallel: ParallelText,
    tmp_path: Path,
) -> None:
    recipe = tiny(name, teacher_folder)
    report = made(recipe, sentences, tmp_path, pairs, dev=dev, parallel=parallel)
    student = load_model(str(tmp_path / "student"))
    vectors = student.encode(sentences[:10])
    assert vectors.shape == (10, report.dimension)
    assert np.isfinite(vectors).all()
    assert np.ptp(vectors, axis=0).max() > 0
    if recipe.student.architecture == "transformer":
        assert len(encoder_layers(student[0].auto_model)) == (recipe.student.layers or 4)
    assert np.isfinite(report.losses).all()


def test_lmx_is_narrow_and_learns_the_teachers_width(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    report = made(tiny("lmx-kd", teacher_folder), sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    assert student[0].auto_model.config.hidden_size == 16
    assert report.dimension == TEACHER_WIDTH
    assert not any("matrices" in name for name in student.state_dict())


@pytest.mark.parametrize("structure", [(), ("student.pooling=cls", "head.kind=mlp")], ids=["mean", "SimCSE's"])
def test_a_second_stage_can_start_from_the_student_of_a_first(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path, structure: tuple[str, ...]
) -> None:
    first = tmp_path / "first" / "student"
    recipe = tiny("distilcse", teacher_folder, *structure)
    distill(recipe.replace(stages=recipe.stages[:1]), sentences, first)
    unmoved = tiny("simcse", teacher_folder, f'student.source="{first}"', "stages.learning_rate=1e-12", *structure)
    stages = tuple(stage.replace(learning_rate=1e-12) for stage in unmoved.stages)
    made(unmoved.replace(stages=stages), sentences, tmp_path, pairs)
    before, after = (load_model(str(folder)).encode(sentences) for folder in (first, tmp_path / "student"))
    np.testing.assert_allclose(after, before, atol=1e-5)


def test_a_simcse_student_embeds_the_first_token_through_a_linear_layer_and_a_tanh(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    """DistilCSE, section 4.2: an MLP on top of the first token, for teacher and students."""
    made(tiny("simcse", teacher_folder, "student.pooling=cls", "head.kind=mlp"), sentences, tmp_path, pairs)
    student = load_model(str(tmp_path / "student"))
    dense = student[2].linear
    first = student.encode(sentences[:3], output_value="token_embeddings")
    tokens = torch.stack([tokens[0] for tokens in first])
    expected = torch.tanh(tokens @ dense.weight.T + dense.bias).detach().cpu().numpy()
    np.testing.assert_allclose(student.encode(sentences[:3]), expected, atol=1e-5)
    assert dense.weight.shape == (TEACHER_WIDTH, TEACHER_WIDTH)


@pytest.mark.parametrize("name", ["", "-kd", "-pkd", "-prototype-kd", "-one-stage"])
def test_distilcse_has_the_papers_settings(name: str) -> None:
    """Section 4.2: Adam without decay or clipping, a look every 125 steps, a patience of three epochs."""
    first, *second = load_recipe(f"distilcse{name}").stages
    assert (first.epochs, first.batch_size, first.learning_rate, first.patience) == (20, 512, 3e-4, 3)
    for stage in second:
        assert (stage.epochs, stage.batch_size, stage.learning_rate, stage.patience) == (5, 128, 5e-5, 0)
    for stage in (first, *second):
        assert (stage.weight_decay, stage.max_grad_norm, stage.checkpoint_steps) == (0, 0, 125)
    assert not first.group_by_length


class _FirstStep(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Records weights, gradients and the learning rate of the first step."""

    def __init__(self) -> None:
        self.before: dict[str, torch.Tensor] = {}
        self.gradients: dict[str, torch.Tensor] = {}
        self.after: dict[str, torch.Tensor] = {}

    def on_pre_optimizer_step(self, *_: object, model: torch.nn.Module, **__: object) -> None:
        if not self.before:
            trained = {name: each for name, each in model.named_parameters() if each.grad is not None}
            self.before = {name: each.detach().clone() for name, each in trained.items()}
            self.gradients = {name: each.grad.clone() for name, each in trained.items() if each.grad is not None}

    def on_optimizer_step(self, *_: object, model: torch.nn.Module, **__: object) -> None:
        if not self.after:
            self.after = {name: each.detach().clone() for name, each in model.named_parameters()}


def test_distilcse_takes_steps_of_adam_without_decay_or_clipping(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe, first = tiny("distilcse-one-stage", teacher_folder, "stages.losses.mse=1000"), _FirstStep()
    distill(recipe, sentences, tmp_path / "student", callbacks=[first])
    norm = torch.stack([gradient.norm() for gradient in first.gradients.values()]).norm()
    assert norm > 1  # where other recipes clip it
    for name, gradient in first.gradients.items():
        # Kingma and Ba 2014, algorithm 1, with t = 1: both moments are corrected to those of this gradient.
        moved = 3e-4 * gradient / (gradient.abs() + 1e-8)
        torch.testing.assert_close(first.after[name], first.before[name] - moved, atol=1e-7, rtol=1e-5)


def test_patience_is_in_epochs(
    teacher_folder: Path, sentences: list[str], dev: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage whose score never changes ends so many epochs after its first look at the development set."""

    class Looks(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
        steps: ClassVar[list[int]] = []

        def on_evaluate(self, _args: object, state: TrainerState, _control: object, **_: object) -> None:
            self.steps.append(state.global_step)

    monkeypatch.setattr("edgeembed.training.trainer.has_bf16", lambda _device: False)
    recipe = tiny("distilcse-one-stage", teacher_folder, "stages.learning_rate=1e-12")
    stage = recipe.stages[0].replace(epochs=20.0, patience=2.0, checkpoint_steps=3)
    distill(recipe.replace(stages=(stage,)), sentences[:192], tmp_path / "student", dev=dev, callbacks=[Looks()])
    assert Looks.steps == [3, 6, 9, 12, 15]  # six steps an epoch


def test_a_student_can_start_from_one_with_a_factorized_embedding_table(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    first = tmp_path / "first" / "student"
    distill(tiny("compact", teacher_folder), sentences, first)
    made(tiny("simcse", teacher_folder, f'student.source="{first}"'), sentences, tmp_path, pairs)
    before, after = (load_model(str(folder))[0].auto_model for folder in (first, tmp_path / "student"))
    ids = torch.arange(20)
    table = before.get_input_embeddings()(ids)
    torch.testing.assert_close(after.get_input_embeddings()(ids), table, atol=1e-2, rtol=0)


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


@pytest.mark.parametrize("steps", [2, 500], ids=["looks on the way", "ends before a look"])
def test_the_best_checkpoint_on_the_development_set_is_kept(
    teacher_folder: Path,
    sentences: list[str],
    dev: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
) -> None:
    # The trainer looks in what it trains in, and in bfloat16 the ranks of ten pairs turn on the last bits.
    monkeypatch.setattr("edgeembed.training.trainer.has_bf16", lambda _device: False)
    from edgeembed.corpus.pairs import read_sts
    from edgeembed.evaluation.encoders import load_encoder
    from edgeembed.evaluation.sts import score_sts

    recipe = tiny("simtde-small", teacher_folder, f"stages.checkpoint_steps={steps}", "stages.learning_rate=0.01")
    report = distill(recipe, sentences, tmp_path / "student", dev=dev)
    (best,) = report.dev_spearman
    found = score_sts(load_encoder(str(tmp_path / "student")), read_sts(dev))[0].value
    assert best == pytest.approx(found, abs=0.01)


def test_a_recipe_for_labeled_pairs_needs_them(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"projection-128 learns from labeled pairs; expected --pairs FILE.tsv"):
        distill(tiny("projection-128", teacher_folder), sentences, tmp_path / "student")


def test_pairs_that_no_stage_reads_raise(
    teacher_folder: Path, sentences: list[str], pairs: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="simtde-small has no stage that reads labeled pairs"):
        distill(tiny("simtde-small", teacher_folder), sentences, tmp_path / "student", pairs=[pairs])


def test_a_recipe_for_augmented_text_needs_it(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"learns from augmented text; expected --wordnet FOLDER"):
        distill(tiny("hpd-128", teacher_folder, "augmentation.required=true"), sentences, tmp_path / "student")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("student.hidden_size=16", "the student is 16 wide and the teacher's embeddings have 32 dimensions"),
        ("head.whiten_dim=40", "head.whiten_dim is 40, but the student's embeddings have 32 dimensions"),
    ],
)
def test_incompatible_dimensions_raise(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, change: str, message: str
) -> None:
    recipe = tiny("simtde-small-no-token-loss", teacher_folder, change)
    with pytest.raises(InputError, match=message):
        distill(recipe, sentences, tmp_path / "student")


def test_a_student_can_start_from_a_model_other_than_its_teacher(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    recipe = tiny("hpd-128-no-augmentation", teacher_folder, f'student.source="{teacher_folder}"', "student.layers=2")
    report = distill(recipe, sentences, tmp_path / "student")
    assert report.dimension == 6


def test_a_translation_gets_the_embedding_of_its_sentence(
    teacher_folder: Path, sentences: list[str], parallel: ParallelText, tmp_path: Path
) -> None:
    recipe = tiny("xayn-semantic", teacher_folder, "vocabulary.size=200")
    stage = recipe.stages[0].replace(epochs=30.0, learning_rate=2e-2)
    report = distill(recipe.replace(stages=(stage,)), [], tmp_path / "student", parallel=parallel)
    assert (report.sentences, report.dimension, report.languages) == (80, 16, parallel.languages)
    student, teacher = (
        load_model(str(tmp_path / "student")),
        with_normalization(load_model(str(teacher_folder)), normalize=False),
    )
    components = PCA(16, svd_solver="full").fit_transform(teacher.encode(parallel.sources))
    for texts in (parallel.sources, parallel.translations):
        theirs, ours = components @ components.T, student.encode(texts)
        assert np.corrcoef((ours @ ours.T).ravel(), theirs.ravel())[0, 1] > 0.9
    both = np.concatenate([student.encode(parallel.sources), student.encode(parallel.translations)])
    distances = np.linalg.norm(both[:80, None] - both[None, 80:], axis=2)
    assert (distances.argmin(axis=1) == np.arange(80)).mean() > 0.9


@pytest.mark.slow
def test_a_resumed_run_on_translations_gives_the_weights_of_one_that_was_never_interrupted(
    teacher_folder: Path, sentences: list[str], parallel: ParallelText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _StoppedError(Exception):
        pass

    class Stops(StepCallback):
        def on_step_end(self, _args: object, state: TrainerState, _control: object, **_: object) -> None:
            if state.global_step == 9:
                raise _StoppedError

    recipe = tiny("xayn-semantic", teacher_folder)
    stage = recipe.stages[0].replace(epochs=2.0, learning_rate=1e-3, checkpoint_steps=4)
    run = partial(distill, recipe.replace(stages=(stage,)), sentences, parallel=parallel, cache=tmp_path / "cache")
    run(tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "StepCallback", Stops)
        with pytest.raises(_StoppedError):
            run(tmp_path / "resumed")
    report = run(tmp_path / "resumed", resume=True)
    assert report.reused_sentences == report.sentences == len(sentences)
    whole, resumed = (load_model(str(tmp_path / name)).state_dict() for name in ("whole", "resumed"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_a_vocabulary_of_translations_keeps_case_and_accents(
    teacher_folder: Path, parallel: ParallelText, tmp_path: Path
) -> None:
    distill(tiny("xayn-semantic", teacher_folder), [], tmp_path / "student", parallel=parallel)
    tokenizer = load_model(str(tmp_path / "student")).tokenizer
    one, other, plain = (tokenizer(text)["input_ids"] for text in ("éCat", "écat", "ecat"))
    assert one != other != plain != one


def test_a_vocabulary_can_be_read_from_a_file_of_another_kind(
    teacher_folder: Path, parallel: ParallelText, tmp_path: Path
) -> None:
    file = tmp_path / "tokenizer.json"
    made_of = Tokenizer(
        models.Unigram([("<pad>", 0.0), ("<unk>", 0.0), *((c, -1.0) for c in "é▁abcdefghij")], unk_id=1)
    )
    made_of.save(str(file))
    recipe = tiny("xayn-semantic-multilingual-vocabulary", teacher_folder, f'vocabulary.file="{file}"')
    report = distill(recipe, [], tmp_path / "student", parallel=parallel)
    assert report.vocabulary_size == 14
    with pytest.raises(InputError, match="expected WordPiece"):
        distill(recipe.replace(student=recipe.student.replace(table_init="svd")), [], tmp_path / "b", parallel=parallel)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ({"a": 0, "[UNK]": 1}, r"the vocabulary has no padding token; expected \[PAD\] or <pad>"),
        ({"[PAD]": 0, "[UNK]": 2}, "has 2 tokens, but ids up to 2; expected ids without gaps"),
        (None, "vocabulary.file cannot be read: no model called .*, or a tokenizer.json"),
    ],
)
def test_an_unusable_vocabulary_raises(
    teacher_folder: Path, parallel: ParallelText, tmp_path: Path, tokens: dict[str, int] | None, message: str
) -> None:
    file = tmp_path / "tokenizer.json"
    if tokens:
        Tokenizer(models.WordLevel(tokens, unk_token="[UNK]")).save(str(file))  # no password
    recipe = tiny("xayn-semantic-multilingual-vocabulary", teacher_folder, f'vocabulary.file="{file}"')
    with pytest.raises(InputError, match=message):
        distill(recipe, [], tmp_path / "student", parallel=parallel)


def test_a_student_without_a_head_is_as_wide_as_the_components_that_it_learns(
    teacher_folder: Path, parallel: ParallelText, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"head.dim is 8, but the student is 16 wide"):
        distill(tiny("xayn-semantic", teacher_folder, "head.dim=8"), [], tmp_path / "student", parallel=parallel)


def test_a_teacher_learns_human_similarity_scores(teacher_folder: Path, dev: Path, tmp_path: Path) -> None:
    from edgeembed.corpus.pairs import read_sts
    from edgeembed.evaluation.encoders import load_encoder
    from edgeembed.evaluation.sts import score_sts

    recipe = tiny("xayn-semantic-teacher", teacher_folder)
    stage = recipe.stages[0].replace(epochs=20.0, learning_rate=3e-3)
    distill(recipe.replace(stages=(stage,)), [], tmp_path / "student", scored=[dev])
    assert score_sts(load_encoder(str(tmp_path / "student")), read_sts(dev))[0].value > 95


def test_scores_above_the_maximum_raise(teacher_folder: Path, dev: Path, tmp_path: Path) -> None:
    recipe = tiny("xayn-semantic-teacher", teacher_folder, "stages.losses.gold_similarity.max_score=5")
    with pytest.raises(
        InputError, match=r"scores from 0 to 9; expected 0 to 5: set stages.losses.gold_similarity.max_score"
    ):
        distill(recipe, [], tmp_path / "student", scored=[dev])


def test_a_teacher_puts_relevant_passages_nearer_to_queries_by_a_margin(
    teacher_folder: Path, pairs: Path, tmp_path: Path
) -> None:
    from edgeembed.corpus.pairs import read_pairs

    recipe = tiny("xayn-relevance-teacher", teacher_folder)
    stage = recipe.stages[0].replace(epochs=5.0, learning_rate=3e-3, losses={"triplet": {"margin": 0.5}})
    distill(recipe.replace(stages=(stage,)), [], tmp_path / "student", pairs=[pairs])
    student = load_model(str(tmp_path / "student"))
    query, relevant, irrelevant = (student.encode(texts) for texts in read_pairs([pairs]).values())
    gap = np.linalg.norm(query - irrelevant, axis=1) - np.linalg.norm(query - relevant, axis=1)
    assert (gap > 0).mean() > 0.9


def test_a_margin_needs_hard_negatives(teacher_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("anchor\tpositive\na\tb\nc\td\n")
    with pytest.raises(InputError, match=r"has no hard_negative.*`edgeembed mine` finds hard negatives"):
        distill(tiny("xayn-relevance-teacher", teacher_folder), [], tmp_path / "student", pairs=[file])


def weights_of(recipe: Recipe, source: Mapping[str, int]) -> int:
    """Return the number of weights of a recipe's encoder, without head, from a BERT of these sizes."""
    shape, vocabulary = recipe.student, recipe.vocabulary
    sizes = {"intermediate_size": 4 * source["hidden_size"], "num_attention_heads": 2, **source}
    with torch.device("meta"):  # shapes without weights
        encoder = AutoModel.from_config(AutoConfig.for_model("bert", **sizes))
        config = resized_config(
            encoder,
            layers=shape.layers or source["num_hidden_layers"],
            hidden_size=shape.hidden_size or source["hidden_size"],
            dropout=0.0,
        )
        config.vocab_size = vocabulary.size if vocabulary.kind == "trained" else config.vocab_size
        student = build_encoder(config, shape.token_dim)
    return sum(weight.numel() for weight in student.parameters())


BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12}
MINILM = {"hidden_size": 384, "num_hidden_layers": 6}
BERT_TINY = {"hidden_size": 128, "num_hidden_layers": 2}
TINYBERT = {"hidden_size": 312, "num_hidden_layers": 4, "intermediate_size": 1200}


@pytest.mark.parametrize(
    ("name", "changes", "megabytes", "tolerance"),
    [
        ("xayn-semantic", ["vocabulary.size=50_000"], 27, 0.03),
        ("xayn-semantic", [], 53, 0.03),
        ("xayn-semantic", ["vocabulary.size=150_000"], 79, 0.03),
        # Embeddings of 100,000 tokens and their positions are 309 MB, and a layer of BERT base has 28 more.
        ("xayn-semantic-wide", [], 312, 0.09),
        ("xayn-relevance", [], 53, 0.03),
        ("xayn-relevance-wide", [], 312, 0.09),
    ],
)
def test_xayns_students_are_of_the_size_of_tables_1_and_2(
    name: str, changes: list[str], megabytes: int, tolerance: float
) -> None:
    size = 4e-6 * weights_of(load_recipe(name, changes), BERT_BASE)
    assert size == pytest.approx(megabytes, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "changes", "source", "millions"),
    [
        pytest.param("simtde-base", [], BERT_BASE, 34.1, id="SimTDE-384-L3(768)"),
        pytest.param("simtde-base", ["student.layers=0"], BERT_BASE, 97.9, id="- encoding layer reduction"),
        pytest.param("simtde-small", [], MINILM, 9.5, id="SimTDE-128-L3(384)"),
        pytest.param("simtde-small-hidden-states", [], MINILM, 9.5, id="+ hidden states distillation"),
        pytest.param("simtde-small-random-table", [], MINILM, 9.5, id="random table"),
        pytest.param("simtde-small-random-table-no-token-loss", [], MINILM, 9.5, id="- token embedding loss"),
        pytest.param("lrn-kd", [], BERT_BASE, 38.4, id="LRN-KD-768-L2(768)"),
        pytest.param("lmx-kd", ["student.hidden_size=384"], BERT_BASE, 33.4, id="LMX-KD-384-L12(384)"),
        pytest.param("simtde-64-L2(128)", [], BERT_TINY, 2.4, id="SimTDE-64-L2(128)"),
        pytest.param("simtde-32-L2(128)", [], BERT_TINY, 1.4, id="SimTDE-32-L2(128)"),
        pytest.param("hpd-128", [], MINILM, 23, id="HPD-MiniLM-128"),
        pytest.param("hpd-128", [], TINYBERT, 14, id="HPD-TinyBERT-128"),
        pytest.param("distilcse", [], MINILM, 14, id="DistilCSE, TinyBERT's shape"),
        pytest.param(
            "distilcse",
            ["student.hidden_size=0", "student.layers=0"],
            BERT_BASE,
            110,
            id="DistilCSE, BERT-base's shape",
        ),
    ],
)
def test_students_are_of_the_size_of_the_papers_tables(
    name: str, changes: list[str], source: dict[str, int], millions: float
) -> None:
    # The papers' figures have two or three digits, and may count a pooler, which no student needs.
    assert weights_of(load_recipe(name, changes), source) / 1e6 == pytest.approx(millions, rel=0.04)


def test_the_two_students_with_a_random_table_differ_in_the_token_loss_alone() -> None:
    one, other = (load_recipe(f"simtde-small-random-table{end}") for end in ("", "-no-token-loss"))
    assert one.student == other.student
    assert (one.student.table_init, one.student.layer_init) == ("random", "last")
    assert [each.stages[0].losses.names for each in (one, other)] == [("mse", "token_embedding"), ("mse",)]
    same = other.stages[0].replace(losses=one.stages[0].losses)
    assert one.stages == (same,)


@pytest.mark.parametrize(("changes", "copied"), [([], False), (["student.layer_init=last"], True)])
def test_hidden_states_replace_the_teachers_weights_unless_these_are_asked_for(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, changes: list[str], copied: bool
) -> None:
    student = prepared(tiny("simtde-small-hidden-states", teacher_folder, *changes), sentences, tmp_path).student
    ours, theirs = (encoder_layers(model[0].auto_model) for model in (student, load_model(str(teacher_folder))))
    assert len(ours) == 3
    name = "output.dense.weight"
    for mine, other in zip(ours, list(theirs)[1:], strict=True):
        assert torch.equal(mine.get_parameter(name), other.get_parameter(name)) is copied


def test_the_relevance_ranker_is_the_semantic_one_of_another_teacher_and_more_pairs() -> None:
    semantic, relevance = load_recipe("xayn-semantic"), load_recipe("xayn-relevance")
    assert relevance.student.max_seq_length == 128
    assert (semantic.parallel.limit, relevance.parallel.limit) == (100_000, 500_000)
    same = semantic.replace(
        name=relevance.name, description=relevance.description, parallel=relevance.parallel, teacher=relevance.teacher
    )
    assert relevance == same
