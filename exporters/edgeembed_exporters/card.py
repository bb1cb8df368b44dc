"""A bundle's README.md: its model card."""

import json
from typing import Any

# The front matter that the hub reads; the rest is for people.
_CARD = """---
library_name: edgeembed
pipeline_tag: sentence-similarity
tags:
- sentence-similarity
- onnx
---

# {name}

A sentence encoder for devices: {dimension} dimensions, {parameters} parameters, {precision}, {size} MB.
It reads up to {max_seq_length} tokens of a text and gives a vector of unit length.

## Use

```python
from edgeembed_runtime import Encoder

encoder = Encoder.load("path/to/this/folder", verify=True)
vectors = encoder.encode(["first text", "second text"])
```

The model is `{model_file}`: int64 `input_ids` and `attention_mask` (batch, tokens) in, float32
`sentence_embedding` (batch, {dimension}) out. Pooling, head and normalisation are inside the graph.

## Where it comes from

- Teacher: {teacher}
- Licences of the training text: {licences}
- Command: {command}

## How faithful it is

Cosine to the model it was exported from, over {sentences} sentences: worst {worst:.5f}, mean {mean:.5f}.
`edgeembed.json` names the worst sentences, and the checksum of every file.

## Quality

{quality}
"""


def model_card(manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
    """Give the card of a bundle as Markdown.

    Args:
        manifest: The content of edgeembed.json.
        size_bytes: Of the bundle's other files.
        command: What made the bundle, if that is known.
    """
    parity, quality = manifest["parity"], manifest["quality"]
    return _CARD.format(
        name=manifest["name"],
        dimension=manifest["dimension"],
        parameters=f"{manifest['parameters']:,}",
        precision=manifest["precision"],
        size=f"{size_bytes / 1e6:.1f}",
        max_seq_length=manifest["max_seq_length"],
        model_file=manifest["model_file"],
        teacher=manifest["teacher"] or "not stated",
        licences="; ".join(manifest["licences"]) or "not stated",
        command=f"`{command}`" if command else "not stated",
        sentences=parity["sentences"],
        worst=parity["worst_cosine"],
        mean=parity["mean_cosine"],
        quality=_as_code(quality) if quality else "Not measured.",
    )


def _as_code(values: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(values, indent=2, ensure_ascii=False)}\n```"
