"""The arguments of a distillation, checked before any text is read or encoded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.storage.atomic import check_is_utf8, check_output_path

from edgeembed.arguments import check_path, check_seed
from edgeembed.corpus.inputs import CorpusLike, open_corpus
from edgeembed.corpus.parallel import ParallelText
from edgeembed.corpus.sources import find_sources, split_columns
from edgeembed.models import ModelLike, find_model, find_torch_model, model_name
from edgeembed.processes import process_count
from edgeembed.provenance import STUDENT_FOLDER
from edgeembed.recipe.loading import load_recipe

if TYPE_CHECKING:
    from edgeembed.recipe.schema import Recipe

Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Inputs:
    """The checked arguments of `distill`, which describes them.

    Attributes:
        recipe: The recipe, with all overrides.
        corpus: Unlabeled text; None without.
        out: Folder for the student.
        teacher: The teacher's name or folder, or the loaded model.
        parallel: Files of translations, or translations in memory.
        pairs: Files of labeled pairs.
        scored: Files of scored pairs.
        dev: File of the development set; None without.
        cache: Folder for the teacher's embeddings and checkpoints; None for the default.
        teacher_embeddings: Folder of the teacher's embeddings; None without.
        resume: Whether to continue from checkpoints.
        seed: The seed.
        force: Whether to replace an existing student.
    """

    recipe: Recipe
    corpus: CorpusLike | None
    out: Path
    teacher: ModelLike
    parallel: list[str | Path] | ParallelText
    pairs: list[str | Path]
    scored: list[str | Path]
    dev: str | Path | None
    cache: Path | None
    teacher_embeddings: Path | None
    resume: bool
    seed: int
    force: bool


def check_inputs(  # noqa: PLR0913  # the arguments of `distill`
    recipe: str | os.PathLike[str] | Recipe,
    corpus: CorpusLike | None,
    out: str | os.PathLike[str],
    *,
    teacher: ModelLike | None,
    parallel: Files | ParallelText,
    pairs: Files,
    scored: Files,
    dev: str | os.PathLike[str] | None,
    overrides: Mapping[str, Any] | Sequence[str],
    cache: str | os.PathLike[str] | None,
    teacher_embeddings: str | os.PathLike[str] | None,
    resume: bool,
    seed: int,
    force: bool,
) -> Inputs:
    """Return the arguments of `distill`, checked.

    Raises:
        InputError: If an argument is invalid, or something that the recipe learns from is missing.
    """
    for name, folder in (("out", out), ("cache", cache)):
        if not isinstance(folder, str | os.PathLike) and (name, folder) != ("cache", None):
            raise InputError(f"{name} is {short_repr(folder)}; expected a folder")
    out = Path(out)
    settings = _load_recipe(recipe, overrides, teacher)
    _check_batch_sizes(settings)
    check_output_path(out, force=force, kind=STUDENT_FOLDER)
    if cache is not None:
        check_is_utf8(check_path("cache", cache))
    check_seed(seed)
    pair_files, scored_files = _files("pairs", pairs), _files("scored", scored)
    parallel = parallel if isinstance(parallel, ParallelText) else _list("parallel", parallel)
    corpus = None if isinstance(corpus, list | tuple) and not corpus else corpus
    store = None if teacher_embeddings is None else check_path("teacher_embeddings", teacher_embeddings)
    if store is not None:
        if not settings.uses_teacher_embeddings:
            raise InputError(f"the recipe {settings.name} learns from no teacher embeddings; omit teacher_embeddings")
        corpus = store if corpus is None else corpus
    settings.check_inputs(
        corpus=() if corpus is None else (corpus,),
        parallel=parallel.files if isinstance(parallel, ParallelText) else parallel,
        pairs=pair_files,
        scored=scored_files,
    )
    dev_file = None if dev is None else _files("dev", [dev])[0]
    if corpus is not None:
        open_corpus(corpus)
    if not isinstance(parallel, ParallelText):
        find_sources(parallel)
    is_named = teacher is None or isinstance(teacher, str | os.PathLike)
    if is_named and (store is None or settings.needs_teacher_weights):
        _check_teacher(settings, has_embeddings=store is not None)
    for each in settings.teachers:
        find_model(each.name)
    return Inputs(
        recipe=settings,
        corpus=corpus,
        out=out,
        teacher=settings.teacher if teacher is None or is_named else teacher,
        parallel=parallel,
        pairs=pair_files,
        scored=scored_files,
        dev=dev_file,
        cache=None if cache is None else Path(cache),
        teacher_embeddings=store,
        resume=resume,
        seed=seed,
        force=force,
    )


def _check_teacher(recipe: Recipe, *, has_embeddings: bool) -> None:
    try:
        find_torch_model(recipe.teacher)
    except InputError as error:
        if not has_embeddings or recipe.student.source:
            raise
        raise InputError(
            f"{error}. The embeddings of the teacher are given, but the student starts from its weights: set "
            "student.source to another model to start from that one"
        ) from error


def _check_batch_sizes(recipe: Recipe) -> None:
    processes = process_count()
    for stage in recipe.stages:
        if stage.batch_size % processes:
            raise InputError(
                f"stages.batch_size is {stage.batch_size}, which {processes} processes cannot share equally; expected "
                "a multiple of their number: start another number of processes, or set another batch size"
            )


def _load_recipe(
    recipe: str | os.PathLike[str] | Recipe, overrides: Mapping[str, Any] | Sequence[str], teacher: ModelLike | None
) -> Recipe:
    """Return the recipe, with the name of the given teacher."""
    settings = load_recipe(recipe, overrides)
    if teacher is None:
        return settings
    # A path is always a folder, even if a model has the same name.
    name = model_name(teacher) if not isinstance(teacher, Path) else str(teacher.absolute())
    if not isinstance(teacher, str | os.PathLike) and any(stage.is_masked_lm for stage in settings.stages):
        raise InputError(
            f"the recipe {settings.name} distills a masked language model, and a SentenceTransformer has no head for "
            "masked tokens; expected the name or the folder of a model"
        )
    return settings.replace(teacher=name)


def _list(name: str, given: Files) -> list[str | Path]:
    """Return one file or several as a list."""
    files = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(files, list | tuple) or not all(isinstance(each, str | os.PathLike) for each in files):
        raise InputError(f"{name} is {short_repr(given)}; expected a file, or a list of files")
    return [each if isinstance(each, str) else Path(each) for each in files]


def _files(name: str, given: Files) -> list[str | Path]:
    """Return existing files as a list."""
    files = _list(name, given)
    for path in (split_columns(str(each))[0] for each in files):
        if not path.is_file():
            raise InputError(f"{name}: {path} does not exist or is not a file; expected a TSV or CSV file")
    return files
