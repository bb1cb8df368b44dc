from collections.abc import Callable

import numpy as np
import pytest
from edgeembed_bench import BenchmarkReport, Subject
from edgeembed_bench.paper_tables import RetrievalTask, cmow_table, hpd_table, simtde_table, xayn_table
from edgeembed_runtime.errors import InputError

Stub = Callable[..., Subject]


def test_simtde_is_the_mean_of_three_passes_over_both_sentences_of_all_pairs(stub: Stub) -> None:
    pairs = [("one", "two"), ("three", "four"), ("five", "six")]
    filled = simtde_table([stub("fast"), stub("slow", "slow")], pairs, pairs_from="six words")
    seconds = filled.samples["slow"]["pass_s"]
    assert len(seconds) == 3
    assert min(seconds) >= 6 * 0.002
    (fast, slow) = filled.rows
    assert fast[0] == "fast"
    assert fast[2].endswith("(x1.0)")
    assert slow[2].startswith(f"{np.mean(seconds):.2f} (x")
    assert "3 pairs of six words" in filled.notes[0]


def _task(documents: int) -> RetrievalTask:
    texts = tuple("x" * (1 + number) for number in range(documents))
    return RetrievalTask("lengths", texts[::4], texts, tuple(frozenset({place}) for place in range(0, documents, 4)))


def test_hpd_finds_with_an_index_of_lists_and_tells_time_and_memory() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    filled = hpd_table([Subject("ours", "bundle")], _task(160))
    ours = filled.samples["ours"]
    assert 0 < ours["mrr_at_10"] <= 1
    assert len(ours["search_ms"]) == 10
    assert ours["index_bytes"] >= 160 * 256 * 4
    assert filled.rows[0][:3] == ("ours", "384", f"{ours['mrr_at_10']:.3f}")
    assert "40 queries in 160 documents of lengths" in filled.notes[0]
    assert "nlist 4 (the paper: 1024" in filled.notes[0]


def test_xayn_shows_medians_with_quartiles_in_millijoule(make_report: Callable[..., BenchmarkReport]) -> None:
    report = make_report(2)
    filled = xayn_table(report)
    name, dimension, energy, above, time = filled.rows[1]
    spread = report["student"].energy.mj_per_inference
    assert spread is not None
    assert (name, dimension) == ("student", "384")
    assert energy == f"{spread.median:.3f} [{spread.q1:.3f}, {spread.q3:.3f}]"
    assert above != energy
    assert time.startswith(f"{report['student'].latency.median:.3f} [")


def test_xayn_says_what_was_not_measured_and_why(make_report: Callable[..., BenchmarkReport]) -> None:
    filled = xayn_table(make_report(2, bare=True))
    assert filled.rows[0][2] == "not measured"
    assert sum("no RAPL counter" in note for note in filled.notes) == 1


def test_cmow_encodes_batches_of_sequences_of_one_length() -> None:
    texts = ["read a file and sort a list of words", "open the door"]
    filled = cmow_table([Subject("ours", "bundle")], texts, batches=3, batch_size=4, tokens=16)
    times = filled.samples["ours"]["batch_ms"]
    assert len(times) == 3
    assert filled.rows[0][:2] == ("ours", "4.68M")
    assert filled.rows[0][2] == f"{np.median([4 / time * 1e3 for time in times]):,.0f}"
    assert "3 batches (the paper: 1,024) of 4 random sequences of 16 tokens" in filled.notes[0]


def test_cmow_without_a_tokenizer_is_refused(stub: Stub) -> None:
    with pytest.raises(InputError, match="no subject tells how many tokens"):
        cmow_table([stub()], ["a text"], batches=1)


def test_a_subject_that_hides_its_tokenizer_is_noted(stub: Stub) -> None:
    filled = cmow_table([stub("hidden"), Subject("ours", "bundle")], ["read a file"], batches=1, batch_size=2, tokens=8)
    assert filled.notes[-1] == "tokenizing is included for hidden, which hide it"


def test_subjects_of_one_name_are_refused(stub: Stub) -> None:
    with pytest.raises(InputError, match="share a name"):
        simtde_table([stub(), stub()], [("a", "b")], pairs_from="here")
