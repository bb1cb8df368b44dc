"""The cost tables of papers, and their commands."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_bench import BenchmarkReport, Subject
from edgeembed_runtime.errors import InputError

from edgeembed.cli.main import main
from edgeembed.papers.cmow.cost_table import cmow_table
from edgeembed.papers.cmow.cost_table import command as cmow_command
from edgeembed.papers.simtde.cost_table import command as simtde_command
from edgeembed.papers.simtde.cost_table import simtde_table
from edgeembed.papers.xayn.cost_table import command as xayn_command
from edgeembed.papers.xayn.cost_table import xayn_table

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
    monkeypatch.setattr("edgeembed.papers.cost_table.start_worker", _never_started)
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


def test_a_table_shows_its_notes(make_report: Callable[..., BenchmarkReport]) -> None:
    table = xayn_table(make_report(2, bare=True))
    for text in (table.to_markdown(), table.to_html(), table._repr_html_()):
        assert "table 3: energy and inference time" in text
        assert table.machine.cpu in text


def test_json_of_a_table_names_its_kind_and_schema(make_report: Callable[..., BenchmarkReport]) -> None:
    content = json.loads(xayn_table(make_report(2)).to_json())
    assert (content["kind"], content["schema_version"], content["name"]) == ("edgeembed paper table", 2, "xayn")


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two subjects that only need the standard library."""
    code = "def embed(texts):\n    return [[float(len(text)), text.count('e') + 0.5] for text in texts]\n"
    (tmp_path / "counts.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return ["ours=counts:embed", "theirs=counts:embed"]


def test_a_command_prints_a_table_and_writes_files(functions: list[str], tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\none\tone\t5\na sea\tto see\t3\n", encoding="utf-8")
    files = {option: tmp_path / f"table.{option}" for option in ("out", "html", "markdown")}
    outputs = [part for option, file in files.items() for part in (f"--{option}", str(file))]
    run = CliRunner().invoke(simtde_command, [*functions, "--sts", str(pairs), *outputs])
    assert run.exit_code == 0, run.output
    assert "SimTDE, table 4" in run.stdout
    assert "| ours" in files["markdown"].read_text()
    assert "<title>SimTDE, table 4" in files["html"].read_text()
    table = json.loads(files["out"].read_text())
    assert [row[0] for row in table["rows"]] == ["ours", "theirs"]
    assert len(table["samples"]["ours"]["pass_s"]) == 3
    again = CliRunner().invoke(simtde_command, [*functions, "--sts", str(pairs), *outputs])
    assert isinstance(again.exception, InputError)


def test_the_commands_of_other_tables_need_no_file(functions: list[str], tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("Read a file and sort a list of words.\nOpen the door of the house.\n", encoding="utf-8")
    options = ["--texts", str(texts), "--json"]
    run = CliRunner().invoke(xayn_command, [functions[0], "--runs", "4", "--processes", "1", *options])
    assert len(json.loads(run.stdout)["samples"]["ours"]["latency_ms"]) == 4
    run = CliRunner().invoke(cmow_command, ["nano", "--batches", "1", *options])
    assert json.loads(run.stdout)["name"] == "cmow"


def test_errors_of_a_command_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["absent-model", "--sts", "absent.tsv"], command=simtde_command)
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("method", ["to_json", "to_markdown", "to_html"])
def test_a_table_is_written_as_it_is_returned(
    method: str, make_report: Callable[..., BenchmarkReport], tmp_path: Path
) -> None:
    file = tmp_path / "output"
    text = getattr(xayn_table(make_report(2, bare=True)), method)(str(file))
    assert file.read_text(encoding="utf-8").rstrip("\n") == text.rstrip("\n")
