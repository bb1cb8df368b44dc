"""Trimmed tokenizers of each kind: what they keep, and how they cut text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from edgeembed_exporters.reduction.tokenizer_trimming import move_token, trim_tokenizer
from edgeembed_runtime.errors import InputError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, processors

from .conftest import BERT, KINDS, NARROW, ROBERTA, WIDE, train

TRAINED = {kind: train(kind) for kind in KINDS}
TRIMMED = {kind: trim_tokenizer(TRAINED[kind], NARROW) for kind in KINDS}
WORDS = sorted({word for text in WIDE for word in text.split()})
LETTERS = sorted({letter for text in NARROW for letter in text} - {" "})

words = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
letters = st.text(st.sampled_from([*LETTERS, " "]), max_size=20)
quickly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tokenizer.to_str())
    return found


def test_tokens_of_the_corpus_are_kept_and_most_others_removed(tokenizer: Tokenizer) -> None:
    trimmed = trim_tokenizer(tokenizer, NARROW)
    assert set(trimmed.get_vocab()) < set(tokenizer.get_vocab())
    for text in NARROW:
        assert trimmed.encode(text).tokens == tokenizer.encode(text).tokens
    assert sorted(trimmed.get_vocab().values()) == list(range(trimmed.get_vocab_size()))


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.one_of(words, letters))
@quickly
def test_a_text_of_kept_tokens_is_tokenized_as_before(kind: str, text: str) -> None:
    tokens = TRAINED[kind].encode(text).tokens
    if set(tokens) <= TRIMMED[kind].get_vocab().keys():
        assert TRIMMED[kind].encode(text).tokens == tokens


@pytest.mark.parametrize("kind", KINDS)
@given(text=letters)
@quickly
def test_no_word_of_the_corpuss_characters_becomes_unknown(kind: str, text: str) -> None:
    unknown = {"[UNK]", "<unk>"}
    if unknown.isdisjoint(TRAINED[kind].encode(text).tokens):
        assert unknown.isdisjoint(TRIMMED[kind].encode(text).tokens)


@pytest.mark.parametrize("kind", ["bpe-bytes", "bpe-fallback", "unigram-fallback"])
@given(text=st.text(max_size=12))
@quickly
def test_with_byte_tokens_nothing_becomes_unknown(kind: str, text: str) -> None:
    trimmed = TRIMMED[kind]
    assert "<unk>" not in trimmed.encode(text).tokens
    if kind == "bpe-bytes":
        assert trimmed.decode(trimmed.encode(text).ids).strip() == text.strip()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [None, 40])
def test_trimming_is_idempotent(kind: str, cut: int | None) -> None:
    size = cut and TRIMMED[kind].get_vocab_size() - cut
    once = trim_tokenizer(TRAINED[kind], NARROW, size=size)
    assert trim_tokenizer(once, NARROW, size=size).to_str() == once.to_str()


def test_special_tokens_come_first_and_surround_a_text(tokenizer: Tokenizer) -> None:
    special = BERT if isinstance(tokenizer.model, models.WordPiece) else ROBERTA
    trimmed = trim_tokenizer(tokenizer, NARROW)
    assert [trimmed.id_to_token(index) for index in range(5)] == special
    encoding = trimmed.encode("The ferry", "a river")
    assert encoding.tokens == tokenizer.encode("The ferry", "a river").tokens
    assert [trimmed.id_to_token(index) for index in encoding.ids] == encoding.tokens
    assert trimmed.encode(special[4]).tokens[1] == special[4]


@pytest.mark.parametrize("kind", [processors.BertProcessing, processors.RobertaProcessing])
def test_other_post_processors_get_the_new_ids(kind: Any) -> None:
    source = Tokenizer.from_str(TRAINED["bpe-bytes"].to_str())
    source.add_special_tokens(["<end>"])
    source.post_processor = processors.Sequence([kind(("<end>", source.token_to_id("<end>")), ("<s>", 0))])
    trimmed = trim_tokenizer(source, NARROW)
    assert trimmed.encode("river").ids[-1] == trimmed.token_to_id("<end>") == trimmed.get_vocab_size() - 1
    assert [trimmed.id_to_token(index) for index in trimmed.encode("river").ids][-1] == "<end>"


def test_the_vocabulary_has_exactly_the_given_size(tokenizer: Tokenizer) -> None:
    used = trim_tokenizer(tokenizer, NARROW).get_vocab_size()
    for size in (used - 20, used, used + 20):
        trimmed = trim_tokenizer(tokenizer, NARROW, size=size)
        assert size - 5 <= trimmed.get_vocab_size() <= size


def test_the_most_frequent_tokens_are_kept_first(tokenizer: Tokenizer) -> None:
    smallest = _least(tokenizer)
    corpus = [*NARROW, *["ferry ferry ferry"] * 20]
    kept = tokenizer.encode("the ferry").tokens[-2]
    assert kept not in trim_tokenizer(tokenizer, NARROW, size=smallest).get_vocab()
    assert kept in trim_tokenizer(tokenizer, corpus, size=smallest + 12).get_vocab()


def _least(tokenizer: Tokenizer) -> int:
    with pytest.raises(InputError, match=r"the vocabulary size is 2; expected at least \d+ .*: 5 special") as caught:
        trim_tokenizer(tokenizer, NARROW, size=2)
    assert "\n" not in str(caught.value)
    return int(str(caught.value).split("at least ")[1].split()[0])


def test_the_error_states_the_minimum_size(tokenizer: Tokenizer) -> None:
    least = _least(tokenizer)
    assert trim_tokenizer(tokenizer, NARROW, size=least).get_vocab_size() == least
    with pytest.raises(InputError, match=f"expected at least {least}"):
        trim_tokenizer(tokenizer, NARROW, size=least - 1)


def test_unigram_scores_and_the_unknown_id_are_renumbered() -> None:
    source = Tokenizer.from_str(TRAINED["unigram"].to_str())
    model = described(source)["model"]
    model["vocab"] = [*model["vocab"][4:], *model["vocab"][:4]]
    model["unk_id"] = len(model["vocab"]) - 1
    file = {**described(source), "model": model, "added_tokens": [], "post_processor": None}
    trimmed = described(trim_tokenizer(Tokenizer.from_str(json.dumps(file)), NARROW))["model"]
    assert trimmed["vocab"][trimmed["unk_id"]][0] == "<unk>"
    scores = dict(model["vocab"])
    assert all(scores[token] == score for token, score in trimmed["vocab"])


def test_all_bytes_are_kept() -> None:
    bytes_kept = [token for token in TRIMMED["bpe-bytes"].get_vocab() if len(token) == 1]
    assert len(bytes_kept) == 256
    for kind in ("bpe-fallback", "unigram-fallback"):
        assert len([token for token in TRIMMED[kind].get_vocab() if token.startswith("<0x")]) == 256


def test_a_merged_token_keeps_the_tokens_it_is_merged_from() -> None:
    vocabulary = {token: index for index, token in enumerate(["a", "b", "c", "ab", "bc", "abc", "cab", "ca"])}
    merges = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("c", "a"), ("ca", "b")]
    trimmed = trim_tokenizer(Tokenizer(models.BPE(vocabulary, merges)), ["abc"])
    assert set(trimmed.get_vocab()) == {"a", "b", "c", "ab", "abc"}
    assert described(trimmed)["model"]["merges"] == [["a", "b"], ["ab", "c"]]


def test_added_tokens_stay_outside_the_vocabulary_and_last() -> None:
    source = Tokenizer.from_str(TRAINED["unigram"].to_str())
    source.add_tokens([AddedToken("ferryman", single_word=True)])
    source.add_special_tokens(["<query>"])
    trimmed = trim_tokenizer(source, ["The river."])
    assert [trimmed.id_to_token(trimmed.get_vocab_size() - 2 + index) for index in range(2)] == ["ferryman", "<query>"]
    for text in ("<query> the ferryman", "ferryman", "ferrymanly"):
        assert ("ferryman" in trimmed.encode(text).tokens) == ("ferryman" in source.encode(text).tokens)


def test_a_pinned_token_keeps_its_id() -> None:
    source = TRAINED["wordpiece"]
    assert trim_tokenizer(source, NARROW, pinned=[40]).id_to_token(40) == source.id_to_token(40)
    with pytest.raises(InputError, match=r"token 399 must keep its id, but \d+ tokens are kept"):
        trim_tokenizer(source, NARROW, pinned=[399])


@pytest.mark.parametrize("kind", KINDS)
def test_a_moved_token_has_its_new_id_and_texts_have_the_same_tokens(kind: str) -> None:
    tokenizer = TRAINED[kind]
    token = next(token for token, index in tokenizer.get_vocab().items() if index == 0)
    moved = move_token(tokenizer, token, 3)
    assert [moved.id_to_token(index) for index in range(4)] == [tokenizer.id_to_token(index) for index in (1, 2, 3, 0)]
    assert sorted(moved.get_vocab()) == sorted(tokenizer.get_vocab())
    for text in WIDE:
        assert moved.encode(text).tokens == tokenizer.encode(text).tokens


@pytest.mark.parametrize(("token", "index"), [("no such token", 0), ("[PAD]", 1_000_000)])
def test_a_token_or_id_outside_the_vocabulary_raises_an_error(token: str, index: int) -> None:
    with pytest.raises(InputError, match=r"expected one of the vocabulary's \d+ tokens, and an id below their number"):
        move_token(TRAINED["wordpiece"], token, index)


def test_requested_tokens_are_kept() -> None:
    source = TRAINED["bpe-bytes"]
    vocabulary = source.get_vocab()
    cut = set(vocabulary) - set(TRIMMED["bpe-bytes"].get_vocab())
    wanted = min(cut, key=lambda token: (-len(token), token))
    trimmed = trim_tokenizer(source, NARROW, keep=[vocabulary[wanted]])
    assert trimmed.encode(source.decode([vocabulary[wanted]]).strip()).ids
    assert wanted in trimmed.get_vocab()


def test_truncation_and_padding_stay_with_the_new_padding_id() -> None:
    source = Tokenizer.from_str(TRAINED["bpe-bytes"].to_str())
    source.add_special_tokens(["<none>"])
    source.enable_padding(pad_id=source.token_to_id("<none>"), pad_token="<none>", length=64)
    source.enable_truncation(9)
    trimmed = trim_tokenizer(source, NARROW)
    assert trimmed.padding is not None
    assert trimmed.padding["pad_id"] == trimmed.get_vocab()["<none>"] < source.get_vocab()["<none>"]
    assert trimmed.truncation == source.truncation
    for word in ("sings", "crowd"):  # far behind what is left of a truncated text
        assert len(trimmed.encode(word).tokens) == len(source.encode(word).tokens)


def test_the_corpus_is_read_once_and_need_not_fit_into_memory(tokenizer: Tokenizer) -> None:
    def stream() -> Iterator[str]:
        yield from NARROW

    assert trim_tokenizer(tokenizer, stream()).to_str() == trim_tokenizer(tokenizer, NARROW).to_str()


def test_a_word_level_tokenizer_raises_an_error() -> None:
    with pytest.raises(InputError, match="is a WordLevel tokenizer; expected one of: WordPiece, BPE, Unigram"):
        trim_tokenizer(Tokenizer(models.WordLevel({"[UNK]": 0}, "[UNK]")), NARROW)


def test_a_corpus_without_text_raises_an_error(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="no text to trim"):
        trim_tokenizer(tokenizer, ["", ""])
