"""The registry of precisions."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from edgeembed_exporters import BundleSettings, Precision, export
from edgeembed_exporters.onnx.graph import copy_model
from edgeembed_exporters.precision import PRECISIONS, precision_names
from edgeembed_runtime import Encoder

from .conftest import normal, static_model, texts


def test_the_most_precise_comes_first_and_its_limits_are_the_strictest() -> None:
    assert precision_names() == ("fp32", "fp16", "int8", "int4")
    assert precision_names("numpy") == ("fp32", "fp16", "int8")
    chosen = [PRECISIONS[name] for name in precision_names()]
    for limit in ("bits", "min_cosine", "min_rank", "min_overlap", "min_label_agreement"):
        limits = [getattr(each, limit) for each in chosen]
        assert limits == sorted(limits, reverse=True), limit
    differences = [each.max_probability_difference for each in chosen]
    assert differences == sorted(differences)


@pytest.mark.parametrize("name", precision_names())
def test_every_precision_says_what_it_costs_and_why(name: str) -> None:
    assert "measured" in (PRECISIONS[name].__doc__ or "")
    assert PRECISIONS[name].help
    assert PRECISIONS[name].file.endswith(".onnx")


@pytest.mark.parametrize("name", precision_names("numpy"))
def test_a_packed_matrix_is_close(name: str) -> None:
    matrix = normal(6, 8)
    values, scale = PRECISIONS[name].pack(matrix)
    assert values.itemsize * 8 == PRECISIONS[name].bits
    unpacked = values.astype(np.float32) * (1 if scale is None else scale[:, None])
    np.testing.assert_allclose(unpacked, matrix, atol=0.02)


def test_a_registered_precision_is_all_that_an_export_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PRECISIONS, "_classes", dict(PRECISIONS.items()))

    @PRECISIONS.register("fp24")
    class Fp24(Precision):
        """Weights whose last 8 bits are zero."""

        help = "has weights with short mantissas"
        file = "onnx/model_fp24.onnx"
        bits = 24
        backends = ("onnx",)
        calibrates = False
        min_cosine = min_rank = min_overlap = min_label_agreement = 0.9
        max_probability_difference = 0.1

        @staticmethod
        def quantize(model: onnx.ModelProto, token_ids: Sequence[list[int]]) -> onnx.ModelProto:
            assert token_ids == []
            made = copy_model(model)
            for tensor in made.graph.initializer:
                values = onnx.numpy_helper.to_array(tensor)
                if values.dtype == np.float32:
                    cut = (values.view(np.uint32) & np.uint32(0xFFFFFF00)).view(np.float32)
                    tensor.CopyFrom(onnx.numpy_helper.from_array(cut, tensor.name))
            return made

    assert precision_names() == ("fp32", "fp24", "fp16", "int8", "int4")
    assert "fp24 has weights with short mantissas" in BundleSettings.help("precision")
    assert "0.9 for fp24" in (BundleSettings.default_text("min_cosine") or "")
    report = export(static_model(), tmp_path / "b", BundleSettings(precision="fp24"), sentences=texts(30))
    assert report.parity.min_cosine > 0.99
    manifest = json.loads((tmp_path / "b" / "edgeembed.json").read_text())
    assert (manifest["precision"], manifest["model_file"]) == ("fp24", "onnx/model_fp24.onnx")
    assert Encoder.load(tmp_path / "b", verify=True).encode("word1").shape == (64,)
