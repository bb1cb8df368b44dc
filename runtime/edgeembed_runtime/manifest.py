"""What edgeembed.json says about a bundle, checked field by field."""

from dataclasses import dataclass
from typing import Any

from edgeembed_runtime.bundle_files import check_inside
from edgeembed_runtime.errors import BundleError
from edgeembed_runtime.storage.files import Folder, is_dir, is_file, sha256
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields

MANIFEST = "edgeembed.json"
CHECKSUM = "edgeembed.json.sha256"
"""The checksum of edgeembed.json itself, in the form that `sha256sum --check` reads."""
BUNDLE_FOLDER = FolderKind(MANIFEST, ("schema_version", "model_file"), unlisted=(CHECKSUM,))
SCHEMA_VERSION = 1

ROLES = ("semantic", "relevance")
"""What an encoder may be made for: to compare texts with texts, or texts with a query."""

# Far more than any of our bundles has; what claims more would have one vector, or one file, fill the memory.
_MOST_DIMENSIONS = 2**16
_MOST_TOKENS = 2**20
_MOST_BYTES = 2**31
_MOST_TOKENIZER_BYTES = 2**27


@dataclass(frozen=True)
class WorstSentence:
    """A sentence on which the export differs most.

    Attributes:
        text: The sentence.
        cosine: Between the student's vector and the bundle's.
    """

    text: str
    cosine: float


@dataclass(frozen=True)
class Parity:
    """How close a bundle's vectors are to those of the student it was exported from.

    Attributes:
        sentences: How many sentences were compared.
        worst_cosine: The lowest cosine among them.
        mean_cosine: The mean of their cosines.
        worst_sentences: Those with the lowest cosines, the lowest first.
        first_percentile_cosine: The cosine that one sentence in a hundred falls below.
        rank_correlation: Spearman's, between the student's cosines of all pairs of sentences and the bundle's.
        top_10_overlap: The share of a sentence's ten nearest that are the same for both, the mean over the sentences.

    The last three are None in bundles of older exporters, and the two on ranks where there are too few sentences.
    """

    sentences: int
    worst_cosine: float
    mean_cosine: float
    worst_sentences: tuple[WorstSentence, ...]
    first_percentile_cosine: float | None = None
    rank_correlation: float | None = None
    top_10_overlap: float | None = None


@dataclass(frozen=True)
class Manifest:
    """The content of edgeembed.json. JsonFields that a later version adds are ignored.

    Attributes:
        schema_version: The version of this layout.
        edgeembed_version: The version that exported the bundle.
        name: What the encoder is called.
        role: "semantic" or "relevance": the first of its roles.
        roles: All that it was made for. Older exporters name one role, which decided nothing: their bundles have both.
        dimension: The length of a vector.
        max_seq_length: The most tokens of a text that are read, special ones included.
        pooling: How token vectors become one, for example "mean". It is inside the graph.
        prompts: Texts that are put before a text, by name.
        default_prompt_name: The prompt used where none is asked for.
        backend: The engine that runs the model.
        precision: "fp32", "fp16", "int8" or "int4".
        model_file: The model's path within the folder.
        parameters: How many numbers the model holds.
        teacher: What the student was distilled from.
        recipe: How, as the recipe's resolved values.
        licenses: Of the text it was trained on.
        parity: How close the bundle is to its student.
        quality: Scores, as the exporter was given them.
        latency: What a text takes and on which machine, as the exporter was given it; None where not measured.
        near_cosine: The cosine from which a text joins a center of interest; optional. None, where it was not
            measured, leaves it to `SemanticRanker`, which then takes 0.4. `InterestSettings` says how to choose it.
        files: Every file of the bundle but edgeembed.json and the checksum of that.
    """

    schema_version: int
    edgeembed_version: str
    name: str
    role: str
    roles: tuple[str, ...]
    dimension: int
    max_seq_length: int
    pooling: str
    prompts: dict[str, str]
    default_prompt_name: str | None
    backend: str
    precision: str
    model_file: str
    parameters: int
    teacher: str | None
    recipe: dict[str, Any] | None
    licenses: tuple[str, ...]
    parity: Parity
    quality: dict[str, Any] | None
    latency: dict[str, Any] | None
    near_cosine: float | None
    files: tuple[FileRecord, ...]


def read_manifest(folder: Folder) -> Manifest:
    """Read and validate a bundle's edgeembed.json.

    Args:
        folder: The bundle.

    Returns:
        The manifest.

    Raises:
        BundleError: If the file is missing, a link out of the folder, not JSON, of an unknown version, or a field is
            missing or invalid.
    """
    if not is_dir(folder):
        raise BundleError(f"{folder} is no folder; expected a bundle, as `edgeembed export` writes it")
    if not is_file(folder / MANIFEST):
        raise BundleError(f"{folder} holds no {MANIFEST}; expected a bundle, as `edgeembed export` writes it")
    check_inside(folder, MANIFEST)
    check_inside(folder, CHECKSUM)
    fields = JsonFields.read(folder / MANIFEST, BundleError)
    _check_version(fields, folder)
    manifest = _parse(fields)
    _check_names(manifest, fields)
    _check_sizes(manifest, fields)
    if manifest.near_cosine is not None and not 0 < manifest.near_cosine <= 1:
        raise fields.field_error("near_cosine", "null, or a cosine above 0 and at most 1")
    return manifest


