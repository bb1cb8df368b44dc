"""STS suite, duplicate questions, parameter counts, and the tables of a report."""

from pathlib import Path

import numpy as np
import pytest
from edgeembed_bench.model_info import Parameters
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError

from edgeembed.evaluation import (
    EvaluationReport,
    ModelEvaluation,
    Score,
    SuiteScores,
    count_parameters,
    read_retrieval,
    read_sts,
    suite_scores,
)
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.sts import STS, STS_SETS, read_sts_suite, score_sts
from edgeembed.models import load_model

from .angles import ENCODER, WORSE, Angles, write_lines
from .conftest import NameEncoders

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
ROWS = ("a\ta\t4", "a\tc\t3", "a\tb\t2", "a\td\t1")


def _sets(folder: Path, *names: str) -> Path:
    for name in names:
        write_lines(folder / name / "test.tsv", "sentence1\tsentence2\tscore", *ROWS)
    return folder


@pytest.fixture
def two_encoders(name_encoders: NameEncoders) -> None:
    name_encoders({"teacher": ENCODER, "student": WORSE, "again": ENCODER}.__getitem__)


def test_spearman_gives_ties_their_mean_rank(tmp_path: Path) -> None:
    # Cosines of 0, 60, 0, 90 degrees rank 3.5, 2, 3.5, 1 against 4, 3, 2, 1: Pearson's correlation of the ranks.
    pairs = read_sts(write_lines(tmp_path / "pairs.tsv", "sentence1\tsentence2\tscore", *ROWS))
    score = score_sts(Angles(a=0, b=0, c=60, d=90), pairs)[0]
    assert score.value == pytest.approx(100 * 3 / np.sqrt(4.5 * 5))


def test_the_seven_sts_sets_are_read_in_the_papers_order_and_averaged(tmp_path: Path) -> None:
    found = read_sts_suite(_sets(tmp_path, *reversed(SETS), "sts17"))
    assert [pairs.name for pairs in found] == ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"]
    row = suite_scores(
        [Score(pairs.name, "Spearman x100", 10.0 * place, 4) for place, pairs in enumerate(found)], STS_SETS
    )
    assert row is not None
    assert row.average == pytest.approx(30)
    assert row.average_of == "Avg."


def test_a_missing_set_is_none_and_the_average_names_its_sets(tmp_path: Path) -> None:
    found = read_sts_suite(_sets(tmp_path, "sts14", "stsb"))
    row = suite_scores(
        [Score(pairs.name, "Spearman x100", value, 4) for pairs, value in zip(found, (70, 80), strict=True)], STS_SETS
    )
    assert row is not None
    assert row.to_dict()["values"]["STS12"] is None
    assert row.average == pytest.approx(75)
    assert row.average_of == "Avg. (2 of 7: STS14, STS-B)"


def test_the_suite_keeps_pairs_that_are_also_in_stsb(tmp_path: Path) -> None:
    rows = [f"{row}\t{part}" for row, part in zip(ROWS, ("none", "none", "train", "none"), strict=True)]
    write_lines(tmp_path / "sts12" / "test.tsv", "sentence1\tsentence2\tscore\tin_stsb", *rows)
    (score,) = score_sts(ENCODER, read_sts_suite(tmp_path)[0])
    assert (score.task, score.items) == ("STS12", 4)


def test_a_folder_without_sts_sets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of the seven STS sets; expected one or more of sts12/test\.tsv"):
        read_sts_suite(_sets(tmp_path, "sts17"))


def test_a_single_file_of_pairs_is_not_part_of_the_suite() -> None:
    assert suite_scores([Score("sts12/test", "Spearman x100", 70.0, 4)], STS_SETS) is None


HEADER = "id\tquestion1\tquestion2\tis_duplicate"


def test_each_question1_is_searched_among_all_question2(tmp_path: Path) -> None:
    rows = ("1\tp\tx\t1", "2\tp\ty\t1", "3\tp\tz\t0", "4\tq\tx\t0", "5\tr\tz\t1", "6\ts\t\t1")
    found = read_retrieval(write_lines(tmp_path / "pairs.tsv", HEADER, *rows))
    assert found.name == f"{tmp_path.name}/pairs"
    assert list(found.queries.values()) == ["p", "r"]
    assert list(found.documents.values()) == ["x", "y", "z"]
    answers = [{found.documents[key] for key in found.relevant[query]} for query in found.queries]
    assert answers == [{"x", "y"}, {"z"}]


def test_the_numbers_of_questions_are_no_ids_that_both_share(tmp_path: Path) -> None:
    questions = read_retrieval(write_lines(tmp_path / "pairs.tsv", HEADER, "1\tp\tx\t1"))
    assert not questions.queries.keys() & questions.documents.keys()


def test_quoted_questions_are_unquoted_even_across_lines(tmp_path: Path) -> None:
    rows = ('"1"\t"What is ""it""?"\t"two\nlines"\t"1"', '"2"\t"p"\t"x"\t"0"')
    found = read_retrieval(write_lines(tmp_path / "pairs.tsv", HEADER, *rows))
    assert list(found.queries.values()) == ['What is "it"?']
    assert list(found.documents.values()) == ["two lines", "x"]


