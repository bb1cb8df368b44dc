"""The demo of the documentation site, used in Chromium, shows what the Python runtime computes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Hit, RelevanceRanker, SemanticRanker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(660)]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SITE = ROOT / "build" / "site"
PACKAGES = ROOT / "build" / "everywhere" / "node_modules"
CHROMIUM = shutil.which("chromium")

# Another build of ONNX Runtime rounds some activations to another int8 value (docs/loaders.md); scores have two digits.
LEAST_COSINE = 0.998
CLOSE = 0.03
MAX_BYTES = 20_000_000

QUERIES = ["does anything I type leave my machine", "what does int4 cost", "use it with LangChain"]
TEXTS = ["a bird", "", "Zürich 42 ... (new!)", " ".join(["often"] * 400), "near the river, the red train falls quietly"]
LINES = [
    "Storm closes the ferry line",
    "Bakers queue for the old flour mill",
    "New telescope finds a frozen world",
    "Bank lowers its interest rate",
    "Sourdough course is full",
]
TOPIC = "astronomy"
LIKES = [LINES[1], LINES[4]]
DISLIKES = [LINES[3]]


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory, serving: Callable[[Path], AbstractContextManager[str]]
) -> dict[str, Any]:
    """What the page shows to a reader, of the site at a sub-path of its host."""
    if not CHROMIUM:
        pytest.skip("run as root: apt-get install chromium")
    if not (SITE / "demo" / "index.html").is_file() or not (PACKAGES / "axe-core").is_dir():
        pytest.skip("run: make test-everywhere")
    folder = tmp_path_factory.mktemp("host")
    (folder / "some").mkdir()
    (folder / "some" / "path").symlink_to(SITE)
    (folder / "node_modules").symlink_to(PACKAGES)
    for module in ("demo.mjs", "reader.mjs"):
        shutil.copy(HERE / module, folder)
    asked = {"queries": QUERIES, "texts": TEXTS, "lines": LINES, "topic": TOPIC, "likes": LIKES, "dislikes": DISLIKES}
    with serving(folder) as origin:
        command = ["node", str(folder / "demo.mjs"), CHROMIUM, f"{origin}/some/path/demo/"]
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=600
        )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The encoder of the page."""
    return Encoder("nano")


def test_nothing_fails_and_nothing_comes_from_another_host(shown: dict[str, Any]) -> None:
    assert shown["problems"] == []


def test_page_engine_and_model_are_below_20_megabytes(shown: dict[str, Any]) -> None:
    assert 10_000_000 < shown["bytes"] < MAX_BYTES


def test_page_is_accessible_in_light_and_dark_and_fits_a_phone(shown: dict[str, Any]) -> None:
    assert shown["violations"] == {"light": [], "dark, phone": []}
    assert shown["scheme"] == "slate"
    assert shown["overflow"] <= 0


def test_embeddings_are_those_of_the_runtime(shown: dict[str, Any], encoder: Encoder) -> None:
    expected = encoder.encode(TEXTS, on_truncate="ignore", on_unknown="ignore")
    cosines = np.einsum("nd,nd->n", np.array(shown["embeddings"]), expected)
    assert cosines.min() > LEAST_COSINE
    _, info = encoder.encode(QUERIES[-1], return_info=True)
    assert len(shown["tokens"]) == info.tokens
    assert shown["status"].startswith(f"{info.tokens} tokens, ")


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_search_finds_the_sections_that_the_runtime_finds(shown: dict[str, Any], encoder: Encoder, number: int) -> None:
    index = json.loads((SITE / "demo" / "index" / "sections.json").read_text(encoding="utf-8"))
    vectors = np.fromfile(SITE / "demo" / "index" / "nano.bin", dtype=np.int8).reshape(-1, encoder.dimension)
    scores = vectors @ encoder.encode_query(QUERIES[number]) / 127
    sections = [section["location"] for section in index for _ in section["parts"]]
    best: dict[str, float] = {}
    for section, score in zip(sections, scores.tolist(), strict=True):
        best[section] = max(score, best.get(section, -1.0))
    hits = shown["searches"][number]
    assert [hit["score"] for hit in hits] == pytest.approx(sorted(best.values(), reverse=True)[: len(hits)], abs=CLOSE)
    for hit in hits:
        assert hit["score"] == pytest.approx(best[hit["link"].removeprefix("../")], abs=CLOSE)
        page = hit["link"].removeprefix("../").partition("#")[0]
        assert (SITE / page / "index.html").is_file()


def _check_ranking(shown: Sequence[dict[str, Any]], expected: Sequence[Hit]) -> None:
    assert [hit["text"] for hit in shown] == [hit.text for hit in expected]
    assert [hit["score"] for hit in shown] == pytest.approx([hit.score for hit in expected], abs=CLOSE)


def test_lines_are_ranked_as_the_runtime_ranks_them(shown: dict[str, Any], encoder: Encoder) -> None:
    _check_ranking(shown["ranking"], RelevanceRanker(encoder).rank(TOPIC, LINES))


def test_likes_and_dislikes_rank_as_in_the_runtime(shown: dict[str, Any], encoder: Encoder) -> None:
    ranker = SemanticRanker(encoder, ":memory:")
    for line in LIKES:
        ranker.like(line)
    for line in DISLIKES:
        ranker.dislike(line)
    _check_ranking(shown["interests"], ranker.rank(None, LINES))
