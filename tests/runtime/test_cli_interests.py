"""The command `interests`."""

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, InterestSettings, SemanticRanker
from edgeembed_runtime.cli import main


@pytest.fixture
def bundle(bundle_path: Path) -> list[str]:
    return ["--bundle", str(bundle_path)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "interests.db")


@pytest.fixture
def store(encoder: Encoder, path: str) -> str:
    """A store with two interests and a disinterest; the second interest has the greatest weight."""
    ranker = SemanticRanker(encoder, path)
    ranker.like("the dog")
    ranker.dislike("open a socket")
    ranker.like("", embedding=-encoder.encode("the dog"))
    ranker.view("", 90, embedding=-encoder.encode("the dog"))
    return path


def _run(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["interests", *argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def _json(argv: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(_run([*argv, "--json"], capsys))


def _error(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["interests", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("edgeembed-runtime: error: ")
    return err


def test_show_lists_interests_first_in_descending_order_of_weight(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _run(["show", store], capsys).splitlines()
    assert lines[0] == f"{store}: 3 centers, encoder tiny"
    assert [line.split()[:6] for line in lines[2:]] == [
        ["3", "interest", "2.50", "1", "90", "s"],
        ["1", "interest", "1.00", "1", "0", "s"],
        ["2", "disinterest", "1.00", "1", "0", "s"],
    ]
    assert lines[3].endswith("0.0  the dog")
    document = _json(["show", store], capsys)
    assert document["path"] == store
    assert document["encoder"]["name"] == "tiny"
    assert [center["id"] for center in document["centers"]] == [3, 1, 2]
    assert "vector" not in document["centers"][0]


def test_reaction_prints_the_center_of_each_text(
    path: str, bundle: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("the dog\nthe  dog\n", encoding="utf-8")
    assert _run(["like", path, str(tmp_path / "texts.txt"), *bundle], capsys) == "1\tthe dog\n1\tthe dog\n"
    assert _json(["dislike", path, "--text", "read", *bundle], capsys) == {
        "path": path,
        "reaction": "dislike",
        "centers": [2],
    }
    assert _run(["view", path, "--seconds", "1", "--text", "9 8 7", *bundle], capsys) == "-\t9 8 7\n"
    assert _json(["view", path, "--seconds", "30", "--text", "the dog", *bundle], capsys)["centers"] == [1]
    assert _run(["show", path], capsys).splitlines()[2].split()[:5] == ["1", "interest", "2.50", "2", "30"]


def test_rank_prints_hits_in_descending_order_of_score(
    store: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["--text", "open a socket", "--text", "the dog"]
    out = _run(["rank", store, *texts, *bundle], capsys)
    assert [line.split("\t")[1:] for line in out.splitlines()] == [["1", "the dog"], ["0", "open a socket"]]
    document = _json(["rank", store, *texts, "-k", "1", *bundle], capsys)
    assert (document["query"], len(document["hits"]), document["hits"][0]["id"]) == (None, 1, 1)
    document = _json(["rank", store, *texts, "--query", "open a socket", *bundle], capsys)
    assert (document["query"], document["hits"][0]["text"]) == ("open a socket", "open a socket")


def test_export_prints_the_whole_store_as_json(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(_run(["export", store], capsys))
    assert document == _json(["export", store], capsys) | {"centers": document["centers"]}
    assert document["reactions"] == 4
    assert [len(center["vector"]) for center in document["centers"]] == [8, 8, 8]


def test_forget_removes_centers(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no center 9" in _error(["forget", store, "1", "9"], capsys)
    assert _run(["forget", store, "1", "3"], capsys) == f"{store}: 2 centers forgotten\n"
    assert [center["id"] for center in _json(["show", store], capsys)["centers"]] == [2]
    assert _json(["forget", store, "2"], capsys) == {"path": store, "forgotten": 1}
    assert _run(["show", store], capsys) == f"{store}: 0 centers, encoder tiny\n"


def test_an_apps_settings_are_kept_by_every_action(
    encoder: Encoder, path: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = InterestSettings(horizon_days=365, max_centers=100, near_cosine=0.9, query_weight=0)
    past = time.time() - 60 * 86_400
    app = SemanticRanker(encoder, path, settings=settings, clock=lambda: past)
    axes = np.eye(8, dtype=np.float32)
    for number in range(9):
        app.like(f"old {number}", embedding=axes[number % 8] if number < 8 else -axes[0])
    app = SemanticRanker(encoder, path, settings=settings)
    for number in range(1, 8):
        app.like(f"new {number}", embedding=-axes[number])
    weights = [center["weight"] for center in _json(["show", path], capsys)["centers"]]
    assert min(weights) == pytest.approx(1 - 60 / 365, abs=1e-4)
    assert _run(["forget", path, "16"], capsys) == f"{path}: 1 center forgotten\n"
    assert [center.id for center in app.centers()] == list(range(1, 16))
    _run(["like", path, "--text", "the dog", *bundle], capsys)
    assert [center.id for center in app.centers()] == [*range(1, 16), 17]
    documents = ["--text", "open a socket", "--text", "the dog"]
    hits = _json(["rank", path, *documents, "--query", "open a socket", *bundle], capsys)["hits"]
    assert hits[0]["text"] == "the dog"  # the query counts for nothing, as the app wants it
    exported = json.loads(_run(["export", path], capsys))
    assert exported["settings"] == asdict(settings)


def test_forget_all_requires_yes(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has 3 centers, and forgetting cannot be undone; pass --yes" in _error(["forget-all", store], capsys)
    assert _json(["forget-all", store, "--yes"], capsys) == {"path": store, "forgotten": 3}
    assert _json(["show", store], capsys)["centers"] == []


def test_text_that_cannot_be_encoded_leaves_the_store_unchanged(
    path: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "surrogate" in _error(["like", path, "--text", "the dog", "--text", "a\udcff", *bundle], capsys)
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "ACTION"),
        (["fly"], "invalid choice"),
        (["show"], "STORE"),
        (["show", "/absent/interests.db"], "is not a file"),
        (["export", "/absent/interests.db"], "is not a file"),
        (["forget", "/absent/interests.db", "1"], "is not a file"),
        (["forget", "/absent/interests.db"], "ID"),
        (["forget", "/absent/interests.db", "one"], "invalid int value"),
        (["forget-all", "/absent/interests.db", "--yes"], "is not a file"),
        (["rank", "/absent/interests.db", "--text", "a"], "is not a file, expected an existing store"),
        (["like", "/absent/interests.db"], "no texts were given"),
        (["view", "/absent/interests.db", "--text", "a"], "--seconds"),
        (["show", "/absent/interests.db", "more"], "unrecognized arguments: more"),
    ],
)
def test_invalid_arguments_print_one_line_and_exit_with_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in _error(argv, capsys)


def test_invalid_values_print_one_line_and_exit_with_2(
    path: str, store: str, bundle: list[str], tmp_path: Path, make_bundle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "seconds is nan" in _error(["view", path, "--seconds", "nan", "--text", "a", *bundle], capsys)
    absent = str(tmp_path / "absent" / "interests.db")
    assert "cannot create" in _error(["like", absent, "--text", "a", *bundle], capsys)
    other = str(make_bundle(tmp_path / "other", seed=1, name="other"))
    assert "belongs to the encoder 'tiny'" in _error(["rank", store, "--text", "a", "--bundle", other], capsys)
    (tmp_path / "notes.txt").write_text("These are notes and no store at all.", encoding="utf-8")
    assert "is not an SQLite file" in _error(["show", str(tmp_path / "notes.txt")], capsys)


@pytest.mark.parametrize("reaction", [["like"], ["dislike"], ["view", "--seconds", "30"]])
def test_rejected_reaction_neither_creates_nor_changes_a_store(
    path: str, bundle: list[str], reaction: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_bytes(b"the dog\n  \nread\n")
    texts, symbols = str(tmp_path / "texts.txt"), str(tmp_path / "symbols.txt")
    Path(symbols).write_text("\u2060...\nthe dog\n", encoding="utf-8")
    rejected = {
        "texts.txt, line 2: the text is blank": [texts],
        "--text is blank": ["--text", "the dog", "--text", ""],
        "expected a text that is not blank": [texts, "--text", " \t"],
        "--text is blank, expected": ["--text", "the dog", "--text", "\u200b"],
        "symbols.txt, line 1: the text is blank": [symbols],
        "surrogate": ["--text", "the dog", "--text", "a\udcff"],
        "text 1: the vocabulary knows almost none of its words": ["--text", "the dog", "--text", "中文"],
    }
    for message, given in rejected.items():
        assert message in _error([reaction[0], path, *reaction[1:], *given, *bundle], capsys)
        assert not Path(path).exists()
    _run([reaction[0], path, *reaction[1:], "--text", "the dog", *bundle], capsys)
    before = Path(path).read_bytes()
    for message, given in rejected.items():
        assert message in _error([reaction[0], path, *reaction[1:], *given, *bundle], capsys)
        assert Path(path).read_bytes() == before


@pytest.mark.parametrize("seconds", ["-3", "nan", "inf", "-1e-9"])
def test_view_with_invalid_seconds_creates_no_store(
    path: str, bundle: list[str], seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--seconds is " in _error(["view", path, f"--seconds={seconds}", "--text", "the dog", *bundle], capsys)
    assert not Path(path).exists()


def test_trailing_empty_lines_are_not_texts(
    path: str, bundle: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_bytes(b"the dog\r\n\r\n\n")
    assert _run(["like", path, str(tmp_path / "texts.txt"), *bundle], capsys) == "1\tthe dog\n"
    (tmp_path / "texts.txt").write_bytes(b"\n\n")
    assert "the file has no text" in _error(["like", path, str(tmp_path / "texts.txt"), *bundle], capsys)


def test_blank_query_is_rejected(store: str, bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "the query is blank" in _error(["rank", store, "--query", " ", "--text", "the dog", *bundle], capsys)
    index = str(Path(store).with_name("index"))
    assert main(["index", "--text", "the dog", "--out", index, *bundle]) == 0
    for argv in (["rank", "", "--text", "the dog"], ["rank", "###", "--text", "a"], ["search", index, "\t"]):
        assert main([*argv, *bundle]) == 2
        assert "error: the query is blank" in capsys.readouterr().err


def test_count_of_one_center_is_singular(
    path: str, bundle: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(["like", path, "--text", "the dog", *bundle], capsys)
    assert _run(["show", path], capsys).startswith(f"{path}: 1 center, encoder tiny\n")
    assert "has 1 center, and forgetting cannot be undone" in _error(["forget-all", path], capsys)
    assert _run(["forget", path, "1"], capsys) == f"{path}: 1 center forgotten\n"


@pytest.mark.parametrize("action", ["show", "like", "dislike", "view", "rank", "export", "forget", "forget-all"])
def test_every_action_has_help(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["interests", action, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "STORE" in shown


def test_show_export_and_forget_load_no_model(store: str) -> None:
    code = (
        "import sys\nfrom edgeembed_runtime.cli import main\n"
        f"for argv in (['show'], ['export'], ['forget', '1'], ['forget-all', '--yes']):\n"
        f"    assert main(['interests', argv[0], {store!r}, *argv[1:]]) == 0\n"
        "assert not {'onnxruntime', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
