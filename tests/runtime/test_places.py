"""The runtime works from inside a zip file and from folders that cannot be written."""

import json
import os
import shutil
import subprocess
import sys
import zipapp
from collections.abc import Callable
from pathlib import Path

import edgeembed_runtime
import pytest
from edgeembed_runtime import Encoder, Index

Run = Callable[..., subprocess.CompletedProcess[str]]

_PACKAGE = Path(edgeembed_runtime.__file__).parent
_DOCUMENTS = ["paint a wall", "open a file and read it line by line", "bake bread"]
_QUERY = "how do I read a file"

# The libraries' own files are loaded before: what is under test here is ours.
_WRITING_NOTHING = """
import os, sys
import numpy, onnxruntime, tokenizers
def refuse(event, args):
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in ("os.mkdir", "os.rename", "os.remove", "tempfile.mkstemp", "tempfile.mkdtemp"):
        raise RuntimeError(f"{event} {args}")
sys.addaudithook(refuse)
"""
_SEARCHING = f"""
import edgeembed_runtime
from edgeembed_runtime import Encoder, Index, RelevanceRanker
assert edgeembed_runtime.__file__.startswith(sys.argv[1]), edgeembed_runtime.__file__
encoder = Encoder()
ranked = RelevanceRanker(encoder).rank({_QUERY!r}, {_DOCUMENTS!r})
built = Index.build(encoder, {_DOCUMENTS!r}).search({_QUERY!r})
assert ranked == built, (ranked, built)
print(ranked[0].index, encoder.encode({_QUERY!r}).tobytes().hex())
"""
_COMMANDS = """
import sys
from edgeembed_runtime.cli import main
sys.exit(main())
"""


@pytest.fixture
def read_only(tmp_path: Path) -> Run:
    """Give a function that runs Python while `tmp_path` cannot be written, not even by root."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
    alone = ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, str(tmp_path)]
    probe = (
        "import errno, sys\ntry: open('new', 'w')\nexcept OSError as e: sys.exit(e.errno != errno.EROFS)\nsys.exit(1)"
    )
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare here to mount a folder read-only with")
    tried = subprocess.run([*alone, sys.executable, "-c", probe], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"a folder cannot be mounted read-only here: {tried.stderr.decode().strip()}")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": str(tmp_path)}
        command = [*alone, sys.executable, "-B", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return run


@pytest.fixture
def package(tmp_path: Path, shipped: Path) -> Path:
    """Give a copy of the package, the shipped encoder included, as one folder of site-packages."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(_PACKAGE, tmp_path / "edgeembed_runtime", ignore=ignored))


@pytest.fixture
def application(tmp_path: Path, shipped: Path) -> Callable[[str], Path]:
    """Give a function that packs the package and a main program into one file."""

    def pack(program: str) -> Path:
        source = tmp_path / "source"
        shutil.copytree(_PACKAGE, source / "edgeembed_runtime", ignore=shutil.ignore_patterns("__pycache__"))
        (source / "__main__.py").write_text(program, encoding="utf-8")
        zipapp.create_archive(source, tmp_path / "app.pyz", compressed=True)
        shutil.rmtree(source)
        return tmp_path / "app.pyz"

    return pack


def check_answer(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", Encoder().encode(_QUERY).tobytes().hex()]


def test_a_zip_file_ranks_and_searches_without_being_unpacked(
    application: Callable[[str], Path], read_only: Run
) -> None:
    app = application(_WRITING_NOTHING + _SEARCHING)
    check_answer(read_only(app, app))


def test_a_zip_file_tells_about_its_encoder_and_verifies_it(
    application: Callable[[str], Path], shipped: Path, tmp_path: Path
) -> None:
    app = application(_COMMANDS)
    for command in ("info", "verify"):
        done = subprocess.run(
            [sys.executable, "-B", app, command, "--json"], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["path"].startswith(str(app))


def test_a_read_only_installation_ranks_and_searches(package: Path, read_only: Run) -> None:
    check_answer(read_only("-c", _WRITING_NOTHING + _SEARCHING, package))


def test_an_index_on_a_read_only_file_system_is_searched(
    encoder: Encoder, read_only: Run, tmp_path: Path, bundle_copy: Path
) -> None:
    Index.build(encoder, ["the cat", "the dog", "read a file"]).save(tmp_path / "index")
    search = "search", "index", "the dog", "--bundle", bundle_copy, "-k", "1", "--json"
    done = read_only("-c", _COMMANDS, *search)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hits"][0]["document"] == "the dog"


@pytest.mark.parametrize("command", [["info"], ["verify"]])
def test_a_bundle_on_a_read_only_file_system_is_whole(read_only: Run, bundle_copy: Path, command: list[str]) -> None:
    done = read_only("-c", _COMMANDS, *command, bundle_copy)
    assert (done.returncode, done.stderr) == (0, "")


def test_writing_to_a_read_only_file_system_is_refused_in_one_line(read_only: Run, bundle_copy: Path) -> None:
    done = read_only("-c", _COMMANDS, "index", "--text", "the cat", "--out", "index", "--bundle", bundle_copy)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "Read-only file system" in done.stderr
