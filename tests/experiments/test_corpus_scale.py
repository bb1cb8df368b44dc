"""The experiment on corpora larger than memory: its sentences, steps and page."""

import json
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.scale.corpus_scale import STEPS, main, measure, render, synthetic_sentences, write_files


def test_a_longer_stream_of_sentences_begins_with_the_shorter_one() -> None:
    sentences = list(islice(synthetic_sentences(), 10_000))
    assert sentences[:1500] == list(islice(synthetic_sentences(), 1500))
    assert len(set(sentences)) == pytest.approx(8000, abs=5)  # every fifth repeats an earlier one
    assert {len(sentence.split()) for sentence in sentences} == set(range(5, 21))


@pytest.mark.parametrize("step", ["filter", "deduplicate", "sample", "count words"])
def test_a_step_reads_all_files(tmp_path: Path, step: str) -> None:
    write_files(tmp_path, files=2, sentences=2500)
    result = measure(step, sorted(tmp_path.iterdir()))
    if step == "count words":
        assert result["distinct_words"] > 5000
    else:
        assert result["kept"] == (5000 if step == "filter" else 4000)
    assert result["peak_mb"] > 10


def test_the_page_has_every_value() -> None:
    rows = [
        {"step": step, "sentences": sentences, "peak_mb": peak, "cpu_seconds": 12.4, "temporary_mb": 3000.2}
        for step, peak in zip(STEPS, range(70, 80), strict=False)
        for sentences in (1000, 2000)
    ]
    page = render({"command": "the command", "machine": {"cpu": "a processor"}, "steps": list(STEPS), "rows": rows})
    assert "| peak MB | 1,000 | 2,000 |" in page
    assert "| deduplicate | 71 | 71 |" in page
    assert "| vocabulary | 3,000 | 3,000 |" in page


@pytest.mark.slow
def test_the_experiment_writes_values_and_page(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--file-sentences", "2000", "--files", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "corpus-scale.json").read_text())
    assert [row["step"] for row in report["rows"]] == list(STEPS)
    assert (tmp_path / "corpus-scale.md").read_text() == render(report)
