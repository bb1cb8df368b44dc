"""Checkpoints and logs of a training: where they are kept, which run they belong to, and how to resume from them."""

import contextlib
import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.file_lock import LockedError, locked
from tokenizers import Tokenizer
from transformers import TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from edgeembed.embeddings.fingerprint import text_fingerprint
from edgeembed.progress import Reporter
from edgeembed.recipe.schema import Recipe
from edgeembed.training.data import LabeledData, TrainingText

_FORMAT = 2  # of checkpoints; those of another one are not found
_STATE_FILE = "trainer_state.json"
_TENSORBOARD_FOLDER = "TENSORBOARD_LOGGING_DIR"


def default_cache(out: Path) -> Path:
    """Return the folder beside a student for its teacher embeddings and checkpoints."""
    return out.with_name(f"{out.name}.cache")


def default_logs(out: Path) -> Path:
    """Return the folder beside a model for the logs of its training."""
    return out.with_name(f"{out.name}.logs")


def run_key(  # everything that decides the weights
    recipe: Recipe,
    teacher: str,
    tokenizer: Tokenizer,
    text: TrainingText,
    domains: npt.NDArray[np.int64],
    labeled: LabeledData,
    seed: int,
) -> str:
    """Return a fingerprint of all that decides a run's weights on a machine, 16 hexadecimal digits.

    Args:
        recipe: The recipe.
        teacher: Fingerprint of the teacher's embeddings; empty if the run uses none.
        tokenizer: The student's vocabulary.
        text: The text that the student reads.
        domains: Domain of each sentence, int64 (sentences,).
        labeled: Labeled and scored pairs.
        seed: The seed.
    """
    vocabulary = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    texts = [text_fingerprint(text.sentences), text_fingerprint(text.texts), _digest(text.rows), _digest(domains)]
    content = [_FORMAT, recipe.to_dict(), teacher, vocabulary, texts, labeled.fingerprint(), seed]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _digest(numbers: npt.NDArray[np.int64]) -> str:
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def checkpoint_folder(cache: Path, key: str) -> Path:
    """Return the folder for the checkpoints of a run with this key."""
    return cache / "checkpoints" / key


@contextmanager
def open_checkpoints(folder: Path, *, resume: bool, reporter: Reporter) -> Iterator[None]:
    """Reserve the folder of a run's checkpoints, emptied unless the run resumes, and remove it after the block.

    If the block fails, the folder stays.

    Args:
        folder: The folder.
        resume: Whether to keep the checkpoints.
        reporter: Is told if there is nothing to resume from.

    Raises:
        InputError: If another process trains the same run with this cache, or the cache cannot be written.
    """
    cache = folder.parent.parent
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, wait_s=0))
        except LockedError as error:
            raise InputError(
                f"{cache} is in use by another run of the same recipe, text and seed; wait for it to end, or choose "
                "another --cache"
            ) from error
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        elif not any(last_complete_checkpoint(stage) for stage in folder.glob("*")):
            reporter.note(
                f"--resume: {cache} holds no checkpoint of this run (the same recipe, text and seed); training starts "
                "from the beginning"
            )
        yield
        shutil.rmtree(folder, ignore_errors=True)


def last_complete_checkpoint(folder: Path) -> str | None:
    """Return the checkpoint to resume from, or None, and delete incomplete ones.

    The trainer writes trainer_state.json last, so a checkpoint without it was interrupted.
    """
    for checkpoint in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if not (checkpoint / _STATE_FILE).is_file():
            shutil.rmtree(checkpoint, ignore_errors=True)  # another process may do the same
    return get_last_checkpoint(str(folder)) if folder.is_dir() else None


def finished_state(checkpoint: str) -> TrainerState | None:
    """Return the trainer's state in a checkpoint if training ended with it: at the last step, or early; else None."""
    state = TrainerState.load_from_json(str(Path(checkpoint) / _STATE_FILE))
    return state if state.stateful_callbacks["TrainerControl"]["args"]["should_training_stop"] else None


@contextmanager
def resume_hint(cache: Path, reporter: Reporter) -> Iterator[None]:
    """Report on an interrupt (Ctrl-C or a signal) how to resume, if the cache holds anything to resume from."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        kept = _reusable_work(cache)
        if kept:
            reporter.note(f"{cache} keeps {' and '.join(kept)}: the same command with --resume continues from there")
        raise


def _reusable_work(cache: Path) -> list[str]:
    """Return what a cache holds of interrupted runs: teacher embeddings, checkpoints, both or neither."""
    shards = any((cache / "teacher").glob("*/shards/*.parquet"))
    checkpoints = any((cache / "checkpoints").glob(f"*/*/{PREFIX_CHECKPOINT_DIR}-*/{_STATE_FILE}"))
    return [name for name, exists in (("teacher embeddings", shards), ("checkpoints", checkpoints)) if exists]


@contextmanager
def tensorboard_folder(logs: Path | None) -> Iterator[dict[str, str]]:
    """Have the trainer write TensorBoard's logs to a folder, in transformers 4 and 5.

    Args:
        logs: The folder; None for the trainer's own choice.

    Yields:
        The training arguments to pass: transformers 4 takes the folder as one, 5 reads it from the environment.
    """
    if logs is None:
        yield {}
        return
    before = os.environ.get(_TENSORBOARD_FOLDER)
    os.environ[_TENSORBOARD_FOLDER] = str(logs)
    try:
        yield {"logging_dir": str(logs)} if "logging_dir" in inspect.signature(TrainingArguments).parameters else {}
    finally:
        os.environ.pop(_TENSORBOARD_FOLDER)
        if before is not None:
            os.environ[_TENSORBOARD_FOLDER] = before
