import json
from pathlib import Path
from typing import Any

import edgeembed_runtime
import pytest
from edgeembed_exporters.cards.card import bundle_card, front_matter, read_front_matter
from edgeembed_exporters.cards.paths import command_line, without_paths

MANIFEST: dict[str, Any] = {
    "name": "small",
    "roles": ["semantic", "relevance"],
    "dimension": 8,
    "pooling": "cls+mean",
    "num_parameters": 12_345,
    "precision": "int8",
    "max_seq_length": 64,
    "backend": "onnx",
    "model_file": "onnx/model_quantized.onnx",
    "teacher": "big-one",
    "space": "bert-8-0123456789abcdef",
    "license": "apache-2.0",
    "base_model": "org/big-one",
    "languages": ["en", "no"],
    "licenses": ["CC BY 4.0", "CC0"],
    "recipe": {"name": "compact", "description": "Three layers.", "stages": []},
    "parity": {
        "sentences": 350,
        "min_cosine": 0.9923,
        "mean_cosine": 0.998,
        "p01_cosine": 0.9937,
        "spearman": 0.9971,
        "top_10_overlap": 0.962,
    },
    "original_parity": None,
    "quality": {"stsb": 80.5},
    "reduction": {"vocabulary": {"saved_bytes": 1}, "head": {}},
    "latency": {"median_ms": 1.44, "threads": 1},
}


def test_the_card_states_origin_and_parity() -> None:
    card = bundle_card(MANIFEST, size_bytes=7_100_000, command="edgeembed export x")
    facts = (
        *("`SemanticRanker`", "`RelevanceRanker`"),
        "Embedding space: `bert-8-0123456789abcdef`",
        *("big-one", "compact - Three layers.", "CC BY 4.0; CC0", "`edgeembed export x`"),
        *("worst 0.99230", "percentile 0.99370", "mean 0.99800", "0.99710", "0.96200"),
        *("vocabulary, head;", "80.5", "7.1 MB", "12,345", '"median_ms": 1.44'),
    )
    assert [fact for fact in facts if fact not in card] == []


@pytest.mark.parametrize(
    ("student", "precision", "stated"),
    [
        ({"architecture": "transformer", "table_bits": 4, "shape": {}}, "int8", "int8 with token"),
        ({"architecture": "cbow", "table_bits": 0, "shape": {"table_bits": 2}}, "int8", "embeddings of 2 bits, "),
        ({"architecture": "transformer", "table_bits": 4, "shape": {}}, "fp32", "parameters, fp32, 7.1 MB"),
        ({"architecture": "transformer", "table_bits": 0, "shape": {}}, "int8", "parameters, int8, 7.1 MB"),
    ],
)
def test_the_card_states_token_embeddings_of_fewer_bits(student: dict[str, Any], precision: str, stated: str) -> None:
    recipe = {**MANIFEST["recipe"], "student": student}
    card = bundle_card({**MANIFEST, "recipe": recipe, "precision": precision}, size_bytes=7_100_000, command=None)
    assert stated in card


def test_the_card_states_what_is_unknown() -> None:
    parity = {**MANIFEST["parity"], "spearman": None, "top_10_overlap": None}
    unknown: dict[str, Any] = {
        "teacher": None,
        "space": None,
        "license": None,
        "base_model": None,
        "languages": [],
        "recipe": None,
        "licenses": [],
        "reduction": None,
        "quality": None,
        "latency": None,
        "parity": parity,
    }
    card = bundle_card({**MANIFEST, **unknown}, size_bytes=1, command=None)
    assert card.count("not stated") == 5
    assert "Teacher: none" in card
    assert "Embedding space: its own" in card
    assert "license: unknown\n" in card
    assert card.count("not measured") == 3
    assert "Not measured." in card
    assert "before the export: nothing" in card


