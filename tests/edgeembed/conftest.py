"""Every test of this room runs offline and on one thread."""

from collections.abc import Callable

import pytest
import torch

from edgeembed.evaluation import SentenceEncoder


@pytest.fixture(autouse=True)
def _offline_and_single_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)


NameEncoders = Callable[[Callable[[str], SentenceEncoder]], None]


@pytest.fixture
def name_encoders(monkeypatch: pytest.MonkeyPatch) -> NameEncoders:
    """Let `evaluate` find the encoder of any name by a function."""

    def name(encoder_of: Callable[[str], SentenceEncoder]) -> None:
        monkeypatch.setattr("edgeembed.evaluation.evaluate.find_encoder", lambda name: lambda: encoder_of(name))
        monkeypatch.setattr("edgeembed.evaluation.evaluate.encoder_fingerprint", lambda _name: None)

    return name
