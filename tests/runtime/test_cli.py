"""The command line: output, input, exit codes."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import BundleError, Encoder, __version__
from edgeembed_runtime.cli import main
from edgeembed_runtime.storage.folder import DiskFolder

_PROCESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from edgeembed_runtime.cli import main
sys.exit(main())
"""


@pytest.fixture
def bundle(bundle_path: Path) -> list[str]:
    return ["--bundle", str(bundle_path)]


@pytest.fixture
def golden_bundle(bundle_copy: Path, rewrite_manifest: Callable[..., None]) -> Callable[[list[float]], Path]:
    """Return a function that creates a bundle whose golden vector of "cat" is the given one."""

    def make(vector: list[float]) -> Path:
        machine = {"processor": "Abacus 3", "architecture": "wood", "engine": "fingers 10"}
        golden = {**machine, "texts": ["cat"], "vectors": [vector]}
        (bundle_copy / "golden.json").write_text(json.dumps(golden), encoding="utf-8")
        rewrite_manifest(bundle_copy)
        return bundle_copy

    return make


@pytest.fixture
def texts(tmp_path: Path) -> str:
    """Return a file of three texts with a byte order mark and Windows line ends, but none after the last line."""
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffread the file\r\n\r\nthe dog".encode())
    return str(path)