def checksum_line(folder: Folder) -> str:
    """Give what the checksum file beside a bundle's edgeembed.json holds."""
    return f"{sha256(folder / MANIFEST)}  {MANIFEST}\n"


def manifest_difference(folder: Folder) -> str | None:
    """Say that edgeembed.json is not the one that was exported; None if it is, or an older bundle has no checksum."""
    if not is_file(folder / CHECKSUM):
        return None
    expected = checksum_line(folder)
    try:
        with (folder / CHECKSUM).open("rb") as file:
            is_same = file.read(len(expected) + 1) == expected.encode()
    except OSError as error:
        return f"{CHECKSUM} cannot be read ({error.strerror})"
    return None if is_same else f"{MANIFEST} has SHA-256 {expected.split()[0]}, which {CHECKSUM} does not say"


def _check_version(fields: JsonFields, folder: Folder) -> None:
    version = fields.integer("schema_version")
    if version != SCHEMA_VERSION:
        raise BundleError(
            f"{folder} has schema version {version}, expected {SCHEMA_VERSION}; "
            "upgrade edgeembed-runtime or export the bundle again"
        )


def _parse(fields: JsonFields) -> Manifest:
    return Manifest(
        schema_version=SCHEMA_VERSION,
        edgeembed_version=fields.string("edgeembed_version"),
        name=fields.string("name"),
        role=fields.string("role", ROLES),
        roles=fields.optional_strings("roles", ROLES) or ROLES,
        dimension=fields.integer("dimension", minimum=1, maximum=_MOST_DIMENSIONS),
        max_seq_length=fields.integer("max_seq_length", minimum=1, maximum=_MOST_TOKENS),
        pooling=fields.string("pooling"),
        prompts=fields.string_dict("prompts"),
        default_prompt_name=fields.nullable_string("default_prompt_name"),
        backend=fields.string("backend"),
        precision=fields.string("precision", ("fp32", "fp16", "int8", "int4")),
        model_file=fields.string("model_file"),
        parameters=fields.integer("parameters"),
        teacher=fields.nullable_string("teacher"),
        recipe=fields.nullable_object("recipe"),
        licenses=fields.strings("licenses"),
        parity=_parse_parity(fields.child("parity")),
        quality=fields.nullable_object("quality"),
        latency=fields.optional_object("latency"),
        near_cosine=fields.optional_number("near_cosine"),
        files=tuple(FileRecord.parse(file) for file in fields.children("files")),
    )


def _parse_parity(fields: JsonFields) -> Parity:
    worst = fields.children("worst_sentences")
    return Parity(
        sentences=fields.integer("sentences"),
        worst_cosine=fields.number("worst_cosine"),
        mean_cosine=fields.number("mean_cosine"),
        worst_sentences=tuple(WorstSentence(item.string("text"), item.number("cosine")) for item in worst),
        first_percentile_cosine=fields.optional_number("first_percentile_cosine"),
        rank_correlation=fields.optional_number("rank_correlation"),
        top_10_overlap=fields.optional_number("top_10_overlap"),
    )


def _check_names(manifest: Manifest, fields: JsonFields) -> None:
    names = [file.name for file in manifest.files]
    if len(set(names)) < len(names):
        raise fields.field_error("files", "each name once")
    if "tokenizer.json" not in names:
        raise fields.field_error("files", "tokenizer.json among them")
    if manifest.model_file not in names:
        raise fields.field_error("model_file", "one of the names in 'files'")
    if manifest.role not in manifest.roles:
        raise fields.field_error("role", "one of the names in 'roles'")
    if manifest.default_prompt_name not in (None, *manifest.prompts):
        raise fields.field_error("default_prompt_name", "null or one of the names in 'prompts'")


def _check_sizes(manifest: Manifest, fields: JsonFields) -> None:
    """Check that what is going to be read is not too large for it, as nothing has been read yet."""
    if sum(file.size_bytes for file in manifest.files) > _MOST_BYTES:
        raise fields.field_error("files", f"at most {_MOST_BYTES} bytes in all")
    if any(file.name == "tokenizer.json" and file.size_bytes > _MOST_TOKENIZER_BYTES for file in manifest.files):
        raise fields.field_error("files", f"a tokenizer.json of at most {_MOST_TOKENIZER_BYTES} bytes")
