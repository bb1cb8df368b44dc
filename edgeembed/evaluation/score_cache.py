"""Scores of the reference model on disk, so that a teacher is not scored again for each student."""

import functools
import hashlib
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import cattrs
import edgeembed_runtime
import numpy as np
from edgeembed_bench.model_info import Parameters
from edgeembed_runtime.storage.atomic import atomic_file

import edgeembed
from edgeembed.evaluation.scores import Score
from edgeembed.evaluation.task import EvaluationTask, kind_of

_LIBRARIES = (
    "numpy",
    "onnxruntime",
    "scikit-learn",
    "scipy",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "transformers",
)


def default_folder() -> Path:
    """Return the folder of the cache: `evaluation` in `EDGEEMBED_CACHE`, by default `~/.cache/edgeembed`."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("EDGEEMBED_CACHE") or Path(user) / "edgeembed") / "evaluation"


class ScoreCache:
    """The scores of one encoder on disk: one small JSON file per data set.

    The key of a file is the SHA-256 of everything that a score depends on: the encoder's files, the settings
    and all texts and labels of the task, the source code that computes it, and the versions of the libraries. A file
    is never changed, only written; the folder may be deleted at any time.

    Args:
        folder: The folder, which is created if it does not exist.
        encoder: The encoder's fingerprint, see `edgeembed.evaluation.encoders.encoder_fingerprint`.
    """

    def __init__(self, folder: Path, encoder: str) -> None:
        self._folder = folder
        self._encoder = encoder

    def read(self, task: EvaluationTask, data: object) -> tuple[Score, ...] | None:
        """Return the scores on a data set; None if there are none, or the file cannot be read."""
        found = self._read(self._file(task, data))
        return None if found is None else cattrs.structure(found, tuple[Score, ...])

    def write(self, task: EvaluationTask, data: object, scores: Sequence[Score]) -> None:
        """Keep the scores on a data set.

        Raises:
            OSError: If the file cannot be written.
        """
        self._write(self._file(task, data), cattrs.unstructure(tuple(scores)))

    def read_parameters(self) -> Parameters | None:
        """Return the numbers of the encoder's parameters; None if they are not known."""
        found = self._read(self._parameters_file())
        return None if found is None else cattrs.structure(found, Parameters)

    def write_parameters(self, parameters: Parameters) -> None:
        """Keep the numbers of the encoder's parameters."""
        self._write(self._parameters_file(), cattrs.unstructure(parameters))

    def _file(self, task: EvaluationTask, data: object) -> Path | None:
        try:
            content = _plain([task.given, data])
        except TypeError:  # a loaded encoder, or data of a plugin that have no fingerprint
            return None
        return self._path([self._encoder, kind_of(task), content, _source_fingerprint(type(task)), _versions()])

    def _parameters_file(self) -> Path:
        return self._path([self._encoder, "parameters", _source_fingerprint(Parameters)])

    def _path(self, key: object) -> Path:
        return self._folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()}.json"

    def _read(self, file: Path | None) -> Any:
        try:
            return None if file is None else json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _write(self, file: Path | None, content: object) -> None:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(file, force=True) as written:
                written.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _plain(value: object) -> object:  # noqa: PLR0911  # one per type
    """Return data as lists, numbers and texts, always the same for equal data.

    Raises:
        TypeError: If data are of a type that has no such form.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.ndarray():
            return value.tolist()
        case set() | frozenset():
            return sorted(json.dumps(_plain(each)) for each in value)
        case Mapping():
            return [[_plain(key), _plain(each)] for key, each in value.items()]
        case Sequence():
            return [_plain(each) for each in value]
        case _ if is_dataclass(value):
            return [type(value).__name__, *(_plain(getattr(value, each.name)) for each in fields(value))]
        case _ if isinstance(fingerprint := getattr(value, "fingerprint", None), str):
            return fingerprint
    raise TypeError(type(value).__name__)


@functools.cache
def _source_fingerprint(kind: type) -> str:
    """Return the SHA-256 of the source code of edgeembed and its runtime, and of the module of a class."""
    digest = hashlib.sha256()
    for package in (edgeembed, edgeembed_runtime):
        for file in sorted(Path(next(iter(package.__path__))).rglob("*.py")):
            digest.update(file.read_bytes())
    if module := inspect.getsourcefile(kind):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()


@functools.cache
def _versions() -> list[str]:
    return [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