def test_quotes_in_an_unquoted_file_are_text(tmp_path: Path) -> None:
    rows = ('1\t"It" is what?\t"What\t1', "2\tp\tx\t0")
    found = read_retrieval(write_lines(tmp_path / "pairs.tsv", HEADER, *rows))
    assert list(found.queries.values()) == ['"It" is what?']
    assert list(found.documents.values()) == ['"What', "x"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("question1\tquestion2", "a\tb"), "lacks the column is_duplicate"),
        (("",), "lacks the column question1"),
        ((HEADER, "1\ta\tb"), "more or fewer fields than its header"),
        ((HEADER, "1\ta\tb\tyes"), "pair 1: is_duplicate is 'yes'; expected 0 or 1"),
        ((HEADER, "1\ta\tb\t0"), "contains no duplicates"),
    ],
)
def test_a_malformed_file_of_duplicates_is_a_one_line_error(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_retrieval(write_lines(tmp_path / "pairs.tsv", *lines))
    assert "\n" not in str(error.value)


def test_a_file_of_duplicates_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        read_retrieval(file)


def test_parameters_are_counted_with_and_without_embedding_tables(teacher_folder: Path) -> None:
    model = load_model(str(teacher_folder))
    counted = count_parameters(model)
    assert counted is not None
    assert counted.parameters == sum(weight.numel() for weight in model.parameters())
    assert counted.embedding_parameters == (len(model.tokenizer) + 64 + 2) * 32
    assert counted.inner_parameters == counted.parameters - counted.embedding_parameters


@pytest.mark.parametrize(
    ("name", "embeddings"), [("mini", 28_000 * 160 + 256 * 384), ("nano", 26_000 * 96 + 256 * 256)]
)
def test_a_bundle_has_the_parameter_counts_of_its_student(name: str, embeddings: int) -> None:
    encoder = Encoder(name)
    counted = count_parameters(encoder)
    assert counted is not None
    assert counted.parameters == encoder.bundle.num_parameters
    assert counted.embedding_parameters == embeddings


def test_the_parameters_of_other_encoders_are_unknown() -> None:
    assert count_parameters(ENCODER) is None


@pytest.mark.usefixtures("two_encoders")
def test_the_sts_table_has_the_papers_columns(tmp_path: Path) -> None:
    found = evaluate(["student"], STS(_sets(tmp_path, "sts12", "stsb")), against="teacher")
    (table,) = found.tables
    assert table.columns[:8] == ("model", "STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
    assert table.columns[8:] == ("Avg. (2 of 7)", "% (2 of 7)", "params", "w/o embeddings")
    teacher, student = table.rows
    assert teacher == ("teacher", "80.00", "-", "-", "-", "-", "80.00", "-", "80.00", "100.00", "-", "-")
    assert (student[1], student[9]) == ("20.00", "25.00")
    assert "Avg. (2 of 7: STS12, STS-B) is over these sets only" in table.legend
    assert "percent of teacher's" in table.legend


@pytest.mark.usefixtures("two_encoders")
def test_with_all_seven_sets_the_average_has_no_count(tmp_path: Path) -> None:
    found = evaluate(["student"], STS(_sets(tmp_path, *SETS)))
    (table,) = found.tables
    assert table.columns[8:] == ("Avg.", "params", "w/o embeddings")
    assert found.models[0].to_dict()["suites"]["sts"]["average_of"] == "Avg."


def test_parameters_are_shown_in_millions() -> None:
    found = ModelEvaluation(
        "m",
        (Score("STS12", "Spearman x100", 70.0, 4, kind="sts"),),
        parameters=Parameters(22_700_000, 11_900_000),
        suites={"sts": SuiteScores({"STS12": 70.0, "STS13": None})},
    )
    assert EvaluationReport((found,)).tables[0].rows[0][-2:] == ("22.7M", "10.8M")
    assert found.to_dict()["parameters"]["inner_parameters"] == 10_800_000


@pytest.mark.usefixtures("two_encoders")
def test_markdown_has_a_table_per_kind_of_task_with_every_model(tmp_path: Path) -> None:
    pairs = write_lines(tmp_path / "own.tsv", "sentence1\tsentence2\tscore", *ROWS)
    sts = STS(_sets(tmp_path, "stsb"), pairs)
    text = evaluate(["student", "again"], sts, against="teacher").to_markdown()
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## STS", "## Scores"]
    assert sum(line.startswith("| again") for line in text.splitlines()) == 2
    assert text.endswith("\n")


@pytest.mark.usefixtures("two_encoders")
def test_a_reference_among_the_models_has_one_row(tmp_path: Path) -> None:
    found = evaluate(["teacher", "student"], STS(_sets(tmp_path, "stsb")), against="teacher")
    assert [row[0] for row in found.tables[0].rows] == ["teacher", "student"]
    assert found.models[0].suite_percent("sts") == pytest.approx(100)
