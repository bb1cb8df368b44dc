"""The classifier: predictions, pairs of texts, wrong bundles, the command line and verification."""

import io
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from edgeembed_runtime import (
    Bundle,
    BundleError,
    Classifier,
    Encoder,
    InputError,
    Prediction,
    TruncationWarning,
    UnknownTextWarning,
)
from edgeembed_runtime.cli.main import main
from edgeembed_runtime.verification import verify

Make = Callable[..., Path]

_TEXTS = ["read the file line by line", "cat", "the dogs open a network socket", "", "a cat and a dog"] * 20
_MACHINE = {"processor": "test", "architecture": "test", "engine": "test 1.0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_classifier: Make) -> Path:
    return make_classifier(tmp_path_factory.mktemp("classifiers") / "texts")


@pytest.fixture(scope="module")
def pair_folder(tmp_path_factory: pytest.TempPathFactory, make_classifier: Make) -> Path:
    return make_classifier(tmp_path_factory.mktemp("classifiers") / "pairs", is_pairs=True)


def _softmax_of_graph(folder: Path, ids: list[int]) -> Any:
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    row = np.array([ids], dtype=np.int64)
    (logits,) = session.run(["logits"], {"input_ids": row, "attention_mask": np.ones_like(row)})
    exponentials = np.exp(logits[0].astype(np.float64))
    return exponentials / exponentials.sum()


def _golden(folder: Path, rewrite_manifest: Callable[..., None], change: float = 0) -> None:
    """Write golden probabilities into a bundle, the first of them changed."""
    texts = ["the cat", "open a file"]
    classifier = Classifier(folder)
    inputs: list[Any] = [("the cat", "open a file"), ("open a file", "the cat")] if classifier.is_pairs else texts
    probabilities = classifier.predict_proba(inputs).tolist()
    probabilities[0][0] = abs(probabilities[0][0] - change)
    content = {**_MACHINE, "texts": texts, "probabilities": probabilities}
    (folder / "golden.json").write_text(json.dumps(content), encoding="utf-8")
    manifest = json.loads((folder / "edgeembed.json").read_text(encoding="utf-8"))
    del manifest["files"]
    rewrite_manifest(folder, **manifest)


def test_a_prediction_is_the_softmax_of_the_logits(folder: Path, library: Any) -> None:
    classifier = Classifier(folder)
    ids = library.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids.no_padding()
    expected = _softmax_of_graph(folder, ids.encode("the cat").ids)
    prediction = classifier.predict("the cat")
    assert isinstance(prediction, Prediction)
    assert list(prediction.scores) == list(classifier.labels) == ["animal", "file", "network"]
    assert list(prediction.scores.values()) == pytest.approx(expected, abs=1e-6)
    assert prediction.label == classifier.labels[int(expected.argmax())]
    assert prediction.score == prediction.scores[prediction.label] == max(prediction.scores.values())


def test_many_texts_give_one_prediction_each(folder: Path) -> None:
    classifier = Classifier(folder)
    probabilities = classifier.predict_proba(_TEXTS, batch_size=4)
    assert probabilities.shape == (100, 3)
    assert probabilities.dtype == np.float32
    assert probabilities.sum(axis=1) == pytest.approx(1, abs=1e-6)
    predictions = classifier.predict(_TEXTS)
    assert [each.label for each in predictions] == [classifier.labels[i] for i in probabilities.argmax(axis=1)]
    assert classifier.predict_proba([]).shape == (0, 3)
    assert classifier.predict([]) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_probabilities_do_not_depend_on_the_other_texts(folder: Path, threads: int) -> None:
    together = Classifier(folder, threads=threads).predict_proba(_TEXTS)
    classifier = Classifier(folder)
    assert all(np.array_equal(classifier.predict_proba(text), row) for text, row in zip(_TEXTS, together, strict=True))


def test_a_pair_is_tokenized_as_one_sequence(pair_folder: Path, library: Any) -> None:
    classifier = Classifier(pair_folder)
    tokenizer = library.Tokenizer.from_file(str(pair_folder / "tokenizer.json"))
    tokenizer.no_padding()
    expected = _softmax_of_graph(pair_folder, tokenizer.encode("the cat", "a dog").ids)
    assert classifier.predict_proba(("the cat", "a dog")).tolist() == pytest.approx(expected.tolist(), abs=1e-6)
    assert isinstance(classifier.predict(("the cat", "a dog")), Prediction)
    assert len(classifier.predict([("the cat", "a dog"), ["a", "b"]])) == 2


def test_long_pairs_are_truncated_as_the_tokenizer_does(pair_folder: Path, library: Any) -> None:
    classifier = Classifier(pair_folder)
    tokenizer = library.Tokenizer.from_file(str(pair_folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(32)
    pair = "the cat " * 20_000, "a dog"
    expected = _softmax_of_graph(pair_folder, tokenizer.encode("the cat " * 100, "a dog").ids)
    with pytest.warns(TruncationWarning, match="1 of 1 texts: only the first 32 tokens were read") as warned:
        found = classifier.predict_proba(pair)
    assert [warning.filename for warning in warned] == [__file__]
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_long_texts_warn_raise_or_pass(folder: Path) -> None:
    classifier, long = Classifier(folder), "cat " * 100
    with pytest.warns(TruncationWarning, match="1 of 2 texts: only the first 32 tokens were read"):
        classifier.predict([long, "cat"])
    with pytest.raises(InputError, match="text 1 is too long, expected at most 32 tokens"):
        classifier.predict(["cat", long], on_truncate="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict(long, on_truncate="ignore")


def test_unknown_texts_warn_raise_or_pass(folder: Path) -> None:
    classifier = Classifier(folder)
    with pytest.warns(UnknownTextWarning, match="1 of 2 texts: the vocabulary knows almost none") as warned:
        classifier.predict(["cat", "中文"])
    assert [warning.filename for warning in warned] == [__file__]
    with pytest.raises(InputError, match="text 0: the vocabulary knows almost none of its words"):
        classifier.predict("中文", on_unknown="error")
    assert classifier.predict("中文", on_unknown="ignore").label in classifier.labels


def test_pairs_are_unknown_if_both_texts_are(pair_folder: Path) -> None:
    classifier = Classifier(pair_folder)
    classifier.predict(("the cat", "中文"))
    with pytest.warns(UnknownTextWarning, match="1 of 1 texts"):
        classifier.predict(("中", "文"))


def test_a_classifier_can_be_pickled_and_described(folder: Path) -> None:
    classifier = Classifier.from_pretrained(folder, verify=True)
    again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
    assert np.array_equal(again.predict_proba(_TEXTS), classifier.predict_proba(_TEXTS))
    assert repr(classifier) == f"<Classifier 'tiny', 3 labels, from {str(folder)!r}>"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda classifier: classifier.predict(3), "the texts are int, expected a list of str"),
        (lambda classifier: classifier.predict([("a", "b")]), "text 0 is tuple, expected str"),
        (lambda classifier: classifier.predict(["a"], batch_size=0), "batch_size is 0, expected an integer"),
        (lambda classifier: classifier.predict("a", on_truncate="cut"), "on_truncate is 'cut', expected one of"),
        (lambda classifier: classifier.predict("a", on_unknown="cut"), "on_unknown is 'cut', expected one of"),
        (lambda classifier: classifier.predict("\ud800"), "lone surrogate"),
    ],
)
def test_wrong_arguments_are_an_error(folder: Path, call: Callable[[Classifier], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(Classifier(folder))


@pytest.mark.parametrize("texts", ["a text", ["a", "b"], [("a",)], [("a", 3)], 7])
def test_a_classifier_of_pairs_rejects_single_texts(pair_folder: Path, texts: Any) -> None:
    with pytest.raises(InputError, match="expected a tuple of two texts"):
        Classifier(pair_folder).predict(texts)


def test_bundles_of_the_other_task_are_an_error(folder: Path, bundle_path: Path) -> None:
    with pytest.raises(BundleError, match="is an encoder, expected a classifier; open it with Encoder"):
        Classifier(bundle_path)
    for load in (Encoder, Encoder.load, Encoder.from_pretrained):
        with pytest.raises(BundleError, match="is a classifier, expected an encoder; open it with Classifier"):
            load(folder)
    with pytest.raises(InputError, match="the bundle is None, expected the path"):
        Classifier(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "translation"}, "has the task 'translation', expected embedding or classification; upgrade"),
        ({"task": 3}, "'task' is 3, expected a string or null"),
        ({"labels": ["one"]}, "'labels' is .*, expected 2 to 65536 different strings"),
        ({"labels": ["one", "one", "two"]}, "'labels' is .*, expected 2 to 65536 different strings"),
        ({"labels": None}, "'labels' is null, expected a list of strings"),
        ({"is_pairs": "no"}, "'is_pairs' is \"no\", expected true or false"),
        ({"backend": "numpy"}, "'backend' is \"numpy\", expected 'onnx' for a classifier"),
        ({"labels": ["one", "two"]}, r"returns shape \['batch', 3\], expected \(batch, 2\)"),
        ({"parity": {"worst_sentences": [], "sentences": 1}}, "has no 'label_agreement'"),
    ],
)
def test_wrong_manifests_are_an_error(
    tmp_path: Path, make_classifier: Make, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError, match=message) as error:
        _ = Classifier(make_classifier(tmp_path / "b", **fields)).bundle.parity
    assert "\n" not in str(error.value)


