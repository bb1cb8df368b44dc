from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.corpus.pairs import read_pairs


def table(folder: Path, text: str) -> Path:
    file = folder / "pairs.tsv"
    file.write_text(text, encoding="utf-8")
    return file


def test_columns_are_found_by_name_and_others_left_alone(tmp_path: Path) -> None:
    file = table(tmp_path, "source\tpositive\tanchor\thard_negative\nx\tb\ta\tc\ny\te\td\tf\n")
    assert read_pairs(file) == {"anchor": ["a", "d"], "positive": ["b", "e"], "hard_negative": ["c", "f"]}


def test_hard_negatives_may_be_absent(tmp_path: Path) -> None:
    assert read_pairs(table(tmp_path, "anchor\tpositive\na\tb\nd\te\n")) == {
        "anchor": ["a", "d"],
        "positive": ["b", "e"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question\tanswer\na\tb\n", "has the columns question, answer; expected a TSV with anchor, positive"),
        ("", "expected a TSV with anchor, positive"),
        ("anchor\tpositive\na\tb\n", "holds 1 pairs; expected two or more"),
        ("anchor\tpositive\na\tb\nc\n", "line 3 has 1 tab-separated fields"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs(table(tmp_path, text))
