"""Every test of this room runs offline and on one thread; data for recipes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from edgeembed.corpus.parallel import LanguageCounts, ParallelText
from edgeembed.evaluation import SentenceEncoder


@pytest.fixture(autouse=True)
def _offline_and_single_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)


@pytest.fixture
def pairs(tmp_path: Path, sentences: list[str]) -> Path:
    """Triplets of made-up sentences."""
    file = tmp_path / "pairs.tsv"
    rows = zip(sentences[:64], sentences[64:128], sentences[128:192], strict=True)
    file.write_text("anchor\tpositive\thard_negative\n" + "".join("\t".join(row) + "\n" for row in rows))
    return file


@pytest.fixture
def dev(tmp_path: Path, sentences: list[str]) -> Path:
    """Scored pairs."""
    file = tmp_path / "dev.tsv"
    rows = [
        f"{first}\t{other}\t{score}\n"
        for score, (first, other) in enumerate(zip(sentences, sentences[9:19], strict=False))
    ]
    file.write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    return file


@pytest.fixture
def parallel(sentences: list[str]) -> ParallelText:
    """Made-up sentences, and what stands for translations into two languages: other words, with accents."""
    sources = sentences[:80]
    translations = [" ".join(f"é{word.capitalize()}" for word in sentence.split()) for sentence in sources]
    return ParallelText(sources, translations, (LanguageCounts("xx", 80, 80, 80),), ("en-xx.tsv",))


NameEncoders = Callable[[Callable[[str], SentenceEncoder]], None]


@pytest.fixture
def name_encoders(monkeypatch: pytest.MonkeyPatch) -> NameEncoders:
    """Let `evaluate` find the encoder of any name by a function."""

    def name(encoder_of: Callable[[str], SentenceEncoder]) -> None:
        monkeypatch.setattr("edgeembed.evaluation.evaluate.find_encoder", lambda name: lambda: encoder_of(name))
        monkeypatch.setattr("edgeembed.evaluation.evaluate.encoder_fingerprint", lambda _name: None)

    return name
