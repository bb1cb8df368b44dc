"""Encoders whose scores can be computed by hand, and the small files that they are scored on."""

from pathlib import Path
from typing import Any

import numpy as np


class Angles:
    """An encoder that looks up two-dimensional embeddings by angle in degrees."""

    def __init__(self, **degrees: float) -> None:
        self.degrees = degrees

    def encode(self, texts: Any, /, *, batch_size: int = 32) -> Any:  # noqa: ARG002
        angles = np.radians([self.degrees[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    encode_query = encode
    encode_document = encode


ENCODER = Angles(a=0, b=30, c=60, d=90)
WORSE = Angles(a=0, b=30, c=60, d=20)


def write_lines(path: Path, *lines: str) -> Path:
    """Write the lines of a file, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