def test_the_hub_reads_license_base_model_and_language(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(bundle_card(MANIFEST, size_bytes=1, command=None), encoding="utf-8")
    assert read_front_matter(tmp_path / "README.md") == {
        "license": "apache-2.0",
        "base_model": "org/big-one",
        "language": ["en", "no"],  # which YAML would read as false
        "library_name": "edgeembed",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-similarity", "edgeembed", "onnx"],
    }


@pytest.mark.parametrize("name", ["mini", "nano", "micro"])
def test_the_cards_in_the_wheel_state_license_base_model_and_language(name: str) -> None:
    folder = Path(edgeembed_runtime.__file__).parent / "models" / name
    stated = read_front_matter(folder / "README.md")
    assert stated["license"] == "apache-2.0"
    assert stated["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert stated["language"] == ["en"]
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "not stated" not in text
    assert "not measured" not in text
    content = json.loads((folder / "edgeembed.json").read_text(encoding="utf-8"))
    assert (content["license"], content["languages"]) == ("apache-2.0", ["en"])
    assert without_paths(content["recipe"]) == content["recipe"]


def test_no_text_breaks_the_front_matter(tmp_path: Path) -> None:
    odd = "a: b # c\n---\n'x'"
    made = front_matter(license=odd, base_model=odd, languages=[odd, "no"], library="edgeembed", task="x", tags=[])
    (tmp_path / "README.md").write_text(f"---\n{made.to_yaml()}\n---\n", encoding="utf-8")
    values = read_front_matter(tmp_path / "README.md")
    assert (values["license"], values["base_model"], values["language"]) == (odd, odd, [odd, "no"])


@pytest.mark.parametrize("text", ["", "no front matter", "---\n[1, 2]\n---\n", "---\na: [\n---\n", "---\nopen: 1\n"])
def test_a_card_without_front_matter_has_no_values(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert read_front_matter(tmp_path / "README.md") == {}
    assert read_front_matter(tmp_path / "absent.md") == {}


def test_the_card_states_the_parity_with_the_original() -> None:
    reduced: dict[str, Any] = {
        "sentences": 280,
        "min_cosine": None,
        "mean_cosine": None,
        "p01_cosine": None,
        "worst_sentences": [],
        "spearman": 0.91,
        "top_10_overlap": 0.71,
    }
    card = bundle_card({**MANIFEST, "original_parity": reduced}, size_bytes=1, command=None)
    section = card.partition("Compared with the whole model")[2].partition("##")[0]
    assert "0.91000" in section
    assert "Cosine" not in section
    trimmed = {**reduced, "min_cosine": 0.62, "mean_cosine": 0.97, "p01_cosine": 0.7}
    card = bundle_card({**MANIFEST, "original_parity": trimmed}, size_bytes=1, command=None)
    assert "worst 0.62000" in card


def test_values_contain_no_absolute_paths() -> None:
    given = {
        "/home/ann/a.tsv": ["/work/b", "~/c/d.txt", r"C:\\ann\\e.txt", "org/model", "1/2", 3, None],
        "p": {"q": "../x/f"},
    }
    assert without_paths(given) == {"a.tsv": ["b", "d.txt", "e.txt", "org/model", "1/2", 3, None], "p": {"q": "f"}}


@pytest.mark.parametrize(
    ("backend", "contract"),
    [("onnx", "`sentence_embedding` (batch, 8) out. Pooling (cls+mean), "), ("numpy", "NumPy alone")],
)
def test_the_card_states_the_engine(backend: str, contract: str) -> None:
    card = bundle_card({**MANIFEST, "backend": backend}, size_bytes=1, command=None)
    assert f"\n- {backend}\n" in card
    assert contract in card


def test_a_command_contains_no_private_folders() -> None:
    typed = ["edgeembed", "export", "/home/ann/my teacher", "--out", "/work/new/small", "--precision", "int8"]
    assert command_line(typed) == "edgeembed export 'my teacher' --out small --precision int8"


@pytest.mark.parametrize(
    "typed", ["--corpus=/home/ann/notes.txt", "teacher=/home/ann/m", 'teacher="/home/ann/m"', "../../ann/m", "~/ann/m"]
)
def test_paths_inside_options_are_shortened(typed: str) -> None:
    assert "ann" not in command_line(["edgeembed", "distill", "--set", typed])


@pytest.mark.parametrize(
    "arguments", [["--out", "there/b"], ["--out=there/b"], ["--out=/there/b", "--force"], ["--json", "--out", "./b/"]]
)
def test_a_command_does_not_depend_on_the_output_folder(arguments: list[str]) -> None:
    assert command_line(["edgeembed", "export", "m", *arguments]).replace("=", " ") == "edgeembed export m --out b"
