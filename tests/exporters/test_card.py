from typing import Any

import pytest
from edgeembed_exporters.card import command_line, model_card

MANIFEST: dict[str, Any] = {
    "name": "small",
    "roles": ["semantic", "relevance"],
    "dimension": 8,
    "parameters": 12_345,
    "precision": "int8",
    "max_seq_length": 64,
    "backend": "onnx",
    "model_file": "onnx/model_quantized.onnx",
    "teacher": "big-one",
    "licences": ["CC BY 4.0", "CC0"],
    "recipe": {"name": "compact", "description": "Three layers.", "stages": []},
    "parity": {
        "sentences": 350,
        "worst_cosine": 0.9923,
        "mean_cosine": 0.998,
        "first_percentile_cosine": 0.9937,
        "rank_correlation": 0.9971,
        "top_10_overlap": 0.962,
    },
    "quality": {"stsb": 80.5},
    "tailoring": {"vocabulary": {"saved_bytes": 1}, "head": {}},
    "latency": {"median_ms": 1.44, "threads": 1},
}


def test_the_card_states_where_the_model_comes_from_and_what_was_measured() -> None:
    card = model_card(MANIFEST, size_bytes=7_100_000, command="edgeembed export x")
    facts = (
        *("`SemanticRanker`", "`RelevanceRanker`"),
        *("big-one", "compact - Three layers.", "CC BY 4.0; CC0", "`edgeembed export x`"),
        *("worst 0.99230", "percentile 0.99370", "mean 0.99800", "0.99710", "0.96200"),
        *("vocabulary, head;", "80.5", "7.1 MB", "12,345", '"median_ms": 1.44'),
    )
    assert [fact for fact in facts if fact not in card] == []


def test_what_is_not_known_is_said_to_be_so() -> None:
    parity = {**MANIFEST["parity"], "rank_correlation": None, "top_10_overlap": None}
    unknown: dict[str, Any] = {
        "teacher": None,
        "recipe": None,
        "licences": [],
        "tailoring": None,
        "quality": None,
        "latency": None,
        "parity": parity,
    }
    card = model_card({**MANIFEST, **unknown}, size_bytes=1, command=None)
    assert card.count("not stated") == 4
    assert card.count("not measured") == 3
    assert "Not measured." in card
    assert "before the export: nothing" in card


@pytest.mark.parametrize(
    ("backend", "contract"), [("onnx", "`sentence_embedding` (batch, 8) out"), ("numpy", "NumPy alone")]
)
def test_the_card_says_what_runs_the_model(backend: str, contract: str) -> None:
    card = model_card({**MANIFEST, "backend": backend}, size_bytes=1, command=None)
    assert f"\n- {backend}\n" in card
    assert contract in card


def test_a_command_tells_nothing_of_the_folders_it_was_typed_in() -> None:
    typed = ["edgeembed", "export", "/home/ann/my teacher", "--out", "/work/new/small", "--precision", "int8"]
    assert command_line(typed) == "edgeembed export 'my teacher' --out small --precision int8"


@pytest.mark.parametrize(
    "arguments", [["--out", "there/b"], ["--out=there/b"], ["--out=/there/b", "--force"], ["--json", "--out", "./b/"]]
)
def test_a_command_is_the_same_wherever_the_bundle_goes(arguments: list[str]) -> None:
    assert command_line(["edgeembed", "export", "m", *arguments]).replace("=", " ") == "edgeembed export m --out b"
