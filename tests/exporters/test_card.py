from typing import Any

from edgeembed_exporters.card import model_card

MANIFEST: dict[str, Any] = {
    "name": "small",
    "dimension": 8,
    "parameters": 12_345,
    "precision": "int8",
    "max_seq_length": 64,
    "model_file": "onnx/model_quantized.onnx",
    "teacher": "big-one",
    "licences": ["CC BY 4.0", "CC0"],
    "parity": {"sentences": 350, "worst_cosine": 0.9923, "mean_cosine": 0.998},
    "quality": {"stsb": 80.5},
}


def test_the_card_states_where_the_model_comes_from_and_what_was_measured() -> None:
    card = model_card(MANIFEST, size_bytes=7_100_000, command="edgeembed export x")
    facts = ("big-one", "CC BY 4.0; CC0", "`edgeembed export x`", "worst 0.99230", "7.1 MB", "12,345", "80.5")
    assert [fact for fact in facts if fact not in card] == []


def test_what_is_not_known_is_said_to_be_so() -> None:
    card = model_card({**MANIFEST, "teacher": None, "licences": [], "quality": None}, size_bytes=1, command=None)
    assert card.count("not stated") == 3
    assert "Not measured." in card
