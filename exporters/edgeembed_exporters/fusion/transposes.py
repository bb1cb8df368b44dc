"""Fold the Transpose of a constant weight: store the weight transposed.

torch.onnx does so if one linear layer reads the weight. If several share it, as those of ALBERT do, it leaves a
Transpose before each.
"""

import numpy as np
import onnx

from edgeembed_exporters.onnx.graph import Graph, attributes


def fold_transposes(model: onnx.ModelProto) -> None:
    """Replace, in place, every transposed initializer by one that is stored transposed.

    Weights that several layers share stay one initializer.

    Args:
        model: The model.
    """
    graph = Graph(model)
    stored: dict[str, str] = {}
    for node in graph.nodes:
        values = graph.initializer(node.input[0]) if node.op_type == "Transpose" else None
        if values is not None and not graph.is_output(node.output[0]):
            transposed = np.transpose(values, attributes(node).get("perm"))
            stored[node.output[0]] = graph.add_initializer(f"{node.input[0]}.transposed", transposed)
    for node in graph.nodes:
        node.input[:] = [stored.get(name, name) for name in node.input]
    graph.replace_nodes({name: [] for name in stored})
