"""Changed bytes are detected, exports are reproducible, and a killed export leaves nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime import Bundle, BundleError
from edgeembed_runtime.manifest import CHECKSUM, MANIFEST
from edgeembed_runtime.verification import verify
from hypothesis import given, settings
from hypothesis import strategies as st

Exported = Callable[[str], Path]

_ROOT = Path(__file__).parents[2]


def files_of(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def is_found(bundle: Path) -> bool:
    """Whether verification finds that a file differs, be it that the folder is no bundle any more."""
    try:
        return bool(verify(Bundle.open(bundle)).differences)
    except BundleError:
        return True


@pytest.fixture(scope="module")
def damaged(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for tests that put back what they change."""
    return shutil.copytree(exported("int8"), tmp_path_factory.mktemp("damaged") / "bundle")


def test_an_intact_bundle_has_no_differences(damaged: Path) -> None:
    assert not is_found(damaged)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_of_any_file_is_found(damaged: Path, data: st.DataObject) -> None:
    files = files_of(damaged)
    assert {MANIFEST, CHECKSUM, "README.md", "golden.json"} < files.keys()
    for name, content in files.items():
        place = data.draw(st.integers(0, 8 * len(content) - 1), label=name)
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        (damaged / name).write_bytes(flipped)
        try:
            assert is_found(damaged), f"bit {place} of {name}"
        finally:
            (damaged / name).write_bytes(content)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs the command of this name")
def test_the_manifest_can_be_checked_without_us(damaged: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUM], cwd=damaged, check=True, capture_output=True)


def test_a_bundle_without_the_manifest_checksum_can_be_verified(exported: Exported, tmp_path: Path) -> None:
    bundle = shutil.copytree(exported("int8"), tmp_path / "older")
    (bundle / CHECKSUM).unlink()
    assert not is_found(bundle)
    (bundle / "README.md").write_bytes(b"")
    assert is_found(bundle)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(exported: Exported, tmp_path: Path) -> None:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # by which sets and hashes come in another order
    start("whole", tmp_path / "int8", PYTHONHASHSEED=seed)
    assert files_of(tmp_path / "int8") == files_of(exported("int8"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the children are forked")
def test_a_killed_export_leaves_a_whole_bundle_or_none(tmp_path: Path) -> None:
    found = start("killed", tmp_path)
    assert set(found["new"]) == {"none", "new"}
    assert set(found["replacing"]) == {"old", "new"}
    assert min(map(len, found.values())) >= 15


def start(command: str, folder: Path, **environment: str) -> dict[str, list[str]]:
    """Run the driver and return its output."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("export_tiny.py"), command, folder],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    said: dict[str, list[str]] = json.loads(done.stdout or "{}")
    return said


def test_no_file_contains_folders_of_this_machine(exported: Exported) -> None:
    for name, content in files_of(exported("int8")).items():
        for path in (exported("int8").parent, _ROOT, Path(sys.prefix)):
            assert str(path).encode() not in content, name
