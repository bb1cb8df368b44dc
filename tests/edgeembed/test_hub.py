"""Uploads to a local stand-in of the Hugging Face Hub, copies, and the checks before them."""

import base64
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import CheckError, InputError

from edgeembed.hub import push_to_hub, save_pretrained
from edgeembed.provenance import STUDENT_FOLDER

CARD = "---\nlicense: apache-2.0\n---\n# student\n"


class _Handler(BaseHTTPRequestHandler):
    """The part of the hub's interface that an upload uses; all files are sent inline."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        hub: FakeHub = self.server.hub  # type: ignore[attr-defined]
        hub.requests.append((self.path, self.headers.get("Authorization")))
        if hub.status != 200:
            self._answer({"error": "You have no write permission"}, hub.status)
        elif self.path == "/api/repos/create":
            hub.created = json.loads(body)
            owner, _, name = str(hub.created["name"]).rpartition("/")
            self._answer({"url": f"{hub.url}/{hub.created.get('organization') or owner or 'someone'}/{name}"})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False}
                for each in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif "/branch/" in self.path:
            self._answer({})
        elif "/commit/" in self.path:
            header, *files = [json.loads(line) for line in body.splitlines()]
            hub.message = header["value"]["summary"]
            hub.files = {each["value"]["path"]: base64.b64decode(each["value"]["content"]) for each in files}
            self._answer({"commitUrl": f"{hub.url}/x/y/commit/1", "commitOid": "1"})
        else:
            self._answer({"error": "unknown path"}, 404)

    def do_GET(self) -> None:
        self._answer({"error": "not found"}, 404)

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class FakeHub:
    """A hub on this machine, and what it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.requests: list[tuple[str, str | None]] = []
        self.created: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.message = ""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    from huggingface_hub import constants, utils

    # close_session since version 1
    reset = next(getattr(utils, name) for name in ("reset_sessions", "close_session") if hasattr(utils, name))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    reset()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.hub = FakeHub(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    monkeypatch.setattr(constants, "ENDPOINT", server.hub.url)  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.hub  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()
    reset()


@pytest.fixture
def student(tmp_path: Path, teacher_folder: Path) -> Path:
    folder = shutil.copytree(teacher_folder, tmp_path / "student")
    (folder / "README.md").write_text(CARD)
    STUDENT_FOLDER.write_manifest(folder, {"teacher": "teacher", "recipe": {}})
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return shutil.copytree(str(builtin_bundle("nano")), tmp_path / "bundle")


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_student_is_uploaded_whole(hub: FakeHub, student: Path) -> None:
    url = push_to_hub(student, "someone/tiny", private=True, token="hf_secret", commit_message="First upload")
    assert url == f"{hub.url}/someone/tiny"
    assert hub.files == content(student)
    # huggingface_hub 2 sends the visibility.
    assert hub.created.get("private") is True or hub.created["visibility"] == "private"
    assert hub.message == "First upload"
    assert {authorization for _, authorization in hub.requests} == {"Bearer hf_secret"}


def test_a_bundle_is_uploaded_to_a_branch(hub: FakeHub, bundle: Path) -> None:
    url = push_to_hub(str(bundle), "tiny", token="hf_secret", revision="int8")
    assert url == f"{hub.url}/someone/tiny/tree/int8"
    assert hub.files == content(bundle)
    assert hub.message == "Upload bundle"
    paths = [path for path, _ in hub.requests]
    assert "/api/models/someone/tiny/branch/int8" in paths
    assert any(path.startswith("/api/models/someone/tiny/commit/int8") for path in paths)


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_rejected_upload_is_one_line(hub: FakeHub, student: Path, status: int) -> None:
    hub.status = status
    with pytest.raises(InputError, match=r"cannot upload .* to someone/tiny: .*token with write permission") as raised:
        push_to_hub(student, "someone/tiny", token="hf_secret")
    assert "\n" not in str(raised.value)
    assert "hf_secret" not in str(raised.value)


def test_a_hub_that_cannot_be_reached_is_one_line(hub: FakeHub, student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"cannot upload .* expected a hub that this machine can reach"):
        push_to_hub(student, "someone/tiny", token="hf_secret")
    assert not hub.requests


def test_nothing_is_sent_offline(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="HF_HUB_OFFLINE is set"):
        push_to_hub(student, "someone/tiny")


@pytest.mark.parametrize("repo_id", ["", "a/b/c", "-name", "some one/x", "name.git", 3])
def test_an_invalid_repository_is_named_before_anything_is_sent(hub: FakeHub, student: Path, repo_id: Any) -> None:
    with pytest.raises(InputError, match=r"repo_id is .*; expected user/name"):
        push_to_hub(student, repo_id, token="hf_secret")
    assert not hub.requests


@pytest.mark.parametrize("card", [None, "", "# no front matter\n", "---\nlicense: unknown\n---\n"])
def test_a_folder_without_a_license_is_not_sent(hub: FakeHub, student: Path, card: str | None) -> None:
    if card is None:
        (student / "README.md").unlink()
    else:
        (student / "README.md").write_text(card)
    with pytest.raises(InputError, match=r"has no README\.md|states no license"):
        push_to_hub(student, "someone/tiny", token="hf_secret")
    assert not hub.requests


def test_files_not_written_by_edgeembed_are_neither_uploaded_nor_copied(
    hub: FakeHub, student: Path, bundle: Path, teacher_folder: Path, tmp_path: Path
) -> None:
    (student / "secrets.env").write_text("PASSWORD=1")
    (bundle / "tokenizer.json").write_text("{}")
    for folder, error, message in (
        (tmp_path / "absent", InputError, "is not a folder"),
        (teacher_folder, InputError, "is not a student, a classifier or a bundle"),
        (student, InputError, "holds secrets.env"),
        (bundle, CheckError, "tokenizer.json"),
        (None, InputError, "folder is None"),
    ):
        with pytest.raises(error, match=message):
            push_to_hub(folder, "someone/tiny", token="hf_secret")  # type: ignore[arg-type]
        with pytest.raises(error, match=message):
            save_pretrained(folder, tmp_path / "copy")  # type: ignore[arg-type]
    assert not hub.requests
    assert not (tmp_path / "copy").exists()


def test_damaged_weights_are_found_and_an_edited_card_is_not_damage(student: Path, tmp_path: Path) -> None:
    (student / "README.md").write_text(CARD + "More about it.\n")
    copied = save_pretrained(student, tmp_path / "copy")
    assert content(copied) == content(student)
    weights = student / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckError, match=r"model\.safetensors has SHA-256"):
        save_pretrained(student, tmp_path / "again")


def test_a_copy_replaces_another_only_if_forced(student: Path, bundle: Path, tmp_path: Path) -> None:
    out = save_pretrained(bundle, str(tmp_path / "copy"))
    assert content(out) == content(bundle)
    with pytest.raises(InputError, match="exists"):
        save_pretrained(bundle, out)
    assert save_pretrained(bundle, out, force=True) == out
    with pytest.raises(InputError):  # a folder of another kind is never replaced
        save_pretrained(student, out, force=True)
    assert content(out) == content(bundle)
