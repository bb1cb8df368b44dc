"""The model card of a bundle, README.md: write it, and read the front matter of any card."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

import yaml
from edgeembed_runtime.report import valid_unicode

_CARD = """{front_matter}
# {name}

A sentence encoder for devices: {dimension} dimensions, {parameters} parameters, {precision}, {size} MB.
It reads up to {max_seq_length} tokens of a text and returns an embedding of length 1. Made for: {roles}.

## Use

```python
from edgeembed_runtime import Encoder

encoder = Encoder.load("path/to/this/folder", verify=True)
vectors = encoder.encode(["first text", "second text"])
```

The model is `{model_file}`: {contract}

## Origin

- License: {license}
- Languages: {languages}
- Base model: {base_model}
- Teacher: {teacher}
- Embedding space: {space}
- Recipe: {recipe}
- Trimmed or reduced before the export: {reduction}
- Licenses of the training text: {licenses}
- Command: {command}

## Parity

Compared with the model it was exported from, over {sentences} sentences:

- Cosine: worst {worst}, first percentile {first_percentile}, mean {mean}
- Spearman's correlation of the cosines of all pairs: {spearman}
- Overlap of a sentence's ten nearest neighbors: {top_10_overlap}
{original}
`edgeembed.json` lists the worst sentences, and the checksum of every file; `edgeembed verify` compares the checksums.

## Quality

{quality}

## Cost

- Size: {size} MB
- Parameters: {parameters}

