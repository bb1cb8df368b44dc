"""Decide, before anything is imported, whether sentence-transformers may load a model folder.

sentence-transformers imports the classes that a folder's configuration files name. `trust_remote_code=True` allows
that for any class and for code inside the folder, and version 5 does so for local folders even without it. The runtime
itself loads no such folders; the check lives here because the command line and the bench share it.
"""

import json
import os
import re
from collections.abc import Iterator, Set
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from edgeembed_runtime.errors import InputError

STUDENT_CLASSES = frozenset(
    {"edgeembed.students.cmow.MatrixEmbedding", "edgeembed.students.transformer.CompactTransformer"}
)
"""The classes outside sentence-transformers that a model folder may name."""

_LIBRARY_CLASS = re.compile(
    r"sentence_transformers\.(?:models|base\.modules|sentence_transformer\.modules)(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
    r"\.([A-Za-z]+)"
)
# The name at the end decides: what a module of sentence-transformers imports is an attribute of it, too.
_HEAD_MODULES = frozenset({"Dense", "Dropout", "LayerNorm", "Normalize", "Pooling"})
_INPUT_MODULES = "Asym BoW CLIPModel CNN LSTM Router StaticEmbedding Transformer WeightedLayerPooling WordEmbeddings"
_LIBRARY_MODULES = _HEAD_MODULES | {*_INPUT_MODULES.split(), "WordWeights"}
_WORD_TOKENIZERS = frozenset({"PhraseTokenizer", "TransformersTokenizerWrapper", "WhitespaceTokenizer"})

_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.)?(?:(?:activation|linear)\.)?([A-Za-z0-9]+)")
# Those that need no argument, because sentence-transformers stores the name alone.
_ACTIVATIONS = (
    "CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU "
    "ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmin Softplus Softshrink Softsign Tanh Tanhshrink"
)
_ACTIVATION_KEYS = ("activation_function", "activation_fn", "sbert_ce_default_activation_function")

# Arguments of transformers' from_pretrained that cannot run code; `weights_only`, for one, allows any pickle.
# sentence-transformers itself ignores `trust_remote_code` here.
_MODEL_ARGUMENTS = (
    "add_pooling_layer attn_implementation dtype export file_name low_cpu_mem_usage output_attentions "
    "output_hidden_states torch_dtype trust_remote_code use_cache use_safetensors"
)

_MODULES = "modules.json"
_ADAPTER = "adapter_config.json"


