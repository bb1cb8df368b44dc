"""The command `edgeembed export`: its files, output and errors.

The model is a StaticEmbedding, which has every option and is exported in a fraction of a transformer's time.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Bundle, Encoder
from tokenizers import Tokenizer

from edgeembed.cli.main import main

Captured = pytest.CaptureFixture[str]
WIDTH = 256  # such that the token table is worth rounding to fewer bits


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


def export(model: Path, out: Path, *arguments: object) -> int:
    return call("export", model, "--out", out, *arguments)


def manifest(bundle: Path) -> Any:
    return json.loads((bundle / "edgeembed.json").read_text())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    torch.manual_seed(4)
    weights = torch.randn(tokenizer.get_vocab_size(), WIDTH).numpy()
    folder = tmp_path_factory.mktemp("export") / "model"
    modules = [StaticEmbedding(tokenizer, embedding_weights=weights), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(text.replace("cat", "dog") for text in sentences))
    return file


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "made" / "bundle"


def test_one_command_reduces_vocabulary_dimension_and_precision(
    model: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    cuts = ("--trim-to", corpus, "--dim", 6, "--fit", corpus, "--whiten", "--precision", "int8")
    assert export(model, out, *cuts, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["path"], report["dimension"], report["precision"]) == (str(out), 6, "int8")
    vocabulary, head = report["reduction"]["vocabulary"], report["reduction"]["head"]
    assert vocabulary["after"]["size"] < vocabulary["before"]["size"]
    assert (head["dim_before"], head["dim_after"], head["whitened"]) == (WIDTH, 6, True)
    assert manifest(out)["reduction"] == report["reduction"]
    assert Tokenizer.from_file(str(out / "tokenizer.json")).token_to_id("cat") is None
    assert Encoder.load(out, verify=True).encode("the dog runs").shape == (6,)


def test_a_trimmed_vocabulary_is_used_and_an_ort_model_added(model: Path, out: Path, corpus: Path) -> None:
    cut = corpus.with_name("tokenizer.json")
    assert call("vocab", "--corpus", corpus, "--trim", model, "--size", 80, "--out", cut, "--no-report") == 0
    assert export(model, out, "--vocabulary", cut, "--sentences", corpus, "--ort") == 0
    assert Tokenizer.from_file(str(out / "tokenizer.json")).get_vocab_size() == 80
    assert {"onnx/model.ort", "onnx/required_operators.config"} <= {file["name"] for file in manifest(out)["files"]}
    Encoder.load(out, verify=True)


def test_a_missed_gate_prints_the_worst_sentences_and_writes_nothing(
    model: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    assert export(model, out, "--precision", "int4", "--min-cosine", 1, "--sentences", corpus, "--json") == 1
    printed = capsys.readouterr()
    *worst, last = printed.err.splitlines()[-11:]
    cosines = [float(line.partition("  ")[0]) for line in worst]
    assert cosines == sorted(cosines)
    assert {line.partition("  ")[2].strip("'") for line in worst} < set(corpus.read_text().splitlines())
    assert last.startswith(f"edgeembed: the worst cosine to the model over 262 sentences is {cosines[0]:.5f}")
    assert printed.out == ""
    assert not list(out.parent.iterdir())


def test_auto_chooses_the_most_precise_within_the_limits(
    model: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    limits = ("--max-size-mb", 0.12, "--max-latency-ms", 1000)
    assert export(model, out, "--precision", "auto", *limits, "--sentences", corpus, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["precision"], report["size_bytes"] < 120_000) == ("fp16", True)
    assert 0 < report["latency_ms"] < 1000


def test_auto_states_the_limits_that_are_missed(model: Path, out: Path, corpus: Path, capsys: Captured) -> None:
    assert export(model, out, "--precision", "auto", "--max-size-mb", 0.01, "--sentences", corpus) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("edgeembed: no precision keeps all limits: at fp32 the bundle has at least ")
    assert all(f"at {precision} " in last for precision in ("fp16", "int8", "int4"))
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--vocabulary", "t.json", "--trim-to", "corpus.txt"], "expected one of them"),
        (["--trim-size", "100"], "expected --trim-to"),
        (["--dim", "6"], "--dim is 6 without text; expected --fit"),
        (["--dim", "6", "--trim-to", "corpus.txt"], "--dim is 6 without text; expected --fit"),
        (["--fit", "corpus.txt"], "--fit is given without --dim; expected --dim"),
        (["--whiten"], "expected --dim"),
        (["--dim", "0", "--fit", "corpus.txt"], "choose 1 to 256"),
        (["--dim", "257", "--fit", "corpus.txt"], "choose 1 to 256"),
        (["--trim-to", "corpus.txt", "--trim-size", "3"], "expected at least"),
        (["--trim-to", "absent.txt"], "absent.txt does not exist"),
        (["--dim", "6", "--fit", "absent.txt", "--sentences", "corpus.txt"], "absent.txt does not exist"),
        (["--trim-to", "an absent file.txt"], "an absent file.txt does not exist"),  # not text with white space
        (["--sentences", "absent.txt"], "absent.txt does not exist"),
        (["--vocabulary", "absent.json", "--sentences", "corpus.txt"], "absent.json cannot be read"),
        (["--vocabulary", "corpus.txt", "--sentences", "corpus.txt"], "corpus.txt cannot be read"),
        (["--precision", "auto", "--sentences", "corpus.txt"], "'auto' without a limit"),
        (["--precision", "int2"], "'int2'"),
        (["--max-latency-ms", "0", "--sentences", "corpus.txt"], "--max-latency-ms is 0.0; expected a number above 0"),
        (["--max-size-mb", "nan", "--sentences", "corpus.txt"], "--max-size-mb is nan; expected a number above 0"),
        (["--min-cosine", "2", "--sentences", "corpus.txt"], "from -1 to 1"),
        (["--near-cosine", "0", "--sentences", "corpus.txt"], "--near-cosine is 0.0; expected a number above 0"),
        (["--near-cosine", "nan", "--sentences", "corpus.txt"], "--near-cosine is nan; expected a number above 0"),
        (["--min-original-rank", "2", "--sentences", "corpus.txt"], "from -1 to 1"),
        (["--min-original-cosine", "0.9", "--sentences", "corpus.txt"], "neither trimmed nor reduced"),
        (["--min-original-cosine", "0.9", "--dim", "6", "--fit", "corpus.txt"], "expected --min-original-rank"),
        (["--ort", "--backend", "numpy", "--sentences", "corpus.txt"], "--ort is set"),
        (["--quality", "corpus.txt"], "cannot be read as JSON"),
        (["--prompts", "query"], "--prompts is query; expected NAME=TEXT"),
        (["--max-seq-length", "1", "--sentences", "corpus.txt"], "--max-seq-length is 1; expected 3 to"),
        (["--latency", "corpus.txt"], "cannot be read as JSON"),
        (
            ["--torch-weights", "--sentences", "corpus.txt"],
            "--torch-weights is set, and the encoder is a StaticEncoder",
        ),
    ],
)
def test_wrong_options_print_a_one_line_error(
    model: Path, out: Path, corpus: Path, given: list[str], expected: str, capsys: Captured, monkeypatch: Any
) -> None:
    monkeypatch.chdir(corpus.parent)
    assert export(model, out, *given) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1].startswith("edgeembed: ")
    assert expected in printed.err.splitlines()[-1]
    assert "Traceback" not in printed.err
    assert (printed.out, out.exists()) == ("", False)


def test_a_vocabulary_with_unknown_tokens_raises_an_error(
    model: Path, out: Path, corpus: Path, tokenizer: Tokenizer, capsys: Captured
) -> None:
    file = corpus.with_name("tokenizer.json")
    foreign = Tokenizer.from_str(tokenizer.to_str())
    foreign.add_tokens(["zebra", "yak"])
    foreign.save(str(file))
    assert export(model, out, "--vocabulary", file, "--sentences", corpus) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "2 tokens that the model has no vectors for, such as 'yak'" in last
    assert "edgeembed vocab --trim" in last


def test_the_card_states_the_given_scores_and_times(model: Path, out: Path, corpus: Path) -> None:
    facts = {"quality": {"stsb": 83.25}, "latency": {"median_ms": 0.875, "machine": "a laptop"}}
    given: list[object] = []
    for option, values in facts.items():
        file = corpus.with_name(f"{option}.json")
        file.write_text(json.dumps(values))
        given += [f"--{option}", file]
    assert export(model, out, "--sentences", corpus, *given) == 0
    assert {name: manifest(out)[name] for name in facts} == facts
    card = (out / "README.md").read_text(encoding="utf-8")
    assert [text for text in ('"stsb": 83.25', '"median_ms": 0.875', '"a laptop"') if text not in card] == []


def test_the_manifest_states_the_given_near_cosine(model: Path, out: Path, corpus: Path) -> None:
    assert export(model, out, "--sentences", corpus, "--near-cosine", "0.35") == 0
    assert Bundle.open(out, verify=True).near_cosine == 0.35


def test_the_near_cosine_is_measured_if_there_are_enough_sentences(
    model: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    assert export(model, out, "--sentences", corpus, "--json") == 0
    measured = Bundle.open(out, verify=True).near_cosine
    assert measured == json.loads(capsys.readouterr().out)["near_cosine"]
    assert measured is not None
    assert 0 < measured <= 1
    few = corpus.with_name("few.txt")
    few.write_text("".join(corpus.read_text().splitlines(keepends=True)[:50]))
    assert export(model, out, "--sentences", few, "--force") == 0
    assert Bundle.open(out, verify=True).near_cosine is None


def test_an_existing_bundle_is_only_replaced_with_force_and_each_reduction_is_printed(
    model: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    assert export(model, out, "--sentences", corpus) == 0
    before = (out / "edgeembed.json").read_bytes()
    capsys.readouterr()
    cuts = ("--trim-to", corpus, "--trim-size", 80, "--dim", 6, "--fit", corpus)
    assert export(model, out, *cuts) == 2
    assert "exists already" in capsys.readouterr().err
    assert (out / "edgeembed.json").read_bytes() == before
    assert export(model, out, *cuts, "--force") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["vocabulary:", "head:", f"{out}:", "cosine", "before"]
    assert Tokenizer.from_file(str(out / "tokenizer.json")).get_vocab_size() <= 80
    assert manifest(out)["dimension"] == 6


def test_role_length_and_prompts_are_in_the_manifest(model: Path, out: Path, corpus: Path) -> None:
    chosen = ("--role", "relevance", "--max-seq-length", 64, "--prompts", "query=the cat: ", "--prompts", "document=")
    assert export(model, out, "--sentences", corpus, *chosen) == 0
    told = manifest(out)
    assert (told["role"], told["roles"], told["max_seq_length"]) == ("relevance", ["relevance"], 64)
    assert told["prompts"] == {"query": "the cat: ", "document": ""}
    assert "Made for: ranking by a query (`RelevanceRanker`)." in (out / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def small_talk(tmp_path: Path) -> Path:
    """Text of letters mostly, to which a vocabulary is trimmed that later lacks the words of the corpus."""
    file = tmp_path / "letters.txt"
    file.write_text("\n".join("abcdefghijklmnopqrstuvwxyz" for _ in range(30)))
    return file


def test_limits_apply_to_the_parity_with_the_original(
    model: Path, out: Path, corpus: Path, small_talk: Path, capsys: Captured
) -> None:
    cut = ("--trim-to", small_talk, "--trim-size", 57, "--sentences", corpus)
    assert export(model, out, *cut, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    found = printed["original_parity"]
    assert printed["parity"]["min_cosine"] > 0.9999
    assert found["min_cosine"] < 0.9
    assert len(found["worst_sentences"]) == 10
    assert manifest(out)["original_parity"] == found
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"worst {found['min_cosine']:.5f}" in card.partition("Compared with the whole model")[2]
    assert export(model, out, *cut, "--force") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"before it was trimmed or reduced: cosine worst {found['min_cosine']:.5f}")

    refused = out.with_name("refused")
    assert export(model, refused, *cut, "--min-original-cosine", 0.9) == 1
    assert "the worst cosine to the original model over" in capsys.readouterr().err.splitlines()[-1]
    assert export(model, refused, *cut, "--min-original-rank", 0.999) == 1
    assert "the rank correlation with the original model over" in capsys.readouterr().err.splitlines()[-1]
    assert [path.name for path in out.parent.iterdir()] == ["bundle"]


def test_reduced_dimensions_are_compared_by_rank(model: Path, out: Path, corpus: Path, capsys: Captured) -> None:
    cut = ("--dim", 4, "--fit", corpus)
    assert export(model, out, *cut, "--json") == 0
    found = json.loads(capsys.readouterr().out)["original_parity"]
    assert (found["min_cosine"], found["worst_sentences"]) == (None, [])
    assert 0 < found["spearman"] < 0.99
    assert export(model, out, *cut, "--force", "--min-original-rank", 0.99) == 1
    assert manifest(out)["dimension"] == 4  # the bundle before is kept


def test_an_unreduced_export_has_no_original_parity(model: Path, out: Path, corpus: Path, capsys: Captured) -> None:
    assert export(model, out, "--sentences", corpus, "--json") == 0
    assert json.loads(capsys.readouterr().out)["original_parity"] is None
    assert "Compared with the whole model" not in (out / "README.md").read_text(encoding="utf-8")


def test_the_ort_model_counts_in_limit_report_and_card(model: Path, out: Path, corpus: Path, capsys: Captured) -> None:
    assert export(model, out, "--sentences", corpus, "--json") == 0
    alone = json.loads(capsys.readouterr().out)["size_bytes"]
    assert export(model, out, "--sentences", corpus, "--ort", "--force", "--json") == 0
    both = json.loads(capsys.readouterr().out)["size_bytes"]
    assert both == sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) > 1.5 * alone
    assert f"- Size: {both / 1e6:.1f} MB" in (out / "README.md").read_text(encoding="utf-8")
    refused = out.with_name("refused")
    limit = ("--max-size-mb", (alone + 1_000) / 1e6)
    assert export(model, refused, "--sentences", corpus, *limit) == 0
    assert export(model, refused, "--sentences", corpus, "--ort", *limit, "--force") == 1
    assert "allowed are" in capsys.readouterr().err.splitlines()[-1]
    assert not (refused / "onnx/model.ort").exists()
    assert {path.name for path in out.parent.iterdir()} == {"bundle", "refused"}


def test_torch_weights_count_in_the_limit_and_the_report(
    teacher_folder: Path, out: Path, corpus: Path, capsys: Captured
) -> None:
    assert export(teacher_folder, out, "--sentences", corpus, "--torch-weights", "--json") == 0
    size = json.loads(capsys.readouterr().out)["size_bytes"]
    weights = (out / "model.safetensors").stat().st_size
    assert size == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    limit = (size - weights // 2) / 1e6
    assert (
        export(teacher_folder, out.with_name("b"), "--sentences", corpus, "--torch-weights", "--max-size-mb", limit)
        == 1
    )
    assert [path.name for path in out.parent.iterdir()] == ["bundle"]


def test_the_default_sentences_come_with_the_package(model: Path, out: Path, capsys: Captured) -> None:
    from edgeembed_exporters.gate import default_sentences

    texts = default_sentences()
    assert len(texts) == len(set(texts)) >= 250
    assert max(map(len, texts)) > 1000
    assert any(not text.isascii() for text in texts)
    assert export(model, out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["parity"]["sentences"] == len(texts)


def test_the_card_has_license_and_language_of_the_model_but_no_path(model: Path, out: Path, corpus: Path) -> None:
    import shutil

    from edgeembed_exporters.cards.card import read_front_matter

    student = shutil.copytree(model, out.parent.parent / "student")
    (student / "README.md").write_text("---\nlicense: cc-by-4.0\nlanguage: fr\n---\n# S\n", encoding="utf-8")
    provenance = {
        "teacher": "/home/ann/models/big",
        "licenses": ["CC0 (notes)"],
        "command": "edgeembed distill --corpus /home/ann/notes.txt --out /home/ann/student",
        "recipe": {"name": "compact", "description": "Small.", "teacher": "/home/ann/models/big"},
        "report": {"dev_spearman": [71.0, 73.25]},
    }
    (student / "edgeembed_student.json").write_text(json.dumps(provenance), encoding="utf-8")
    assert export(student, out, "--sentences", corpus) == 0
    card = read_front_matter(out / "README.md")
    assert (card["license"], card["base_model"], card["language"]) == ("cc-by-4.0", "big", ["fr"])
    text = (out / "README.md").read_text(encoding="utf-8")
    for fact in (
        "Teacher: big",
        "compact - Small.",
        "CC0 (notes)",
        "distill --corpus notes.txt --out student",
        "73.25",
    ):
        assert fact in text
    told = text + (out / "edgeembed.json").read_text(encoding="utf-8")
    assert [word for word in ("/home", "ann/", str(out.parent.parent)) if word in told] == []

    stated = ("--license", "mit", "--languages", "en", "--languages", "de", "--force")
    assert export(student, out, "--sentences", corpus, *stated) == 0
    card = read_front_matter(out / "README.md")
    assert (card["license"], card["language"]) == ("mit", ["en", "de"])


def test_messages_name_the_options(model: Path, out: Path, corpus: Path, capsys: Captured) -> None:
    for given, expected in (
        (("--max-size-mb", 0.01), "nothing was written: raise --max-size-mb, choose"),
        (("--precision", "int4", "--min-cosine", 1), "choose a higher precision or lower --min-cosine"),
        (("--min-rank", 1, "--precision", "int4", "--min-cosine", -1), "or lower --min-rank"),
        (("--min-rank", -1, "--min-overlap", 1, "--precision", "int4", "--min-cosine", -1), "or lower --min-overlap"),
        (("--max-latency-ms", 1e-6), "raise --max-latency-ms, choose"),
    ):
        assert export(model, out, *given, "--sentences", corpus) == 1
        assert expected in capsys.readouterr().err.splitlines()[-1]
