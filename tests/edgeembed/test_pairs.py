from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.pairs import read_pairs

PAIR = "anchor\tpositive\na\tb\n"


def table(folder: Path, text: str, name: str = "pairs.tsv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_columns_are_found_by_name_and_others_are_ignored(tmp_path: Path) -> None:
    file = table(tmp_path, "source\tpositive\tanchor\thard_negative\nx\tb\ta\tc\ny\te\td\tf\n")
    assert read_pairs([file]) == {"anchor": ["a", "d"], "positive": ["b", "e"], "hard_negative": ["c", "f"]}


def test_hard_negatives_are_optional(tmp_path: Path) -> None:
    assert read_pairs([table(tmp_path, "anchor\tpositive\na\tb\nd\te\n")]) == {
        "anchor": ["a", "d"],
        "positive": ["b", "e"],
    }


def test_columns_with_other_names_can_be_chosen(tmp_path: Path) -> None:
    file = table(tmp_path, "answer\tsource\tquestion\nb\tx\ta\ne\ty\td\n")
    assert read_pairs([f"{file}#question,answer"]) == {"anchor": ["a", "d"], "positive": ["b", "e"]}


def test_pairs_may_be_csv_whose_fields_hold_commas_and_line_breaks(tmp_path: Path) -> None:
    file = table(tmp_path, 'anchor,positive\n"a, b","one\ntwo"\nc,d\n', "pairs.csv")
    assert read_pairs([file]) == {"anchor": ["a, b", "c"], "positive": ["one two", "d"]}
    assert read_pairs([f"{file}#positive,anchor"])["anchor"] == ["one two", "d"]


def test_several_files_are_concatenated(tmp_path: Path) -> None:
    first = table(tmp_path, "anchor\tpositive\na\tb\n", "first.tsv")
    second = table(tmp_path, "question\tanswer\nd\te\n", "second.tsv")
    assert read_pairs([first, f"{second}#question,answer"]) == {"anchor": ["a", "d"], "positive": ["b", "e"]}


def test_hard_negatives_in_only_some_files_are_an_error(tmp_path: Path) -> None:
    with_them = table(tmp_path, "anchor\tpositive\thard_negative\na\tb\tc\n", "with.tsv")
    without = table(tmp_path, "anchor\tpositive\na\tb\n", "without.tsv")
    with pytest.raises(InputError, match=r"without\.tsv has no hard_negative column, but other pairs have"):
        read_pairs([with_them, without])


@pytest.mark.parametrize("columns", ["anchor", "anchor,positive,anchor,positive"])
def test_pairs_have_two_columns_or_three(tmp_path: Path, columns: str) -> None:
    with pytest.raises(InputError, match=r"names . columns; expected those of anchor, positive and optionally hard"):
        read_pairs([f"{table(tmp_path, PAIR)}#{columns}"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question\tanswer\na\tb\n", "has the columns question, answer; expected a TSV or CSV with anchor, positive"),
        ("", "expected a TSV or CSV with anchor, positive"),
        ("anchor\tpositive\na\tb\n", "holds 1 pairs; expected two or more"),
        ("anchor\tpositive\na\tb\nc\n", "line 3 has 1 tab-separated fields"),
    ],
)
def test_other_tables_are_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs([table(tmp_path, text)])
