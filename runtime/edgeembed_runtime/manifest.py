"""The manifest of a bundle, edgeembed.json: its fields, read and validated."""

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.storage.files import is_dir, is_file, sha256
from edgeembed_runtime.storage.folder import Folder
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

    from edgeembed_runtime.parity import ClassifierParity, Parity

MANIFEST = "edgeembed.json"
CHECKSUM = "edgeembed.json.sha256"
"""The checksum of edgeembed.json itself, in the format of `sha256sum --check`."""
BUNDLE_FOLDER = FolderKind(MANIFEST, ("schema_version", "model_file"), unlisted=(CHECKSUM,), is_model=True)
SCHEMA_VERSION = 2

TASKS = ("embedding", "classification")
"""What a bundle's model computes: the embedding of a text, or the logits of a classifier's labels."""

ROLES = ("semantic", "relevance")
"""The uses an encoder is exported for: comparing texts with each other, or texts with a query."""

# Far above any real bundle. A larger value would make one vector, or one file, fill the memory.
_MAX_DIMENSION = 2**16
_MAX_SEQ_LENGTH = 2**20
_MAX_BYTES = 2**31
_MAX_TOKENIZER_BYTES = 2**27
_MAX_LABELS = 2**16


class Manifest:
    """The content of edgeembed.json, and where it is. Unknown fields are ignored.

    Args:
        fields: The fields of edgeembed.json.
        folder: The bundle's folder.

    Raises:
        InputError: Or the error class of `fields`, if there is another schema version, or a missing or invalid field.

    Attributes:
        schema_version: The version of this schema.
        edgeembed_version: The version of edgeembed that exported the bundle.
        name: The name of the encoder or classifier.
        task: "embedding", or "classification" for a classifier.
        labels: The names of a classifier's labels, in the order of its logits; empty for an encoder.
        is_pairs: Whether a classifier reads pairs of texts, both as one sequence.
        role: An encoder's main role, "semantic" or "relevance"; None for a classifier.
        roles: All roles that an encoder was exported for; empty for a classifier.
        dimension: The dimension of an embedding.
        max_seq_length: The maximum number of tokens read from a text, including special tokens.
        pooling: The pooling of token embeddings, for example "mean". It is part of the model file.
        prompts: Prefixes of texts, by name.
        default_prompt_name: The prompt used if the caller asks for none.
        backend: The backend that runs the model, "onnx" or "numpy".
        precision: The name of the weights' precision, such as "fp32" or "int8".
        model_file: The model's path within the folder.
        num_parameters: The number of the model's weights.
        teacher: The teacher that the student was distilled from.
        space: The name of the embedding space. Embeddings of two encoders with the same space and dimension may be
            compared: a student that learned its teacher's embeddings has the teacher's. None if it is unknown, as in
            bundles of older versions, and for a classifier.
        recipe: The resolved values of the distillation recipe.
        licenses: Licenses of the training text.
        quality: Scores that were passed to the exporter.
        latency: Times per text, and the machine they were measured on, as passed to the exporter.
        near_cosine: The minimum cosine at which a text joins a center of interest of `SemanticRanker`, instead of
            starting a new one. If None, it is 0.4. `InterestSettings` describes how it is chosen.
        files: Every file of the bundle except edgeembed.json and its checksum.
        folder: The bundle's folder, which edgeembed.json does not state.
    """

    schema_version: int
    edgeembed_version: str
    name: str
    task: str
    labels: tuple[str, ...]
    is_pairs: bool
    role: str | None
    roles: tuple[str, ...]
    dimension: int
    max_seq_length: int
    pooling: str
    prompts: dict[str, str]
    default_prompt_name: str | None
    backend: str
    precision: str
    model_file: str
    num_parameters: int
    teacher: str | None
    space: str | None
    recipe: dict[str, Any] | None
    licenses: tuple[str, ...]
    quality: dict[str, Any] | None
    latency: dict[str, Any] | None
    near_cosine: float | None
    files: tuple[FileRecord, ...]

    def __init__(self, fields: JsonFields, folder: Folder) -> None:
        self.schema_version = _read_version(fields, folder)
        self.task = _read_task(fields, folder)
        is_classifier = self.is_classifier
        self.edgeembed_version = fields.string("edgeembed_version")
        self.name = fields.string("name")
        self.labels = _parse_labels(fields) if is_classifier else ()
        self.is_pairs = fields.boolean("is_pairs") if is_classifier else False
        self.role = None if is_classifier else fields.string("role", ROLES)
        self.roles = () if is_classifier else fields.choices("roles", ROLES)
        self.dimension = fields.integer("dimension", minimum=1, maximum=_MAX_DIMENSION)
        self.max_seq_length = fields.integer("max_seq_length", minimum=1, maximum=_MAX_SEQ_LENGTH)
        self.pooling = fields.string("pooling")
        self.prompts = fields.string_dict("prompts")
        self.default_prompt_name = fields.nullable_string("default_prompt_name")
        self.backend = fields.string("backend")
        self.precision = fields.string("precision")
        self.model_file = fields.string("model_file")
        self.num_parameters = fields.integer("num_parameters")
        self.teacher = fields.nullable_string("teacher")
        self.space = fields.optional_string("space")
        self.recipe = fields.nullable_object("recipe")
        self.licenses = fields.strings("licenses")
        self.quality = fields.nullable_object("quality")
        self.latency = fields.nullable_object("latency")
        self.near_cosine = fields.nullable_number("near_cosine")
        self.files = tuple(FileRecord.parse(file) for file in fields.children("files"))
        self.folder = folder
        self._parity = fields.child("parity")
        _check_references(self, fields)
        _check_sizes(self, fields)
        if self.near_cosine is not None and not 0 < self.near_cosine <= 1:
            raise fields.field_error("near_cosine", "null, or a cosine above 0 and at most 1")
        if self.space == "":
            raise fields.field_error("space", "null, or the name of an embedding space")

    @classmethod
    def from_folder(cls, folder: Folder) -> "Self":
        """Read and validate the edgeembed.json of a bundle.

        Args:
            folder: The bundle's folder.

        Raises:
            BundleError: If the file is missing, is not JSON, has another schema version, or has a missing or invalid
                field.
        """
        if not is_dir(folder):
            raise BundleError(f"{folder} is not a folder; expected a bundle, as `edgeembed export` writes it")
        if not is_file(folder / MANIFEST):
            raise BundleError(f"{folder} has no {MANIFEST}; expected a bundle, as `edgeembed export` writes it")
        return cls(JsonFields.read(folder / MANIFEST, BundleError), folder)

    @property
    def path(self) -> "Path | Folder":
        """The bundle's folder as a `Path`, or as a `zipfile.Path` if the package is inside a zip file."""
        if not isinstance(self.folder, os.PathLike):
            return self.folder
        from pathlib import Path  # an encoder starts without it, see storage/folder.py

        return Path(self.folder)

    @cached_property
    def parity(self) -> "Parity | ClassifierParity":
        """The agreement with the exported model: a `Parity`, or a `ClassifierParity` for a classifier.

        Raises:
            BundleError: If a field is missing or invalid: an encoder does without them, so they are read here.
        """
        from edgeembed_runtime.parity import parse_classifier_parity, parse_parity

        return (parse_classifier_parity if self.is_classifier else parse_parity)(self._parity)

    @property
    def is_classifier(self) -> bool:
        """Whether the model is a classifier."""
        return self.task == "classification"


