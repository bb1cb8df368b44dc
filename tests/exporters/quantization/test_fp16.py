from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.precision import precision_names
from edgeembed_exporters.quantization.fp16 import convert_to_fp16
from edgeembed_runtime import Encoder

from ..graphs import evaluate, initializers, op_counts, parse  # noqa: TID252  # tests are not a package
from .conftest import Floats, normal, static_model, texts, traced_once

IDS = [list(range(100))]


def two_layers(rows: Floats, weight: Floats) -> onnx.ModelProto:
    return parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) z = Add(y, bias) out = MatMul(z, weight)",
        "float[a, b, c] out",
        {"rows": rows, "weight": weight, "bias": normal(64, seed=2)},
    )


def dtypes(model: onnx.ModelProto) -> dict[str, np.dtype[Any]]:
    return {name.removesuffix(".fp16"): values.dtype for name, values in initializers(model).items()}


def test_large_weights_are_float16_and_outputs_close() -> None:
    model = two_layers(normal(100, 64), normal(64, 64, seed=1))
    converted = convert_to_fp16(model)
    onnx.checker.check_model(converted, full_check=True)
    assert dtypes(converted) == {"rows": np.float16, "weight": np.float16, "bias": np.float32}
    assert op_counts(converted)["Cast"] == 2  # one after the lookup, one for the weight that two nodes read
    expected = evaluate(model, IDS)
    np.testing.assert_allclose(evaluate(converted, IDS), expected, atol=2e-3 * np.abs(expected).max())
    assert len(converted.SerializeToString()) < 0.52 * len(model.SerializeToString())


def test_weights_that_overflow_float16_are_kept() -> None:
    weight = normal(64, 64, seed=1)
    weight[3, 4] = 70_000
    model = two_layers(normal(100, 64), weight)
    converted = convert_to_fp16(model)
    assert dtypes(converted) == {"rows": np.float16, "weight": np.float32, "bias": np.float32}
    assert np.isfinite(evaluate(converted, IDS)).all()


def test_a_column_lookup_keeps_its_axis() -> None:
    model = parse("out = Gather<axis = 1>(rows, input_ids)", "float[a, b, c] out", {"rows": normal(64, 100)})
    np.testing.assert_allclose(evaluate(convert_to_fp16(model), IDS), evaluate(model, IDS), atol=2e-3)


def test_the_model_is_not_changed() -> None:
    model = two_layers(normal(100, 64), normal(64, 64))
    before = model.SerializeToString(deterministic=True)
    convert_to_fp16(model)
    assert model.SerializeToString(deterministic=True) == before


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the bundles of one model at every precision."""
    model, folder = static_model(), tmp_path_factory.mktemp("bundles")
    with traced_once(model):
        for precision in precision_names():
            export(model, folder / precision, BundleSettings(precision=precision, min_cosine=0.5), sentences=texts(16))
    return {precision: folder / precision for precision in precision_names()}


def test_the_runtime_folds_constants_only_at_fp16(bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    optimization_levels, create = [], onnxruntime.InferenceSession

    def recording(file: Any, options: Any, **options_: Any) -> Any:
        optimization_levels.append(options.graph_optimization_level.name)
        return create(file, options, **options_)

    monkeypatch.setattr(onnxruntime, "InferenceSession", recording)
    for bundle in bundles.values():
        Encoder.load(bundle)
    assert list(bundles) == ["fp32", "fp16", "int8", "int4"]
    assert optimization_levels == ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL", "ORT_DISABLE_ALL"]


def test_embeddings_at_fp16_are_close_and_the_file_is_half_as_large(bundles: dict[str, Path]) -> None:
    fp32, fp16 = bundles["fp32"], bundles["fp16"]
    sizes = [next((bundle / "onnx").iterdir()).stat().st_size for bundle in (fp32, fp16)]
    assert sizes[1] < 0.55 * sizes[0]
    exact, actual = (Encoder.load(bundle).encode(texts(30)) for bundle in (fp32, fp16))
    np.testing.assert_allclose(actual, exact, atol=1e-3)
    assert (actual * exact).sum(axis=1).min() > 1 - 1e-6
