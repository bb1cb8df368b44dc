from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.parallel import LanguageCounts, ParallelText, read_parallel
from edgeembed.training.data import build_training_text


def table(folder: Path, text: str, name: str = "en-de.tsv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def rows(*languages: tuple[str, int]) -> str:
    lines = [f"{name} {row}\t{name} {row}!\t{name}" for name, count in languages for row in range(count)]
    return "sentence\ttranslation\tlanguage\n" + "\n".join(lines) + "\n"


def pairs(text: ParallelText) -> list[tuple[str, str]]:
    return list(zip(text.sources, text.translations, strict=True))


def test_columns_are_named_by_the_file(tmp_path: Path) -> None:
    read = read_parallel([table(tmp_path, "source\tde\ten\nnews\tEin  Hund\tA dog\nweb\tRegen\tRain\n")])
    assert pairs(read) == [("A dog", "Ein Hund"), ("Rain", "Regen")]
    assert read.languages == (LanguageCounts("de", 2, 2, 2),)


def test_translations_may_be_csv(tmp_path: Path) -> None:
    read = read_parallel([table(tmp_path, 'en,de\n"Rain, again",Regen\nSun,Sonne\n', "en-de.csv")])
    assert pairs(read) == [("Rain, again", "Regen"), ("Sun", "Sonne")]


def test_a_file_can_hold_several_languages(tmp_path: Path) -> None:
    read = read_parallel([table(tmp_path, rows(("fr", 2), ("pl", 2)), "mixed.tsv")])
    assert [counts.language for counts in read.languages] == ["fr", "pl"]
    assert ("pl 1", "pl 1!") in pairs(read)


def test_columns_with_other_names_can_be_chosen(tmp_path: Path) -> None:
    file = table(tmp_path, "a\tb\tc\nRain\tRegen\tGerman\nSun\tSonne\tGerman\n", "pairs.tsv")
    assert read_parallel([f"{file}#a,b"]).languages == (LanguageCounts("b", 2, 2, 2),)
    assert read_parallel([f"{file}#a,b,c"]).languages == (LanguageCounts("German", 2, 2, 2),)


def test_files_and_folders_of_one_language_are_combined(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    table(tmp_path, "en\tde\nRain\tRegen\n")
    table(tmp_path / "sub", "en\tde\nSun\tSonne\nRain\tRegen\n")
    table(tmp_path, "en\tfr\nRain\tPluie\n", "en-fr.tsv")
    read = read_parallel([tmp_path])
    assert read.languages == (LanguageCounts("de", 3, 2, 2), LanguageCounts("fr", 1, 1, 1))


def test_pairs_with_a_side_too_short_or_too_long_are_dropped_and_counted(tmp_path: Path) -> None:
    file = table(
        tmp_path, "en\tde\nGo.\tGeh.\nThe rain falls.\t\nThe sun shines.\tDie Sonne scheint.\n" + "x" * 90 + "\ty\n"
    )
    read = read_parallel([file], min_characters=5, max_characters=80)
    assert pairs(read) == [("The sun shines.", "Die Sonne scheint.")]
    assert read.languages == (LanguageCounts("de", 4, 1, 1),)


@pytest.mark.parametrize(("smoothing", "sampled"), [(1.0, [64, 16, 4]), (0.5, [64, 32, 16]), (0.0, [64, 64, 64])])
def test_shares_are_smoothed_and_every_pair_is_used(tmp_path: Path, smoothing: float, sampled: list[int]) -> None:
    file = table(tmp_path, rows(("de", 64), ("fr", 16), ("pl", 4)), "mixed.tsv")
    read = read_parallel([file], smoothing=smoothing)
    assert [counts.sampled for counts in read.languages] == sampled
    times = Counter(pairs(read))
    assert len(times) == 84
    polish = [count for (source, _), count in times.items() if source.startswith("pl")]
    assert max(polish) - min(polish) <= 1
    assert sum(polish) == sampled[2]


def test_a_limit_and_the_seed_determine_the_sample(tmp_path: Path) -> None:
    file = table(tmp_path, rows(("de", 64), ("pl", 5)), "mixed.tsv")
    one, again, other = (read_parallel([file], limit=10, smoothing=0.5, seed=seed) for seed in (1, 1, 2))
    assert one.languages == (LanguageCounts("de", 64, 10, 10), LanguageCounts("pl", 5, 5, 7))
    assert pairs(one) == pairs(again) != pairs(other)


@pytest.mark.parametrize(
    ("name", "text", "chosen", "message"),
    [
        (
            "pairs.tsv",
            "en\tde\na\tb\n",
            "",
            r"has the columns en, de; expected en-de\.tsv with en and de, or a TSV or CSV with",
        ),
        ("en-de.tsv", "en\tfr\na\tb\n", "", "has the columns en, fr"),
        ("en-de.tsv", "", "", "has the columns"),
        ("en-de.tsv", "en\tde\na\tb\tc\n", "", "line 2 has 3 tab-separated fields"),
        ("en-de.tsv", "en\tde\na\tb\n", "#en", r"en-de\.tsv#en names 1 columns"),
        ("en-de.tsv", "en\tde\n", "", "gave no usable pair of 0 read"),
        ("mixed.tsv", "sentence\ttranslation\tlanguage\na\tb\t\n", "", r"line 2 has no language"),
    ],
)
def test_other_tables_are_an_error(tmp_path: Path, name: str, text: str, chosen: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read_parallel([f"{table(tmp_path, text, name)}{chosen}"])
    assert "\n" not in str(raised.value)


def test_both_sides_of_a_pair_have_the_teacher_embedding_of_the_sentence() -> None:
    parallel = ParallelText(["Rain.", "Rain.", "A dog runs."], ["Regen.", "Pluie.", "Ein Hund."], (), ())
    text = build_training_text(["The sun.", "Rain."], parallel)
    assert text.sentences == ["Rain.", "The sun.", "A dog runs."]
    assert [len(each) for each in text.texts] == sorted(len(each) for each in text.texts)
    drawn_to = Counter((each, text.sentences[row]) for each, row in zip(text.texts, text.rows, strict=True))
    assert drawn_to == {
        ("Rain.", "Rain."): 3,
        ("Regen.", "Rain."): 1,
        ("Pluie.", "Rain."): 1,
        ("The sun.", "The sun."): 1,
        ("A dog runs.", "A dog runs."): 1,
        ("Ein Hund.", "A dog runs."): 1,
    }


def test_without_translations_each_sentence_has_its_own_embedding() -> None:
    text = build_training_text(["ccc", "a", "bb", "d"])
    assert text.texts == text.sentences == ["a", "d", "bb", "ccc"]
    assert np.array_equal(text.rows, np.arange(4))