def _error(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("edgeembed-runtime: error: ")
    return err


def _json(argv: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([*argv, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    document: dict[str, object] = json.loads(out)
    return document


def test_encode_prints_the_requested_precision(bundle_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--text", "the cat", "--precision", "int8", "--json", "--bundle", str(bundle_path)]) == 0
    [vector] = json.loads(capsys.readouterr().out)["embeddings"]
    assert vector == Encoder.load(bundle_path).encode("the cat", precision="int8").tolist()
    assert "precision is 'int4', expected one of float32, int8" in _error(
        ["encode", "--text", "a", "--precision", "int4", "--bundle", str(bundle_path)], capsys
    )


def test_encode_prints_one_embedding_per_line(
    bundle: list[str], texts: str, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["encode", texts, "--text", "cat", *bundle]) == 0
    printed = np.loadtxt(io.StringIO(capsys.readouterr().out))
    assert np.allclose(printed, encoder.encode(["read the file", "", "the dog", "cat"]), atol=1e-5)


def test_encode_prints_json(bundle: list[str], encoder: Encoder, capsys: pytest.CaptureFixture[str]) -> None:
    document = _json(["encode", "--text", "cat", "--truncate-dim", "3", *bundle], capsys)
    assert document["dimension"] == 3
    assert np.allclose(document["embeddings"], [encoder.encode("cat", truncate_dim=3)])  # type: ignore[arg-type]


def test_encode_reads_stdin(
    bundle: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("cat\nçedilla\n".encode())))
    assert main(["encode", "-", *bundle]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_rank_prints_score_id_and_text(bundle: list[str], texts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", "read the file", texts, "-k", "2", *bundle]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1.0000\t0\tread the file"
    assert len(lines) == 2
    document = _json(["rank", "the dog", texts, *bundle], capsys)
    assert document["query"] == "the dog"
    assert document["hits"][0]["text"] == "the dog"  # type: ignore[index]


def test_options_may_appear_anywhere(bundle: list[str], texts: str, capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["cat", texts, *bundle], ["cat", *bundle, texts], [*bundle, "cat", texts]):
        assert len(_json(["rank", *argv], capsys)["hits"]) == 3  # type: ignore[arg-type]
    assert len(_json(["rank", "cat", texts, *bundle, texts], capsys)["hits"]) == 6  # type: ignore[arg-type]


def test_index_is_built_and_searched(
    bundle: list[str], texts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "index")
    assert _json(["index", texts, "--out", out, *bundle], capsys) == {
        "path": out,
        "documents": 3,
        "dimension": 8,
    }
    assert main(["search", out, "the dog", "-k", "1", *bundle]) == 0
    assert capsys.readouterr().out == "1.0000\t2\tthe dog\n"
    assert len(_json(["search", out, "the dog", *bundle], capsys)["hits"]) == 3  # type: ignore[arg-type]
    assert "exists already" in _error(["index", texts, "--out", out, *bundle], capsys)
    assert main(["index", texts, "--out", out, "--force", *bundle]) == 0
    assert capsys.readouterr().out == f"{out}: 3 documents\n"


def test_info_prints_the_fields_of_a_bundle(bundle_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(bundle_path)]) == 0
    assert "dimension        8\n" in capsys.readouterr().out
    document = _json(["info", "--bundle", str(bundle_path)], capsys)
    assert document["name"] == "tiny"
    assert document["path"] == str(bundle_path)
    assert document["files"][0].keys() == {"name", "size_bytes", "sha256"}  # type: ignore[index]


def test_info_names_each_license_of_the_training_text_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "micro"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("licenses"))
    names = line.removeprefix("licenses").strip().split(", ")
    assert "CC BY-SA 4.0" in names
    assert len(set(names)) == len(names)


def test_info_says_what_an_encoder_reads_of_texts(capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["open a file", "学习烤面包 🍞"]
    words = [word for text in texts for word in ("--text", text)]
    assert main(["info", *words]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "open a file\t5 tokens, 100% known"
    assert second.startswith("学习烤面包 🍞\t")
    assert ", 0% known, unknown: " in second
    found = _json(["info", *words], capsys)["texts"]
    assert [each["known_share"] for each in found] == [1.0, 0.0]  # type: ignore[attr-defined]


def test_verify_accepts_an_intact_bundle(bundle_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(bundle_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{bundle_path}: all 3 files match their checksums",
        "this bundle has no golden vectors",
    ]
    assert _json(["verify", str(bundle_path)], capsys) == {
        "path": str(bundle_path),
        "verified": True,
        "files": 3,
        "differences": [],
        "golden": None,
        "golden_predictions": None,
    }


def test_verify_prints_the_cosine_to_the_golden_vectors(
    golden_bundle: Callable[[list[float]], Path], encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = golden_bundle(encoder.encode("cat").tolist())
    assert main(["verify", str(bundle)]) == 0
    assert capsys.readouterr().out.endswith(
        "golden vectors: minimum cosine 1.000000 to those of the exporter (Abacus 3, wood, fingers 10), "
        "maximum difference 0\n"
    )
    golden = _json(["verify", str(bundle)], capsys)["golden"]
    assert golden == {
        "texts": 1,
        "min_cosine": 1.0,
        "mean_cosine": 1.0,
        "max_difference": 0.0,
        "min_cosine_text": "cat",
        "machine": {"processor": "Abacus 3", "architecture": "wood", "engine": "fingers 10"},
    }


def test_verify_exits_with_1_if_embeddings_differ_from_the_golden_vectors(
    golden_bundle: Callable[[list[float]], Path], encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = golden_bundle((-encoder.encode("cat")).tolist())
    error = _error(["verify", str(bundle)], capsys, code=1)
    assert "the vector of 'cat' has cosine -1.000000 to the exporter's" in error
    assert "another version" in error
    assert main(["verify", str(bundle), "--json"]) == 1
    out, err = capsys.readouterr()
    assert err == error
    document = json.loads(out)
    assert document["verified"] is False
    assert document["golden"]["min_cosine"] == pytest.approx(-1)


def test_verify_exits_with_1_if_a_file_was_changed(bundle_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bundle_copy / "README.md").write_text("changed by hand", encoding="utf-8")
    (bundle_copy / "onnx" / "model.onnx").write_bytes(b"no model")
    error = _error(["verify", str(bundle_copy)], capsys, code=1)
    assert "README.md has 15 bytes" in error
    assert main(["verify", str(bundle_copy), "--json"]) == 1
    out, err = capsys.readouterr()
    assert err == error
    document = json.loads(out)
    assert (document["verified"], document["golden"]) == (False, None)
    assert [difference.split()[0] for difference in document["differences"]] == ["README.md", "onnx/model.onnx"]


def test_verify_exits_with_2_if_the_manifest_is_truncated(
    bundle_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (bundle_copy / "edgeembed.json").read_bytes()
    (bundle_copy / "edgeembed.json").write_bytes(content[:100])
    assert "may be truncated" in _error(["verify", str(bundle_copy), "--json"], capsys)


@pytest.mark.parametrize("argv", [["info", "nano"], ["info", "--bundle", "nano"]])
def test_built_in_encoder_is_selected_by_name(
    argv: list[str], shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _json(argv, capsys)["name"] == "edgeembed-nano"
    (tmp_path / "nano").mkdir()
    assert _json(argv, capsys)["name"] == "edgeembed-nano"
    folder = [f"./{word}" if word == "nano" else word for word in argv]
    assert "nano has no edgeembed.json" in _error(folder, capsys)


def test_build_without_an_encoder_asks_for_a_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("edgeembed_runtime.builtin_models._MODELS", DiskFolder(tmp_path))
    assert "this build contains no encoder" in _error(["encode", "--text", "cat"], capsys)
    assert "this build contains no encoder" in _error(["info"], capsys)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice"),
        (["encode"], "no texts were given"),
        (["encode", "--unknown"], "unrecognized arguments"),
        (["encode", "--text", "a", "file", "--unknown", "file"], "unrecognized arguments: --unknown"),
        (["search", "index", "query", "more"], "unrecognized arguments: more"),
        (["encode", "no such file"], "cannot read no such file"),
        (["encode", "/"], "cannot read /: Is a directory"),
        (["encode", "--text", "a", "--bundle", "/absent"], "/absent is not a folder"),
        (["encode", "--text", "a", "--bundle", ""], "expected one of 'micro', 'mini', 'nano', or the path of a bundle"),
        (["encode", "--text", "a", "--bundle", "Mimi"], "nor a folder; did you mean 'mini'? expected one of"),
        (
            ["rank", "query", "--text", "a", "-k", "x"],
            "--top-k: top_k is 'x', expected an integer of at",
        ),
        (
            ["search", "index", "query", "-k", "0"],
            "--top-k: top_k is '0', expected an integer of at",
        ),
        (["index", "--text", "a"], "--out"),
        (["verify", "a", "--bundle", "b"], "not allowed with"),
    ],
)
def test_invalid_arguments_print_one_line_and_exit_with_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in _error(argv, capsys)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["encode", "--text", "a", "--truncate-dim", "9"], "from 1 to 8"),
        (["encode", "--text", "a", "--prompt-name", "query"], "prompt_name is 'query'"),
        (["encode", "--text", "a\udcff"], "surrogate"),
        (["rank", "query", "--text", "a", "-k", "0"], "at least 1"),
        (["search", "/absent", "query"], "holds no index.json"),
    ],
)
def test_invalid_values_print_one_line_and_exit_with_2(
    argv: list[str], message: str, bundle: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in _error([*argv, *bundle], capsys)


def test_error_about_invalid_utf8_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"fine\ncaf\xe9\n")
    assert f"{path}, line 2: byte 4 is not valid UTF-8" in _error(["encode", str(path)], capsys)


def test_file_without_text_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.txt").touch()
    argv = ["index", str(tmp_path / "empty.txt"), "--out", str(tmp_path / "index")]
    assert "the file has no text" in _error(argv, capsys)
    assert not (tmp_path / "index").exists()


def test_long_text_prints_a_warning_line(bundle: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--text", "cat " * 99, *bundle]) == 0
    expected = "edgeembed-runtime: warning: 1 of 1 texts: only the first 32 tokens were read\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("command", ["encode", "rank", "search", "index", "info", "verify"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "--json" in shown
    assert "--bundle" in shown


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"{__version__}\n"


def test_ctrl_c_prints_one_line_and_leaves_no_files(bundle: list[str], tmp_path: Path) -> None:
    out = tmp_path / "index"
    command = [sys.executable, "-c", _PROCESS, "index", "-", "--out", str(out), *bundle]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"cat\n" * 100_000)  # more than a pipe holds: when it is written, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (130, b"", b"edgeembed-runtime: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals that a process inherits as ignored")
def test_ignored_ctrl_c_stays_ignored(bundle: list[str]) -> None:
    code = _PROCESS.replace("default_int_handler", "SIG_IGN")  # as `sh -c 'command &'` does
    command = [sys.executable, "-c", code, "encode", "-", "--json", *bundle]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"the cat\n" * 100)
        process.stdin.write(b" " * 200_000)  # more than a pipe holds: when it is written, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, b"")
    assert len(json.loads(stdout)) > 0


def test_handler_that_python_did_not_install_is_left_alone(
    bundle: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install, installed = signal.signal, list[int]()

    def record(number: int, handler: Any) -> Any:
        installed.append(number)
        return install(number, handler)

    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda _: None)
        patch.setattr(signal, "signal", record)
        assert main(["encode", "--text", "cat", *bundle]) == 0
    assert capsys.readouterr().err == ""
    assert signal.SIGINT not in installed


def test_closed_pipe_prints_no_error(bundle: list[str], tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("cat\n" * 2000, encoding="utf-8")
    command = [sys.executable, "-c", _PROCESS, "encode", str(tmp_path / "many.txt"), *bundle]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, stderr = process.communicate()
    assert (process.returncode, stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_behind_stdout_prints_one_line(bundle: list[str]) -> None:
    command = [sys.executable, "-c", _PROCESS, "encode", "--text", "cat", *bundle]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE)
    assert process.returncode == 2
    expected = b"edgeembed-runtime: error: cannot write the result: No space left on device"
    assert process.stderr.startswith(expected)
    assert process.stderr.count(b"\n") == 1


def test_text_that_the_terminal_cannot_encode_is_escaped(bundle: list[str]) -> None:
    command = [sys.executable, "-X", "utf8=0", "-c", _PROCESS, "rank", "cat", "--text", "\u4e2d", *bundle]
    process = subprocess.run(
        command,
        check=True,
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        encoding="utf-8",
    )
    assert process.stdout.endswith("\\u4e2d\n")


def test_import_error_after_ctrl_c_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted_import(_args: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr("edgeembed_runtime.cli.bundles._info", interrupted_import)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "edgeembed-runtime: interrupted\n"


def test_closed_stdout_prints_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["info"]) == 2
    assert "stdout is closed" in capsys.readouterr().err


def test_closed_stdin_prints_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert "stdin is closed" in _error(["rank", "cat", "-"], capsys)


def test_bundle_error_after_ctrl_c_exits_with_130(
    bundle_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # load_backend raises this if the import of onnxruntime fails
            raise BundleError("needs onnxruntime, which is not here") from None

    monkeypatch.setattr("edgeembed_runtime.pipeline.load_backend", interrupted)
    assert main(["encode", "--text", "a", "--bundle", str(bundle_path)]) == 130
    assert capsys.readouterr().err == "edgeembed-runtime: interrupted\n"


def test_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edgeembed_runtime", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == __version__
