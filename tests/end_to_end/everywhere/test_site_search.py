"""The search of the documentation site in Chromium, and the accessibility of its pages."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(660)]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SITE = ROOT / "build" / "site"
PACKAGES = ROOT / "build" / "everywhere" / "node_modules"
CHROMIUM = shutil.which("chromium")
MAX_BYTES = 3_000_000

# The questions in a reader's words, and the section that answers each.
ANSWERS = {
    "does anything I type leave my machine": "explanation/privacy/#what-leaves-the-machine",
    "how do I use two GPUs": "questions/#how-do-i-use-two-gpus",
    "where do the energy values come from": "questions/#where-do-the-energy-numbers-come-from",
    "continue a training that was interrupted": "resuming/",
    "cite this project in a paper": "questions/#how-do-i-cite-edgeembed",
}
PAGES = ["", "start/first-search/", "resuming/", "reference/edgeembed_runtime/", "results/wheel/", "demo/"]


@pytest.fixture(scope="module")
def shown(
    tmp_path_factory: pytest.TempPathFactory, serving: Callable[[Path], AbstractContextManager[str]]
) -> dict[str, Any]:
    """What a reader sees of the site at a sub-path of its host."""
    if not CHROMIUM:
        pytest.skip("run as root: apt-get install chromium")
    if not (SITE / "demo" / "micro").is_dir() or not (PACKAGES / "axe-core").is_dir():
        pytest.skip("run: make test-everywhere")
    folder = tmp_path_factory.mktemp("host")
    (folder / "some").mkdir()
    (folder / "some" / "path").symlink_to(SITE)
    (folder / "node_modules").symlink_to(PACKAGES)
    for module in ("site.mjs", "reader.mjs"):
        shutil.copy(HERE / module, folder)
    with serving(folder) as origin:
        command = ["node", str(folder / "site.mjs"), CHROMIUM, f"{origin}/some/path/"]
        asked = json.dumps({"queries": list(ANSWERS), "pages": PAGES})
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout)
    result["searches"] = [[link.partition("/some/path/")[2] for link in links] for links in result["searches"]]
    return result


@pytest.fixture(scope="module")
def best_sections() -> list[dict[str, float]]:
    """The score of each section for each question, as the Python runtime computes it, the best first."""
    encoder = Encoder("micro")
    index = json.loads((SITE / "demo" / "index" / "sections.json").read_text(encoding="utf-8"))
    vectors = np.fromfile(SITE / "demo" / "index" / "micro.bin", dtype=np.int8).reshape(-1, encoder.dimension)
    owners = [section["location"] for section in index for _ in section["parts"]]
    found = []
    for query in ANSWERS:
        scores: dict[str, float] = {}
        for owner, score in zip(owners, (vectors @ encoder.encode_query(query) / 127).tolist(), strict=True):
            scores[owner] = max(score, scores.get(owner, -1.0))
        found.append(dict(sorted(scores.items(), key=lambda item: -item[1])))
    return found


def test_nothing_fails_and_nothing_comes_from_another_host(shown: dict[str, Any]) -> None:
    assert shown["problems"] == []


def test_the_section_that_answers_a_question_is_first(shown: dict[str, Any]) -> None:
    assert [links[0] for links in shown["searches"]] == list(ANSWERS.values())


def test_sections_have_the_order_of_the_runtime(shown: dict[str, Any], best_sections: list[dict[str, float]]) -> None:
    for links, scores in zip(shown["searches"], best_sections, strict=True):
        assert len(links) == 4
        assert [scores[link] for link in links] == pytest.approx(list(scores.values())[:4], abs=1e-4)


def test_results_by_words_stay_below(shown: dict[str, Any]) -> None:
    assert shown["words"] > 0


def test_keys_reach_the_results(shown: dict[str, Any]) -> None:
    assert shown["focused"]


def test_a_first_search_loads_less_than_three_megabytes(shown: dict[str, Any]) -> None:
    assert 1_000_000 < shown["bytes"] < MAX_BYTES


def test_words_are_found_if_the_encoder_cannot_be_loaded(shown: dict[str, Any]) -> None:
    assert any("integrations/" in link for link in shown["fallback"])
    assert shown["hidden"] == 0


def test_pages_and_the_open_search_are_accessible_in_light_and_dark(shown: dict[str, Any]) -> None:
    assert len(shown["violations"]) == 2 * (len(PAGES) + 1)
    assert {place: found for place, found in shown["violations"].items() if found} == {}
