import json
from collections.abc import Callable

import numpy as np
import pytest
from edgeembed_bench import BenchmarkReport, Subject
from edgeembed_bench.paper_tables import RetrievalTask, cmow_table, hpd_table, simtde_table, xayn_table
from edgeembed_bench.paper_tables.retrieval import IVFIndex, choose_nlist, mean_reciprocal_rank, search_interleaved
from edgeembed_runtime.errors import InputError

Stub = Callable[..., Subject]


def test_simtde_time_is_the_mean_of_three_passes_over_both_sentences_of_all_pairs(stub: Stub) -> None:
    pairs = [("one", "two"), ("three", "four"), ("five", "six")]
    table = simtde_table([stub("fast"), stub("slow", "slow")], pairs, pairs_from="six words")
    seconds = table.samples["slow"]["pass_s"]
    assert len(seconds) == 3
    assert min(seconds) >= 6 * 0.002
    (fast, slow) = table.rows
    assert fast[0] == "fast"
    assert fast[2].endswith("(x1.0)")
    assert slow[2].startswith(f"{np.mean(seconds):.2f} (x")
    assert "3 pairs of six words" in table.notes[0]


def _task(documents: int) -> RetrievalTask:
    texts = tuple("x" * (1 + number) for number in range(documents))
    return RetrievalTask("lengths", texts[::4], texts, tuple(frozenset({place}) for place in range(0, documents, 4)))


def test_hpd_table_has_quality_search_time_and_index_size() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    table = hpd_table([Subject("ours", "bundle")], _task(160))
    ours = table.samples["ours"]
    assert 0 < ours["mrr_at_10"] <= 1
    assert len(ours["search_ms"]) == 10
    assert ours["index_bytes"] >= 160 * 256 * 4
    assert table.rows[0][:3] == ("ours", "384", f"{ours['mrr_at_10']:.3f}")
    assert "40 queries in 160 documents of lengths" in table.notes[0]
    assert "nlist 4 (the paper: 1024" in table.notes[0]


def test_xayn_table_has_medians_with_quartiles_in_millijoules(make_report: Callable[..., BenchmarkReport]) -> None:
    report = make_report(2)
    table = xayn_table(report)
    name, dimension, energy, above, time = table.rows[1]
    spread = report["student"].energy.mj_per_inference
    assert spread is not None
    assert (name, dimension) == ("student", "384")
    assert energy == f"{spread.median:.3f} [{spread.q1:.3f}, {spread.q3:.3f}]"
    assert above != energy
    assert time.startswith(f"{report['student'].latency.median:.3f} [")


def test_xayn_table_states_why_energy_was_not_measured(make_report: Callable[..., BenchmarkReport]) -> None:
    table = xayn_table(make_report(2, bare=True))
    assert table.rows[0][2] == "not measured"
    assert sum("no RAPL counter" in note for note in table.notes) == 1


def test_cmow_table_times_batches_of_equally_long_sequences() -> None:
    texts = ["read a file and sort a list of words", "open the door"]
    table = cmow_table([Subject("ours", "bundle")], texts, batches=3, batch_size=4, tokens=16)
    times = table.samples["ours"]["batch_ms"]
    assert len(times) == 3
    assert table.rows[0][:2] == ("ours", "6.61M")
    assert table.rows[0][2] == f"{np.median([4 / time * 1e3 for time in times]):,.0f}"
    assert "3 batches (the paper: 1,024) of 4 random sequences of 16 tokens" in table.notes[0]


