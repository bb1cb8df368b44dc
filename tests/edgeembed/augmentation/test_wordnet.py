import lzma
import shutil
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime.errors import InputError, MissingExtraError

from edgeembed.augmentation.wordnet import read_wordnet

from .conftest import write_classic, write_tables


@pytest.fixture(params=["tables", "classic"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "tables":
        return write_tables(tmp_path / "tables")
    pytest.importorskip("nltk", reason="edgeembed[nltk] is not installed")
    return write_classic(tmp_path / "classic")


def test_synonyms_share_the_most_frequent_sense_of_both_words(folder: Path) -> None:
    wordnet = read_wordnet(folder)
    assert wordnet.synonyms("car", "n") == ("automobile",)
    assert wordnet.synonyms("machine", "n") == ("apparatus",)
    assert wordnet.synonyms("large", "a") == ("big",)
    assert wordnet.synonyms("car", "v") == ()


def test_senses_are_counted_by_part_of_speech(folder: Path) -> None:
    wordnet = read_wordnet(folder)
    assert [wordnet.count("machine", "n"), wordnet.count("help", "v"), wordnet.count("help", "a")] == [2, 1, 0]


def test_lemmas_may_have_several_words_and_keep_their_case(folder: Path) -> None:
    wordnet = read_wordnet(folder)
    assert "sports car" in wordnet
    assert "Rome" in wordnet
    assert "rome" not in wordnet


def test_word_frequencies_are_counted_in_definitions(folder: Path) -> None:
    uses = read_wordnet(folder).uses
    assert (uses["automobile"], uses.get("hebdomad", 0)) == (5, 0)


def test_tables_may_be_compressed_and_determine_the_fingerprint(wordnet_folder: Path, tmp_path: Path) -> None:
    for file in wordnet_folder.iterdir():
        (tmp_path / f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes()))
    packed, plain = read_wordnet(tmp_path), read_wordnet(wordnet_folder)
    assert (packed.senses, packed.members, packed.uses) == (plain.senses, plain.members, plain.uses)
    assert plain.fingerprint == read_wordnet(wordnet_folder).fingerprint != packed.fingerprint


def test_a_folder_without_a_wordnet_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no WordNet; expected oewn_synsets\.tsv"):
        read_wordnet(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lemma\tpos", "word\tpos", "has no column lemma"),
        ("car\tn\t", "car\tx\t", "line 2 names part of speech 'x'"),
        ("car\tn\t00000001-n", "car\tn\t09999999-n", "names synset '09999999-n', which oewn_synsets.tsv lacks"),
        ("car\tn\t00000001-n", "car\tn", "line 2 has 2 tab-separated fields; expected 3"),
    ],
)
def test_an_invalid_table_is_an_error_with_its_line(
    wordnet_folder: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = Path(shutil.copytree(wordnet_folder, tmp_path / "broken"))
    file = folder / "oewn_lemmas.tsv"
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_wordnet(folder)


def test_classic_files_without_nltk_are_an_error_that_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", is_missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed\[nltk\]'"):
        read_wordnet(write_classic(tmp_path))


def test_a_missing_classic_file_is_an_error(tmp_path: Path) -> None:
    (write_classic(tmp_path) / "verb.exc").unlink()
    with pytest.raises(InputError, match=r"lacks verb\.exc"):
        read_wordnet(tmp_path)


def test_an_invalid_classic_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    pytest.importorskip("nltk", reason="edgeembed[nltk] is not installed")
    (write_classic(tmp_path) / "index.noun").write_text("car n one\n")
    with pytest.raises(InputError, match="cannot be read as WordNet") as raised:
        read_wordnet(tmp_path)
    assert "\n" not in str(raised.value)
