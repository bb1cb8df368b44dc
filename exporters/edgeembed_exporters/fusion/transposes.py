"""Store weights as they are read: fold each Transpose of an initializer.

torch.onnx transposes the weight of one linear layer, but leaves the Transpose in the graph if several layers
share the weight, as those of ALBERT do.
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
