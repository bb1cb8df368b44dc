"""The public function `distill`: check the arguments, read the data, train the student, write its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from edgeembed_runtime.errors import InputError, short_repr
from edgeembed_runtime.storage.atomic import check_output_path

from edgeembed.arguments import check_argument_types, check_path, check_seed, check_single_process
from edgeembed.corpus.inputs import CorpusLike, open_corpus
from edgeembed.corpus.parallel import ParallelText
from edgeembed.corpus.sources import find_sources, split_columns
from edgeembed.distillation.report import DistillationReport
from edgeembed.models import ModelLike, find_torch_model, model_name
from edgeembed.progress import Reporter, SilentReporter, TimedSteps
from edgeembed.provenance import STUDENT_FOLDER
from edgeembed.recipe.loading import load_recipe

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from edgeembed.recipe.schema import Recipe

Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@check_argument_types
def distill(  # noqa: PLR0913  # one argument for each option of the command
    recipe: str | os.PathLike[str] | Recipe = "compact",
    corpus: CorpusLike | None = None,
    out: str | os.PathLike[str] = "student",
    *,
    teacher: ModelLike | None = None,
    parallel: Files | ParallelText = (),
    pairs: Files = (),
    scored: Files = (),
    dev: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    teacher_embeddings: str | os.PathLike[str] | None = None,
    resume: bool = False,
    seed: int = 0,
    force: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
    report_to: Sequence[str] = (),
    reporter: Reporter | None = None,
    command: Sequence[str] = (),
) -> DistillationReport:
    """Distill a student from a teacher.

    Args:
        recipe: Name of a recipe (`edgeembed.recipes()` lists them), a TOML file, or a loaded recipe.
        corpus: Unlabeled text: files, folders, a list of texts, or a dataset; see `edgeembed.corpus.inputs`. None if
            the recipe learns from other data only. A tenth of it is held out, at most `corpus.heldout` sentences.
        out: Folder to write the student to; sentence-transformers loads it.
        teacher: The model to distill instead of the recipe's: a name, a folder, or a loaded SentenceTransformer, which
            is not changed.
        parallel: Files of sentences and translations (`read_parallel`), for students of several languages.
        pairs: Files of labeled pairs (`read_pairs`), for recipes that learn from them.
        scored: Files of scored sentence pairs (`read_sts`), for recipes that learn from them.
        dev: A file of scored sentence pairs (`read_sts`). Of each stage the checkpoint that scores best is kept.
        overrides: Settings of the recipe to change: `{"student.layers": 2}` or `["student.layers=2"]`.
        cache: Folder for the teacher's embeddings and checkpoints, which several runs may share; None for `out`.cache.
        teacher_embeddings: Folder that `edgeembed.encode` wrote with the teacher. Its embeddings are used, and the
            teacher encodes nothing. If `corpus` is None, its texts are the corpus; otherwise it must hold them.
        resume: Whether to continue from the checkpoints of an interrupted run of the same recipe, text and seed.
        seed: Decides all samples and random weights. The same seed gives the same weights on the same machine and
            libraries.
        force: Whether to replace an existing student in `out`.
        callbacks: Callbacks of the Hugging Face trainer; each runs in all stages.
        report_to: Integrations of the Hugging Face trainer, such as "tensorboard" or "wandb".
            TensorBoard's logs are in `out`.logs.
        reporter: Receives progress; silent by default.
        command: The command line, stated without paths on the student's model card.

    Returns:
        The report; its `path` is the student's folder.

    Raises:
        InputError: If an argument is invalid, something that the recipe learns from is missing, or a launcher started
            several processes. All of that is checked before any text is read or encoded.

    Examples:
        >>> import edgeembed
        >>> student = edgeembed.distill("compact", corpus=["notes.txt"], out="student").path
    """
    check_single_process()
    for name, folder in (("out", out), ("cache", cache)):
        if not isinstance(folder, str | os.PathLike) and (name, folder) != ("cache", None):
            raise InputError(f"{name} is {short_repr(folder)}; expected a folder")
    reporter, out = reporter or SilentReporter(), Path(out)
    settings = _load_recipe(recipe, overrides, teacher)
    check_output_path(out, force=force, kind=STUDENT_FOLDER)
    check_seed(seed)
    pair_files, scored_files = _files("pairs", pairs), _files("scored", scored)
    parallel = parallel if isinstance(parallel, ParallelText) else _list("parallel", parallel)
    corpus = None if isinstance(corpus, list | tuple) and not corpus else corpus
    shards_folder = None if teacher_embeddings is None else check_path("teacher_embeddings", teacher_embeddings)
    if shards_folder is not None:
        if not settings.uses_teacher_embeddings:
            raise InputError(f"the recipe {settings.name} learns from no teacher embeddings; omit teacher_embeddings")
        corpus = shards_folder if corpus is None else corpus
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
    if is_named:
        find_torch_model(settings.teacher)

    # Imports torch, which takes seconds: mistakes in the arguments above are reported at once.
    from edgeembed.distillation import pipeline
    from edgeembed.distillation.data import read_data
    from edgeembed.teacher.shards import ShardFolder
    from edgeembed.training.checkpoints import default_cache, default_logs, resume_hint
    from edgeembed.training.data import LabeledData
    from edgeembed.training.trainer import check_trainer_options

    check_trainer_options(callbacks, report_to)
    shards = None if shards_folder is None else ShardFolder.open(shards_folder)
    cache, steps = Path(cache) if cache is not None else default_cache(out), TimedSteps(reporter)
    with resume_hint(cache, reporter):
        labeled = LabeledData.read(settings, pair_files, scored_files, dev_file)
        models = pipeline.load_models(settings, settings.teacher if is_named else teacher)
        data = read_data(settings, corpus, parallel, labeled, [*pair_files, *scored_files], reporter, seed=seed)
        prepared = pipeline.prepare_student(settings, models, data, cache, steps, shards, seed=seed)
        checkpoints = pipeline.run_checkpoints(settings, data, prepared, cache, steps, resume=resume, seed=seed)
        results = pipeline.train_student(
            settings,
            prepared,
            labeled,
            checkpoints,
            steps,
            resume=resume,
            seed=seed,
            callbacks=callbacks,
            report_to=report_to,
            logs=default_logs(out),
        )
        student, whitening = pipeline.whiten_student(settings, prepared, steps)
        space = pipeline.shared_space(settings, models, prepared)
        report = pipeline.build_report(out, student, space, data, prepared, results, whitening, steps.seconds)
        pipeline.save_student(student, settings, models, report, data.names, seed=seed, force=force, command=command)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return report


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
