"""The recipes of xayn, on a tiny random teacher."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from edgeembed_runtime.errors import InputError
from sklearn.decomposition import PCA
from tokenizers import Tokenizer, models
from transformers import TrainerState

from edgeembed.corpus.parallel import ParallelText
from edgeembed.distillation import distill, pipeline
from edgeembed.embeddings.text_encoder import with_normalization
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe
from edgeembed.training.callbacks import StepCallback

from ...tiny_recipes import (  # noqa: TID252
    BERT_BASE,
    tiny,
    weights_of,
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


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
    from edgeembed.evaluation.tasks.sts import score_sts

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


def test_the_relevance_ranker_is_the_semantic_one_of_another_teacher_and_more_pairs() -> None:
    semantic, relevance = load_recipe("xayn-semantic"), load_recipe("xayn-relevance")
    assert relevance.student.max_seq_length == 128
    assert (semantic.parallel.limit, relevance.parallel.limit) == (100_000, 500_000)
    same = semantic.replace(
        name=relevance.name, description=relevance.description, parallel=relevance.parallel, teacher=relevance.teacher
    )
    assert relevance == same
