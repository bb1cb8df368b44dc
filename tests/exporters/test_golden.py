from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from edgeembed_exporters import add_golden
from edgeembed_exporters.bundle.golden import golden_texts
from edgeembed_runtime import Bundle, Encoder, InputError, VerificationError
from edgeembed_runtime.manifest import CHECKSUM
from edgeembed_runtime.verification import GOLDEN, compare_golden_vectors

from .conftest import MAX_SEQ_LENGTH

Exported = Callable[[str], Path]


def content(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_exporting_machine_reproduces_the_golden_vectors(exported: Exported, precision: str) -> None:
    report = compare_golden_vectors(Encoder.load(exported(precision), verify=True))
    assert report is not None
    assert report.texts == 12
    assert (report.min_cosine, report.max_difference) == (1.0, 0.0)
    assert report.machine.engine == f"onnxruntime {onnxruntime.__version__}"
    assert report.machine.processor
    assert report.machine.architecture


def test_golden_vectors_are_stored_exactly(exported: Exported) -> None:
    golden = content(exported("int8") / GOLDEN)
    given = Encoder.load(exported("int8")).encode(golden["texts"], on_truncate="ignore", on_unknown="ignore")
    assert np.array_equal(np.array(golden["vectors"], dtype=np.float32), given)


def test_golden_texts_range_from_empty_to_too_long(exported: Exported) -> None:
    texts = golden_texts(MAX_SEQ_LENGTH)
    infos = Encoder.load(exported("fp32")).encode(texts, on_truncate="ignore", on_unknown="ignore", return_info=True)[1]
    assert texts[0] == ""
    assert infos[-1].truncated
    assert all(len(golden_texts(limit)[-1].split()) > limit for limit in (1, 8, 256, 512, 1024))
    assert len(golden_texts(8192)[-1].split()) < 1100  # attention over all tokens would take gigabytes


def test_adding_golden_vectors_changes_nothing_else(exported: Exported, tmp_path: Path) -> None:
    bundle = shutil.copytree(exported("fp32"), tmp_path / "older")
    now = content(bundle / "edgeembed.json")
    older = {**now, "files": [file for file in now["files"] if file["name"] != GOLDEN]}
    (bundle / "edgeembed.json").write_text(json.dumps(older), encoding="utf-8")
    for file in (GOLDEN, CHECKSUM):
        (bundle / file).unlink()
    fingerprint = Bundle.open(bundle).fingerprint
    add_golden(bundle)
    assert content(bundle / "edgeembed.json") == now
    assert Bundle.open(bundle, verify=True).fingerprint == fingerprint
    add_golden(str(bundle))  # once more
    assert content(bundle / "edgeembed.json") == now
    assert sorted(path.name for path in bundle.iterdir()) == sorted(path.name for path in exported("fp32").iterdir())


def test_no_golden_vectors_are_added_to_a_damaged_bundle(exported: Exported, tmp_path: Path) -> None:
    bundle = shutil.copytree(exported("fp32"), tmp_path / "damaged")
    (bundle / "README.md").write_text("changed by hand", encoding="utf-8")
    before = (bundle / "edgeembed.json").read_bytes()
    with pytest.raises(VerificationError, match=r"README\.md"):
        add_golden(bundle)
    assert (bundle / "edgeembed.json").read_bytes() == before


def test_a_folder_that_is_not_a_bundle_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no edgeembed\.json"):
        add_golden(tmp_path)
    assert list(tmp_path.iterdir()) == []