def test_verify_compares_the_golden_probabilities(
    tmp_path: Path, make_classifier: Make, rewrite_manifest: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    for is_pairs in (False, True):
        folder = make_classifier(tmp_path / str(is_pairs), is_pairs=is_pairs)
        assert verify(Bundle.open(folder)).golden_line() == "this bundle has no golden vectors"
        _golden(folder, rewrite_manifest)
        report = verify(Bundle.open(folder))
        assert report.differences == ()
        assert report.golden_predictions is not None
        assert (report.golden_predictions.max_difference, report.golden_predictions.label_agreement) == (0, 1)
        assert main(["verify", str(folder)]) == 0
        assert "golden probabilities: maximum difference 0 to those of the exporter" in capsys.readouterr().out
        _golden(folder, rewrite_manifest, change=0.6)
        (difference,) = verify(Bundle.open(folder)).differences
        assert "the probabilities of 'the cat' differ by 0." in difference


def test_info_describes_a_classifier(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder)]) == 0
    lines = capsys.readouterr().out
    assert "classification" in lines
    assert "animal, file, network" in lines
    assert "100.00% with its classifier, 2 texts" in lines


def test_the_command_prints_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", str(folder), "the cat", "open\na file"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    prediction = Classifier(folder).predict("the cat")
    assert first == f"{prediction.label}\t{prediction.score:.4f}\tthe cat"
    assert second.endswith("\topen a file")


def test_the_command_reads_stdin_and_prints_json(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the cat\na dog\n")))
    assert main(["classify", "--json", str(folder), "-", "open"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["labels"] == ["animal", "file", "network"]
    assert [row["text"] for row in document["predictions"]] == ["the cat", "a dog", "open"]
    assert list(document["predictions"][0]["scores"]) == document["labels"]


def test_the_command_separates_pairs_at_the_tab(pair_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", str(pair_folder), "the cat\ta dog"]) == 0
    assert capsys.readouterr().out.endswith("the cat a dog\n")
    assert main(["classify", str(pair_folder), "the cat"]) == 2
    assert "the text is 'the cat', expected two texts separated by a tab" in capsys.readouterr().err


def test_the_command_reports_wrong_bundles_in_one_line(
    bundle_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["classify", str(bundle_path), "the cat"]) == 2
    assert "is an encoder, expected a classifier" in capsys.readouterr().err
    assert main(["encode", "--bundle", str(folder), "--text", "the cat"]) == 2
    error = capsys.readouterr().err
    assert "is a classifier, expected an encoder" in error
    assert error.count("\n") == 1
