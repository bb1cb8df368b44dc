"""Prompts of teachers: one rule on every path, and the fingerprint of what was really read."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder
from edgeembed_runtime.errors import InputError

from edgeembed.distillation import distill, pipeline
from edgeembed.embeddings.encode import encode
from edgeembed.embeddings.fingerprint import model_fingerprint
from edgeembed.embeddings.prompts import Prompts
from edgeembed.embeddings.store import EmbeddingStore
from edgeembed.embeddings.text_encoder import load_text_encoder, with_normalization
from edgeembed.exporting import export
from edgeembed.models import load_model
from edgeembed.progress import SilentReporter

TINY = {
    "vocabulary.kind": "teacher",
    "student.layers": 1,
    "student.token_dim": 0,
    "student.max_seq_length": 32,
    "head.kind": "none",
    "stages.epochs": 0.1,
    "stages.batch_size": 32,
}
BOTH = {"query": "cat ", "passage": "dog "}


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


class _Notes(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def prompted(teacher: Path, folder: Path, prompts: dict[str, str], default: str | None = None) -> Path:
    """Return a copy of a teacher with prompts."""
    copied = shutil.copytree(teacher, folder)
    file = copied / "config_sentence_transformers.json"
    content = {**json.loads(file.read_text()), "prompts": prompts, "default_prompt_name": default}
    file.write_text(json.dumps(content))
    return copied


@pytest.mark.parametrize(
    ("prompts", "default", "document", "query"),
    [
        ({}, None, "", ""),
        (BOTH, None, "dog ", "cat "),
        ({"query": "cat ", "document": ""}, None, "", "cat "),
        ({"document": "", "passage": "dog "}, None, "dog ", ""),
        ({"sts": "bird "}, "sts", "bird ", "bird "),
        ({**BOTH, "sts": "bird "}, "sts", "dog ", "cat "),
        ({"sts": "bird "}, None, "", ""),
    ],
)
def test_a_folder_and_a_loaded_model_have_the_same_prompts(
    prompts: dict[str, str], default: str | None, document: str, query: str, teacher_folder: Path, tmp_path: Path
) -> None:
    folder = prompted(teacher_folder, tmp_path / "teacher", prompts, default)
    for each in (Prompts.of(folder), Prompts.of(load_model(folder)), Prompts.of(unnormalized(folder))):
        assert (each.document(), each.query()) == (document, query)
        assert (each.document(""), each.query("road ")) == ("", "road ")


def unnormalized(folder: Path) -> Any:
    """Return a model whose Normalize module is removed, as for a recipe without normalization."""
    return with_normalization(load_model(folder), normalize=False)


def cached_embeddings(cache: Path) -> np.ndarray[Any, np.dtype[np.float16]]:
    (file,) = cache.glob("vectors/*.f16")
    return np.fromfile(file, np.float16).reshape(-1, 32)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("given", "read"), [(None, "dog "), ("", ""), ("bird ", "bird ")])
def test_a_teacher_reads_the_same_prompt_on_every_path(
    normalize: bool, given: str | None, read: str, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    folder = prompted(teacher_folder, tmp_path / "teacher", BOTH)
    plain = with_normalization(load_model(teacher_folder), normalize=normalize)
    texts = sorted(sentences[:20], key=len)
    expected = plain.encode([read + text for text in texts])
    encoder = load_text_encoder(folder, normalize=normalize, prompt=given, threads=1)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=2e-3)
    assert encoder.identity.prompt == read
    overrides = {**TINY, "head.normalize": normalize, **({} if given is None else {"teacher_prompt": given})}
    options: dict[str, Any] = {"overrides": {**overrides, "corpus.heldout": 0, "corpus.min_characters": 1}}
    distill("compact", texts, tmp_path / "by folder", teacher=folder, cache=tmp_path / "a", **options)
    distill("compact", texts, tmp_path / "in memory", teacher=load_model(folder), cache=tmp_path / "b", **options)
    encode(texts, folder, tmp_path / "shards", normalize=normalize, prompt=given)
    shards: dict[str, Any] = {"teacher_embeddings": tmp_path / "shards", "cache": tmp_path / "c"}
    distill("compact", texts, tmp_path / "by shards", teacher=folder, **shards, **options)
    for cache in ("a", "b", "c"):
        np.testing.assert_allclose(cached_embeddings(tmp_path / cache), expected, atol=2e-3)


def test_shards_with_another_prompt_are_an_error(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    folder = prompted(teacher_folder, tmp_path / "teacher", BOTH)
    encode(sentences, folder, tmp_path / "shards", prompt="")
    assert EmbeddingStore.open(tmp_path / "shards").encoder.prompt == ""
    shards: dict[str, Any] = {"teacher_embeddings": tmp_path / "shards"}
    with pytest.raises(InputError, match=r"prompt='', which is not the recipe's teacher, .* as the recipe has it"):
        distill("compact", sentences, tmp_path / "s", teacher=folder, overrides=TINY, **shards)
    distill("compact", sentences, tmp_path / "s", teacher=folder, overrides={**TINY, "teacher_prompt": ""}, **shards)


def test_a_bundle_reads_its_prompt_for_documents_or_the_given_one(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    folder = prompted(teacher_folder, tmp_path / "teacher", BOTH)
    bundle = export(folder, tmp_path / "bundle", role="relevance").path
    encoder = Encoder.load(bundle)
    for given, read in ((None, "dog "), ("dog ", "dog "), ("", ""), ("cat ", "cat ")):
        found = load_text_encoder(bundle, normalize=True, prompt=given)
        np.testing.assert_allclose(
            found.encode(sentences[:5]), encoder.encode([read + text for text in sentences[:5]], prompt=""), atol=1e-3
        )
        assert found.identity.prompt == read
        assert (found.identity.fingerprint == encoder.bundle.fingerprint) == (read == "dog ")


def test_the_fingerprint_follows_what_is_read(teacher_folder: Path) -> None:
    model = load_model(teacher_folder)
    before = model_fingerprint(model)
    model.prompts = BOTH
    assert model_fingerprint(model) == model_fingerprint(model, prompt="") == before
    assert (
        len({model_fingerprint(each, prompt=text) for each in (model, teacher_folder) for text in ("", "a", "b")}) == 6
    )


@pytest.mark.parametrize(
    ("prompts", "overrides", "warning"),
    [
        (
            BOTH,
            {},
            "reads the prompt 'dog ' before each text; its prompts 'cat ' (query) stay unused. Set teacher_prompt",
        ),
        ({"query": "cat "}, {}, "reads no prompt before each text; its prompts 'cat ' (query) stay unused"),
        (BOTH, {"teacher_prompt": "dog "}, None),
        (BOTH, {"teacher_prompt": ""}, None),
        ({"document": "dog "}, {}, None),
        ({}, {}, None),
    ],
)
def test_prompts_that_stay_unused_are_a_warning(
    prompts: dict[str, str],
    overrides: dict[str, Any],
    warning: str | None,
    teacher_folder: Path,
    sentences: list[str],
    tmp_path: Path,
) -> None:
    folder, reporter = prompted(teacher_folder, tmp_path / "teacher", prompts), _Notes()
    options: dict[str, Any] = {"overrides": {**TINY, **overrides}, "reporter": reporter}
    distill("compact", sentences, tmp_path / "s", teacher=folder, **options)
    warnings = [note for note in reporter.notes if note.startswith("warning")]
    assert len(warnings) == (warning is not None)
    assert warning is None or warning in warnings[0]


def test_losses_between_layers_allow_no_prompt(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    folder = prompted(teacher_folder, tmp_path / "teacher", BOTH)
    overrides = {**TINY, "stages.losses.hidden_states": 1.0}
    with pytest.raises(InputError, match=r"reads 'dog ' before each text, but a loss compares its layers .* \"\"$"):
        distill("compact", sentences, tmp_path / "s", teacher=folder, overrides=overrides)
    assert not (tmp_path / "s.cache").exists()


@pytest.mark.parametrize("given", [3, ["query: "]])
def test_a_prompt_is_a_text(given: Any, teacher_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"prompt is .*; expected a text to put before each text, or None"):
        encode(["a text"], teacher_folder, tmp_path / "shards", prompt=given)
    with pytest.raises(InputError, match=r"teacher_prompt is .*; expected a string"):
        distill("compact", ["a text"], tmp_path / "s", overrides={"teacher_prompt": given})
