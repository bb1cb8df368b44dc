"""Every test of this room runs offline and on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _offline_and_single_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
