"""The operators of the encoders in the wheel are those on docs/platforms.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from edgeembed_exporters import add_ort
from edgeembed_runtime import Encoder

_PAGE = Path(__file__).parents[2] / "docs" / "platforms.md"


@pytest.mark.parametrize("name", ["mini", "nano"])
def test_operators_are_those_on_the_page(name: str, tmp_path: Path) -> None:
    bundle = shutil.copytree(str(Encoder(name).bundle.path), tmp_path / name)
    operators = (add_ort(bundle).parent / "required_operators.config").read_text(encoding="utf-8")
    assert operators.strip() in _PAGE.read_text(encoding="utf-8")
