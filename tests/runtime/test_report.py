"""The methods that results of public functions share."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime import InputError
from edgeembed_runtime.report import Report


@dataclass(frozen=True)
class _Size:
    size_bytes: int
    ratio: np.float64


@dataclass(frozen=True)
class _Result(Report):
    path: Path
    size: _Size
    latency_ms: float | None
    scores: tuple[float, ...] = ()
    notes: dict[str, str] = field(default_factory=dict)


_RESULT = _Result(Path("out") / "bundle", _Size(1_234_567, np.float64(0.25)), None, (1.0, 0.5), {"a|b": "c\nd"})


def test_json_holds_nested_fields_paths_and_numpy_scalars(tmp_path: Path) -> None:
    expected = {
        "path": str(Path("out") / "bundle"),
        "size": {"size_bytes": 1_234_567, "ratio": 0.25},
        "latency_ms": None,
        "scores": [1.0, 0.5],
        "notes": {"a|b": "c\nd"},
    }
    assert json.loads(_RESULT.to_json(tmp_path / "report.json")) == expected
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == expected


def test_markdown_is_a_table_with_dotted_names() -> None:
    table = _RESULT.to_markdown()
    assert "| size.size_bytes | 1,234,567 |" in table
    assert "| latency_ms | not measured |" in table
    assert "| scores | 1, 0.5 |" in table
    assert "| c d |" in table
    assert _RESULT._repr_markdown_() == table


def test_lone_surrogates_of_names_are_escaped(tmp_path: Path) -> None:
    result = _Result(Path("caf\udce9"), _Size(1, np.float64(1)), None, notes={"\ud800": "é"})
    assert json.loads(result.to_json(tmp_path / "report.json"))["path"] == "caf%E9"
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["notes"] == {"%uD800": "é"}
    assert "| path | caf%E9 |" in result.to_markdown(tmp_path / "report.md")


def test_report_is_not_written_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder"):
        _RESULT.to_json(tmp_path)
