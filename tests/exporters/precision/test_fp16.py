from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from edgeembed_exporters import export
from edgeembed_exporters.options import PRECISIONS
from edgeembed_exporters.precision.fp16 import halve_weights
from edgeembed_runtime import Encoder

from ..graphs import constants_of, evaluate, kinds, parse  # noqa: TID252  # the tests are no package
from .conftest import Floats, normal, static_model, texts, traced_once

IDS = [list(range(100))]


def layer(rows: Floats, weight: Floats) -> onnx.ModelProto:
    return parse(
        "x = Gather(rows, input_ids) y = MatMul(x, weight) z = Add(y, bias) out = MatMul(z, weight)",
        "float[a, b, c] out",
        {"rows": rows, "weight": weight, "bias": normal(64, seed=2)},
    )


def types(model: onnx.ModelProto) -> dict[str, np.dtype[Any]]:
    return {name.removesuffix(".fp16"): values.dtype for name, values in constants_of(model).items()}


def test_large_tensors_are_halved_and_values_stay() -> None:
    model = layer(normal(100, 64), normal(64, 64, seed=1))
    halved = halve_weights(model)
    onnx.checker.check_model(halved, full_check=True)
    assert types(halved) == {"rows": np.float16, "weight": np.float16, "bias": np.float32}
    assert kinds(halved)["Cast"] == 2  # after the rows are looked up, and once of the matrix that is read twice
    expected = evaluate(model, IDS)
    np.testing.assert_allclose(evaluate(halved, IDS), expected, atol=2e-3 * np.abs(expected).max())
    assert len(halved.SerializeToString()) < 0.52 * len(model.SerializeToString())


def test_what_overflows_half_precision_stays_as_it_is() -> None:
    weight = normal(64, 64, seed=1)
    weight[3, 4] = 70_000
    model = layer(normal(100, 64), weight)
    halved = halve_weights(model)
    assert types(halved) == {"rows": np.float16, "weight": np.float32, "bias": np.float32}
    assert np.isfinite(evaluate(halved, IDS)).all()


def test_columns_that_are_looked_up_are_still_columns() -> None:
    model = parse("out = Gather<axis = 1>(rows, input_ids)", "float[a, b, c] out", {"rows": normal(64, 100)})
    np.testing.assert_allclose(evaluate(halve_weights(model), IDS), evaluate(model, IDS), atol=2e-3)


def test_the_given_graph_is_left_as_it_was() -> None:
    model = layer(normal(100, 64), normal(64, 64))
    before = model.SerializeToString(deterministic=True)
    halve_weights(model)
    assert model.SerializeToString(deterministic=True) == before


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One model at every precision."""
    model, folder = static_model(), tmp_path_factory.mktemp("bundles")
    with traced_once(model):
        for precision in PRECISIONS:
            export(model, folder / precision, precision=precision, sentences=texts(16), min_cosine=0.5)
    return {precision: folder / precision for precision in PRECISIONS}


def test_the_runtime_folds_constants_for_half_precision_alone(
    bundles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    levels, make = [], onnxruntime.InferenceSession

    def watched(file: Any, options: Any, **given: Any) -> Any:
        levels.append(options.graph_optimization_level.name)
        return make(file, options, **given)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    for bundle in bundles.values():
        Encoder.load(bundle)
    assert list(bundles) == ["fp32", "fp16", "int8", "int4"]
    assert levels == ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL", "ORT_DISABLE_ALL"]


def test_half_the_bytes_give_the_same_vectors(bundles: dict[str, Path]) -> None:
    whole, half = bundles["fp32"], bundles["fp16"]
    sizes = [next((bundle / "onnx").iterdir()).stat().st_size for bundle in (whole, half)]
    assert sizes[1] < 0.55 * sizes[0]
    exact, given = (Encoder.load(bundle).encode(texts(30)) for bundle in (whole, half))
    np.testing.assert_allclose(given, exact, atol=1e-3)
    assert (given * exact).sum(axis=1).min() > 1 - 1e-6
