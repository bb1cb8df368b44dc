"""The runtime works inside a zip file and on read-only file systems."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import zipapp
from collections.abc import Callable
from pathlib import Path
from typing import Any

import edgeembed_runtime
import pytest
from edgeembed_runtime import Encoder, Index, RelevanceRanker

Run = Callable[..., subprocess.CompletedProcess[str]]

_PACKAGE = Path(edgeembed_runtime.__file__).parent
_DOCUMENTS = ["paint a wall", "open a file and read it line by line", "bake bread"]
_QUERY = "how do I read a file"

_FORBID_WRITES = """
import os, sys
def forbid(event, args):
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.rename", "os.remove", "tempfile.mkstemp", "tempfile.mkdtemp"):
        raise RuntimeError(f"{event} {args}")
sys.addaudithook(forbid)
"""
_SEARCH = f"""
import edgeembed_runtime
from edgeembed_runtime import Encoder, Index, RelevanceRanker
assert edgeembed_runtime.__file__.startswith(sys.argv[1]), edgeembed_runtime.__file__
encoder = Encoder()
ranked = RelevanceRanker(encoder).rank({_QUERY!r}, {_DOCUMENTS!r})
built = Index.build(encoder, {_DOCUMENTS!r}).search({_QUERY!r})
assert ranked == built, (ranked, built)
print(ranked[0].id, encoder.encode({_QUERY!r}).tobytes().hex())
"""
_COMMAND_LINE = """
import sys
from edgeembed_runtime.cli import main
sys.exit(main())
"""


@pytest.fixture
def read_only(tmp_path: Path) -> Run:
    """Return a function that runs Python while `tmp_path` is mounted read-only, even for root."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
    alone = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, str(tmp_path)]
    probe = (
        "import errno, sys\ntry: open('new', 'w')\nexcept OSError as e: sys.exit(e.errno != errno.EROFS)\nsys.exit(1)"
    )
    if not shutil.which("unshare"):
        pytest.skip("this system has no unshare to mount a folder read-only")
    probed = subprocess.run([*alone, sys.executable, "-c", probe], capture_output=True, check=False)
    if probed.returncode:
        pytest.skip(f"this system cannot mount a folder read-only: {probed.stderr.decode().strip()}")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
        command = [*alone, sys.executable, "-B", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return run


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, shipped: Path) -> Path:
    """Return a folder that contains only the package, with the built-in encoder."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(_PACKAGE, folder / _PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def application(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a zip application of the package, which raises an error when it writes a file."""
    folder = tmp_path_factory.mktemp("application")
    shutil.copytree(package, folder / "source")
    (folder / "source" / "__main__.py").write_text(_FORBID_WRITES + _COMMAND_LINE, encoding="utf-8")
    zipapp.create_archive(folder / "source", folder / "app.pyz", compressed=True)
    shutil.rmtree(folder / "source")
    return folder / "app.pyz"


def test_package_in_a_zip_file_ranks_and_searches(application: Path, tmp_path: Path) -> None:
    encoder = Encoder()
    Index.build(encoder, _DOCUMENTS).save(tmp_path / "index")
    (tmp_path / "documents").write_text("\n".join(_DOCUMENTS), encoding="utf-8")
    expected = [dataclasses.asdict(hit) for hit in RelevanceRanker(encoder).rank(_QUERY, _DOCUMENTS)]
    assert expected[0]["id"] == 1
    for command in (["rank", _QUERY, "documents"], ["search", "index", _QUERY]):
        assert _run_application(application, tmp_path, *command)["hits"] == expected


def test_package_in_a_zip_file_describes_and_verifies_its_encoder(application: Path, tmp_path: Path) -> None:
    for command in ("info", "verify"):
        assert _run_application(application, tmp_path, command)["path"].startswith(str(application))


def _run_application(application: Path, folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-B", str(application), *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_read_only_installation_ranks_and_searches(package: Path, read_only: Run, tmp_path: Path) -> None:
    shutil.copytree(package, tmp_path, dirs_exist_ok=True)
    done = read_only("-c", _FORBID_WRITES + _SEARCH, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", Encoder().encode(_QUERY).tobytes().hex()]


def test_index_on_a_read_only_file_system_is_searched(
    encoder: Encoder, read_only: Run, tmp_path: Path, bundle_copy: Path
) -> None:
    Index.build(encoder, ["the cat", "the dog", "read a file"]).save(tmp_path / "index")
    search = "search", "index", "the dog", "--bundle", bundle_copy, "-k", "1", "--json"
    done = read_only("-c", _COMMAND_LINE, *search)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hits"][0]["text"] == "the dog"


@pytest.mark.parametrize("command", [["info"], ["verify"]])
def test_bundle_on_a_read_only_file_system_is_verified(read_only: Run, bundle_copy: Path, command: list[str]) -> None:
    done = read_only("-c", _COMMAND_LINE, *command, bundle_copy)
    assert (done.returncode, done.stderr) == (0, "")


def test_writing_to_a_read_only_file_system_prints_one_line(read_only: Run, bundle_copy: Path) -> None:
    done = read_only("-c", _COMMAND_LINE, "index", "--text", "the cat", "--out", "index", "--bundle", bundle_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Read-only file system" in done.stderr
