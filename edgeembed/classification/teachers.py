"""Teacher logits: the soft targets that a classifier is distilled from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from accelerate.utils import send_to_device
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.store_manifest import EncodedBy
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from edgeembed.classification.examples import ClassificationData, Examples
from edgeembed.classification.model import TextClassifier, is_classifier_folder
from edgeembed.embeddings.fingerprint import combined_fingerprint, model_fingerprint, weights_fingerprint
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.hardware import has_bf16
from edgeembed.models import find_transformers_model

_BATCH_SIZE = 64

Logits = npt.NDArray[np.float32]


def teacher_logits(
    teacher: str | os.PathLike[str] | TextClassifier, data: ClassificationData, device: str, cache: Path | None = None
) -> Logits:
    """Return a teacher's logits of the training split, float32 (examples, classes), in the order of `data.labels`.

    Where the device is fast in bfloat16, the teacher reads the texts in it.

    Args:
        teacher: A classifier, the folder that `edgeembed finetune` wrote, or the name of a transformers model for
            sequence classification.
        data: The task's data.
        device: A torch device.
        cache: Folder for the stores of logits, one for each teacher, from which those of known examples are read; None
            to compute all.

    Raises:
        InputError: If there is no such teacher, it has other labels, its folder refers to code of its own, or the cache
            cannot be written.
    """
    if cache is None:
        return _compute_logits(teacher, data, device)
    encoder = _identity(teacher, data, device)
    store = EmbeddingStore.create(cache / encoder.key, encoder, "float32")
    texts = _example_texts(data.train)
    missing = np.flatnonzero(store.find(texts) < 0)
    if len(missing):
        logits = _compute_logits(teacher, replace(data, train=data.train.take(missing)), device)
        store.append([texts[row] for row in missing], logits, is_complete=True)
    return store.read(store.find_all(texts))


def _identity(teacher: str | os.PathLike[str] | TextClassifier, data: ClassificationData, device: str) -> EncodedBy:
    """Return the identity of a teacher's logits, which depends on the order of the labels too."""
    if isinstance(teacher, TextClassifier):
        parts = [model_fingerprint(teacher.encoder), weights_fingerprint(teacher.head), teacher.encoding]
        name = type(teacher).__name__
    else:
        name, folder = os.fspath(teacher), Path(teacher)
        folder = folder if is_classifier_folder(folder) else Path(find_transformers_model(teacher))
        parts = [model_fingerprint(folder)]
    return EncodedBy(
        name=name,
        fingerprint=combined_fingerprint(*parts, *data.labels),
        dimension=len(data.labels),
        normalized=False,
        precision="bf16" if has_bf16(device) else "fp32",
        space=None,
        prompt="",
    )


def _example_texts(examples: Examples) -> list[str]:
    """Return one text for each example: JSON for a pair."""
    if not examples.second:
        return list(examples.first)
    return [json.dumps(pair, ensure_ascii=False) for pair in zip(examples.first, examples.second, strict=True)]


def _compute_logits(teacher: str | os.PathLike[str] | TextClassifier, data: ClassificationData, device: str) -> Logits:
    precision = torch.autocast(torch.device(device).type, torch.bfloat16, enabled=has_bf16(device))
    if not isinstance(teacher, TextClassifier):
        folder = Path(teacher)
        if not is_classifier_folder(folder):
            with precision:
                return _transformers_logits(os.fspath(teacher), data, device)
        teacher = TextClassifier.load(folder)
    if teacher.labels != data.labels or teacher.is_pairs != data.is_pairs:
        raise InputError(
            f"the teacher has the labels {', '.join(teacher.labels)} for {_inputs(teacher.is_pairs)}; expected "
            f"{', '.join(data.labels)} for {_inputs(data.is_pairs)}"
        )
    with precision:
        return predict_logits(teacher.to(device), data.train)


@torch.no_grad()
def predict_logits(model: TextClassifier, examples: Examples) -> Logits:
    """Return a classifier's logits of examples, float32 (examples, classes)."""
    model.eval()
    device = next(model.parameters()).device

    def predict(first: list[str], second: list[str]) -> torch.Tensor:
        logits: torch.Tensor = model(send_to_device(model.tokenize(first, second), device))
        return logits

    return _in_batches(examples, predict)


@torch.no_grad()
def _transformers_logits(name: str, data: ClassificationData, device: str) -> Logits:
    folder = find_transformers_model(name)
    model, info = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
    )
    if info["missing_keys"]:
        raise InputError(f"the teacher {name} is not a classifier; expected one that was trained on this task")
    if model.config.num_labels != len(data.labels):
        raise InputError(f"the teacher {name} has {model.config.num_labels} labels; expected {len(data.labels)}")
    order = _label_order(model.config.id2label, data.labels)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    model = model.to(device).float().eval()

    def predict(first: list[str], second: list[str]) -> torch.Tensor:
        inputs = tokenizer(first, second or None, padding=True, truncation=True, return_tensors="pt").to(device)
        logits: torch.Tensor = model(**inputs).logits[:, order]
        return logits

    return _in_batches(data.train, predict)


def _in_batches(examples: Examples, predict: Callable[[list[str], list[str]], torch.Tensor]) -> Logits:
    """Return the logits of all examples, float32 (examples, classes), in their order.

    Examples of similar length run together, so that there is little padding.

    Args:
        examples: Texts or pairs of texts.
        predict: Returns the logits of a batch: of first texts, and of second texts, or an empty list.
    """
    pairs = zip_longest(examples.first, examples.second, fillvalue="")
    order = np.argsort([len(first) + len(second) for first, second in pairs], kind="stable")
    logits = []
    for start in range(0, len(order), _BATCH_SIZE):
        rows = order[start : start + _BATCH_SIZE]
        second = [examples.second[row] for row in rows] if examples.second else []
        logits.append(predict([examples.first[row] for row in rows], second).float().cpu().numpy())
    return np.concatenate(logits)[np.argsort(order)]


def _label_order(id2label: dict[int, str], labels: tuple[str, ...]) -> list[int]:
    """Return the teacher's class index of each label; the teacher's own order if its names are different."""
    index_of = {label: index for index, label in id2label.items()}
    return [index_of[label] for label in labels] if set(labels) == set(index_of) else list(range(len(labels)))


def _inputs(is_pairs: bool) -> str:
    return "pairs of texts" if is_pairs else "single texts"
