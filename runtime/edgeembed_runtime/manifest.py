"""The manifest of a bundle, edgeembed.json: its fields, read and validated."""

from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.storage.files import Folder, is_dir, is_file, sha256
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields

MANIFEST = "edgeembed.json"
CHECKSUM = "edgeembed.json.sha256"
"""The checksum of edgeembed.json itself, in the format of `sha256sum --check`."""
BUNDLE_FOLDER = FolderKind(MANIFEST, ("schema_version", "model_file"), unlisted=(CHECKSUM,))
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


@dataclass(frozen=True)
class WorstSentence:
    """One of the sentences with the lowest cosines between the exported model and the bundle.

    Attributes:
        text: The sentence.
        cosine: The cosine between its embedding by the exported model and by the bundle.
    """

    text: str
    cosine: float


@dataclass(frozen=True)
class Parity:
    """The agreement between a bundle's embeddings and those of the model it was exported from.

    Attributes:
        sentences: The number of sentences compared.
        min_cosine: The lowest cosine of a sentence's two embeddings.
        mean_cosine: The mean cosine.
        worst_sentences: The sentences with the lowest cosines, in ascending order.
        p01_cosine: The first percentile of the cosines; None if it was not measured.
        spearman: Spearman's rank correlation between the two models' cosines of all pairs of sentences; None if
            there were too few sentences.
        top_10_overlap: The mean share of a sentence's ten nearest neighbors that both models agree on; None if
            there were too few sentences.
    """

    sentences: int
    min_cosine: float
    mean_cosine: float
    worst_sentences: tuple[WorstSentence, ...]
    p01_cosine: float | None
    spearman: float | None
    top_10_overlap: float | None


@dataclass(frozen=True)
class WorstPrediction:
    """One of the texts whose probabilities differ most between the exported classifier and the bundle.

    Attributes:
        text: The text; of a pair, both texts with a tab between them.
        probability_difference: The largest absolute difference of a label's probability.
    """

    text: str
    probability_difference: float


@dataclass(frozen=True)
class ClassifierParity:
    """The agreement between a bundle's predictions and those of the classifier it was exported from.

    Attributes:
        sentences: The number of texts, or pairs of texts, compared.
        label_agreement: The share of the texts for which both predict the same label.
        max_probability_difference: The largest absolute difference of a label's probability.
        mean_probability_difference: The mean over the texts of their largest difference.
        worst_sentences: The texts with the largest differences, in descending order.
    """

    sentences: int
    label_agreement: float
    max_probability_difference: float
    mean_probability_difference: float
    worst_sentences: tuple[WorstPrediction, ...]


