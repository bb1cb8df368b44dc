"""The public functions `export` and `verify`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters.reduction.tokenizer_trimming import trim_tokenizer
from edgeembed_exporters.space import embedding_space
from edgeembed_runtime import Bundle, Encoder, InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer

from edgeembed.exporting import export, verify

WIDTH = 16


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> SentenceTransformer:
    """A model without layers, which is exported in milliseconds."""
    weights = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), WIDTH)).astype(np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


@pytest.fixture
def dogs(sentences: list[str]) -> list[str]:
    return [text.replace("cat", "dog") for text in sentences]


def exported(model: SentenceTransformer | Path, out: Path, **options: Any) -> Any:
    return export(model, out, **{"backend": "numpy", "name": "tiny", **options})


def vocabulary_size(bundle: Path) -> int:
    return int(Tokenizer.from_file(str(bundle / "tokenizer.json")).get_vocab_size())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"vocabulary": "tokenizer.json", "trim_to": "a.txt"}, "expected one of them"),
        ({"trim_size": 100}, "expected trim_to"),
        ({"vocabulary": "tokenizer.json", "trim_size": 100}, "expected trim_to"),
        ({"dim": 8}, "expected fit"),
        ({"dim": 8, "trim_to": "a.txt"}, "expected fit"),
        ({"fit": "a.txt"}, "expected dim"),
        ({"whiten": True}, "expected dim"),
        ({"fit": "a.txt", "whiten": True}, "expected dim"),
        ({"precision": "int3"}, "precision is 'int3'; expected one of: fp32, fp16, int8, int4, auto"),
        ({"trim_to": "absent.txt"}, "absent.txt does not exist"),
        ({"sentences": []}, "no corpus was given"),
        ({"prompts": "query: "}, "prompts is 'query: '; expected texts by name"),
        ({"languages": "en"}, r"languages is 'en'; expected a list of texts"),
        ({"quality": "absent.json"}, "absent.json cannot be read as JSON"),
        ({"backend": "numpy", "ort": True}, "expected backend 'onnx'"),
    ],
)
def test_wrong_arguments_are_found_before_the_model_is_loaded(
    tmp_path: Path, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as raised:
        export("no-such-model", tmp_path / "bundle", **options)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_out_is_found_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        export("no-such-model", tmp_path)


def test_a_model_of_another_type_is_an_error(tmp_path: Path) -> None:
    not_a_model: Any = 3
    with pytest.raises(InputError, match="the model is 3; expected a folder, the name of a model, or"):
        export(not_a_model, tmp_path / "bundle")


def test_a_built_in_bundle_has_no_weights_to_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a model with torch weights"):
        export("mini", tmp_path / "bundle")


def test_quantizing_and_trimming_keep_the_embedding_space_and_a_head_does_not(
    model: SentenceTransformer, dogs: list[str], tmp_path: Path
) -> None:
    space = exported(model, tmp_path / "fp32").space
    assert space == embedding_space(model)
    assert Bundle.open(tmp_path / "fp32").space == space
    assert exported(model, tmp_path / "int8", precision="int8", min_cosine=0.9).space == space
    assert exported(model, tmp_path / "trimmed", trim_to=dogs).space == space
    assert exported(model, tmp_path / "head", dim=WIDTH, fit=dogs).space != space


def test_a_loaded_model_is_not_changed(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    before = (dict(model.prompts), model.tokenizer.to_str(), len(model), model.encode(dogs[:5]))
    report = exported(
        model, tmp_path / "b", trim_to=dogs, dim=5, fit=dogs, role="semantic", max_seq_length=9, prompts={"query": "a "}
    )
    after = (dict(model.prompts), model.tokenizer.to_str(), len(model), model.encode(dogs[:5]))
    assert before[:3] == after[:3]
    np.testing.assert_array_equal(before[3], after[3])
    assert (report.path, report.dimension) == (tmp_path / "b", 5)
    assert Encoder.load(report.path).max_seq_length == 9


def test_vocabulary_and_dimensions_are_reduced(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    report = exported(model, tmp_path / "b", trim_to=dogs, dim=5, fit=dogs)
    vocabulary, head = report.reduction["vocabulary"], report.reduction["head"]
    assert vocabulary.after.size == vocabulary_size(tmp_path / "b") < vocabulary.before.size
    assert (head.dim_before, head.dim_after) == (WIDTH, 5)
    assert Tokenizer.from_file(str(tmp_path / "b" / "tokenizer.json")).token_to_id("cat") is None


def test_the_report_has_one_line_per_reduction(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    report = exported(model, tmp_path / "b", trim_to=dogs, dim=5, fit=dogs)
    lines = str(report).splitlines()
    assert lines[0].startswith(f"vocabulary: {report.reduction['vocabulary'].after.size} of ")
    assert lines[1].startswith(f"head: 5 of {WIDTH} dimensions")
    assert lines[2].startswith(f"{tmp_path / 'b'}: ")
    assert json.loads(report.to_json())["reduction"]["head"]["dim_after"] == 5


def test_a_tokenizer_without_an_unknown_token_has_no_unknown_rate(
    model: SentenceTransformer, dogs: list[str], tmp_path: Path
) -> None:
    from dataclasses import replace

    report = exported(model, tmp_path / "b", trim_to=dogs)
    trimmed = report.reduction["vocabulary"]
    parts = {name: replace(getattr(trimmed, name), unknown_rate=None) for name in ("before", "after")}
    assert "unknown tokens none -> none" in str(replace(trimmed, **parts))


def test_no_more_tokens_are_kept_than_asked_for(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    exported(model, tmp_path / "b", trim_to=dogs, trim_size=80)
    assert vocabulary_size(tmp_path / "b") <= 80


def test_whitened_dimensions_vary_alike(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    ratios = []
    for whiten in (False, True):
        folder = tmp_path / str(whiten)
        report = exported(model, folder, dim=4, fit=dogs, whiten=whiten)
        assert report.reduction["head"].whitened is whiten
        variances = Encoder.load(folder).encode(dogs).var(axis=0)
        ratios.append(variances.max() / variances.min())
    assert ratios[1] < ratios[0]


@pytest.mark.parametrize("as_object", [True, False])
def test_a_trimmed_vocabulary_is_used(
    model: SentenceTransformer, dogs: list[str], tmp_path: Path, as_object: bool
) -> None:
    trimmed = trim_tokenizer(model.tokenizer, dogs, size=80)
    trimmed.save(str(tmp_path / "tokenizer.json"))
    report = exported(model, tmp_path / "b", vocabulary=trimmed if as_object else tmp_path / "tokenizer.json")
    assert vocabulary_size(tmp_path / "b") == trimmed.get_vocab_size()
    assert report.reduction == {}
    assert report.original_parity is not None


def test_a_vocabulary_with_unknown_tokens_is_an_error(model: SentenceTransformer, tmp_path: Path) -> None:
    foreign = Tokenizer.from_str(model.tokenizer.to_str())
    foreign.add_tokens(["zebra", "yak"])
    with pytest.raises(InputError, match=r"2 tokens that the model has no vectors for, such as 'yak'"):
        exported(model, tmp_path / "b", vocabulary=foreign)


@pytest.mark.parametrize("content", [None, "", "{}", "[1, 2"])
def test_a_file_that_is_not_a_tokenizer_is_an_error(
    model: SentenceTransformer, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match="cannot be read as a tokenizer"):
        exported(model, tmp_path / "b", vocabulary=file)


def test_verify_reports_the_differences(model: SentenceTransformer, dogs: list[str], tmp_path: Path) -> None:
    folder = exported(model, tmp_path / "b", sentences=dogs).path
    assert verify(folder).verified
    assert "as exported" in str(verify(str(folder)))
    (folder / "README.md").write_text("changed")
    report = verify(folder)
    assert not report.verified
    assert "README.md" in str(report)


def test_numpy_runs_no_pca_head_after_other_modules(tokenizer: Tokenizer, dogs: list[str], tmp_path: Path) -> None:
    static = StaticEmbedding(tokenizer, embedding_dim=WIDTH)
    with pytest.raises(InputError, match="expected a model without Normalize"):
        exported(SentenceTransformer(modules=[static, Normalize()], device="cpu"), tmp_path / "b", dim=4, fit=dogs)
