"""Entity resolution: its files, scores and table."""

from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation.evaluate import evaluate
from edgeembed.papers.simtde.tasks.entity_resolution import EntityResolution, read_entities, score_entities

from ..angles import ENCODER, WORSE, Angles, write_lines  # noqa: TID252  # tests are not a package
from ..conftest import NameEncoders  # noqa: TID252  # tests are not a package


def test_recall_at_one_equals_the_hand_computed_value(tmp_path: Path) -> None:
    # The nearest of b, c and d is b to a at 0 degrees, which may mean b or c; d to d; and c to c, which means b.
    file = write_lines(tmp_path / "radio.tsv", "query\tentity", "a\tb", "a\tc", "d\td", "c\tb")
    scores = score_entities(Angles(a=0, b=20, c=60, d=90), read_entities(file))
    assert [(score.metric, score.items) for score in scores] == [("R@1 x100", 3)]
    assert scores[0].value == pytest.approx(100 * 2 / 3)
    assert scores[0].details == {"entities": 3}


def test_rows_with_label_0_only_add_to_the_catalog(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "radio.tsv", "query\tentity\tlabel", "a\tc\t1", "d\tb\t0")
    (score,) = score_entities(ENCODER, read_entities(file))
    assert (score.value, score.items, score.details["entities"]) == (0, 1, 2)


def test_each_language_has_its_own_catalog_and_equal_weight_in_the_average(tmp_path: Path) -> None:
    rows = ("a\tb\tde", "d\tc\tde", "a\tc\tfr", "b\td\tfr", "c\td\tfr")
    file = write_lines(tmp_path / "radio.tsv", "query\tentity\tlanguage", *rows)
    german, french, average = score_entities(ENCODER, read_entities(file))
    assert german.task.endswith("radio de")
    assert (german.value, german.details["entities"]) == (100, 2)
    assert french.value == pytest.approx(100 / 3)  # c is nearest to all three, and a alone means it
    assert french.items == 3
    assert average.value == pytest.approx((100 + 100 / 3) / 2)
    assert average.items == 5


@pytest.mark.parametrize(("name", "lines"), [("all.txt", ("b", "", "c", "a")), ("all.tsv", ("entity", "b", "c", "a"))])
def test_a_catalog_file_replaces_the_entities_of_the_rows(tmp_path: Path, name: str, lines: tuple[str, ...]) -> None:
    file = write_lines(tmp_path / "radio.tsv", "query\tentity", "d\tc", "a\tc")
    (score,) = score_entities(ENCODER, read_entities(file, write_lines(tmp_path / name, *lines)))
    assert (score.value, score.details["entities"]) == (50, 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("query\tname", "a\tb"), "lacks the column entity"),
        (("query\tentity",), "has no rows"),
        (("query\tentity", "a\tb", "a"), "line 3 has 1 tab-separated fields; expected 2"),
        (("query\tentity", "a\tb\t1"), "line 2 has 3 tab-separated fields; expected 2"),
        (("query\tentity\tlabel", "a\tb\tyes"), "row 1 lacks a field or its label is neither 0 nor 1"),
        (("query\tentity\tlanguage", "a\tb\t"), "row 1 lacks a field"),
        (("query\tentity\tlabel\tlanguage", "a\tb\t1\tde", "a\tb\t0\tfr"), "no query of language fr means an entity"),
        (("query\tentity", "a\telsewhere"), "'elsewhere' is not in the catalog"),
    ],
)
def test_a_malformed_entity_file_is_a_one_line_error(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    catalog = write_lines(tmp_path / "all.txt", "b")
    with pytest.raises(InputError, match=message) as error:
        read_entities(write_lines(tmp_path / "radio.tsv", *lines), catalog)
    assert "\n" not in str(error.value)


def test_an_empty_catalog_is_an_error(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "radio.tsv", "query\tentity", "a\tb")
    with pytest.raises(InputError, match="contains no entities"):
        read_entities(file, write_lines(tmp_path / "all.txt", ""))


def test_the_numbers_of_entities_are_no_ids_that_both_share(tmp_path: Path) -> None:
    entities = read_entities(write_lines(tmp_path / "radio.tsv", "query\tentity", "a\tb")).languages[""]
    assert not entities.queries.keys() & entities.documents.keys()


def test_the_entity_resolution_table_shows_the_change_from_the_reference(
    tmp_path: Path, name_encoders: NameEncoders
) -> None:
    name_encoders({"teacher": ENCODER, "student": WORSE}.__getitem__)
    file = write_lines(tmp_path / "radio.tsv", "query\tentity", "a\tb", "b\tb", "c\tc", "a\td")
    found = evaluate(["student"], EntityResolution(file), against="teacher")
    (table,) = found.tables
    assert [row[1:3] for row in table.rows] == [("100.00", "+0.00%"), ("100.00", "+0.00%")]
    assert table.columns[1:3] == (f"{tmp_path.name}/radio", f"{tmp_path.name}/radio, change")
