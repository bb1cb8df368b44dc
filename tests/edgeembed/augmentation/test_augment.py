import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from edgeembed_runtime.errors import InputError

from edgeembed.augmentation import augment, back_translation, cache
from edgeembed.augmentation.synonyms import SynonymSubstitution
from edgeembed.cli.augment import command
from edgeembed.recipe import load_recipe
from edgeembed.recipe_settings import AugmentationSettings

TEXT = [
    "The car stopped.",
    "The automobile stopped.",
    "Nothing here changes.",
    "The children ran.",
    "The big dog and the large cat ran.",
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_CHUNK", 2)
    monkeypatch.setattr(back_translation, "default_device", lambda: "cpu")


@pytest.fixture
def synonyms(wordnet_folder: Path) -> AugmentationSettings:
    return AugmentationSettings(wordnet=str(wordnet_folder), substituted_share=1.0)


def test_new_sentences_follow_the_originals_and_none_stands_twice(
    synonyms: AugmentationSettings, tmp_path: Path
) -> None:
    done = augment([*TEXT, TEXT[0]], synonyms, tmp_path)
    assert done.sentences == [*TEXT, "The kids ran.", "The large dog and the big cat ran."]
    (report,) = done.report.methods
    assert (done.report.originals, done.report.sentences) == (5, 7)
    assert (report.made, report.unchanged, report.duplicates) == (2, 1, 2)
    assert report.substituted_words == 1.5
    assert [sample.variant for sample in report.samples] == done.sentences[5:]
    assert json.loads(json.dumps(done.report.to_dict()))["methods"][0]["method"] == "synonyms"


def test_without_a_method_the_sentences_come_back_and_nothing_is_written(tmp_path: Path) -> None:
    done = augment(TEXT, AugmentationSettings(), tmp_path / "cache")
    assert done.sentences == TEXT
    assert done.report.methods == ()
    assert not (tmp_path / "cache").exists()


def test_the_order_of_the_sentences_changes_only_the_order_of_the_result(
    synonyms: AugmentationSettings, tmp_path: Path
) -> None:
    there, back = augment(TEXT, synonyms, tmp_path / "one"), augment(TEXT[::-1], synonyms, tmp_path / "two")
    assert set(there.sentences) == set(back.sentences)
    files = [sorted(file.relative_to(folder) for file in folder.rglob("*")) for folder in tmp_path.iterdir()]
    assert files[0] == files[1]


def test_a_second_run_makes_nothing_anew(
    synonyms: AugmentationSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = augment(TEXT, synonyms, tmp_path)
    monkeypatch.setattr(SynonymSubstitution, "vary", None)  # whoever makes variants now fails
    again = augment(TEXT, synonyms, tmp_path)
    assert again.sentences == first.sentences
    assert again.report.methods[0].reused_sentences == len(TEXT)


@pytest.mark.parametrize("content", ['[[["The ki', "[]", "{}", "\udcff", "[[[1, 2, 3]], []]"])
def test_a_chunk_that_is_not_whole_is_made_again(synonyms: AugmentationSettings, tmp_path: Path, content: str) -> None:
    first = augment(TEXT, synonyms, tmp_path)
    file = sorted(tmp_path.rglob("*.json"))[0]
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    again = augment(TEXT, synonyms, tmp_path)
    assert again.sentences == first.sentences
    assert again.report.methods[0].reused_sentences == len(TEXT) - 2


def test_an_interrupted_back_translation_goes_on_where_it_stopped(
    translators: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AugmentationSettings(there=translators[0], back=translators[1])
    whole = augment(TEXT, settings, tmp_path / "whole")
    real = back_translation.BackTranslation.vary
    calls = []

    def stopping(self: back_translation.BackTranslation, given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, given)

    with monkeypatch.context() as patched:
        patched.setattr(back_translation.BackTranslation, "vary", stopping)
        with pytest.raises(KeyboardInterrupt):
            augment(TEXT, settings, tmp_path / "cut")
    resumed = augment(TEXT, settings, tmp_path / "cut")
    assert resumed.sentences == whole.sentences
    assert resumed.report.methods[0].reused_sentences == 4
    assert resumed.report.methods[0].substituted_words is None


def test_both_methods_work_on_the_originals(
    synonyms: AugmentationSettings, translators: tuple[str, str], tmp_path: Path
) -> None:
    report = augment(TEXT, replace(synonyms, there=translators[0], back=translators[1]), tmp_path).report
    assert [method.method for method in report.methods] == ["synonyms", "back_translation"]
    assert all(method.made + method.unchanged + method.duplicates == len(TEXT) for method in report.methods)
    assert report.sentences == report.originals + sum(method.made for method in report.methods)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["augmentation.variants=0"], "augmentation.variants is 0; expected 1 or more"),
        (["augmentation.substituted_share=0"], "augmentation.substituted_share is 0.0"),
        (["augmentation.there=a"], "augmentation.back is ''; expected the other model of the pair"),
        (["augmentation.back=a"], "augmentation.there is ''; expected the other model of the pair"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_recipe("compact", overrides)


def test_recipes_make_nothing_unless_they_say_so() -> None:
    assert not load_recipe("compact").augmentation.is_wanted


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(TEXT), encoding="utf-8")
    return file


def test_the_command_writes_the_sentences_and_tells_what_it_made(
    corpus: Path, wordnet_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    done = run("--corpus", corpus, "--out", out, "--wordnet", wordnet_folder)
    assert done.exit_code == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[:5] == TEXT
    assert len(lines) == 7
    assert "5 sentences made into 7: 2 by synonyms" in done.stdout
    assert "The children ran.\n  -> The kids ran." in done.stdout


def test_the_command_can_leave_the_originals_out_and_tell_it_in_json(
    corpus: Path, wordnet_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    done = run("--corpus", corpus, "--out", out, "--wordnet", wordnet_folder, "--only-new", "--json")
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    told = json.loads(done.stdout)
    assert (told["corpus"]["kept"], told["originals"], told["sentences"]) == (5, 5, 7)


def test_the_command_refuses_what_it_cannot_do_before_it_reads(
    corpus: Path, wordnet_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    out.write_text("mine")
    for arguments in (
        ["--corpus", corpus, "--out", out, "--wordnet", wordnet_folder],
        ["--corpus", corpus, "--out", corpus, "--wordnet", wordnet_folder, "--force"],
        ["--corpus", corpus, "--out", tmp_path / "new.txt"],
        ["--corpus", corpus, "--out", tmp_path / "new.txt", "--wordnet", tmp_path],
        ["--corpus", corpus, "--out", tmp_path / "new.txt", "--wordnet", wordnet_folder, "--variants", 0],
    ):
        assert isinstance(run(*arguments).exception, InputError)
    assert out.read_text() == "mine"
    assert corpus.read_text(encoding="utf-8").splitlines() == TEXT
    assert not (tmp_path / "new.txt").exists()
