"""What the commands read from files, by their ending, and what they refuse."""

import csv
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError
from edgeembed_runtime.cli import main
from edgeembed_runtime.cli.files import read_entries, read_lines

_MARK = "\ufeff"


def _fields(path: Path, content: str | bytes) -> list[dict[str, Any]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [entry.fields for entry in read_entries(str(path))]


def _error(path: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        _fields(path, content)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{path.parent}/", "")


_DOCUMENTS = [
    {"id": "1", "text": 'first, "text"', "metadata": {"year": "2020"}},
    {"id": "2", "text": "a\nb", "metadata": {"year": ""}},
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,text,year\n1,"first, ""text""",2020\n2,"a\nb",\n'),
        ("a.CSV", f'{_MARK}text,year,id\r\n"first, ""text""",2020,1\r\n\r\n"a\nb",,2\r\n'),
        ("a.tsv", 'id\ttext\tyear\n1\t"first, ""text"""\t2020\n2\t"a\nb"\t\n'),
        ("a.jsonl", "\n\n".join(map(json.dumps, _DOCUMENTS))),
        ("a.NDJSON", "".join(json.dumps(document) + "\r\n" for document in _DOCUMENTS)),
        ("a.json", json.dumps(_DOCUMENTS, indent=2)),
    ],
)
def test_one_set_of_documents_in_every_format(tmp_path: Path, name: str, content: str) -> None:
    assert _fields(tmp_path / name, content) == _DOCUMENTS


@pytest.mark.parametrize(
    "texts",
    [
        ['"Tis the season', 'she said "yes"', '"no" he said', '5" and 6"', '"all of it"', '"""'],
        ['"all of it"', "none of it"],
        ['"I left.', 'I came back."'],
    ],
)
@pytest.mark.parametrize("end", ["", "\t1"])
def test_quotes_of_a_tsv_are_ordinary_characters(tmp_path: Path, texts: list[str], end: str) -> None:
    header = "text\tlang" if end else "text"
    found = _fields(tmp_path / "a.tsv", "\n".join([header, *(text + end for text in texts)]))
    assert [each["text"] for each in found] == texts


@pytest.mark.parametrize(
    "rows",
    [
        [["text"], ['"Tis the season'], ['tab\tand "quotes"'], ["plain"]],
        [["text", "id"], ["a tab\t", "1"], ["plain", "2"]],
        [["id", "text"], ["1", "two\nlines"], ["2", "plain"]],
    ],
)
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_tsv_of_a_csv_writer_is_read_as_it_was_written(tmp_path: Path, rows: list[list[str]], quoting: Any) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter="\t", quoting=quoting).writerows(rows)
    found = _fields(tmp_path / "a.tsv", written.getvalue())
    assert found == [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_a_field_of_csv_may_be_long(tmp_path: Path) -> None:
    text = "word " * 40_000
    assert _fields(tmp_path / "a.csv", f'text\n"{text}"\n') == [{"text": text}]


def test_a_list_of_texts_is_read_from_json(tmp_path: Path) -> None:
    assert _fields(tmp_path / "a.json", '["a", {"text": "b"}]') == [{"text": "a"}, {"text": "b"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "id,sentence\n1,a\n",
            "a.csv has the columns 'id', 'sentence', expected one called text in the header",
        ),
        ("a.csv", "id;text\n1;a\n", "a.csv has the column 'id;text', expected one called text"),
        ("a.tsv", "a text without a header\n", "a.tsv has the column 'a text without a header', expected one called"),
        ("a.csv", "text,text\na,b\n", "a.csv has the columns 'text', 'text', expected one called text"),
        ("a.csv", "text,x,x\na,b,c\n", "a.csv has the column 'x' twice"),
        ("a.csv", "text,id\na,1\n\nb\n", "a.csv, line 4 has 1 fields, expected 2 as in the header"),
        ("a.tsv", "text\tid\na\t1\t2\n", "a.tsv, line 2 has 3 fields, expected 2 as in the header"),
        ("a.csv", 'text\na\n"b\nc\nd\n', "a.csv lines 3 to 5 are not CSV (unexpected end of data); expected fields"),
        ("a.csv", 'text\n"a" b\n', "a.csv line 2 is not CSV"),
        ("a.json", '{"text": "a"}', "a.json is {'text': 'a'}, expected a list of texts or of documents"),
        (
            "a.json",
            '{"text": "a"}\n{"text": "b"}\n',
            "a.json is not valid JSON (Extra data: line 2 column 1 (char 14))",
        ),
        ("a.json", '["a", 1]', "a.json, entry 2 is 1, expected an object such as"),
        ("a.json", "[" * 100_000, "a.json is not valid JSON"),
        ("a.json", '["\\ud83d"]', "a.json, entry 1: the text contains a lone surrogate"),
        ("a.ndjson", "a text\n", "a.ndjson, line 1 is not valid JSON"),
    ],
)
def test_what_a_file_does_not_hold_is_one_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    assert message in _error(tmp_path / name, content)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_refused_with_and_without_a_mark(tmp_path: Path, name: str, encoding: str) -> None:
    message = _error(tmp_path / name, "text\nZürich\n".encode(encoding))
    assert "UTF-16" in message
    assert message.startswith(name)
    assert message.endswith("expected UTF-8 text; save it as UTF-8")


