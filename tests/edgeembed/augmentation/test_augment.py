import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from edgeembed_runtime.errors import InputError

from edgeembed.augmentation import augment, augment_sentences, augmentation_methods, back_translation, variants
from edgeembed.augmentation.synonyms import SynonymSubstitution
from edgeembed.augmentation.variants import VARIANTS_FILE, Method
from edgeembed.cli.augment import command
from edgeembed.recipe.loading import load_recipe

TEXT = [
    "The car stopped.",
    "The automobile stopped.",
    "Nothing here changes.",
    "The children ran.",
    "The big dog and the large cat ran.",
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "_CHUNK_SIZE", 2)
    monkeypatch.setattr(back_translation, "default_device", lambda: "cpu")


@pytest.fixture
def synonyms(wordnet_folder: Path) -> list[Method]:
    return augmentation_methods(wordnet=wordnet_folder, substituted_share=1.0)


def test_new_sentences_follow_the_originals_without_duplicates(synonyms: list[Method], tmp_path: Path) -> None:
    done = augment_sentences([*TEXT, TEXT[0]], synonyms, tmp_path)
    assert done.sentences == [*TEXT, "The kids ran.", "The large dog and the big cat ran."]
    (report,) = done.report.methods
    assert (done.report.originals, done.report.sentences) == (5, 7)
    assert (report.made, report.unchanged, report.duplicates) == (2, 1, 2)
    assert report.substituted_words == 1.5
    assert [sample.variant for sample in report.samples] == done.sentences[5:]
    assert json.loads(json.dumps(done.report.to_dict()))["methods"][0]["method"] == "synonyms"


def test_without_a_method_the_sentences_are_returned_and_nothing_is_cached(tmp_path: Path) -> None:
    done = augment_sentences(TEXT, [], tmp_path / "cache")
    assert done.sentences == TEXT
    assert done.report.methods == ()
    assert not (tmp_path / "cache").exists()


def test_the_order_of_the_sentences_changes_only_the_order_of_the_result(
    synonyms: list[Method], tmp_path: Path
) -> None:
    there, back = (
        augment_sentences(TEXT, synonyms, tmp_path / "one"),
        augment_sentences(TEXT[::-1], synonyms, tmp_path / "two"),
    )
    assert set(there.sentences) == set(back.sentences)


def test_a_second_run_uses_only_the_cache(
    synonyms: list[Method], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = augment_sentences(TEXT, synonyms, tmp_path)
    monkeypatch.setattr(SynonymSubstitution, "vary", None)  # whoever makes variants now fails
    again = augment_sentences(TEXT, synonyms, tmp_path)
    assert again.sentences == first.sentences
    assert again.report.methods[0].reused_sentences == len(TEXT)


def test_a_larger_text_reuses_the_variants_of_a_smaller_one(synonyms: list[Method], tmp_path: Path) -> None:
    augment_sentences(TEXT[:3], synonyms, tmp_path)
    together = augment_sentences(TEXT[::-1], synonyms, tmp_path)
    assert together.report.methods[0].reused_sentences == 3
    assert together.sentences == augment_sentences(TEXT[::-1], synonyms, tmp_path / "other").sentences


def test_a_damaged_database_is_one_line(synonyms: list[Method], tmp_path: Path) -> None:
    (tmp_path / VARIANTS_FILE).write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match=r"cannot read or write the variants in .*: file is not a database"):
        augment_sentences(TEXT, synonyms, tmp_path)


