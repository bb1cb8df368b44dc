"""The libraries are those of `make test-integrations`; in other environments these tests are skipped."""

import json
import os
import shutil
from pathlib import Path

import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.builtin_models import builtin_bundle

# These libraries report their usage unless told otherwise, before they are imported.
os.environ |= {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def documents() -> list[str]:
    return ["Shares fell on Monday.", "How to bake rye bread", "Central bank raises rates"]


@pytest.fixture(scope="session")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bundle with prompts for queries and documents."""
    return _with_prompts(tmp_path_factory.mktemp("bundles") / "prompted", "search for: ")


@pytest.fixture
def replaced(prompted: Path, tmp_path: Path) -> Path:
    """Return the folder of a bundle that a test replaces with `other_encoder`."""
    return shutil.copytree(prompted, tmp_path / "replaced")


@pytest.fixture
def other_encoder(tmp_path: Path) -> Path:
    """Return the folder of a bundle of the same dimension whose vectors are others."""
    return _with_prompts(tmp_path / "other", "question: ")


@pytest.fixture(scope="session")
def encoder(prompted: Path) -> Encoder:
    """Return the encoder of the bundle with prompts."""
    return Encoder(prompted)


def _with_prompts(folder: Path, query: str) -> Path:
    shutil.copytree(str(builtin_bundle("nano")), folder)
    manifest = folder / "edgeembed.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["prompts"] = {"query": query, "document": "text: "}
    manifest.write_text(json.dumps(content), encoding="utf-8")
    (folder / "edgeembed.json.sha256").unlink()
    return folder
