"""Classifiers as bundles: the exported graph, the gate, the command line and the bench."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from edgeembed_bench.subjects import Subject
from edgeembed_bench.worker_client import start_worker
from edgeembed_exporters import ClassifierExportReport, GateError
from edgeembed_exporters.bundle.golden import add_golden
from edgeembed_exporters.classification.parity import check_predictions, compare_predictions, measure_predictions
from edgeembed_exporters.gate import worst_lines
from edgeembed_runtime import Bundle, Classifier
from edgeembed_runtime.cli.main import main
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.verification import verify
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

from edgeembed.benchmarking import benchmark
from edgeembed.classification.exporting import classifier_model
from edgeembed.classification.model import TextClassifier
from edgeembed.cli.export import command
from edgeembed.evaluation.evaluate import evaluate
from edgeembed.evaluation.tasks.sts import STS
from edgeembed.exporting import export
from edgeembed.models import load_model
from edgeembed.students.cmow import CMOWConfig, MatrixEmbedding

LABELS = ("animal", "house", "river")
# Quantization moves the predictions of a random classifier further than those of a trained one.
LENIENT: dict[str, Any] = {"min_label_agreement": 0.3, "max_probability_difference": 1.0}


def tiny_classifier(folder: Path, **options: Any) -> TextClassifier:
    """Return a classifier with random weights, of which some predictions are confident."""
    torch.manual_seed(3)
    model = TextClassifier(load_model(str(folder)), LABELS, **options)
    with torch.no_grad():
        for weight in model.head.parameters():
            weight.mul_(3)
    return model.eval()


def cmow_student(folder: Path) -> SentenceTransformer:
    torch.manual_seed(1)
    config = CMOWConfig(matrix_dim=4, vector_dim=16)
    first = MatrixEmbedding(AutoTokenizer.from_pretrained(folder), config, max_seq_length=32)
    return SentenceTransformer(modules=[first], device="cpu", trust_remote_code=True)


@pytest.fixture(scope="module")
def classifier(teacher_folder: Path) -> TextClassifier:
    return tiny_classifier(teacher_folder)


@pytest.fixture(scope="module")
def exported(
    classifier: TextClassifier, sentences: list[str], tmp_path_factory: pytest.TempPathFactory
) -> ClassifierExportReport:
    """Return the report of an export at fp32."""
    report = export(classifier, tmp_path_factory.mktemp("exported") / "tiny", sentences=sentences[:80])
    assert isinstance(report, ClassifierExportReport)
    return report


def test_a_bundle_predicts_like_its_classifier(
    classifier: TextClassifier, exported: ClassifierExportReport, sentences: list[str]
) -> None:
    bundle = Classifier(exported.path)
    texts = [*sentences[:40], "", "the " * 400]
    np.testing.assert_allclose(
        bundle.predict_proba(texts, on_truncate="ignore", on_unknown="ignore"),
        classifier.predict_proba(texts),
        atol=1e-5,
    )
    assert bundle.labels == LABELS
    assert exported.parity.label_agreement == 1
    assert exported.parity.sentences == 80
    assert exported.size_bytes == sum(file.stat().st_size for file in exported.path.rglob("*") if file.is_file())
    assert json.loads(exported.to_json())["labels"] == list(LABELS)
    assert "same label as the classifier for 100.00% of 80 texts" in str(exported)


def test_the_graph_takes_batches_of_any_size(exported: ClassifierExportReport) -> None:
    session = onnxruntime.InferenceSession(exported.path / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    ids, mask = np.array([[2, 7, 8, 3], [2, 9, 3, 0]]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    (together,) = session.run(["logits"], {"input_ids": ids, "attention_mask": mask})
    (alone,) = session.run(["logits"], {"input_ids": ids[1:, :3], "attention_mask": mask[1:, :3]})
    assert together.shape == (2, 3)
    np.testing.assert_allclose(together[1:], alone, atol=1e-5)


def test_a_bundle_is_described_and_can_be_verified(
    exported: ClassifierExportReport, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Bundle.open(exported.path, verify=True)
    assert (opened.task, opened.role, opened.roles, opened.prompts) == ("classification", None, (), {})
    report = verify(opened)
    assert report.differences == ()
    assert report.golden_predictions is not None
    card = (exported.path / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    assert "- river" in card
    config = json.loads((exported.path / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "animal", "1": "house", "2": "river"}
    assert main(["classify", str(exported.path), "the small cat"]) == 0
    assert capsys.readouterr().out.split("\t")[0] in LABELS


def test_golden_probabilities_can_be_added_again(exported: ClassifierExportReport) -> None:
    before = (exported.path / "golden.json").read_bytes()
    add_golden(exported.path)
    assert (exported.path / "golden.json").read_bytes() == before
    assert Bundle.open(exported.path, verify=True).is_classifier


def test_the_bench_measures_a_classifier(exported: ClassifierExportReport) -> None:
    with start_worker(Subject("a", "bundle", str(exported.path)), "a text") as worker:
        expected = Classifier(exported.path).predict_proba(["the small cat", "a red house"])
        np.testing.assert_array_equal(worker.encode(["the small cat", "a red house"]), expected)
        assert set(worker.parts_ms(["the small cat"])) == {"encode", "tokenize", "run", "bare"}


def test_a_classifier_is_not_scored_by_similarity(exported: ClassifierExportReport, tmp_path: Path) -> None:
    (tmp_path / "sts.tsv").write_text(
        "sentence1\tsentence2\tscore\na cat\ta dog\t1\na cat\ta cat\t5\n", encoding="utf-8"
    )
    with pytest.raises(InputError, match="tiny is a classifier, which tasks of encoders do not score"):
        benchmark([exported.path], tasks=STS(tmp_path / "sts.tsv"))
    with pytest.raises(InputError, match="is a classifier; expected an encoder"):
        evaluate(exported.path, STS(tmp_path / "sts.tsv"))


def test_int8_is_smaller_and_does_not_depend_on_the_batch(
    classifier: TextClassifier, exported: ClassifierExportReport, sentences: list[str], tmp_path: Path
) -> None:
    report = export(classifier, tmp_path / "int8", precision="int8", sentences=sentences[:80], ort=True, **LENIENT)
    assert (tmp_path / "int8" / "onnx" / "model_quantized.ort").is_file()
    assert report.parity.sentences == 70
    bundle = Classifier(tmp_path / "int8", threads=2)
    together = bundle.predict_proba(sentences[:64])
    assert all(np.array_equal(bundle.predict_proba(text), row) for text, row in zip(sentences, together, strict=False))
    file = "onnx/model_quantized.onnx"
    assert (tmp_path / "int8" / file).stat().st_size < (exported.path / "onnx" / "model.onnx").stat().st_size


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp16", "int4"])
def test_other_precisions_predict_alike(
    classifier: TextClassifier, sentences: list[str], tmp_path: Path, precision: Any
) -> None:
    report = export(classifier, tmp_path / precision, precision=precision, sentences=sentences[:80], **LENIENT)
    assert report.precision == precision
    assert verify(Bundle.open(tmp_path / precision)).differences == ()


@pytest.mark.slow
def test_a_classifier_of_joint_pairs_predicts_like_in_torch(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    classifier = tiny_classifier(teacher_folder, head="linear", is_pairs=True, encoding="joint")
    classifier.save(tmp_path / "classifier", details={"metrics": {"accuracy": 90.0}, "dev_examples": 7})
    export(tmp_path / "classifier", tmp_path / "bundle", sentences=sentences[:40])
    pairs = list(zip(sentences[:20], sentences[20:40], strict=True))
    bundle = Classifier(tmp_path / "bundle")
    np.testing.assert_allclose(bundle.predict_proba(pairs), classifier.predict_proba(pairs), atol=1e-5)
    card = (tmp_path / "bundle" / "README.md").read_text(encoding="utf-8")
    assert "development split of the fine-tuning, 7 examples (x100)" in card


@pytest.mark.slow
def test_a_cmow_student_with_an_mlp_can_be_exported(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    torch.manual_seed(0)
    classifier = TextClassifier(cmow_student(teacher_folder), LABELS).eval()
    export(classifier, tmp_path / "bundle", sentences=sentences[:40])
    np.testing.assert_allclose(
        Classifier(tmp_path / "bundle").predict_proba(sentences[:20]),
        classifier.predict_proba(sentences[:20]),
        atol=1e-3,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "cnn"}, "the classifier's head is cnn, which cannot be exported; train it with --classifier mlp or"),
        ({"head": "bilstm"}, "the classifier's head is bilstm, which cannot be exported"),
        (
            {"is_pairs": True, "encoding": "diffcat"},
            "encodes the two texts of a pair separately .*; train it with --encoding joint",
        ),
    ],
)
def test_classifiers_that_no_graph_can_run_are_an_error(
    teacher_folder: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    classifier = TextClassifier(cmow_student(teacher_folder), LABELS, **options)
    with pytest.raises(InputError, match=message):
        export(classifier, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"role": "semantic"}, "role is 'semantic', which is for encoders; omit it"),
        ({"min_cosine": 0.9}, "min_cosine is 0.9, .*; use min_label_agreement and max_probability_difference"),
        ({"backend": "numpy"}, "backend is 'numpy', which is for encoders; omit it"),
        (
            {"trim_to": ["a text to keep"]},
            r"trim_to is \['a text to keep'\], which is for encoders; trim or reduce the encoder before",
        ),
        ({"dim": 8, "fit": ["a text to fit"]}, "dim is 8, which is for encoders; trim or reduce the encoder before"),
        ({"min_label_agreement": 2}, "min_label_agreement is 2; expected a number from 0 to 1"),
        ({"max_seq_length": 5000}, "max_seq_length is 5000; expected 3 to"),
    ],
)
def test_settings_that_classifiers_do_not_have_are_an_error(
    classifier: TextClassifier, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        export(classifier, tmp_path / "bundle", **options)


def test_limits_of_classifiers_are_an_error_for_encoders(teacher_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"min_label_agreement is 0\.9, which is for classifiers; use min_cosine"):
        export(teacher_folder, tmp_path / "bundle", min_label_agreement=0.9)


@pytest.mark.slow
def test_a_bundle_that_misses_a_limit_is_not_written(
    teacher_folder: Path, classifier: TextClassifier, sentences: list[str], tmp_path: Path
) -> None:
    classifier.save(tmp_path / "classifier")
    (tmp_path / "text.txt").write_text("\n".join(sentences[:40]), encoding="utf-8")
    arguments = [str(tmp_path / "classifier"), "--out", str(tmp_path / "bundle"), "--max-probability-difference", "0"]
    done = CliRunner().invoke(command, [*arguments, "--sentences", str(tmp_path / "text.txt")])
    assert isinstance(done.exception, GateError)
    assert "allowed is 0; nothing was written" in str(done.exception)
    assert len([line for line in done.stderr.splitlines() if line.startswith("0.0")]) == 10
    assert not (tmp_path / "bundle").exists()
    with pytest.raises(GateError, match="the bundle has at least"):
        export(classifier, tmp_path / "bundle", max_size_mb=0.001)


def test_predictions_are_compared_by_label_and_by_probability() -> None:
    expected = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], dtype=np.float32)
    found = np.array([[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]], dtype=np.float32)
    parity = measure_predictions(["a", ("b", "c"), "d"], expected, found)
    assert parity.label_agreement == pytest.approx(2 / 3)
    assert parity.max_probability_difference == pytest.approx(0.2)
    assert parity.mean_probability_difference == pytest.approx(0.1)
    assert worst_lines(parity)[0] == "0.2000  'b\\tc'"
    check_predictions(parity, 0.6, 0.21)
    with pytest.raises(GateError, match=r"the labels of 66\.67% of 3 texts agree .*, required are 90\.00%"):
        check_predictions(parity, 0.9, 1)
    with pytest.raises(GateError, match=r"probabilities over 3 texts is 0\.2000, allowed is 0\.1"):
        check_predictions(parity, 0.5, 0.1)


def test_the_classifier_predicts_one_text_at_a_time_for_the_comparison(
    classifier: TextClassifier, exported: ClassifierExportReport, sentences: list[str]
) -> None:
    """Some encoders' convolutions read the padding of a batch, and a bundle never pads."""
    batches: list[int] = []

    def counted(texts: Any) -> Any:
        batches.append(len(texts))
        return classifier.predict_proba(texts)

    model = replace(classifier_model(classifier), predict_proba=counted)
    parity = compare_predictions(model, Bundle.open(exported.path), sentences[:20])
    assert (parity.sentences, parity.label_agreement) == (20, 1)
    assert batches == [1] * 20


@pytest.mark.parametrize("limit", ["min_rank", "min_overlap"])
def test_limits_on_the_ranking_are_for_encoders(classifier: TextClassifier, tmp_path: Path, limit: str) -> None:
    given: dict[str, Any] = {limit: 0.5}
    with pytest.raises(
        InputError, match=f"{limit} is 0.5, which is for encoders; use min_label_agreement and max_prob"
    ):
        export(classifier, tmp_path / "bundle", **given)


def test_a_classifier_of_pairs_can_be_exported_by_default(teacher_folder: Path) -> None:
    classifier = tiny_classifier(teacher_folder, is_pairs=True)
    assert classifier_model(classifier).head is classifier.embedding_head()
