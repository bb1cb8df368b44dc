"""The public function `distill`: in one process, or in those that a launcher started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgeembed.arguments import check_argument_types
from edgeembed.corpus.inputs import CorpusLike
from edgeembed.corpus.parallel import ParallelText
from edgeembed.distillation.inputs import Files, check_inputs
from edgeembed.distillation.report import DistillationReport
from edgeembed.models import ModelLike
from edgeembed.processes import connected_processes, main_process_first, process_index
from edgeembed.progress import Reporter, SilentReporter, TimedSteps

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from edgeembed.recipe.schema import Recipe


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
    """Distill a student from a teacher, in one process or in those that torchrun or accelerate started.

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
            teacher encodes nothing; it is not even loaded if the recipe states a `student.source` and compares no
            layers. If `corpus` is None, its texts are the corpus; otherwise it must hold them.
        resume: Whether to continue from the checkpoints of an interrupted run of the same recipe, text and seed.
        seed: Decides all samples and random weights. The same seed gives the same weights on the same machine and
            libraries.
        force: Whether to replace an existing student in `out`.
        callbacks: Callbacks of the Hugging Face trainer; each runs in all stages.
        report_to: Integrations of the Hugging Face trainer, such as "tensorboard" or "wandb".
            TensorBoard's logs are in `out`.logs.
        reporter: Receives progress, in the main process; silent by default.
        command: The command line, stated without paths on the student's model card.

    Returns:
        The report; its `path` is the student's folder.

    Raises:
        InputError: If an argument is invalid, or something that the recipe learns from is missing, before any text is
            read or encoded.
        LostProcessError: If a launcher started several processes, and one of them has ended before its time.

    Examples:
        >>> import edgeembed
        >>> student = edgeembed.distill("compact", corpus=["notes.txt"], out="student").path
    """
    steps = TimedSteps(SilentReporter() if reporter is None or process_index() else reporter)
    with connected_processes():
        with main_process_first():
            inputs = check_inputs(
                recipe,
                corpus,
                out,
                teacher=teacher,
                parallel=parallel,
                pairs=pairs,
                scored=scored,
                dev=dev,
                overrides=overrides,
                cache=cache,
                teacher_embeddings=teacher_embeddings,
                resume=resume,
                seed=seed,
                force=force,
            )
            # Imports torch, which takes seconds: mistakes in the arguments above are reported at once.
            from edgeembed.distillation.run import finish_run, prepare_run
            from edgeembed.training.trainer import check_trainer_options

            check_trainer_options(callbacks, report_to)
            run = prepare_run(inputs, steps)
        return finish_run(run, steps, callbacks=callbacks, report_to=report_to, command=command)
