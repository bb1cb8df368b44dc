"""The model card of a classifier's bundle."""

from typing import Any

from edgeembed_exporters.bundle.model_card import code_block, front_matter

_CARD = """{front_matter}
# {name}

A text classifier for devices: {count} labels, {parameters} parameters, {precision}, {size} MB.
It reads up to {max_seq_length} tokens of {inputs}.

## Use

```python
from edgeembed_runtime import Classifier

classifier = Classifier("path/to/this/folder")
{example}
```

The model is `{model_file}`: int64 `input_ids` and `attention_mask` (batch, tokens) in, float32
`logits` (batch, {count}) out. Pooling and classification head are inside the graph.

## Labels

{labels}

## Origin

- License: {license}
- Languages: {languages}
- Base model: {base_model}
- Command: {command}

## Agreement with the original classifier

Compared with the classifier it was exported from, over {sentences} texts:

- Same label: {agreement}
- Difference of probabilities: maximum {maximum}, mean {mean}

`edgeembed.json` lists the texts with the largest differences, and the checksum of every file, which `edgeembed verify`
compares.

## Quality

{quality}

## Cost

- Size: {size} MB
- Parameters: {parameters}

{latency}
"""
_UNKNOWN = "not stated"


def classifier_card(manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
    """Return the model card of a classifier as Markdown, with the front matter of the Hugging Face Hub.

    Args:
        manifest: The content of edgeembed.json.
        size_bytes: The size of the bundle's other files.
        command: The command that made the bundle, if known.
    """
    parity, is_pairs = manifest["parity"], manifest["is_pairs"]
    return _CARD.format(
        front_matter=front_matter(
            license_name=manifest["license"],
            base_model=manifest["base_model"],
            languages=manifest["languages"],
            library="edgeembed",
            tags=["text-classification", "edgeembed", manifest["backend"]],
            pipeline="text-classification",
        ),
        name=manifest["name"],
        count=len(manifest["labels"]),
        parameters=f"{manifest['num_parameters']:,}",
        precision=manifest["precision"],
        size=f"{size_bytes / 1e6:.1f}",
        max_seq_length=manifest["max_seq_length"],
        inputs="a pair of texts, both as one sequence" if is_pairs else "a text",
        example=(
            'classifier.predict(("first text", "second text")).label'
            if is_pairs
            else 'classifier.predict(["first text", "second text"])'
        ),
        model_file=manifest["model_file"],
        labels="\n".join(f"- {label}" for label in manifest["labels"]),
        license=manifest["license"] or _UNKNOWN,
        languages=", ".join(manifest["languages"]) or _UNKNOWN,
        base_model=manifest["base_model"] or _UNKNOWN,
        command=f"`{command}`" if command else _UNKNOWN,
        sentences=f"{parity['sentences']:,}",
        agreement=f"{parity['label_agreement']:.2%}",
        maximum=f"{parity['max_probability_difference']:.4f}",
        mean=f"{parity['mean_probability_difference']:.4f}",
        quality=code_block(manifest["quality"]) if manifest["quality"] else "Not measured.",
        latency=code_block(manifest["latency"]) if manifest["latency"] else "Latency: not measured.",
    )
