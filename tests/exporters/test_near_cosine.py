"""The threshold of the runtime's interests, measured on texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_exporters import near_cosine
from edgeembed_exporters.gate import default_sentences
from edgeembed_exporters.near_cosine import measure_near_cosine
from edgeembed_runtime import Encoder


def test_two_percent_of_the_pairs_of_texts_reach_the_threshold(exported: Callable[[str], Path]) -> None:
    texts = default_sentences()[:150]
    bundle = exported("fp32")
    threshold = measure_near_cosine(bundle, texts)
    embeddings = Encoder.load(bundle).encode(texts, on_truncate="ignore", on_unknown="ignore")
    cosines = (embeddings @ embeddings.T)[np.triu_indices(len(texts), 1)]
    assert threshold is not None
    assert (cosines >= threshold + 0.01).mean() <= 0.02 <= (cosines >= threshold - 0.01).mean()


def test_fewer_than_100_different_texts_give_no_threshold(exported: Callable[[str], Path]) -> None:
    texts = default_sentences()
    assert measure_near_cosine(exported("fp32"), texts[:99] * 3) is None
    assert measure_near_cosine(exported("fp32"), [*texts[:99], "", " "]) is None
    assert measure_near_cosine(exported("fp32"), texts[:100]) is not None


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_built_in_encoders_state_what_is_measured(name: str) -> None:
    bundle = Encoder(name).bundle
    assert measure_near_cosine(bundle, default_sentences()) == pytest.approx(bundle.near_cosine, abs=0.02)


@pytest.mark.parametrize("shared", [0, 10, 40, 100, 400, 1e5])
def test_embeddings_that_are_all_alike_have_a_threshold_below_1(monkeypatch: pytest.MonkeyPatch, shared: float) -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 16)) + shared * np.eye(16)[0]

    class Stub:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def encode_document(self, texts: list[str], **_: object) -> Any:
            return vectors[: len(texts)].astype(np.float32)

    monkeypatch.setattr(near_cosine, "Encoder", Stub)
    threshold = measure_near_cosine(Path(), [str(number) for number in range(200)])
    assert threshold is not None
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.quantile((rows @ rows.T)[np.triu_indices(200, 1)], 0.98)
    assert threshold == pytest.approx(min(expected, 0.999999), abs=max(1e-6, min(0.01, 0.06 * (1 - expected))))
    assert threshold < 1