def needs_trust(folder: str | os.PathLike[str]) -> bool:
    """Return whether a model folder needs `trust_remote_code`, after checking that it names no foreign code.

    Call this before `SentenceTransformer(folder)`, even if the folder is then loaded without trust.

    Args:
        folder: A sentence-transformers folder, or a plain transformers one without a modules.json.

    Returns:
        True if a module is one of `STUDENT_CLASSES`, which sentence-transformers imports only with trust; then the
        folder holds no Python file at any depth, and the other modules load no code. False if all modules are
        sentence-transformers' own: load the folder without trust, and any Python file in it stays unread.

    Raises:
        InputError: If a configuration file at any depth cannot be read, names a class that is neither a module of
            sentence-transformers nor in `STUDENT_CLASSES`, an activation function other than torch.nn's, or other
            code (`auto_map`, kernels, arguments of transformers), belongs to an adapter, or points outside the
            folder; or if the folder needs trust and holds a Python file, or a module that would pass trust on.
    """
    files = sorted(_files(Path(folder)))
    named = [name for path in files if _is_configuration(path) for name in _checked_classes(path)]
    trusted = any(name in STUDENT_CLASSES for name in named)
    if trusted:
        _check_trusted(Path(folder), files, named)
    return trusted


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files at any depth, through links to folders too, each folder once."""
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(parent))
        folders[:] = [name for name in folders if os.path.realpath(os.path.join(parent, name)) not in seen]  # noqa: PTH118
        yield from (Path(parent, name) for name in names)


def _is_configuration(path: Path) -> bool:
    name = path.name.lower()
    return name == _MODULES or (name.endswith(".json") and "config" in name)


def _checked_classes(path: Path) -> list[str]:
    """Check a configuration file, and return the names of the classes that sentence-transformers would import."""
    if path.name.lower() == _ADAPTER:
        raise InputError(
            f"{path} belongs to an adapter, whose configuration can name code and other models; expected a merged "
            "model: load it with peft, call merge_and_unload(), and save the result"
        )
    content = _read(path)
    if path.name.lower() == _MODULES:
        types = _module_types(path, content)
    else:
        _check_values(path, content)
        types = _nested_types(path, content)
    for name in types:
        _check_class(path, name, _LIBRARY_MODULES)
    return types


def _check_class(path: Path, name: str, allowed: Set[str]) -> None:
    library = _LIBRARY_CLASS.fullmatch(name)
    if name not in STUDENT_CLASSES and (library is None or library[1] not in allowed):
        raise InputError(
            f"{path} names the class {name!r}, which would run code of its own; expected only modules of "
            "sentence-transformers and edgeembed: load such a model yourself, if you trust it"
        )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} cannot be read as JSON: {reason}; expected a folder as sentence-transformers saved it"
        ) from error


def _module_types(path: Path, content: Any) -> list[str]:
    if not isinstance(content, list) or not all(
        isinstance(module, dict) and isinstance(module.get("type"), str) and isinstance(module.get("path"), str)
        for module in content
    ):
        raise InputError(f"{path} is not a list of modules, each with a type and a path; save the model again")
    for module in content:
        _check_inside(path, module["path"])
    return [module["type"] for module in content]


def _nested_types(path: Path, content: Any) -> list[str]:
    """Return the classes that the configuration of a Router names."""
    if not isinstance(content, dict):
        return []
    types = content.get("types")
    named = {key: name for key, name in types.items() if isinstance(name, str)} if isinstance(types, dict) else {}
    for key in named:
        _check_inside(path, key)
    return list(named.values())


def _check_inside(path: Path, module: str) -> None:
    parts = PurePosixPath(module), PureWindowsPath(module)
    if any(part.is_absolute() or part.drive or ".." in part.parts for part in parts):
        raise InputError(f"{path} has a module at {module!r}; expected a path inside the folder")


def _check_values(path: Path, content: Any) -> None:
    """Raise InputError if a value at any depth of a configuration names code."""
    if isinstance(content, dict):
        _check_arguments(path, content)
    for key, value in _entries(content):
        if key == "auto_map" and value:
            raise InputError(
                f"{path} has an auto_map, by which transformers would run code of the model's own; expected an "
                "encoder that transformers knows: load such a model yourself, if you trust it"
            )
        if "attn_implementation" in key or "experts_implementation" in key:
            _check_implementation(path, key, value)
        if key in _ACTIVATION_KEYS and isinstance(value, str) and "." in value:
            _check_activation(path, value)
        if key == "tokenizer_class" and isinstance(value, str) and "." in value:  # of a WordEmbeddings
            _check_class(path, value, _WORD_TOKENIZERS)


def _check_implementation(path: Path, key: str, value: object) -> None:
    for name in value.values() if isinstance(value, dict) else [value]:
        if isinstance(name, str) and "/" in name:
            raise InputError(
                f"{path} names {name!r} as {key}, code that transformers would download; expected one that is built "
                "in, such as 'sdpa': remove it"
            )


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values at any depth."""
    remaining = [content]
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict):
            yield from value.items()
            remaining += value.values()
        elif isinstance(value, list):
            remaining += value


def _check_arguments(path: Path, content: dict[str, Any]) -> None:
    """Check the activation function of a Dense, and the arguments with which a Transformer calls transformers."""
    if "in_features" in content and "activation_function" in content:
        _check_activation(path, content["activation_function"])
    for kind in ("model", "tokenizer", "processor", "config"):
        for name in (f"{kind}_args", f"{kind}_kwargs"):
            given = content.get(name) or {}
            for key in given if isinstance(given, dict) else [given]:
                if key not in _MODEL_ARGUMENTS.split() if kind == "model" else str(key).startswith("_"):
                    raise InputError(
                        f"{path} passes {key!r} to transformers in {name}, which may run code or read other files; "
                        "expected only settings such as dtype: remove it"
                    )


def _check_activation(path: Path, function: object) -> None:
    known = _ACTIVATION.fullmatch(function) if isinstance(function, str) else None
    if known is None or known[1] not in _ACTIVATIONS.split():
        raise InputError(
            f"{path} names the activation function {function!r}; expected a class of torch.nn, such as "
            "'torch.nn.modules.activation.Tanh', or 'torch.nn.modules.linear.Identity' for none"
        )


def _check_trusted(folder: Path, files: list[Path], named: list[str]) -> None:
    """Raise InputError if trust would extend to more than our own classes."""
    for path in files:
        if path.suffix.lower() in {".py", ".pyc"}:
            raise InputError(
                f"{path} is in the folder of an edgeembed student, which sentence-transformers loads only with trust; "
                "expected no Python file there: remove it"
            )
    for name in named:
        if name not in STUDENT_CLASSES and name.rpartition(".")[2] not in _HEAD_MODULES:
            raise InputError(
                f"{folder} holds an edgeembed student and a {name}, which would be loaded with the same trust; "
                f"expected only {', '.join(sorted(_HEAD_MODULES))} beside the student"
            )
