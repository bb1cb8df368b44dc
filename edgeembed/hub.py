"""Publish students, classifiers and bundles on the Hugging Face Hub, and copy them to other folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from edgeembed_exporters.cards.card import read_front_matter
from edgeembed_runtime.errors import CheckError, InputError, short_repr
from edgeembed_runtime.manifest import BUNDLE_FOLDER
from edgeembed_runtime.model_trust import needs_trust
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path
from edgeembed_runtime.storage.folder_kind import FileRecord, FolderKind
from edgeembed_runtime.storage.json_fields import JsonFields

from edgeembed.arguments import check_argument_types, check_path
from edgeembed.provenance import STUDENT_FOLDER

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_CARD = "README.md"
_MAIN = "main"


@check_argument_types
def push_to_hub(
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    revision: str | None = None,
    commit_message: str | None = None,
) -> str:
    """Upload a student, a classifier or a bundle to the Hugging Face Hub.

    Before anything is sent, the folder is checked: edgeembed wrote it, every file is the one that its manifest lists, a
    bundle's embeddings are the exporter's, and the model card states a license. The repository is created if it does
    not exist; files that an earlier upload left there are kept.

    Args:
        folder: The folder that `distill`, `finetune` or `export` wrote.
        repo_id: Repository on the hub: `user/name`, or `name` for the token's user.
        private: Whether to create the repository as private. An existing one is not changed.
        token: Access token with write permission; None for the one that `hf auth login` stored, or HF_TOKEN.
        revision: Branch to upload to, created if it does not exist; None for main.
        commit_message: Message of the commit; None for "Upload NAME", the folder's name.

    Returns:
        The URL of the repository, or of the branch.

    Raises:
        InputError: If the folder is not such a folder or has no license, the repository id is invalid, the hub cannot
            be reached, or it rejects the upload.
        CheckError: If a file, or an embedding of a bundle, is not the one that was written.
    """
    path = _check_folder(folder)[0]
    _check_card(path)
    _check_repository(repo_id)
    from huggingface_hub import HfApi

    message = commit_message or f"Upload {path.name}"
    try:
        return _upload(HfApi(token=token), path, repo_id, private=private, revision=revision, message=message)
    except _hub_errors() as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"cannot upload {path} to {repo_id}: {reason}; expected a hub that this machine can reach, and a token "
            "with write permission: run `hf auth login`, or name another repository"
        ) from error


@check_argument_types
def save_pretrained(folder: str | os.PathLike[str], out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Copy a student, a classifier or a bundle to another folder, after checking that it is complete.

    Args:
        folder: The folder that `distill`, `finetune` or `export` wrote.
        out: The folder to write.
        force: Whether to replace a folder of the same kind at `out`.

    Returns:
        The folder written.

    Raises:
        InputError: If the folder is not such a folder, or `out` exists or cannot be written.
        CheckError: If a file, or an embedding of a bundle, is not the one that was written.
    """
    out = check_path("out", out)
    path, kind = _check_folder(folder, out, force=force)
    with atomic_folder(out, kind=kind, force=force) as temporary:
        shutil.copytree(path, temporary, dirs_exist_ok=True)
    return out


def _folder_kinds() -> tuple[FolderKind, ...]:
    from edgeembed.classification.model import CLASSIFIER_FOLDER

    return STUDENT_FOLDER, BUNDLE_FOLDER, CLASSIFIER_FOLDER


def _check_folder(
    folder: str | os.PathLike[str], out: Path | None = None, *, force: bool = False
) -> tuple[Path, FolderKind]:
    """Return the folder and its kind if its files are exactly the ones that edgeembed wrote."""
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"folder is {short_repr(folder)}; expected the path of a student, a classifier or a bundle")
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; expected a student, a classifier or a bundle")
    kind = next((each for each in _folder_kinds() if (path / each.manifest).is_file()), None)
    if kind is None:
        raise InputError(
            f"{path} is not a student, a classifier or a bundle; expected a folder that edgeembed distill, finetune or "
            "export wrote"
        )
    if out is not None:
        check_output_path(out, force=force, kind=kind)
    if (obstacle := kind.obstacle(path)) is not None:
        raise InputError(f"{path} {obstacle}; expected only files that edgeembed wrote")
    if kind is BUNDLE_FOLDER:
        from edgeembed.exporting import verify

        verify(path).raise_for_differences()
    else:
        needs_trust(path)  # raises for code of the folder's own
        _check_records(path, kind)
    return path, kind


def _check_records(path: Path, kind: FolderKind) -> None:
    """Raise CheckError if a file differs from its record. The model card may be edited."""
    records = [FileRecord.parse(each) for each in JsonFields.read(path / kind.manifest).children("files")]
    differences = [found for each in records if each.name != _CARD and (found := each.difference(path)) is not None]
    if differences:
        raise CheckError(f"{path} is not what edgeembed wrote: {'; '.join(differences)}; write it again")


def _check_card(path: Path) -> None:
    card = path / _CARD
    if not card.is_file() or not card.read_text(encoding="utf-8").strip():
        raise InputError(f"{path} has no {_CARD}; expected a model card with a license: write the folder again")
    if read_front_matter(card).get("license") in (None, "", "unknown"):
        raise InputError(
            f"{card} states no license; expected `license:` in its front matter: add it to a student's card, or export "
            "the bundle again with --license"
        )


def _check_repository(repo_id: str) -> None:
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported without __all__

    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"repo_id is {short_repr(repo_id)}; expected user/name, as on the hub: {error}") from error
    if constants.HF_HUB_OFFLINE:
        raise InputError("HF_HUB_OFFLINE is set; expected access to the hub: unset it to upload")


def _upload(api: HfApi, path: Path, repo_id: str, *, private: bool, revision: str | None, message: str) -> str:
    created = api.create_repo(repo_id, private=private, exist_ok=True)
    if revision not in (None, _MAIN):
        api.create_branch(created.repo_id, branch=revision, exist_ok=True)
    api.upload_folder(repo_id=created.repo_id, folder_path=path, revision=revision, commit_message=message)
    return str(created) if revision in (None, _MAIN) else f"{created}/tree/{revision}"


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return what huggingface_hub raises."""
    # The base of all errors of its HTTP library: requests, httpx since version 1, or httpx2 since version 2.
    from huggingface_hub.errors import HTTPError, LocalTokenNotFoundError  # type: ignore[attr-defined]

    return HTTPError, LocalTokenNotFoundError, OSError, ValueError
