"""Teacher logits on disk, so that further classifiers of a task need no further pass of the teacher."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed.classification.examples import ClassificationData
from edgeembed.classification.model import TextClassifier, is_classifier_folder
from edgeembed.classification.teachers import Logits, teacher_logits
from edgeembed.hardware import has_bf16
from edgeembed.models import find_transformers_model
from edgeembed.teacher.cache import model_fingerprint, text_fingerprint, weights_fingerprint


def cached_teacher_logits(
    teacher: str | os.PathLike[str] | TextClassifier, data: ClassificationData, device: str, cache: Path
) -> Logits:
    """Return a teacher's logits of the training split from a cache, or compute and write them.

    Args:
        teacher: As for `teacher_logits`.
        data: The task's data.
        device: A torch device.
        cache: Folder of the cache; created if it does not exist. It has one file for each teacher, training split and
            precision.

    Returns:
        float32 (examples, classes), in the order of `data.labels`.

    Raises:
        InputError: As for `teacher_logits`, or if the cache cannot be written.
    """
    file = cache / f"{_key(teacher, data, device)}.npy"
    stored = _read(file)
    if stored is not None:
        return stored
    with _write_errors(file):
        cache.mkdir(parents=True, exist_ok=True)
    logits = teacher_logits(teacher, data, device)
    with _write_errors(file), atomic_file(file, force=True) as temporary, temporary.open("wb") as handle:
        np.save(handle, logits)
    return logits


@contextmanager
def _write_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write the teacher's logits {file}: {error.strerror or error}; expected a writable folder with "
            "free space: check it or choose another --cache"
        ) from error


def _key(teacher: str | os.PathLike[str] | TextClassifier, data: ClassificationData, device: str) -> str:
    precision = "bf16" if has_bf16(device) else "fp32"
    task = [*data.labels, *data.train.first, "", *data.train.second]
    return f"{_teacher_fingerprint(teacher)[:16]}-{text_fingerprint(task)}-{precision}"


def _teacher_fingerprint(teacher: str | os.PathLike[str] | TextClassifier) -> str:
    if isinstance(teacher, TextClassifier):
        parts = f"{model_fingerprint(teacher.encoder)} {weights_fingerprint(teacher.head)} {teacher.encoding}"
        return hashlib.sha256(parts.encode()).hexdigest()
    folder = Path(teacher)
    return model_fingerprint(folder if is_classifier_folder(folder) else Path(find_transformers_model(teacher)))


def _read(file: Path) -> Logits | None:
    try:
        logits: Logits = np.load(file)
    except (OSError, ValueError, EOFError):  # missing or damaged
        return None
    return logits
