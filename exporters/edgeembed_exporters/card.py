"""A bundle's README.md: its model card."""

import json
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

# The front matter that the hub reads; the rest is for people.
_CARD = """---
library_name: edgeembed
pipeline_tag: sentence-similarity
tags:
- sentence-similarity
- {backend}
---

# {name}

A sentence encoder for devices: {dimension} dimensions, {parameters} parameters, {precision}, {size} MB.
It reads up to {max_seq_length} tokens of a text and gives a vector of unit length. Made for: {roles}.

## Use

```python
from edgeembed_runtime import Encoder

encoder = Encoder.load("path/to/this/folder", verify=True)
vectors = encoder.encode(["first text", "second text"])
```

The model is `{model_file}`: {contract}

## Where it comes from

- Teacher: {teacher}
- Recipe: {recipe}
- Cut to measure before the export: {tailoring}
- Licences of the training text: {licences}
- Command: {command}

## How faithful it is

Compared with the model it was exported from, over {sentences} sentences:

- Cosine: worst {worst}, first percentile {first_percentile}, mean {mean}
- Spearman's correlation of the cosines of all pairs: {rank_correlation}
- Share of a sentence's ten nearest that are the same: {top_10_overlap}

`edgeembed.json` names the worst sentences, and the checksum of every file; `edgeembed verify` compares them.

## Quality

{quality}

## Cost

- Size: {size} MB
- Parameters: {parameters}

{latency}
"""
_CONTRACTS = {
    "onnx": "int64 `input_ids` and `attention_mask` (batch, tokens) in, float32\n"
    "`sentence_embedding` (batch, {dimension}) out. Pooling, head and normalisation are inside the graph.",
    "numpy": "tables of tokens and what follows them, as docs/tensor-file.md\n"
    "of edgeembed describes it. NumPy alone runs it.",
}
_RANKERS = {
    "semantic": "ranking by what texts are like (`SemanticRanker`)",
    "relevance": "ranking by a query (`RelevanceRanker`)",
}
_UNKNOWN = "not stated"
_UNMEASURED = "not measured"
# How a command is run, not what it makes.
_LEFT_OUT = {"--force", "--json"}


def model_card(manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
    """Give the card of a bundle as Markdown.

    Args:
        manifest: The content of edgeembed.json.
        size_bytes: Of the bundle's other files.
        command: What made the bundle, if that is known.
    """
    parity, quality, latency = manifest["parity"], manifest["quality"], manifest["latency"]
    return _CARD.format(
        name=manifest["name"],
        dimension=manifest["dimension"],
        parameters=f"{manifest['parameters']:,}",
        precision=manifest["precision"],
        size=f"{size_bytes / 1e6:.1f}",
        max_seq_length=manifest["max_seq_length"],
        roles=" and ".join(_RANKERS[role] for role in manifest["roles"]),
        backend=manifest["backend"],
        model_file=manifest["model_file"],
        contract=_CONTRACTS[manifest["backend"]].format(dimension=manifest["dimension"]),
        teacher=manifest["teacher"] or _UNKNOWN,
        recipe=_recipe_line(manifest["recipe"]),
        tailoring=_tailoring_line(manifest["tailoring"]),
        licences="; ".join(manifest["licences"]) or _UNKNOWN,
        command=f"`{command}`" if command else _UNKNOWN,
        sentences=parity["sentences"],
        worst=_figure(parity["worst_cosine"]),
        first_percentile=_figure(parity["first_percentile_cosine"]),
        mean=_figure(parity["mean_cosine"]),
        rank_correlation=_figure(parity["rank_correlation"]),
        top_10_overlap=_figure(parity["top_10_overlap"]),
        quality=_as_code(quality) if quality else "Not measured.",
        latency=_as_code(latency) if latency else "Latency: not measured.",
    )


def command_line(arguments: Sequence[str]) -> str:
    """Give a command as a card states it: the same wherever a bundle is written, and telling of no one's folders.

    Absolute paths and that of --out become their last part. What only says how to run is left out.

    Args:
        arguments: The words of the command, its name first.
    """
    words = [word for word in arguments if word not in _LEFT_OUT]
    return shlex.join(_shown(word, before) for before, word in zip(["", *words], words, strict=False))


def _shown(word: str, before: str) -> str:
    if before == "--out":
        return PurePath(word).name or word
    option, equals, value = word.partition("=")
    if option == "--out" and equals:
        return f"--out={PurePath(value).name or value}"
    return PurePath(word).name if PurePath(word).is_absolute() else word


def _recipe_line(recipe: dict[str, Any] | None) -> str:
    if not recipe:
        return _UNKNOWN
    about = [str(recipe[key]) for key in ("name", "description") if recipe.get(key)]
    return " - ".join([*about, "`edgeembed.json` holds all its values"])


def _tailoring_line(tailoring: dict[str, Any] | None) -> str:
    return f"{', '.join(tailoring)}; `edgeembed.json` tells what that cost" if tailoring else "nothing"


def _figure(value: float | None) -> str:
    return _UNMEASURED if value is None else f"{value:.5f}"


def _as_code(values: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(values, indent=2, ensure_ascii=False)}\n```"