def test_a_nul_is_refused_with_its_place(tmp_path: Path) -> None:
    assert _error(tmp_path / "a.txt", b"one\ntw\0o\n").startswith("a.txt, line 2: byte 3 is NUL")


def test_stdin_in_utf16_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("a text".encode("utf-16-le"))))
    with pytest.raises(InputError, match=r"stdin, line 1: byte 2 is NUL, as in UTF-16"):
        read_lines("-")


def test_byte_order_marks_of_joined_files_are_dropped(tmp_path: Path) -> None:
    assert _fields(tmp_path / "a.txt", f"{_MARK}a\n{_MARK}{_MARK}b\r\n{_MARK}\nc {_MARK}d\n{_MARK}") == [
        {"text": "a"},
        {"text": "b"},
        {"text": ""},
        {"text": f"c {_MARK}d"},
    ]
    document = '{"text": "a"}\n'
    assert _fields(tmp_path / "a.jsonl", _MARK + document + _MARK + document) == [{"text": "a"}] * 2


@pytest.mark.parametrize("content", ["", _MARK, "\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv"])
def test_a_file_without_text_has_no_documents(tmp_path: Path, name: str, content: str) -> None:
    blank_line = [{"text": ""}] if (name, content) == ("a.txt", "\n") else []
    assert _fields(tmp_path / name, content) == blank_line


def test_a_file_of_a_mark_alone_has_no_text(
    tmp_path: Path, bundle_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(_MARK, encoding="utf-8")
    argv = ["index", str(tmp_path / "a.txt"), "--out", str(tmp_path / "index"), "--bundle", str(bundle_path)]
    assert main(argv) == 2
    assert "the file has no text" in capsys.readouterr().err


def test_the_commands_read_tables(
    tmp_path: Path, bundle_path: Path, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    path, bundle = tmp_path / "a.csv", ["--bundle", str(bundle_path)]
    path.write_text("id,text,lang\nx,the dog,en\ny,read a file,de\n", encoding="utf-8")
    assert main(["index", str(path), "--out", str(tmp_path / "index"), *bundle]) == 0
    assert [(each.id, each.text, each.metadata) for each in Index.open(tmp_path / "index", encoder)] == [
        ("x", "the dog", {"lang": "en"}),
        ("y", "read a file", {"lang": "de"}),
    ]
    capsys.readouterr()
    assert main(["encode", str(path), "--json", *bundle]) == 0
    embeddings = json.loads(capsys.readouterr().out)["embeddings"]
    np.testing.assert_allclose(embeddings, encoder.encode(["the dog", "read a file"]), atol=1e-6)
    assert main(["rank", "the dog", str(path), *bundle]) == 0
    assert [line.split("\t")[2] for line in capsys.readouterr().out.splitlines()] == ["the dog", "read a file"]
    assert main(["interests", "like", str(tmp_path / "me.db"), str(path), *bundle]) == 0
    assert [line.split("\t")[1] for line in capsys.readouterr().out.splitlines()] == ["the dog", "read a file"]


def test_a_document_without_an_id_beside_others_is_named(
    tmp_path: Path, bundle_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\nx,"the\ndog"\n,read a file\n', encoding="utf-8")
    assert main(["index", str(path), "--out", str(tmp_path / "index"), "--bundle", str(bundle_path)]) == 2
    assert f"{path}, line 4: the document has no id but others have one" in capsys.readouterr().err


def test_control_characters_of_names_and_files_are_escaped(
    tmp_path: Path, bundle_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, name = ["--bundle", str(bundle_path)], str(tmp_path / "a\x1b[31mb\x07\x9b")
    (tmp_path / "a.csv").write_text("te\x1b]0;title\x07xt\na\n", encoding="utf-8")
    for argv in (["encode", name], ["encode", "--\x1b[31m"], ["rank", "a", str(tmp_path / "a.csv")]):
        assert main([*argv, *bundle]) == 2
    assert main(["index", "--text", "a", "--out", name, *bundle]) == 0
    out, err = capsys.readouterr()
    assert out.replace("\n", "").isprintable()
    assert err.replace("\n", "").isprintable()
    assert err.count("\n") == 3
    assert r"a\x1b[31mb\x07\x9b" in out