def _never_started(*_: object, **__: object) -> None:
    pytest.fail("started")


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda stub: simtde_table([stub()], [], pairs_from="here"), "pairs: 0 given; expected at least 1"),
        (lambda stub: simtde_table([stub()], [("a", "b")], pairs_from="here", passes=0), "passes: 0 given"),
        (lambda stub: hpd_table([stub()], RetrievalTask("a", (), ("b",), ())), "queries: 0 given"),
        (lambda stub: hpd_table([stub()], RetrievalTask("a", ("b",), (), (frozenset(),))), "documents: 0 given"),
        (lambda stub: cmow_table([stub()], []), "texts: 0 given"),
        (lambda stub: cmow_table([stub()], ["a"], batches=0), "batches: 0 given"),
        (lambda stub: cmow_table([stub()], ["a"], batch_size=0), "batch_size: 0 given"),
        (lambda stub: cmow_table([stub()], ["a"], tokens=0), "tokens: 0 given"),
        (lambda stub: cmow_table([stub()], ["a"], threads=4096), "4096 threads requested; expected at most"),
        (lambda _: simtde_table([], [("a", "b")], pairs_from="here"), "no subjects given"),
    ],
)
def test_nothing_to_measure_is_an_input_error_before_a_subject_starts(
    stub: Stub, measure: Callable[[Stub], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed_bench.paper_tables.base.start_worker", _never_started)
    with pytest.raises(InputError, match=message):
        measure(stub)


@pytest.mark.parametrize("tokens", [1, 2])
def test_sequences_without_room_for_a_word_raise_input_error(tokens: int) -> None:
    with pytest.raises(InputError, match=f"tokens: {tokens} given; expected more than the 2 special tokens of ours"):
        cmow_table([Subject("ours", "bundle")], ["read a file"], batches=1, batch_size=2, tokens=tokens)


@pytest.mark.parametrize("texts", [[" "], ["xqzwvkjxqzwvkjxqzwvkj"]])
def test_texts_without_a_word_of_one_token_raise_input_error(texts: list[str]) -> None:
    with pytest.raises(InputError, match="words of the texts is a single token to ours; expected other texts"):
        cmow_table([Subject("ours", "bundle")], texts, batches=1)


def test_cmow_without_a_tokenizer_raises_input_error(stub: Stub) -> None:
    with pytest.raises(InputError, match="no subject counts the tokens"):
        cmow_table([stub()], ["a text"], batches=1)


def test_note_names_subjects_whose_time_includes_tokenization(stub: Stub) -> None:
    table = cmow_table([stub("hidden"), Subject("ours", "bundle")], ["read a file"], batches=1, batch_size=2, tokens=8)
    assert table.notes[-1] == "tokenization is included for hidden, where it cannot be separated"


def test_subjects_that_share_a_name_raise_input_error(stub: Stub) -> None:
    with pytest.raises(InputError, match="share a name"):
        simtde_table([stub(), stub()], [("a", "b")], pairs_from="here")


def test_json_of_a_table_names_its_kind_and_schema(make_report: Callable[..., BenchmarkReport]) -> None:
    content = json.loads(xayn_table(make_report(2)).to_json())
    assert (content["kind"], content["schema_version"], content["name"]) == ("edgeembed paper table", 2, "xayn")


def test_mean_reciprocal_rank_equals_a_hand_computed_value() -> None:
    retrieved = np.array([[3, 1, 2], [0, 1, 2], [5, 6, 7]])
    relevant = [frozenset({2, 1}), frozenset({0}), frozenset({1})]
    assert mean_reciprocal_rank(retrieved, relevant) == pytest.approx((1 / 2 + 1 + 0) / 3)


def test_missing_hits_do_not_count_as_relevant() -> None:
    retrieved = np.array([[-1, -1], [4, -1]])
    assert mean_reciprocal_rank(retrieved, [frozenset({1}), frozenset({4})]) == pytest.approx(1 / 2)


def test_nlist_is_at_most_one_list_per_39_documents() -> None:
    assert [choose_nlist(count) for count in (1, 39, 78, 400_000)] == [1, 1, 2, 1024]
    assert choose_nlist(400_000, 16) == 16


def test_search_of_all_lists_finds_the_nearest_document_for_any_vector_length() -> None:
    pytest.importorskip("faiss", reason="needs faiss: edgeembed-runtime[faiss]")
    documents = np.random.default_rng(0).normal(size=(160, 8)).astype(np.float32)
    queries = 5 * documents[:20]
    index = IVFIndex(queries, documents, nlist=4, nprobe=4)
    relevant = [frozenset({place}) for place in range(20)]
    result = search_interleaved({"ours": index}, relevant)["ours"]
    assert result.mrr_at_10 == 1
    assert result.dimension == 8
    assert len(result.search_ms) == 10
    assert result.index_bytes >= documents.nbytes
