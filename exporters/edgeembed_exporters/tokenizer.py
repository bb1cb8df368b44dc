"""A bundle's tokenizer: the files that tokenizers, transformers and transformers.js read."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, normalizers

from edgeembed_exporters.source import Source


def bundle_tokenizer(source: Source) -> Tokenizer:
    """Give a copy of a model's tokenizer that truncates where the model does and never pads.

    Args:
        source: The parts of the model.
    """
    tokenizer = Tokenizer.from_str(source.tokenizer.backend_tokenizer.to_str())
    if source.lower_case:
        before = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])
    tokenizer.no_padding()
    tokenizer.enable_truncation(source.max_seq_length)
    return tokenizer


def write_tokenizer(source: Source, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json.

    Args:
        source: The parts of the model.
        folder: The bundle's folder.
    """
    content = bundle_tokenizer(source).to_str(pretty=False)  # half the size of the indented form
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    write_json(folder / "tokenizer_config.json", _tokenizer_config(source))
    write_json(folder / "special_tokens_map.json", dict(source.tokenizer.special_tokens_map))


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """Write JSON as people read it."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _tokenizer_config(source: Source) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        source.tokenizer.save_pretrained(scratch, legacy_format=False)
        text = (Path(scratch) / "tokenizer_config.json").read_text(encoding="utf-8")
    config: dict[str, Any] = json.loads(text)
    config["model_max_length"] = source.max_seq_length
    # Paths of the maker's machine, and a limit that one call of the maker's had: fastembed takes the lower of the two.
    for leftover in ("name_or_path", "tokenizer_file", "max_length"):
        config.pop(leftover, None)
    return config
