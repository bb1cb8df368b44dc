"""Make a torch student of the first bundle that the runtime shipped, whose own torch weights were lost.

    mkdir -p build
    git archive a24c4bc runtime/edgeembed_runtime/models | tar -x -C build
    python -m experiments.export.read_back build/runtime/edgeembed_runtime/models/edgeembed-compact-en build/student

Its weights are those of the bundle, rounded to int8 as they are there.
"""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from transformers import AutoConfig, AutoTokenizer

from edgeembed.provenance import PROVENANCE_FILE
from edgeembed.students.transformer import CompactTransformer, build_encoder

# In the order in which the graph multiplies with them.
IN_A_LAYER = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
)


def matrices(graph: onnx.GraphProto, stored: dict[str, npt.NDArray[Any]]) -> list[npt.NDArray[np.float32]]:
    """Give the weights (inputs, outputs) of all products, as float32."""
    found = []
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            levels, weight = node.input[0], node.input[1]
            name = weight.removesuffix(".weight")
            smoothing = stored[levels.replace(".levels", ".smoothing")]
            scales = stored[f"{name}.scales"] / stored["int8.step"]  # which the graph multiplies with in one
            found.append(stored[weight] * scales * smoothing[:, None])
    return found


def rows(name: str, stored: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """Give a table as float32."""
    table: npt.NDArray[np.float32] = stored[f"{name}.rows"] * stored[f"{name}.scales"]
    return table


def read_weights(file: Path, layers: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Give the weights of the encoder by name, and of the head."""
    graph = onnx.load(file).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {
        name.removeprefix("encoder."): values
        for name, values in stored.items()
        if name.startswith("encoder.") and values.dtype == np.float32 and name.endswith(("weight", "bias"))
    }
    projection, *products, head = matrices(graph, stored)
    names = [f"encoder.layer.{layer}.{name}.weight" for layer in range(layers) for name in IN_A_LAYER]
    weights |= {name: matrix.T for name, matrix in zip(names, products, strict=True)}
    weights["embeddings.word_embeddings.table.weight"] = rows("encoder.embeddings.word_embeddings.table", stored)
    weights["embeddings.word_embeddings.projection.weight"] = projection.T
    weights["embeddings.position_embeddings.weight"] = rows("encoder.embeddings.position_embeddings", stored)
    weights["embeddings.token_type_embeddings.weight"] = stored["encoder.embeddings.token_type_embeddings.row"][None]
    return {name: torch.tensor(values) for name, values in weights.items()}, torch.tensor(head.T)


@click.command()
@click.argument("bundle", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def main(bundle: Path, out: Path) -> None:
    """Write the student of BUNDLE into the new folder OUT."""
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    settings = json.loads((bundle / "config.json").read_text(encoding="utf-8"))
    config = AutoConfig.for_model(settings.pop("model_type"), **settings | {"type_vocab_size": 1})
    weights, head_weight = read_weights(bundle / manifest["model_file"], config.num_hidden_layers)
    token_dim = weights["embeddings.word_embeddings.table.weight"].shape[1]
    encoder = build_encoder(config, token_dim)
    encoder.load_state_dict(weights)
    tokenizer = AutoTokenizer.from_pretrained(bundle)
    transformer = CompactTransformer(encoder, tokenizer, token_dim, manifest["max_seq_length"])
    head = Dense.load(str(bundle / "3_Dense"))
    head.linear.weight.data = head_weight
    modules = [transformer, Pooling(config.hidden_size, "mean"), Normalize(), head, Normalize()]
    SentenceTransformer(modules=modules, prompts=manifest["prompts"], device="cpu").save(
        str(out), create_model_card=False
    )
    provenance = {key: manifest[key] for key in ("teacher", "recipe", "licenses")}
    (out / PROVENANCE_FILE).write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