@dataclass(frozen=True)
class Manifest:
    """The content of edgeembed.json, and where it is. Unknown fields are ignored.

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
        precision: The precision of the weights: "fp32", "fp16", "int8" or "int4".
        model_file: The model's path within the folder.
        num_parameters: The number of the model's weights.
        teacher: The teacher that the student was distilled from.
        space: The name of the embedding space. Embeddings of two encoders with the same space and dimension may be
            compared: a student that learned its teacher's embeddings has the teacher's. None if it is unknown, as in
            bundles of older versions, and for a classifier.
        recipe: The resolved values of the distillation recipe.
        licenses: Licenses of the training text.
        parity: The agreement with the exported model: a `Parity`, or a `ClassifierParity` for a classifier.
        quality: Scores that were passed to the exporter.
        latency: Times per text, and the machine they were measured on, as passed to the exporter.
        near_cosine: The minimum cosine at which a text joins a center of interest of `SemanticRanker`, instead of
            starting a new one. If None, it is 0.4. `InterestSettings` describes how it is chosen.
        files: Every file of the bundle except edgeembed.json and its checksum.
        path: The bundle's folder, which edgeembed.json does not state; a `zipfile.Path` if the package is inside a zip
            file.
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
    parity: Parity | ClassifierParity
    quality: dict[str, Any] | None
    latency: dict[str, Any] | None
    near_cosine: float | None
    files: tuple[FileRecord, ...]
    path: Folder

    @property
    def is_classifier(self) -> bool:
        """Whether the model is a classifier."""
        return self.task == "classification"


def read_manifest(folder: Folder) -> Manifest:
    """Read and validate the edgeembed.json of a bundle.

    Args:
        folder: The bundle's folder.

    Returns:
        The manifest.

    Raises:
        BundleError: If the file is missing, is not JSON, has another schema version, or has a missing or invalid field.
    """
    if not is_dir(folder):
        raise BundleError(f"{folder} is not a folder; expected a bundle, as `edgeembed export` writes it")
    if not is_file(folder / MANIFEST):
        raise BundleError(f"{folder} has no {MANIFEST}; expected a bundle, as `edgeembed export` writes it")
    fields = JsonFields.read(folder / MANIFEST, BundleError)
    _check_version(fields, folder)
    manifest = _parse(fields, _read_task(fields, folder), folder)
    _check_references(manifest, fields)
    _check_sizes(manifest, fields)
    if manifest.near_cosine is not None and not 0 < manifest.near_cosine <= 1:
        raise fields.field_error("near_cosine", "null, or a cosine above 0 and at most 1")
    if manifest.space == "":
        raise fields.field_error("space", "null, or the name of an embedding space")
    return manifest


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


def _check_version(fields: JsonFields, folder: Folder) -> None:
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        remedy = "export the bundle again" if version < SCHEMA_VERSION else "upgrade edgeembed-runtime"
        raise BundleError(f"{folder} has schema version {version}, expected {SCHEMA_VERSION}; {remedy}")


def _read_task(fields: JsonFields, folder: Folder) -> str:
    task = fields.optional_string("task") or TASKS[0]
    if task not in TASKS:
        raise BundleError(f"{folder} has the task {task!r}, expected {' or '.join(TASKS)}; upgrade edgeembed-runtime")
    return task


def _parse(fields: JsonFields, task: str, folder: Folder) -> Manifest:
    is_classifier = task == "classification"
    return Manifest(
        schema_version=SCHEMA_VERSION,
        edgeembed_version=fields.string("edgeembed_version"),
        name=fields.string("name"),
        task=task,
        labels=_parse_labels(fields) if is_classifier else (),
        is_pairs=fields.boolean("is_pairs") if is_classifier else False,
        role=None if is_classifier else fields.string("role", ROLES),
        roles=() if is_classifier else fields.choices("roles", ROLES),
        dimension=fields.integer("dimension", minimum=1, maximum=_MAX_DIMENSION),
        max_seq_length=fields.integer("max_seq_length", minimum=1, maximum=_MAX_SEQ_LENGTH),
        pooling=fields.string("pooling"),
        prompts=fields.string_dict("prompts"),
        default_prompt_name=fields.nullable_string("default_prompt_name"),
        backend=fields.string("backend"),
        precision=fields.string("precision", ("fp32", "fp16", "int8", "int4")),
        model_file=fields.string("model_file"),
        num_parameters=fields.integer("num_parameters"),
        teacher=fields.nullable_string("teacher"),
        space=fields.optional_string("space"),
        recipe=fields.nullable_object("recipe"),
        licenses=fields.strings("licenses"),
        parity=(_parse_classifier_parity if is_classifier else _parse_parity)(fields.child("parity")),
        quality=fields.nullable_object("quality"),
        latency=fields.nullable_object("latency"),
        near_cosine=fields.nullable_number("near_cosine"),
        files=tuple(FileRecord.parse(file) for file in fields.children("files")),
        path=folder,
    )


def _parse_labels(fields: JsonFields) -> tuple[str, ...]:
    labels = fields.strings("labels")
    if not 2 <= len(labels) <= _MAX_LABELS or len(set(labels)) < len(labels):
        raise fields.field_error("labels", f"2 to {_MAX_LABELS} different strings")
    return labels


def _parse_classifier_parity(fields: JsonFields) -> ClassifierParity:
    worst = fields.children("worst_sentences")
    return ClassifierParity(
        sentences=fields.integer("sentences"),
        label_agreement=fields.number("label_agreement"),
        max_probability_difference=fields.number("max_probability_difference"),
        mean_probability_difference=fields.number("mean_probability_difference"),
        worst_sentences=tuple(
            WorstPrediction(item.string("text"), item.number("probability_difference")) for item in worst
        ),
    )


def _parse_parity(fields: JsonFields) -> Parity:
    worst = fields.children("worst_sentences")
    return Parity(
        sentences=fields.integer("sentences"),
        min_cosine=fields.number("min_cosine"),
        mean_cosine=fields.number("mean_cosine"),
        worst_sentences=tuple(WorstSentence(item.string("text"), item.number("cosine")) for item in worst),
        p01_cosine=fields.nullable_number("p01_cosine"),
        spearman=fields.nullable_number("spearman"),
        top_10_overlap=fields.nullable_number("top_10_overlap"),
    )


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
