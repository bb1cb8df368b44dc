"""`index` and `search`: precisions, engines, adding to what is there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "binary"])
def test_a_precision_can_be_chosen(
    precision: str, out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _index(out, bundle, "--precision", precision) == 0
    assert json.loads((Path(out) / "index.json").read_bytes())["precision"] == precision
    capsys.readouterr()
    assert main(["search", out, "the dog", "-k", "1", *bundle]) == 0
    assert capsys.readouterr().out == "1.0000\t1\tthe dog\n"


def test_an_index_can_be_added_to(out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
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
def test_what_does_not_go_together_is_refused(
    more: list[str], message: str, out: str, bundle: list[str], encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _index(out, bundle) == 0
    capsys.readouterr()
    assert _index(out, bundle, *more) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(Index.open(out, encoder)) == 2


def test_there_is_nothing_to_add_to(out: str, bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _index(out, bundle, "--append") == 2
    assert "holds no index.json" in capsys.readouterr().err
    assert not Path(out).exists()


def test_a_search_can_do_without_the_engine_of_the_index(
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


def test_six_processes_that_append_at_once_lose_nothing(out: str, bundle: list[str], encoder: Encoder) -> None:
    assert _index(out, bundle) == 0
    command = [*_COMMAND, "index", "--append", "--out", out, *bundle]
    processes = [subprocess.Popen([*command, "--text", f"cat {i}"], stderr=subprocess.PIPE) for i in range(6)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 6
    found = [hit.document for hit in Index.open(out, encoder).search("a cat", top_k=None)]
    assert sorted(found) == sorted(["read the file", "the dog", *(f"cat {i}" for i in range(6))])
    assert [path.name for path in Path(out).parent.iterdir()] == ["index"]


def test_a_file_in_the_place_of_an_index_does_not_suggest_force(
    tmp_path: Path, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for more in ([], ["--force"]):
        assert _index(str(tmp_path / "notes.txt"), bundle, *more) == 2
        assert "notes.txt is not a folder, expected a new path; choose another" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a signal")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_that_is_told_to_end_does_so_in_one_line(tmp_path: Path, bundle: list[str], name: str) -> None:
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
