"""A bundle's configuration files, as transformers and sentence-transformers read them."""

from pathlib import Path
from typing import Any

from edgeembed_exporters.graph import SentenceGraph
from edgeembed_exporters.source import Source, pooling_modes
from edgeembed_exporters.tokenizer import write_json

# The spelling of every version of sentence-transformers so far; versions 5 and 6 still read it.
_MODULE_TYPES = "sentence_transformers.models."
# In the order in which their vectors are put together.
_POOLING_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
_UNWANTED = ("_name_or_path", "name_or_path", "_attn_implementation", "_attn_implementation_autoset")


def write_configurations(source: Source, graph: SentenceGraph, folder: Path, *, model_file: str | None) -> None:
    """Write config.json and what describes the modules of a sentence-transformer.

    Args:
        source: The parts of the model.
        graph: Its graph.
        folder: The bundle's folder.
        model_file: The path within it of the model that sentence-transformers is to load; None for the torch weights.
    """
    write_json(folder / "config.json", _encoder_config((graph if model_file else source).encoder.config))
    write_json(folder / "sentence_bert_config.json", _transformer_config(source, model_file))
    write_json(folder / "config_sentence_transformers.json", _sentence_config(source))
    write_json(folder / "modules.json", _write_modules(source, folder))


def _encoder_config(config: Any) -> dict[str, Any]:
    values: dict[str, Any] = {**config.to_diff_dict(), "model_type": config.model_type}
    for name in ("hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings"):
        if hasattr(config, name):
            values[name] = getattr(config, name)
    for name in _UNWANTED:
        values.pop(name, None)
    return dict(sorted(values.items()))


def _transformer_config(source: Source, model_file: str | None) -> dict[str, Any]:
    settings = {"max_seq_length": source.max_seq_length, "do_lower_case": False}
    # Without a file_name, sentence-transformers looks for onnx/model.onnx alone; with one, torch fails.
    return {**settings, "model_args": {"file_name": model_file}} if model_file else settings


def _sentence_config(source: Source) -> dict[str, Any]:
    return {
        "model_type": "SentenceTransformer",
        "prompts": source.prompts,
        "default_prompt_name": source.default_prompt_name,
        "similarity_fn_name": "cosine",
    }


def _write_modules(source: Source, folder: Path) -> list[dict[str, Any]]:
    modules = [_module(0, "Transformer", "")]
    for index, module in enumerate(source.modules, start=1):
        kind = type(module).__name__
        path = f"{index}_{kind}"
        if kind == "Pooling":
            (folder / path).mkdir()
            write_json(folder / path / "config.json", _pooling_config(source.token_dimension, pooling_modes(module)))
        elif kind != "Normalize":
            (folder / path).mkdir()
            module.save(str(folder / path))  # type: ignore[operator]
        modules.append(_module(index, kind, path))
    if not modules[-1]["type"].endswith("Normalize"):  # the graph normalises in any case
        index = len(modules)
        modules.append(_module(index, "Normalize", f"{index}_Normalize"))
    return modules


def _module(index: int, kind: str, path: str) -> dict[str, Any]:
    return {"idx": index, "name": str(index), "path": path, "type": f"{_MODULE_TYPES}{kind}"}


def _pooling_config(width: int, modes: tuple[str, ...]) -> dict[str, Any]:
    switched = [mode for mode in _POOLING_SWITCHES if mode in modes]
    if list(modes) == switched:
        switches = {switch: mode in modes for mode, switch in _POOLING_SWITCHES.items()}
        return {"word_embedding_dimension": width, **switches}
    # Switches cannot tell another order, nor a mode that comes twice; versions that can build such a model read this.
    return {"embedding_dimension": width, "pooling_mode": list(modes)}
