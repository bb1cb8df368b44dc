"""Golden vectors: embeddings by the exporter's machine, stored in the bundle so that others can compare theirs."""

from __future__ import annotations

import importlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from edgeembed_runtime import Bundle, Classifier, Encoder
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.verification import GOLDEN, Machine, golden_inputs

from edgeembed_exporters.bundle.manifest import update_file_record
from edgeembed_exporters.gate import MAX_COMPARED_TOKENS

_ENGINES = {"onnx": "onnxruntime", "numpy": "numpy"}
_FILLER = "one line after another "  # every word is at least one token

# Every text can show an error that no other one shows.
_TEXTS = (
    # Only special tokens.
    "",
    # One token.
    "a",
    # A typical text.
    "How do I open a file and read it line by line?",
    # A paragraph: longer sums, with more rounding errors.
    (
        "The heating came on at six, an hour before anybody was awake. By the time the kettle boiled the kitchen was "
        "warm, the windows had misted over, and the cat had moved from the chair to the cool stone of the doorstep."
    ),
    # Digits, which vocabularies split in many ways.
    "On 3 May 2024 pump no. 17 moved 1,250.75 litres in 48 h 06 min, 99.3 % of 1259.57.",
    # Punctuation, each mark a token.
    "Wait -- what?! (Really...) [yes]; {no}: \"maybe\", 'then' a/b\\c & d|e ~ f*g^h = #1 @home <$5> `x`_y + z",
    # Accents, some as one character and some as two, which the normalizer must treat alike.
    "Zürich, naïve, Łódź, Ærøskøbing, cafe\u0301 and café, ﬁne ½",
    # Other scripts: split into characters, or unknown to the vocabulary.
    "Поезд идёт быстро. Ένα μικρό σπίτι. 猫が窓で寝ている。 고양이 القطة نائمة החתול ישן บ้าน",
    # Emoji: outside the Basic Multilingual Plane, and several joined into one.
    "see you there 🙂 👩\u200d🚀🇨🇭❤\ufe0f",
    # Code, with line breaks and tabs.
    "def total(rows):\n\treturn sum(row['price'] * row[\"count\"] for row in rows)  # in cents\n",
    # One repeated word: all positions are nearly equal, so that a sum over them shows a bias.
    "again " * 30,
)


def write_golden(folder: Path, encoder: Encoder) -> None:
    """Write golden.json: texts of many kinds, their embeddings on this machine, and what the machine is.

    Args:
        folder: The bundle's folder. A golden.json in it is replaced.
        encoder: The bundle's encoder.
    """
    texts = golden_texts(encoder.max_seq_length)
    _write(
        folder,
        encoder.bundle.backend,
        texts,
        "vectors",
        encoder.encode(texts, on_truncate="ignore", on_unknown="ignore"),
    )


def write_golden_predictions(folder: Path, classifier: Classifier) -> None:
    """Write golden.json with the probabilities of a classifier instead of embeddings.

    Args:
        folder: The bundle's folder. A golden.json in it is replaced.
        classifier: The bundle's classifier.
    """
    texts = golden_texts(classifier.max_seq_length)
    inputs = golden_inputs(texts, is_pairs=classifier.is_pairs)
    probabilities = classifier.predict_proba(inputs, on_truncate="ignore", on_unknown="ignore")
    _write(folder, classifier.bundle.backend, texts, "probabilities", probabilities)


def add_golden(bundle: str | os.PathLike[str]) -> None:
    """Add golden vectors or probabilities, which this machine computes. The bundle's fingerprint stays the same.

    Args:
        bundle: The bundle's folder; its files must be the exported ones. A golden.json in it is replaced.

    Raises:
        InputError: If the folder is not a bundle, or cannot be written.
        VerificationError: If a file is not the exported one.
    """
    folder = Path(bundle)
    opened = Bundle.open(folder, verify=True)
    if opened.is_classifier:
        write_golden_predictions(folder, Classifier(opened))
    else:
        write_golden(folder, Encoder(opened))
    update_file_record(folder, GOLDEN)


def _write(folder: Path, backend: str, texts: list[str], name: str, rows: npt.NDArray[np.float32]) -> None:
    document = {
        **asdict(_this_machine(backend)),
        "texts": texts,
        # The fewest digits that are read as the same float32.
        name: [[float(str(number)) for number in row] for row in rows],
    }
    with atomic_file(folder / GOLDEN, force=True) as file:
        file.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def golden_texts(max_seq_length: int) -> list[str]:
    """Return the texts of the golden vectors; the last one is longer than the encoder reads, or than 1,024 tokens.

    Args:
        max_seq_length: Maximum number of tokens that the encoder reads.
    """
    longest = _FILLER * (min(max_seq_length, MAX_COMPARED_TOKENS) // len(_FILLER.split()) + 1)
    return [*_TEXTS, longest]


def _this_machine(backend: str) -> Machine:
    engine = importlib.import_module(_ENGINES[backend])
    return Machine(_processor(), platform.machine(), f"{engine.__name__} {engine.__version__}")


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