{latency}
"""
_CONTRACTS = {
    "onnx": "int64 `input_ids` and `attention_mask` (batch, tokens) in, float32\n"
    "`sentence_embedding` (batch, {dimension}) out. Pooling ({pooling}), head and normalization are inside the\ngraph.",
    "numpy": "embedding tables and a linear head, in the format of docs/tensor-file.md\n"
    "of edgeembed. NumPy alone runs it.",
}
_RANKERS = {
    "semantic": "ranking by similarity (`SemanticRanker`)",
    "relevance": "ranking by a query (`RelevanceRanker`)",
}
_UNKNOWN = "not stated"
_NO_STUDENT = "none: not an edgeembed student"
# Words that YAML does not read as text.
_YAML_WORDS = {"no", "yes", "on", "off", "true", "false", "null", "n", "y"}
_QUOTED = re.compile(r"""(["'])(.*?)\1""")
_UNMEASURED = "not measured"
# Options that do not change the bundle.
_OMITTED_OPTIONS = {"--force", "--json"}


def model_card(manifest: dict[str, Any], *, size_bytes: int, command: str | None) -> str:
    """Return the model card of a bundle as Markdown.

    Args:
        manifest: The content of edgeembed.json.
        size_bytes: Size of the bundle's files.
        command: The command that made the bundle; None if it is unknown.
    """
    parity, quality, latency = manifest["parity"], manifest["quality"], manifest["latency"]
    return _CARD.format(
        front_matter=front_matter(
            license_name=manifest["license"],
            base_model=manifest["base_model"],
            languages=manifest["languages"],
            library="edgeembed",
            tags=["sentence-similarity", "edgeembed", manifest["backend"]],
        ),
        license=manifest["license"] or _UNKNOWN,
        languages=", ".join(manifest["languages"]) or _UNKNOWN,
        base_model=manifest["base_model"] or _UNKNOWN,
        original=_original_section(manifest["original_parity"]),
        name=manifest["name"],
        dimension=manifest["dimension"],
        parameters=f"{manifest['num_parameters']:,}",
        precision=_precision(manifest),
        size=f"{size_bytes / 1e6:.1f}",
        max_seq_length=manifest["max_seq_length"],
        roles=" and ".join(_RANKERS[role] for role in manifest["roles"]),
        backend=manifest["backend"],
        model_file=manifest["model_file"],
        contract=_CONTRACTS[manifest["backend"]].format(dimension=manifest["dimension"], pooling=manifest["pooling"]),
        teacher=manifest["teacher"] or _NO_STUDENT,
        space=_space_line(manifest["space"]),
        recipe=_recipe_line(manifest["recipe"]),
        reduction=_reduction_line(manifest["reduction"]),
        licenses="; ".join(manifest["licenses"]) or _UNKNOWN,
        command=f"`{command}`" if command else _UNKNOWN,
        sentences=parity["sentences"],
        worst=_decimal(parity["min_cosine"]),
        first_percentile=_decimal(parity["p01_cosine"]),
        mean=_decimal(parity["mean_cosine"]),
        spearman=_decimal(parity["spearman"]),
        top_10_overlap=_decimal(parity["top_10_overlap"]),
        quality=code_block(quality) if quality else "Not measured.",
        latency=code_block(latency) if latency else "Latency: not measured.",
    )


def _precision(manifest: dict[str, Any]) -> str:
    """Return the precision, with the bits per value of token embeddings that were trained with fewer."""
    student = (manifest["recipe"] or {}).get("student", {})
    bits = student.get("shape", {}).get("table_bits", student.get("table_bits"))  # those of its kind, if it has any
    precision: str = manifest["precision"]
    return f"{precision} with token embeddings of {bits} bits" if bits and precision == "int8" else precision


def front_matter(
    *,
    license_name: str | None,
    base_model: str | None,
    languages: Sequence[str],
    library: str,
    tags: Sequence[str],
    datasets: Sequence[str] = (),
    pipeline: str = "sentence-similarity",
) -> str:
    """Return the YAML front matter of a model card, which the Hugging Face Hub reads.

    Args:
        license_name: License of the weights, as the Hub spells it; None is written as "unknown".
        base_model: The model that this one was made from; None leaves it out.
        languages: Language codes; if empty, they are left out.
        library: The library that loads the model.
        tags: Tags.
        datasets: Names of the training text; if empty, they are left out.
        pipeline: The pipeline tag: the task as the Hub names it.
    """
    lines = [f"license: {_scalar(license_name or 'unknown')}"]
    lines += [f"base_model: {_scalar(base_model)}"] if base_model else []
    lines += ["language:", *(f"- {_scalar(code)}" for code in languages)] if languages else []
    lines += [f"library_name: {library}", f"pipeline_tag: {pipeline}", "tags:", *(f"- {tag}" for tag in tags)]
    lines += ["datasets:", *(f"- {_scalar(name)}" for name in datasets)] if datasets else []
    return "\n".join(["---", *lines, "---", ""])


def read_front_matter(card: Path) -> dict[str, Any]:
    """Return the YAML front matter of a model card; empty if the file or its front matter is missing or broken."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    start, _, rest = text.partition("---\n")
    block, end, _ = rest.partition("\n---")
    if start.strip() or not end:
        return {}
    try:
        values = yaml.safe_load(block)
    except yaml.YAMLError:
        return {}
    return values if isinstance(values, dict) else {}


def without_paths(value: Any) -> Any:
    """Return a JSON value whose absolute paths, as values or keys, are reduced to their last part.

    Bytes of names that are not UTF-8 are escaped.
    """
    if isinstance(value, str):
        return valid_unicode(_last_part(value) if _is_absolute(value) else value)
    if isinstance(value, dict):
        return {without_paths(key): without_paths(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(each) for each in value]
    return value


def command_line(arguments: Sequence[str]) -> str:
    """Return a command for a model card: the same on every machine, without private paths.

    Of the path of --out, and of paths that are absolute or lead upwards, only the last part stays. Options that do not
    change the bundle are left out.

    Args:
        arguments: The words of the command, starting with its name.
    """
    words = [word for word in arguments if word not in _OMITTED_OPTIONS]
    return shlex.join(valid_unicode(_shown(word, before)) for before, word in zip(["", *words], words, strict=False))


def _shown(word: str, before: str) -> str:
    if before == "--out":
        return PurePath(word).name or word
    option, equals, value = word.partition("=")
    if option == "--out" and equals:
        return f"--out={PurePath(value).name or value}"
    if _is_absolute(word):
        return _last_part(word)
    if equals and _is_absolute(value):
        return f"{option}={_last_part(value)}"
    return _QUOTED.sub(lambda found: f"{found[1]}{without_paths(found[2])}{found[1]}", word)


def _is_absolute(text: str) -> bool:
    """Return whether a text is a path that reveals the folders of a machine, of any operating system."""
    if "\n" in text or len(text) < 3:
        return False
    return text.startswith(("/", "~/", "../", "file:")) or PureWindowsPath(text).is_absolute()


def _last_part(path: str) -> str:
    return PureWindowsPath(path).name or "."


def _scalar(text: str) -> str:
    """Return a text as a YAML scalar, quoted where it needs to be."""
    return (
        text
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]*", text) and text.lower() not in _YAML_WORDS
        else json.dumps(text)
    )


def _original_section(parity: dict[str, Any] | None) -> str:
    if parity is None:
        return ""
    lines = [
        "",
        f"Compared with the whole model, before it was trimmed or reduced, over {parity['sentences']} sentences:",
        "",
    ]
    if parity["min_cosine"] is not None:
        figures = [_decimal(parity[f"{name}_cosine"]) for name in ("min", "p01", "mean")]
        lines.append("- Cosine: worst {}, first percentile {}, mean {}".format(*figures))
    lines.append(f"- Spearman's correlation of the cosines of all pairs: {_decimal(parity['spearman'])}")
    lines.append(f"- Overlap of a sentence's ten nearest neighbors: {_decimal(parity['top_10_overlap'])}")
    return "\n".join([*lines, ""])


def _space_line(space: str | None) -> str:
    if space is None:
        return "its own, which no other encoder is known to share"
    return f"`{space}`; embeddings may be compared with those of any encoder that states the same space"


def _recipe_line(recipe: dict[str, Any] | None) -> str:
    if not recipe:
        return "none"
    about = [str(recipe[key]) for key in ("name", "description") if recipe.get(key)]
    return " - ".join([*about, "`edgeembed.json` contains all its values"])


def _reduction_line(reduction: dict[str, Any] | None) -> str:
    return f"{', '.join(reduction)}; `edgeembed.json` states what it cost" if reduction else "nothing"


def _decimal(value: float | None) -> str:
    return _UNMEASURED if value is None else f"{value:.5f}"


def code_block(values: dict[str, Any]) -> str:
    """Return values as a JSON code block in Markdown."""
    return f"```json\n{json.dumps(values, indent=2, ensure_ascii=False)}\n```"
