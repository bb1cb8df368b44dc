"""What is cut from a model before it is exported, and what is said about it."""

from pathlib import Path

import pytest
from edgeembed_exporters.tailoring.vocabulary import trim_tokenizer
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from edgeembed.models import load_model
from edgeembed.tailoring import Tailoring, summary, tailor

VOCABULARY = Path("tokenizer.json")


@pytest.fixture(scope="module")
def model(teacher_folder: Path) -> SentenceTransformer:
    return load_model(str(teacher_folder))


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> str:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(text.replace("cat", "dog") for text in sentences))
    return str(file)


def size(model: SentenceTransformer) -> int:
    tokenizer: Tokenizer = model.tokenizer.backend_tokenizer
    return int(tokenizer.get_vocab_size())


@pytest.mark.parametrize(
    ("tailoring", "missing"),
    [
        (Tailoring(vocabulary=VOCABULARY, trim_to=("a.txt",)), "give one of them"),
        (Tailoring(trim_size=100), "expected --trim-to"),
        (Tailoring(vocabulary=VOCABULARY, trim_size=100), "expected --trim-to"),
        (Tailoring(dim=8), "expected --fit"),
        (Tailoring(dim=8, trim_to=("a.txt",)), "expected --fit"),
        (Tailoring(fit=("a.txt",)), "expected --dim"),
        (Tailoring(whiten=True), "expected --dim"),
        (Tailoring(fit=("a.txt",), whiten=True), "expected --dim"),
    ],
)
def test_options_that_miss_or_exclude_another_are_refused(tailoring: Tailoring, missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        tailoring.check()


@pytest.mark.parametrize(
    "tailoring",
    [
        Tailoring(),
        Tailoring(vocabulary=VOCABULARY),
        Tailoring(vocabulary=VOCABULARY, dim=8, fit=("a.txt",)),
        Tailoring(trim_to=("a.txt", "b.txt"), trim_size=100, dim=8, fit=("a.txt",), whiten=True),
    ],
)
def test_options_that_go_together_are_taken(tailoring: Tailoring) -> None:
    tailoring.check()


def test_nothing_to_cut_gives_the_model_itself(model: SentenceTransformer) -> None:
    tailored, reports = tailor(model, Tailoring())
    assert tailored is model
    assert (reports, summary(reports)) == ({}, [])


def test_vocabulary_and_dimensions_are_cut_and_the_model_stays(model: SentenceTransformer, corpus: str) -> None:
    before = size(model)
    tailored, reports = tailor(model, Tailoring(trim_to=(corpus,), dim=5, fit=(corpus,)))
    assert tailored.encode(["the dog runs home"]).shape == (1, 5)
    assert tailored.tokenizer.backend_tokenizer.token_to_id("cat") is None
    assert reports["vocabulary"]["after"]["size"] == size(tailored) < before
    assert (reports["head"]["dim_before"], reports["head"]["dim_after"]) == (32, 5)
    assert (size(model), model.encode(["the cat runs home"]).shape) == (before, (1, 32))


def test_no_more_tokens_are_kept_than_asked_for(model: SentenceTransformer, corpus: str) -> None:
    tailored, _ = tailor(model, Tailoring(trim_to=(corpus,), trim_size=80))
    assert size(tailored) <= 80


def test_whitened_dimensions_vary_alike(model: SentenceTransformer, corpus: str, sentences: list[str]) -> None:
    spreads = []
    for whiten in (False, True):
        tailored, reports = tailor(model, Tailoring(dim=4, fit=(corpus,), whiten=whiten))
        assert reports["head"]["whitened"] is whiten
        variances = tailored.encode(sentences, normalize_embeddings=False).var(axis=0)
        spreads.append(variances.max() / variances.min())
    assert spreads[1] < spreads[0]


def test_a_vocabulary_cut_before_is_taken_over(tmp_path: Path, model: SentenceTransformer, corpus: str) -> None:
    file = tmp_path / "tokenizer.json"
    cut = trim_tokenizer(model.tokenizer.backend_tokenizer, Path(corpus).read_text().splitlines(), size=80)
    cut.save(str(file))
    tailored, reports = tailor(model, Tailoring(vocabulary=file))
    assert size(tailored) == cut.get_vocab_size()
    assert reports == {}


def test_a_vocabulary_with_tokens_that_the_model_has_not_is_refused(tmp_path: Path, model: SentenceTransformer) -> None:
    file = tmp_path / "tokenizer.json"
    foreign = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    foreign.add_tokens(["zebra", "yak"])
    foreign.save(str(file))
    with pytest.raises(InputError, match=r"2 tokens that the model has no vectors for, such as 'yak'"):
        tailor(model, Tailoring(vocabulary=file))


@pytest.mark.parametrize("content", [None, "", "{}", "[1, 2"])
def test_a_vocabulary_that_is_none_is_refused(tmp_path: Path, model: SentenceTransformer, content: str | None) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match="cannot be read as a tokenizer"):
        tailor(model, Tailoring(vocabulary=file))


def test_a_line_tells_of_each_cut(model: SentenceTransformer, corpus: str) -> None:
    _, reports = tailor(model, Tailoring(trim_to=(corpus,), dim=5, fit=(corpus,)))
    vocabulary, head = summary(reports)
    assert vocabulary.startswith(f"vocabulary: {reports['vocabulary']['after']['size']} of 92 tokens kept")
    assert head.startswith("head: 5 of 32 dimensions")


def test_a_tokenizer_without_an_unknown_token_has_no_unknown_rate(model: SentenceTransformer, corpus: str) -> None:
    _, reports = tailor(model, Tailoring(trim_to=(corpus,)))
    for part in ("before", "after"):
        reports["vocabulary"][part]["unknown_rate"] = None
    assert "unknown none -> none" in summary(reports)[0]