def test_an_interrupted_back_translation_continues_where_it_stopped(
    translators: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = augmentation_methods(back_translation=translators)
    whole = augment_sentences(TEXT, methods, tmp_path / "whole")
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
            augment_sentences(TEXT, methods, tmp_path / "cut")
    resumed = augment_sentences(TEXT, methods, tmp_path / "cut")
    assert resumed.sentences == whole.sentences
    assert resumed.report.methods[0].reused_sentences == 4
    assert resumed.report.methods[0].substituted_words is None


def test_both_methods_work_on_the_originals(
    synonyms: list[Method], translators: tuple[str, str], tmp_path: Path
) -> None:
    report = augment_sentences(TEXT, [*synonyms, *augmentation_methods(back_translation=translators)], tmp_path).report
    assert [method.method for method in report.methods] == ["synonyms", "back_translation"]
    assert all(method.made + method.unchanged + method.duplicates == len(TEXT) for method in report.methods)
    assert report.sentences == report.originals + sum(method.made for method in report.methods)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["augmentation.variants=0"], "augmentation.variants is 0; expected an integer of at least 1"),
        (
            ["augmentation.substituted_share=0"],
            "augmentation.substituted_share is 0; expected a number above 0 and at most 1",
        ),
        (["augmentation.forward_model=a"], "augmentation.backward_model is ''; expected the other model of the pair"),
        (["augmentation.backward_model=a"], "augmentation.forward_model is ''; expected the other model of the pair"),
    ],
)
def test_invalid_settings_of_a_recipe_are_an_error(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_recipe("compact", overrides)


def test_recipes_do_not_augment_by_default() -> None:
    assert not load_recipe("compact").augmentation.is_enabled


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(TEXT), encoding="utf-8")
    return file


def test_the_command_writes_the_sentences_and_prints_the_counts(
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


def test_the_command_can_write_only_new_sentences_and_print_json(
    corpus: Path, wordnet_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    done = run("--corpus", corpus, "--out", out, "--wordnet", wordnet_folder, "--only-new", "--json")
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    report = json.loads(done.stdout)
    assert (report["path"], report["written"]) == (str(out), 2)
    assert (report["corpus"]["kept"], report["originals"], report["sentences"]) == (5, 5, 7)


def test_the_command_reports_errors_and_writes_nothing(corpus: Path, wordnet_folder: Path, tmp_path: Path) -> None:
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


def test_the_function_augments_texts_in_memory(wordnet_folder: Path, tmp_path: Path) -> None:
    report = augment(TEXT, tmp_path / "out.txt", wordnet=str(wordnet_folder), substituted_share=1.0)
    lines = report.path.read_text(encoding="utf-8").splitlines()
    assert lines == [*TEXT, "The kids ran.", "The large dog and the big cat ran."]
    assert (report.written, report.corpus.kept) == (7, 5)
    assert "2 by synonyms" in str(report)
    assert "substituted_words" in report.to_markdown()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wordnet": None}, "no augmentation was chosen; expected wordnet, back_translation or both"),
        ({"wordnet": 3}, "wordnet is 3; expected the folder of a WordNet"),
        ({"wordnet": "nowhere"}, "nowhere holds no WordNet"),
        ({"variants": 0}, "variants is 0; expected an integer of at least 1"),
        ({"substituted_share": 1.5}, "substituted_share is 1.5; expected a number above 0 and at most 1"),
        ({"back_translation": "model"}, "back_translation is 'model'; expected two models"),
        ({"back_translation": ("there",)}, "expected two models"),
        ({"back_translation": ("nowhere", "nowhere")}, "no model called nowhere"),
        ({"back_translation": 3}, "back_translation is 3; expected two models"),
        ({"substituted_share": "half"}, "substituted_share is 'half'; expected a number"),
        ({"limit": 0}, "limit is 0; expected an integer of at least 1"),
        ({"limit": "5"}, "limit is '5'; expected an integer or None"),
        ({"seed": [1]}, r"seed is \[1\]; expected an integer"),
    ],
)
def test_wrong_arguments_are_errors_before_the_corpus_is_read(
    options: dict[str, Any], message: str, wordnet_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.augmentation.pipeline.gather_corpus", None)
    with pytest.raises(InputError, match=message):
        augment(TEXT, tmp_path / "out.txt", **{"wordnet": wordnet_folder, **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", [None, "", 3])
def test_an_output_that_is_no_path_is_an_error(out: Any, wordnet_folder: Path) -> None:
    with pytest.raises(InputError, match=f"out is {out!r}; expected the path of a file to write"):
        augment(TEXT, out, wordnet=wordnet_folder)


def test_a_file_of_the_corpus_folder_is_never_replaced(corpus: Path, wordnet_folder: Path) -> None:
    with pytest.raises(InputError, match=r"corpus\.txt is one of the inputs"):
        augment(corpus.parent, corpus, wordnet=wordnet_folder, force=True)
