"""Golden vectors: what a bundle gives on the exporter's machine, kept in it for others to compare theirs with."""

from __future__ import annotations

import importlib
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from edgeembed_runtime import Encoder
from edgeembed_runtime.storage.atomic import atomic_file
from edgeembed_runtime.verification import GOLDEN, Machine

from edgeembed_exporters.manifest import relist

_ENGINES = {"onnx": "onnxruntime", "numpy": "numpy"}
_WORDS = "one line after another "  # each at least a token

# Each for what it alone would show.
_TEXTS = (
    # Nothing but special tokens.
    "",
    # One token.
    "a",
    # What most texts look like.
    "How do I open a file and read it line by line?",
    # A paragraph: longer products, and more roundings on the way to one vector.
    (
        "The heating came on at six, an hour before anybody was awake. By the time the kettle boiled the kitchen was "
        "warm, the windows had misted over, and the cat had moved from the chair to the cool stone of the doorstep."
    ),
    # Digits, which vocabularies cut in many ways.
    "On 3 May 2024 pump no. 17 moved 1,250.75 litres in 48 h 06 min, 99.3 % of 1259.57.",
    # Punctuation, each mark a token.
    "Wait -- what?! (Really...) [yes]; {no}: \"maybe\", 'then' a/b\\c & d|e ~ f*g^h = #1 @home <$5> `x`_y + z",
    # Accents, some in one character and some in two, which the normaliser must treat alike.
    "Zürich, naïve, Łódź, Ærøskøbing, cafe\u0301 and café, ﬁne ½",
    # Other scripts: cut into characters, or unknown to the vocabulary.
    "Поезд идёт быстро. Ένα μικρό σπίτι. 猫が窓で寝ている。 고양이 القطة نائمة החתול ישן บ้าน",
    # Emoji: beyond the first 65,536 characters, and several joined into one.
    "see you there 🙂 👩\u200d🚀🇨🇭❤\ufe0f",
    # Code, with line ends and tabs.
    "def total(rows):\n\treturn sum(row['price'] * row[\"count\"] for row in rows)  # in cents\n",
    # One word again and again: every position gives nearly the same, so that their sum shows a drift.
    "again " * 30,
)


def write_golden(bundle: str | os.PathLike[str]) -> None:
    """Write what a bundle gives on this machine into it, as golden.json, and list that in its edgeembed.json.

    `export` does so itself. The bundle's fingerprint stays what it is.

    Args:
        bundle: The bundle's folder; its files must be the ones that were exported. A golden.json in there is
            replaced.

    Raises:
        InputError: If the folder is no bundle, or cannot be written.
        VerificationError: If a file is not the one that was exported.
    """
    folder = Path(bundle)
    encoder = Encoder.load(folder, verify=True)
    texts = golden_texts(encoder.max_seq_length)
    vectors = encoder.encode(texts, on_truncate="ignore")
    document = {
        **asdict(_this_machine(encoder.bundle.backend)),
        "texts": texts,
        # The fewest digits that give the same float32 again.
        "vectors": [[float(str(number)) for number in row] for row in vectors],
    }
    with atomic_file(folder / GOLDEN, force=True) as file:
        file.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    relist(folder, GOLDEN)


def golden_texts(max_seq_length: int) -> list[str]:
    """Give the texts that golden vectors are kept of, the last one longer than an encoder reads.

    Args:
        max_seq_length: The most tokens that the encoder reads.
    """
    too_long = _WORDS * (max_seq_length // len(_WORDS.split()) + 1)
    return [*_TEXTS, too_long]


def _this_machine(backend: str) -> Machine:
    engine = importlib.import_module(_ENGINES[backend])
    return Machine(_processor(), platform.machine(), f"{engine.__name__} {engine.__version__}")


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
