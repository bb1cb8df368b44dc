import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from edgeembed_exporters.precision.int8 import quantise_products
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]


def product_of(rows: Array, weight: Array, *, gemm: bool = False) -> onnx.ModelProto:
    """A graph that looks rows up by input_ids and multiplies them with a constant matrix."""
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "tokens"])
    shape = [None, None] if gemm else [None, None, None]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    constants = [numpy_helper.from_array(rows, "rows"), numpy_helper.from_array(weight, "weight")]
    nodes = [helper.make_node("Gather", ["rows", "input_ids"], ["x"])]
    if gemm:
        constants.append(numpy_helper.from_array(np.array([1], dtype=np.int64), "axis"))
        nodes.append(helper.make_node("ReduceMean", ["x", "axis"], ["mean"], keepdims=0))
        nodes.append(helper.make_node("Gemm", ["mean", "weight"], ["out"], transB=1))
    else:
        nodes.append(helper.make_node("MatMul", ["x", "weight"], ["out"]))
    graph = helper.make_graph(nodes, "g", [ids, mask], [out], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def run(model: onnx.ModelProto, ids: list[list[int]]) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = np.array(ids, dtype=np.int64)
    feeds = {"input_ids": given, "attention_mask": np.ones_like(given)}
    vectors: Array = session.run(["out"], feeds)[0]
    return vectors


@pytest.mark.parametrize("gemm", [False, True])
def test_products_are_close_to_float(gemm: bool) -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(50, 32)).astype(np.float32), rng.normal(size=(32, 32)).astype(np.float32)
    model = product_of(rows, weight, gemm=gemm)
    quantised = quantise_products(model, [[1, 2, 3], [4, 5]])
    assert "MatMulIntegerToFloat" in {node.op_type for node in quantised.graph.node}
    exact, given = run(model, [list(range(20))]), run(quantised, [list(range(20))])
    assert np.abs(exact - given).max() < 0.03 * np.abs(exact).max()


def test_a_channel_of_large_activations_does_not_drown_the_others() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(50, 32)).astype(np.float32), rng.normal(size=(32, 16)).astype(np.float32)
    rows[:, 3] *= 300
    weight[3] /= 300
    model = product_of(rows, weight)
    exact, given = (
        run(model, [list(range(20))]),
        run(quantise_products(model, [[30, 31, 32]]), [list(range(20))]),
    )
    assert np.abs(exact - given).max() < 0.03 * np.abs(exact).max()


def test_a_row_of_zeros_gives_zeros() -> None:
    weight = np.ones((4, 4), dtype=np.float32)
    rows = np.stack([np.zeros(4), np.ones(4)]).astype(np.float32)
    assert not run(quantise_products(product_of(rows, weight), [[1]]), [[0]]).any()


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(50, 8)).astype(np.float32), rng.normal(size=(8, 8)).astype(np.float32)
    rows[7] *= 1000
    quantised = quantise_products(product_of(rows, weight), [[1, 2]])
    np.testing.assert_array_equal(run(quantised, [[1, 7]])[0, 0], run(quantised, [[1]])[0, 0])


def test_the_given_graph_is_left_as_it_was() -> None:
    model = product_of(np.ones((2, 4), np.float32), np.ones((4, 4), np.float32))
    before = model.SerializeToString(deterministic=True)
    quantise_products(model, [[0]])
    assert model.SerializeToString(deterministic=True) == before
