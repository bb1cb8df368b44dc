"""The ONNX backend: models are checked before onnxruntime loads them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import edgeembed_runtime.backends.onnx_graph
import onnx
import pytest
from edgeembed_runtime import BundleError, Encoder, VerificationError
from edgeembed_runtime.backends.onnx_graph import check_graph_file
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper


@pytest.fixture
def graph(bundle_path: Path) -> onnx.ModelProto:
    return onnx.load(str(bundle_path / "onnx" / "model.onnx"))


def _error_message(model: onnx.ModelProto | bytes) -> str:
    content = model if isinstance(model, bytes) else model.SerializeToString()
    with pytest.raises(BundleError, match=r"m\.onnx is not a model: .*; export the bundle again") as caught:
        check_graph_file(content, "m.onnx")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _endless_loop() -> onnx.NodeProto:
    names = ("iteration", "condition")
    body = helper.make_graph(
        [helper.make_node("Identity", ["condition"], ["again"])],
        "body",
        [
            helper.make_tensor_value_info(name, kind, [])
            for name, kind in zip(names, (TensorProto.INT64, TensorProto.BOOL), strict=True)
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, [])],
    )
    return helper.make_node("Loop", ["", ""], [], body=body)


def test_exported_graphs_pass_the_check(graph: onnx.ModelProto, shipped: Path) -> None:
    check_graph_file(graph.SerializeToString(), "m.onnx")
    for name in ("mini", "nano"):
        (file,) = (shipped.parent / name).rglob("*.onnx")
        check_graph_file(file.read_bytes(), str(file))


def test_endless_loop_raises_before_it_runs(
    bundle_copy: Path, rewrite_manifest: Callable[..., None], graph: onnx.ModelProto
) -> None:
    graph.graph.node.insert(0, _endless_loop())
    (bundle_copy / "onnx" / "model.onnx").write_bytes(graph.SerializeToString())
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match=r"model\.onnx is not a model: operator 'Loop' has a subgraph"):
        Encoder.load(bundle_copy)


def test_operator_with_subgraphs_raises(graph: onnx.ModelProto) -> None:
    node = graph.graph.node.add(op_type="BeamSearch", domain="com.microsoft")
    node.attribute.add(name="decoders").graphs.add()
    assert "operator 'BeamSearch' has a subgraph" in _error_message(graph)


def test_second_graph_that_protobuf_would_merge_is_checked(graph: onnx.ModelProto) -> None:
    second = onnx.ModelProto()
    second.graph.node.append(_endless_loop())
    assert "'Loop'" in _error_message(graph.SerializeToString() + second.SerializeToString())


def test_functions_and_training_information_raise(graph: onnx.ModelProto) -> None:
    for name in ("functions", "training_info"):
        changed = onnx.ModelProto()
        changed.CopyFrom(graph)
        getattr(changed, name).add()
        assert "has functions or training steps" in _error_message(changed)


def test_operators_of_other_domains_raise(graph: onnx.ModelProto) -> None:
    graph.graph.node[3].domain = "com.example"
    assert f"operator '{graph.graph.node[3].op_type}' is of the domain 'com.example'" in _error_message(graph)


@pytest.mark.parametrize("place", ["weight", "attribute", "attributes"])
def test_external_weights_raise_wherever_they_occur(graph: onnx.ModelProto, place: str) -> None:
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    if place == "weight":
        graph.graph.initializer.append(tensor)
    elif place == "attribute":
        graph.graph.node.add(op_type="Constant").attribute.add(name="value").t.CopyFrom(tensor)
    else:
        graph.graph.node.add(op_type="Constant").attribute.add(name="values").tensors.append(tensor)
    assert "External data" in _error_message(graph)
    tensor.data_location = TensorProto.DEFAULT
    tensor.external_data.add(key="location", value="/etc/hostname")
    graph.graph.initializer.append(tensor)
    assert "External data" in _error_message(graph)


def test_overlong_varint_does_not_hide_external_weights() -> None:
    tensor = b"\x70\x81\x80\x00"  # data_location: EXTERNAL, in three bytes
    graph = b"\x2a" + bytes([len(tensor) | 0x80, 0x00]) + tensor
    assert "External data" in _error_message(b"\x3a" + bytes([len(graph)]) + graph)


@pytest.mark.parametrize("shape", [(1, 2**62), (2**63 - 1,), (2**17, 2**17), (-1,), (1,) * 17])
def test_oversized_weights_raise_without_output(
    bundle_copy: Path,
    rewrite_manifest: Callable[..., None],
    graph: onnx.ModelProto,
    shape: tuple[int, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    last = next(tensor for tensor in graph.graph.initializer if tensor.name == "last")
    last.dims[:] = shape
    (bundle_copy / "onnx" / "model.onnx").write_bytes(graph.SerializeToString())
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match=r"model\.onnx is not a model: it has weights of shape \[.*\], more than"):
        Encoder.load(bundle_copy)
    assert capfd.readouterr() == ("", "")


def test_sparse_weights_raise(graph: onnx.ModelProto) -> None:
    graph.graph.sparse_initializer.add()
    assert "sparse weights" in _error_message(graph)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_mutated_model_raises_in_one_line_or_passes_the_check(bundle_path: Path, data: st.DataObject) -> None:
    content = (bundle_path / "onnx" / "model.onnx").read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 20)))
    message = ""
    try:
        check_graph_file(content[:start] + data.draw(st.binary(max_size=12)) + content[end:], "m.onnx")
    except BundleError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1


def test_check_stops_at_a_maximum_number_of_fields() -> None:
    assert "more than 1000000 fields" in _error_message(b"\x18\x00" * 1_000_001)


def test_model_replaced_between_check_and_load_raises(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bundle_copy / "onnx" / "model.onnx"

    def replace(content: bytes, where: str) -> None:
        (bundle_copy / "new").write_bytes(content)
        (bundle_copy / "new").replace(model)

    monkeypatch.setattr(edgeembed_runtime.backends.onnx_graph, "check_graph_file", replace)
    with pytest.raises(VerificationError, match=r"model\.onnx changed while it was loaded"):
        Encoder.load(bundle_copy)


def test_missing_onnxruntime_raises_in_one_line(bundle_path: Path) -> None:
    script = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "from edgeembed_runtime.cli import main\n"
        "sys.exit(main(['encode', '--text', 'the cat', '--bundle', sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, bundle_path], capture_output=True, text=True, errors="replace", check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{bundle_path} needs onnxruntime, which cannot be imported" in done.stderr
    assert "use Encoder('micro') (--bundle micro), which runs without it" in done.stderr
    assert "or export the bundle with --backend numpy" in done.stderr
