"""Write the tokenizer and the configuration by which transformers and sentence-transformers load a bundle."""

import json
import tempfile
from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer
from torch import nn

from edgeembed_exporters.model_spec import ModelSpec, pooling_modes
from edgeembed_exporters.onnx.tracing import SentenceGraph

# The names that every version of sentence-transformers has written; versions 5 and 6 still read them.
_MODULE_TYPES = "sentence_transformers.models."
# In the order in which their embeddings are concatenated.
_POOLING_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
_LOCAL_SETTINGS = ("_name_or_path", "name_or_path", "_attn_implementation", "_attn_implementation_autoset")


def bundle_tokenizer(spec: ModelSpec) -> Tokenizer:
    """Return a copy of a model's tokenizer that truncates at the model's maximum length and never pads."""
    tokenizer = Tokenizer.from_str(spec.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    tokenizer.enable_truncation(spec.max_seq_length)
    return tokenizer


def compact_json(tokenizer: Tokenizer) -> str:
    """Return the content of tokenizer.json, half the size of the indented form."""
    content: str = tokenizer.to_str(pretty=False)
    return content


def write_tokenizer(spec: ModelSpec, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    Args:
        spec: The parts of the model.
        folder: The bundle's folder.
    """
    (folder / "tokenizer.json").write_text(compact_json(bundle_tokenizer(spec)), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", _tokenizer_config(spec))
    write_json(folder / "special_tokens_map.json", dict(spec.tokenizer.special_tokens_map))


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """Write indented JSON."""
    path.write_text(json_text(content), encoding="utf-8")


def json_text(content: dict[str, Any] | list[Any]) -> str:
    """Return indented JSON with a final line break."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _tokenizer_config(spec: ModelSpec) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        spec.tokenizer.save_pretrained(scratch, legacy_format=False)
        text = (Path(scratch) / "tokenizer_config.json").read_text(encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    config["model_max_length"] = spec.max_seq_length
    # Paths of this machine, and the limit of one call: fastembed would use the lower of the two limits.
    for leftover in ("name_or_path", "tokenizer_file", "max_length"):
        config.pop(leftover, None)
    return config


def write_configurations(spec: ModelSpec, graph: SentenceGraph, folder: Path, *, model_file: str | None) -> None:
    """Write config.json and the files that describe the modules of a sentence-transformers model.

    Args:
        spec: The parts of the model.
        graph: Its graph.
        folder: The bundle's folder.
        model_file: The path in the folder of the model that sentence-transformers loads; None for the torch weights.
    """
    write_json(folder / "config.json", encoder_config((graph if model_file else spec).encoder.config))
    write_json(folder / "sentence_bert_config.json", _transformer_config(spec, model_file))
    write_json(folder / "config_sentence_transformers.json", _sentence_transformers_config(spec))
    write_json(folder / "modules.json", _write_modules(spec, folder))


def encoder_config(config: Any) -> dict[str, Any]:
    """Return the content of config.json for an encoder."""
    values: dict[str, Any] = {**config.to_diff_dict(), "model_type": config.model_type}
    for name in ("hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings"):
        if hasattr(config, name):
            values[name] = getattr(config, name)
    for name in _LOCAL_SETTINGS:
        values.pop(name, None)
    return dict(sorted(values.items()))


def _transformer_config(spec: ModelSpec, model_file: str | None) -> dict[str, Any]:
    settings = {"max_seq_length": spec.max_seq_length, "do_lower_case": False}
    # Without a file_name, sentence-transformers only finds onnx/model.onnx; with one, it cannot load torch weights.
    return {**settings, "model_args": {"file_name": model_file}} if model_file else settings


def _sentence_transformers_config(spec: ModelSpec) -> dict[str, Any]:
    return {
        "model_type": "SentenceTransformer",
        "prompts": spec.prompts,
        "default_prompt_name": spec.default_prompt_name,
        "similarity_fn_name": "cosine",
    }


def _write_modules(spec: ModelSpec, folder: Path) -> list[dict[str, Any]]:
    """Write a folder for each module with settings, and return the content of modules.json."""
    entries = [_entry(0, "Transformer", "")]
    for index, module in enumerate(spec.modules, start=1):
        path = f"{index}_{type(module).__name__}"
        if not isinstance(module, Normalize):
            (folder / path).mkdir()
            _write_module(module, folder / path, spec.token_dimension)
        entries.append(_entry(index, type(module).__name__, path))
    if not isinstance(spec.modules[-1], Normalize):  # the graph normalizes in any case
        index = len(entries)
        entries.append(_entry(index, "Normalize", f"{index}_Normalize"))
    return entries


def _write_module(module: nn.Module, folder: Path, token_dimension: int) -> None:
    if isinstance(module, Pooling):
        write_json(folder / "config.json", _pooling_config(token_dimension, pooling_modes(module)))
    else:
        module.save(str(folder))  # type: ignore[operator]


def _entry(index: int, kind: str, path: str) -> dict[str, Any]:
    return {"idx": index, "name": str(index), "path": path, "type": f"{_MODULE_TYPES}{kind}"}


def _pooling_config(width: int, modes: tuple[str, ...]) -> dict[str, Any]:
    in_order_of_switches = [mode for mode in _POOLING_SWITCHES if mode in modes]
    if list(modes) == in_order_of_switches:
        switches = {switch: mode in modes for mode, switch in _POOLING_SWITCHES.items()}
        return {"word_embedding_dimension": width, **switches}
    # Switches cannot express another order or a repeated mode; versions that can build such a model read this.
    return {"embedding_dimension": width, "pooling_mode": list(modes)}
