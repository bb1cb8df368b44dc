"""The commands `index` and `search`: precisions, engines, and appending."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Encoder, Index
from edgeembed_runtime.cli import main

_COMMAND = [sys.executable, "-c", "import sys; from edgeembed_runtime.cli import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture
def bundle(bundle_path: Path) -> list[str]:
    return ["--bundle", str(bundle_path)]


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "index")


def _index(out: str, bundle: list[str], *more: str) -> int:
    return main(["index", "--text", "read the file", "--text", "the dog", "--out", out, *bundle, *more])


def test_documents_are_counted_in_the_singular_and_the_plural(
    out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "--text", "a cat", "--out", out, *bundle]) == 0
    assert main(["index", "--text", "the dog", "--out", out, "--append", *bundle]) == 0
    assert capsys.readouterr().out == f"{out}: 1 document\n{out}: 2 documents\n"


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
def test_precision_can_be_chosen(
    precision: str, out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _index(out, bundle, "--precision", precision) == 0
    assert json.loads((Path(out) / "index.json").read_bytes())["precision"] == precision
    capsys.readouterr()
    assert main(["search", out, "the dog", "-k", "1", *bundle]) == 0
    assert capsys.readouterr().out == "1.0000\t1\tthe dog\n"


def test_append_adds_to_an_index(out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _index(out, bundle, "--precision", "int8") == 0
    capsys.readouterr()
    assert main(["index", "--append", "--text", "a cat", "--out", out, "--json", *bundle]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": out, "documents": 3, "dimension": 8}
    assert main(["search", out, "a cat", "-k", "1", *bundle]) == 0
    assert capsys.readouterr().out.endswith("\t2\ta cat\n")
    assert json.loads((Path(out) / "index.json").read_bytes())["precision"] == "int8"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "exists already, expected a new path; choose another, or replace it with force=True (--force)"),
        (["--append", "--precision", "int8"], "--append keeps the precision and engine of the index"),
        (["--append", "--engine", "numpy"], "--append keeps the precision and engine of the index"),
        (["--append", "--force"], "not allowed with"),
        (["--precision", "int4"], "invalid choice"),
        (["--force", "--precision", "binary", "--engine", "faiss-ivf"], "expected numpy for the precision binary"),
    ],
)
def test_incompatible_options_are_rejected(
    more: list[str], message: str, out: str, bundle: list[str], encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _index(out, bundle) == 0
    capsys.readouterr()
    assert _index(out, bundle, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(Index.open(out, encoder)) == 2


def test_append_to_a_missing_index_is_rejected(out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _index(out, bundle, "--append") == 2
    assert "holds no index.json" in capsys.readouterr().err
    assert not Path(out).exists()


def test_search_can_use_another_engine_than_the_index(
    out: str, bundle: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faiss")
    assert _index(out, bundle, "--engine", "faiss-ivf") == 0
    monkeypatch.setitem(sys.modules, "faiss", None)
    capsys.readouterr()
    assert main(["search", out, "the dog", *bundle]) == 2
    assert "pip install 'edgeembed-runtime[faiss]'" in capsys.readouterr().err
    assert main(["search", out, "the dog", "-k", "1", "--engine", "numpy", *bundle]) == 0
    assert capsys.readouterr().out == "1.0000\t1\tthe dog\n"


@pytest.mark.parametrize(("method", "hits"), [("bm25", [1]), ("hybrid", [1, 0])])
def test_search_method_can_be_chosen(
    method: str, hits: list[int], out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("bm25s")
    assert _index(out, bundle) == 0
    capsys.readouterr()
    assert main(["search", out, "dogs", "--method", method, "--json", *bundle]) == 0
    assert [hit["id"] for hit in json.loads(capsys.readouterr().out)["hits"]] == hits


def test_six_parallel_appends_lose_no_document(out: str, bundle: list[str], encoder: Encoder) -> None:
    assert _index(out, bundle) == 0
    command = [*_COMMAND, "index", "--append", "--out", out, *bundle]
    processes = [subprocess.Popen([*command, "--text", f"cat {i}"], stderr=subprocess.PIPE) for i in range(6)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 6
    stored = [hit.text for hit in Index.open(out, encoder).search("a cat", top_k=None)]
    assert sorted(stored) == sorted(["read the file", "the dog", *(f"cat {i}" for i in range(6))])
    assert [path.name for path in Path(out).parent.iterdir()] == ["index"]


def test_error_about_a_file_at_the_output_path_does_not_suggest_force(
    tmp_path: Path, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for more in ([], ["--force"]):
        assert _index(str(tmp_path / "notes.txt"), bundle, *more) == 2
        assert "notes.txt is not a folder, expected a new path; choose another" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_terminated_command_prints_one_line(tmp_path: Path, bundle: list[str], name: str) -> None:
    os.mkfifo(tmp_path / "texts")
    command = [*_COMMAND, "index", str(tmp_path / "texts"), "--out", str(tmp_path / "index"), *bundle]
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # below nohup, SIGHUP is ignored, which a command respects
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
    finally:
        signal.signal(number, before)
    with process:
        with (tmp_path / "texts").open("w", encoding="utf-8"):  # which waits until the command reads
            process.send_signal(getattr(signal, name))
            assert process.wait() == 128 + getattr(signal, name)
        assert process.stderr is not None
        assert process.stderr.read() == b"edgeembed-runtime: terminated\n"
    assert [path.name for path in tmp_path.iterdir()] == ["texts"]


_LINES: list[dict[str, Any]] = [
    {"id": "cat", "text": "the cat", "metadata": {"lang": "en", "year": 2020}},
    {"id": 7, "text": "the dog", "metadata": {"lang": "de"}},
    {"id": "file", "text": "read a file"},
]


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n", encoding="utf-8")
    return str(path)


def test_json_lines_have_ids_and_metadata(
    tmp_path: Path, out: str, bundle: list[str], encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", _write_lines(tmp_path / "notes.jsonl", _LINES), "--out", out, *bundle]) == 0
    assert [(each.id, each.text, each.metadata) for each in Index.open(out, encoder)] == [
        (line["id"], line["text"], line.get("metadata", {})) for line in _LINES
    ]
    more = _write_lines(tmp_path / "MORE.JSONL", [{"text": "a socket", "metadata": {"lang": "en"}, "id": "new"}])
    assert main(["index", more, "--append", "--out", out, *bundle]) == 0
    capsys.readouterr()
    assert main(["search", out, "a socket", "-k", "1", *bundle]) == 0
    assert capsys.readouterr().out == '1.0000\tnew\ta socket\t{"lang": "en"}\n'
    assert main(["index", more, "--append", "--out", out, *bundle]) == 2
    assert "the index has a document with the id 'new' already" in capsys.readouterr().err


def test_search_filters_and_drops_low_scores(
    tmp_path: Path, out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", _write_lines(tmp_path / "notes.jsonl", _LINES), "--out", out, *bundle]) == 0
    capsys.readouterr()
    assert main(["search", out, "the dog", "--filter", '{"year": {"$gte": 2020}}', "--json", *bundle]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["hits"]
    assert hit.pop("score") < 1
    assert hit == {"id": "cat", "text": "the cat", "metadata": {"lang": "en", "year": 2020}, "passage": None}
    assert main(["search", out, "the dog", "--min-score", "0.999", *bundle]) == 0
    assert capsys.readouterr().out == '1.0000\t7\tthe dog\t{"lang": "de"}\n'


def test_hit_of_a_long_document_shows_its_passage(
    out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = "the cat " * 40 + "open a socket"
    assert main(["index", "--text", text, "--out", out, *bundle]) == 0
    capsys.readouterr()
    assert main(["search", out, "open a socket", *bundle]) == 0
    shown = capsys.readouterr().out.rstrip("\n").split("\t")[2]
    assert shown in text
    assert len(shown) < len(text) / 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"text": "a"', ""], "line 1 is not valid JSON"),
        (['{"text": "a"}', "[1]"], "line 2 is [1], expected an object such as"),
        (['{"text": 1}'], "line 1: the text is 1, expected an object such as"),
        (['{"text": "a", "year": 2}'], "notes.jsonl, line 1 has the key 'year', expected only text, id and metadata"),
        (['{"id": 1, "title": "a"}'], "notes.jsonl, line 1 has the keys 'id', 'title', expected an object such as"),
        ([json.dumps({"text": "a" * 99, "b": 1, "c": 2})], "line 1 has the keys 'b', 'c', expected only text, id and"),
        (["{}"], "line 1 has no keys, expected an object such as"),
        (['{"text": "a"}', '{"text": "\\ud800"}'], "line 2: the text contains a lone surrogate"),
        (['{"text": "a", "id": 1}', '{"text": "b"}'], "line 2: the document has no id but others have one; give all"),
        (
            ['{"text": "a", "id": 1}', "", '{"text": "b", "id": 1}'],
            "notes.jsonl, line 3: the id 1 is there twice, first in ",
        ),
        (['{"text": "a", "id": null}'], "notes.jsonl, line 1: None is not a document id"),
        (['{"text": "a", "id": "1"}', '{"text": "a", "id": 1.0}'], "notes.jsonl, line 2: 1.0 is not a document id"),
        (['{"text": "a", "id": 0}', '{"text": "a", "id": true}'], "notes.jsonl, line 2: True is not a document id"),
        (
            ['{"text": "a"}', '{"text": "a", "metadata": {"b": {}}}'],
            "notes.jsonl, line 2: the metadata: 'b' is {}, exp",
        ),
        (['{"text": "a", "metadata": null}'], "notes.jsonl, line 1: the metadata is None, expected a dict"),
        ([""], "the file has no text"),
        (["[" * 100_000], "line 1 is not valid JSON"),
    ],
)
def test_invalid_json_lines_are_rejected(
    tmp_path: Path, out: str, bundle: list[str], lines: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert main(["index", str(tmp_path / "notes.jsonl"), "--out", out, *bundle]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--filter", "lang=en"], "the filter is 'lang=en', expected a JSON object such as"),
        (["--filter", "[1]"], "the filter is '[1]', expected a JSON object"),
        (["--filter", '{"a": {"$near": 1}}'], "the filter of 'a' has the operator '$near', expected one of $eq"),
        (["--min-score", "x"], "invalid float value"),
        (["--min-score", "nan"], "min_score is nan, expected a finite number"),
        (["-k", "0"], "top_k is '0', expected an integer of at least 1 (default: 10)"),
    ],
)
def test_invalid_search_options_are_rejected(
    options: list[str], message: str, out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _index(out, bundle) == 0
    capsys.readouterr()
    assert main(["search", out, "the dog", *options, *bundle]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
