from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from edgeembed_exporters import BundleSettings, GateError, export, exporting
from edgeembed_exporters.bundle import writers
from edgeembed_exporters.model_spec import inspect_model
from edgeembed_exporters.onnx.tracing import build_graph, trace
from edgeembed_exporters.precision import PRECISIONS, precision_names
from edgeembed_runtime import Bundle, InputError
from sentence_transformers import SentenceTransformer

from .quantization.conftest import static_model, texts, traced_once

NAMES = precision_names()
LATENCIES = {"fp32": 4.0, "fp16": 3.0, "int8": 2.0, "int4": 1.0}


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return static_model()


@pytest.fixture(scope="module", autouse=True)
def traces(model: SentenceTransformer) -> Iterator[list[onnx.ModelProto]]:
    with traced_once(model) as made:
        yield made


@pytest.fixture(scope="module")
def sizes(
    model: SentenceTransformer, traces: list[onnx.ModelProto], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, float]:
    """How many megabytes the bundle has at each precision."""
    del traces  # it stands in for torch
    folder = tmp_path_factory.mktemp("sizes")
    return {each: write(model, folder / each, each, min_cosine=0.5).size_bytes / 1e6 for each in NAMES}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Says how long a text takes at each precision; gives the precisions that were timed."""
    timed: list[str] = []

    def measure(bundle: Bundle, sentences: Sequence[str]) -> float:
        assert sentences
        timed.append(bundle.precision)
        return LATENCIES[timed[-1]]

    monkeypatch.setattr(exporting, "measure_latency_ms", measure)
    return timed


def write(model: SentenceTransformer, out: Path, precision: Any = "auto", **limits: Any) -> Any:
    return export(model, out, BundleSettings(precision=precision, **limits), sentences=texts(40))


def test_every_precision_is_smaller_than_the_one_before(sizes: dict[str, float]) -> None:
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)


@pytest.mark.parametrize("wanted", NAMES)
def test_auto_chooses_the_most_precise_that_is_small_enough(
    model: SentenceTransformer, sizes: dict[str, float], tmp_path: Path, wanted: str
) -> None:
    report = write(model, tmp_path / "b", max_size_mb=sizes[wanted] + 0.005, min_cosine=0.5)
    assert report.precision == wanted
    assert json.loads((tmp_path / "b/edgeembed.json").read_text())["precision"] == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(("limit", "wanted"), [(9, "fp32"), (4, "fp32"), (3.5, "fp16"), (2, "int8"), (1.5, "int4")])
def test_auto_chooses_the_most_precise_that_is_fast_enough(
    model: SentenceTransformer, clock: list[str], tmp_path: Path, limit: float, wanted: str
) -> None:
    report = write(model, tmp_path / "b", max_latency_ms=limit, min_cosine=0.5)
    assert (report.precision, report.latency_ms) == (wanted, LATENCIES[wanted])
    assert clock == list(NAMES[: NAMES.index(report.precision) + 1])


def test_a_bundle_that_is_too_large_is_not_timed(
    model: SentenceTransformer, sizes: dict[str, float], clock: list[str], tmp_path: Path
) -> None:
    report = write(model, tmp_path / "b", max_size_mb=sizes["int8"] + 0.005, max_latency_ms=1.5, min_cosine=0.5)
    assert report.precision == "int4"
    assert clock == ["int8", "int4"]


def test_nothing_is_timed_without_a_latency_limit(model: SentenceTransformer, clock: list[str], tmp_path: Path) -> None:
    assert write(model, tmp_path / "b", max_size_mb=100).latency_ms is None
    assert clock == []


def test_one_line_states_the_limit_that_each_precision_misses(
    model: SentenceTransformer, sizes: dict[str, float], tmp_path: Path
) -> None:
    limits = {"max_size_mb": sizes["fp16"] + 0.005, "max_latency_ms": 2.5, "min_cosine": 0.9999}
    with pytest.raises(GateError) as refused:
        write(model, tmp_path / "b", **limits)
    said = str(refused.value)
    assert "\n" not in said
    assert said.startswith("no precision keeps all limits: at fp32 the bundle has at least ")
    parts = [
        r"at fp32 the bundle has at least [\d.]+ MB",
        "at fp16 one text takes 3.000 ms",
        "at int8 the worst cosine .* is 0.9",
    ]
    assert re.search(".*; ".join([*parts, "at int4 the worst cosine .*; nothing was written"]), said)
    assert list(tmp_path.iterdir()) == []


def test_a_precision_that_cannot_fit_fails_before_quantization(
    model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quantize(*_: Any) -> None:
        raise AssertionError("a precision that cannot fit was quantized")

    for name in NAMES:
        monkeypatch.setattr(PRECISIONS[name], "quantize", quantize)
    with pytest.raises(GateError, match="no precision keeps all limits") as refused:
        write(model, tmp_path / "b", max_size_mb=0.001)
    assert [f"at {each} the bundle has at least " in str(refused.value) for each in NAMES] == [True] * 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("precision", NAMES)
def test_the_estimated_size_is_a_close_lower_bound(
    model: SentenceTransformer, sizes: dict[str, float], tmp_path: Path, precision: str
) -> None:
    with pytest.raises(GateError, match="has at least") as refused:
        write(model, tmp_path / "b", precision, max_size_mb=0.001)
    found = re.search(r"at least ([\d.]+) MB", str(refused.value))
    assert found
    assert float(found[1]) <= sizes[precision]


def test_a_bundle_that_is_too_slow_fails(model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"one text takes 2\.000 ms, allowed are 1\.5; nothing was written"):
        write(model, tmp_path / "b", "int8", max_latency_ms=1.5)
    assert list(tmp_path.iterdir()) == []


def test_auto_needs_a_limit(model: SentenceTransformer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'auto' without a limit; expected max_size_mb, max_latency_ms or both"):
        write(model, tmp_path / "b", min_cosine=0.9)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_an_impossible_latency_limit_raises_an_error(model: SentenceTransformer, tmp_path: Path, limit: float) -> None:
    with pytest.raises(InputError, match=r"max_latency_ms is .*; expected a number above 0"):
        write(model, tmp_path / "b", max_latency_ms=limit)


def test_the_model_is_traced_once(model: SentenceTransformer, traces: list[onnx.ModelProto], tmp_path: Path) -> None:
    traces.clear()
    write(model, tmp_path / "b", max_latency_ms=1.5, min_cosine=0.5)
    assert len(traces) == 1


@pytest.mark.parametrize("precision", ["auto", "int8"])
def test_a_model_whose_weights_are_too_large_is_not_traced(
    model: SentenceTransformer, traces: list[onnx.ModelProto], tmp_path: Path, precision: str
) -> None:
    traces.clear()
    with pytest.raises(GateError, match=r"the bundle has at least [\d.]+ MB"):
        write(model, tmp_path / "b", precision, max_size_mb=0.001)
    assert traces == []


def test_a_table_of_16_levels_counts_4_bits_in_the_estimate_at_int8(tmp_path: Path) -> None:
    """It is stored so, and with 8 bits a limit that the bundle keeps would refuse it."""
    model = static_model()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        levels = rng.integers(-8, 8, model[0].embedding.weight.shape)
        levels[:, 0] = -8
        model[0].embedding.weight.copy_(torch.from_numpy(levels * rng.uniform(0.05, 0.15, (len(levels), 1))))
    spec = inspect_model(model)
    graph = build_graph(spec)
    writer = writers.GraphWriter(graph, lambda: trace(graph, spec.max_seq_length), spec, [])
    size = len(writer.quantize("int8"))
    assert writer.min_size_bytes("int8") == (levels.size // 2) + 64 * 128 < size < levels.size