def checksum_line(folder: Folder) -> str:
    """Return the expected content of the checksum file beside edgeembed.json."""
    return f"{sha256(folder / MANIFEST)}  {MANIFEST}\n"


def manifest_difference(folder: Folder) -> str | None:
    """Return how edgeembed.json differs from its checksum file; None if it matches or has no checksum file."""
    if not is_file(folder / CHECKSUM):
        return None
    expected = checksum_line(folder)
    try:
        with (folder / CHECKSUM).open("rb") as file:
            matches = file.read(len(expected) + 1) == expected.encode()
    except OSError as error:
        return f"{CHECKSUM} cannot be read ({error.strerror})"
    return None if matches else f"{MANIFEST} has SHA-256 {expected.split()[0]}, which is not the one in {CHECKSUM}"


def _read_version(fields: JsonFields, folder: Folder) -> int:
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        remedy = "export the bundle again" if version < SCHEMA_VERSION else "upgrade edgeembed-runtime"
        raise BundleError(f"{folder} has schema version {version}, expected {SCHEMA_VERSION}; {remedy}")
    return version


def _read_task(fields: JsonFields, folder: Folder) -> str:
    task = fields.optional_string("task") or TASKS[0]
    if task not in TASKS:
        raise BundleError(f"{folder} has the task {task!r}, expected {' or '.join(TASKS)}; upgrade edgeembed-runtime")
    return task


def _parse_labels(fields: JsonFields) -> tuple[str, ...]:
    labels = fields.strings("labels")
    if not 2 <= len(labels) <= _MAX_LABELS or len(set(labels)) < len(labels):
        raise fields.field_error("labels", f"2 to {_MAX_LABELS} different strings")
    return labels


def _check_references(manifest: Manifest, fields: JsonFields) -> None:
    """Check the fields that refer to other fields."""
    names = [file.name for file in manifest.files]
    if len(set(names)) < len(names):
        raise fields.field_error("files", "each name once")
    if "tokenizer.json" not in names:
        raise fields.field_error("files", "tokenizer.json among them")
    if manifest.model_file not in names:
        raise fields.field_error("model_file", "one of the names in 'files'")
    if manifest.is_classifier and manifest.backend == "numpy":
        raise fields.field_error("backend", "'onnx' for a classifier")
    if not manifest.is_classifier and manifest.role not in manifest.roles:
        raise fields.field_error("role", "one of the names in 'roles'")
    if manifest.default_prompt_name not in (None, *manifest.prompts):
        raise fields.field_error("default_prompt_name", "null or one of the names in 'prompts'")


def _check_sizes(manifest: Manifest, fields: JsonFields) -> None:
    """Check the file sizes before any file is read into memory."""
    if sum(file.size_bytes for file in manifest.files) > _MAX_BYTES:
        raise fields.field_error("files", f"at most {_MAX_BYTES} bytes in all")
    if any(file.name == "tokenizer.json" and file.size_bytes > _MAX_TOKENIZER_BYTES for file in manifest.files):
        raise fields.field_error("files", f"a tokenizer.json of at most {_MAX_TOKENIZER_BYTES} bytes")
