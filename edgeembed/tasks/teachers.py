"""Teachers of a task: what they say of the examples that a student learns from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from accelerate.utils import send_to_device
from edgeembed_runtime.errors import InputError
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from edgeembed.models import transformers_folder
from edgeembed.tasks.examples import Examples, Task
from edgeembed.tasks.model import TaskModel
from edgeembed.tasks.settings import TASK_FILE

_BATCH = 64

Logits = npt.NDArray[np.float32]


def teacher_logits(name: str, task: Task, device: str) -> Logits:
    """Return a teacher's logits of a task's training part, float32 (examples, classes).

    Args:
        name: The folder of a classifier of ours, or any name of a transformers model for sequence classification.
        task: The task.
        device: A torch device.

    Raises:
        InputError: If there is no such teacher, it knows other classes, or its folder names code of its own.
    """
    if (Path(name) / TASK_FILE).is_file():
        teacher = TaskModel.load(Path(name))
        if teacher.names != task.names or teacher.is_pairs != task.is_pairs:
            raise InputError(
                f"the teacher {name} knows the classes {', '.join(teacher.names)}; expected those of the task"
            )
        return np.concatenate(list(_ours(teacher.to(device), task.train)))
    return np.concatenate(list(_theirs(name, task, device)))


def classify(model: TaskModel, examples: Examples) -> Logits:
    """Give a classifier's logits of examples, float32 (examples, classes)."""
    return np.concatenate(list(_ours(model, examples)))


@torch.no_grad()
def _ours(model: TaskModel, examples: Examples) -> Iterator[Logits]:
    model.eval()
    device = next(model.parameters()).device
    for first in range(0, len(examples.first), _BATCH):
        rows = slice(first, first + _BATCH)
        texts = send_to_device(model.read(examples.first[rows], examples.second[rows]), device)
        yield model(texts).float().cpu().numpy()


@torch.no_grad()
def _theirs(name: str, task: Task, device: str) -> Iterator[Logits]:
    folder = transformers_folder(name)
    model, found = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
    )
    if found["missing_keys"]:
        raise InputError(f"the teacher {name} is no classifier; expected one that is trained on the task")
    if model.config.num_labels != len(task.names):
        raise InputError(f"the teacher {name} knows {model.config.num_labels} classes; expected {len(task.names)}")
    order = _order(model.config.id2label, task.names)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    model = model.to(device).float().eval()
    for first in range(0, len(task.train.first), _BATCH):
        rows = slice(first, first + _BATCH)
        texts = (list(task.train.first[rows]), list(task.train.second[rows]) or None)
        given = tokenizer(*texts, padding=True, truncation=True, return_tensors="pt").to(device)
        yield model(**given).logits.float().cpu().numpy()[:, order]


def _order(labels: dict[int, str], names: tuple[str, ...]) -> list[int]:
    """Give where the teacher has each of a task's classes; their own order where it does not name them so."""
    places = {label: place for place, label in labels.items()}
    return [places[name] for name in names] if set(names) == set(places) else list(range(len(names)))
