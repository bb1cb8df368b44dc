"""Put the tokenizer of ONNX Runtime Extensions in front of a bundle's model, and compare the result with the runtime.

    pip install onnxruntime-extensions
    python -m experiments.platforms.mobile_model --bundle nano --out build/mobile TEXT_FILE...

`build/mobile/model.ort` takes a string and returns its embedding. For each file of one text per line, the
script prints how many texts have other tokens than in the runtime, and the largest difference between embeddings of
equal tokens.
"""

import json
import unicodedata
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from edgeembed_runtime import Bundle, Encoder
from onnx import TensorProto, helper
from tokenizers import Tokenizer

from edgeembed.corpus.inputs import iter_texts

_EXTENSIONS = "ai.onnx.contrib"


def with_tokenizer(bundle: Bundle) -> onnx.ModelProto:
    """Return the model of a WordPiece bundle, with the input `text`, (1,) strings, and the token ids as an output."""
    model = onnx.load_model_from_string(bundle.read(bundle.model_file))
    vocabulary = json.loads(bundle.read("tokenizer.json"))["model"]["vocab"]
    tokenizer = helper.make_node(
        "BertTokenizer",
        ["text"],
        ["ids", "token_types", "mask"],
        domain=_EXTENSIONS,
        vocab_file="\n".join(sorted(vocabulary, key=vocabulary.__getitem__)),
        do_lower_case=1,
        strip_accents=1,
        max_length=bundle.max_seq_length,
    )
    nodes = [
        tokenizer,
        helper.make_node("Unsqueeze", ["ids", "batch_axis"], ["input_ids"]),
        helper.make_node("Unsqueeze", ["mask", "batch_axis"], ["attention_mask"]),
    ]
    graph = helper.make_graph(
        [*nodes, *model.graph.node],
        "text_to_embedding",
        [helper.make_tensor_value_info("text", TensorProto.STRING, [1])],
        [
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, bundle.dimension]),
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"]),
        ],
        [*model.graph.initializer, helper.make_tensor("batch_axis", TensorProto.INT64, [1], [0])],
    )
    opsets = [*model.opset_import, helper.make_opsetid(_EXTENSIONS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=model.ir_version)


def normalize(text: str) -> str:
    """Decompose a text (NFD), remove its accents and lowercase it, as an app can do before it calls the model."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn").lower()


def write_ort(model: onnx.ModelProto, path: Path) -> None:
    """Write a model in ORT format, without optimizations for this machine's processor."""
    options = _session_options()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def compare(session: onnxruntime.InferenceSession, encoder: Encoder, texts: list[str]) -> dict[str, Any]:
    """Compare tokens and embeddings of a model with those of the runtime."""
    tokenizer = Tokenizer.from_buffer(encoder.bundle.read("tokenizer.json"))
    tokenizer.enable_truncation(encoder.max_seq_length)
    tokenizer.no_padding()
    expected = encoder.encode(texts, on_truncate="ignore")
    others, others_normalized, difference = 0, 0, 0.0
    for text, vector in zip(texts, expected, strict=True):
        ids = tokenizer.encode(text).ids
        others += _run(session, text)[1] != ids
        embedding, found = _run(session, normalize(text))
        if found == ids:
            difference = max(difference, float(np.abs(embedding - vector).max()))
        else:
            others_normalized += 1
    return {
        "texts": len(texts),
        "other_tokens": others,
        "other_tokens_after_normalize": others_normalized,
        "max_difference_with_equal_tokens": difference,
    }


def _run(session: onnxruntime.InferenceSession, text: str) -> tuple[npt.NDArray[np.float32], list[int]]:
    embedding, ids = session.run(["sentence_embedding", "input_ids"], {"text": np.array([text])})
    return embedding[0], ids[0].tolist()


def _session_options() -> Any:
    from onnxruntime_extensions import get_library_path

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.register_custom_ops_library(get_library_path())
    return options


@click.command()
@click.option("--bundle", default="mini", show_default=True, help="Name or folder of a WordPiece bundle.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder of the model.")
@click.option("--limit", default=20_000, show_default=True, help="Texts to read from each file.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(bundle: str, out: Path, limit: int, files: tuple[Path, ...]) -> None:
    """Write the model and print the comparison as JSON."""
    encoder = Encoder(bundle)
    out.mkdir(parents=True, exist_ok=True)
    write_ort(with_tokenizer(encoder.bundle), out / "model.ort")
    session = onnxruntime.InferenceSession(out / "model.ort", _session_options(), providers=["CPUExecutionProvider"])
    sizes = {
        "onnx_bytes": len(encoder.bundle.read(encoder.bundle.model_file)),
        "ort_bytes": (out / "model.ort").stat().st_size,
    }
    report = {file.name: compare(session, encoder, list(islice(iter_texts([file]), limit))) for file in files}
    click.echo(json.dumps({"bundle": encoder.bundle.name, **sizes, "files": report}, indent=2))


if __name__ == "__main__":
    main()
