"""Reading a WordPiece tokenizer.json: invalid values raise, other kinds are left to the package `tokenizers`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import BundleError, MissingExtraError
from edgeembed_runtime.tokenization.tokenizer import load_tokenizer
from edgeembed_runtime.tokenization.wordpiece_file import read_wordpiece

Change = Callable[[dict[str, Any]], object]

_A, _B = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")


def _special(name: object) -> dict[str, Any]:
    return {"SpecialToken": {"id": name, "type_id": 0}}


def _template(**changed: Any) -> Change:
    return lambda t: t["post_processor"].update(changed)


def _added(**changed: Any) -> Change:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    token = {"id": 0, "content": "[PAD]", "special": True, **flags, **changed}
    return lambda t: t.update(added_tokens=[token])


_INVALID: dict[str, tuple[Change, str]] = {
    "no vocabulary": (lambda t: t["model"].pop("vocab"), "has no vocabulary"),
    "empty vocabulary": (lambda t: t["model"].update(vocab={}), "has no vocabulary"),
    "vocabulary that is a list": (lambda t: t["model"].update(vocab=["a"]), "has no vocabulary"),
    "id that is text": (lambda t: t["model"]["vocab"].update(cat="1"), "other values than ids"),
    "id that is a fraction": (lambda t: t["model"]["vocab"].update(cat=1.0), "other values than ids"),
    "id that is true": (lambda t: t["model"]["vocab"].update(cat=True), "other values than ids"),
    "id below 0": (lambda t: t["model"]["vocab"].update(cat=-1), "other values than ids"),
    "id of 33 bits": (lambda t: t["model"]["vocab"].update(cat=2**32), "other values than ids"),
    "unknown token outside the vocabulary": (lambda t: t["model"].update(unk_token="[X]"), "unknown token '[X]'"),
    "unknown token that is a number": (lambda t: t["model"].update(unk_token=1), "has unk_token 1, expected str"),
    "no unknown token": (lambda t: t["model"].pop("unk_token"), "has unk_token None, expected str"),
    "prefix that is null": (lambda t: t["model"].update(continuing_subword_prefix=None), "expected str"),
    "long words": (lambda t: t["model"].update(max_input_chars_per_word=1001), "expected at most 1000"),
    "words of -1 characters": (lambda t: t["model"].update(max_input_chars_per_word=-1), "expected at most 1000"),
    "words of true characters": (lambda t: t["model"].update(max_input_chars_per_word=True), "expected int"),
    "lowercase that is a number": (lambda t: t["normalizer"].update(lowercase=1), "has lowercase 1, expected bool"),
    "no clean_text": (lambda t: t["normalizer"].pop("clean_text"), "has clean_text None, expected bool"),
    "accents that are text": (lambda t: t["normalizer"].update(strip_accents="no"), "has strip_accents 'no'"),
    "added tokens that are an object": (lambda t: t.update(added_tokens={}), "added_tokens that are not a list"),
    "added token that is text": (lambda t: t.update(added_tokens=["a"]), "added_tokens that are not a list"),
    "added token without content": (_added(content=None), "has content None, expected str"),
    "added token without id": (_added(id=None), "has id None, expected int"),
    "added token with a flag that is text": (_added(lstrip="no"), "has lstrip 'no', expected bool"),
    "template that is null": (_template(single=None), "has the template None"),
    "template of text": (_template(single=["A"]), "has the template part 'A'"),
    "empty template part": (_template(single=[{}]), "has the template part {}"),
    "template part of two kinds": (_template(single=[{**_A, **_special("[CLS]")}]), "has the template part"),
    "template part of another kind": (_template(single=[{"Text": {"id": "A"}}]), "has the template part"),
    "template part without a name": (_template(single=[_special(3)]), "has the template part"),
    "template with an undefined token": (_template(single=[_special("[X]"), _A]), "the token '[X]', which it does not"),
    "template with a second text": (_template(single=[_A, _B]), "a second text, which it does not define"),
    "template that repeats the text": (_template(single=[_A, _A]), "repeats a text's tokens"),
    "special tokens that are a list": (_template(special_tokens=[]), "has special_tokens []"),
    "special token without ids": (_template(special_tokens={"[CLS]": {}}), "expected its ids"),
    "special token with a negative id": (_template(special_tokens={"[CLS]": {"ids": [-1]}}), "expected its ids"),
    "separator without id": (
        lambda t: t.update(post_processor={"type": "BertProcessing", "sep": ["[SEP]"], "cls": ["[CLS]", 2]}),
        "expected a token and its id",
    ),
    "separator with a huge id": (
        lambda t: t.update(post_processor={"type": "BertProcessing", "sep": ["[SEP]", 2**40], "cls": ["[CLS]", 2]}),
        "expected a token and its id",
    ),
}

_OTHERS: dict[str, Change] = {
    "another normalizer": lambda t: t.update(normalizer={"type": "Lowercase"}),
    "no normalizer": lambda t: t.update(normalizer=None),
    "another pre-tokenizer": lambda t: t.update(pre_tokenizer={"type": "Whitespace"}),
    "another model": lambda t: t["model"].update(type="WordLevel"),
    "post-processor with a type that is no text": lambda t: t.update(post_processor={"type": {}}),
    "another post-processor": lambda t: t.update(post_processor={"type": "Sequence", "processors": []}),
    "template without the text": _template(single=[_special("[CLS]")]),
    "pair in reverse order": _template(pair=[_B, _A]),
    "added token in normalized text": _added(normalized=True),
    "added token between words only": _added(single_word=True),
    "added token of letters": _added(content="cat", id=8),
    "added token with another id": _added(id=1),
    "added token outside the vocabulary": _added(content="[NEW]", id=1000),
}


def _content(bundle: Path, change: Change) -> bytes:
    document = json.loads((bundle / "tokenizer.json").read_text(encoding="utf-8"))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", _INVALID)
def test_an_invalid_value_raises_in_one_line(bundle_path: Path, name: str) -> None:
    change, message = _INVALID[name]
    with pytest.raises(BundleError) as caught:
        load_tokenizer(_content(bundle_path, change), 32, "b/tokenizer.json")
    assert str(caught.value).startswith("b/tokenizer.json ")
    assert message in str(caught.value)
    assert str(caught.value).endswith("; export the bundle again")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [
        b'"WordPiece"}',
        b'{"model": "WordPiece"',
        b'\xef\xbb\xbf{"model": {"type": "WordPiece"}}',
        b'{"a": "\xff", "type": "WordPiece"}',
        b"[" * 100_000 + b'"WordPiece"',
        b'{"type": "WordPiece", "a": ' + b"9" * 10_000 + b"}",
    ],
)
def test_a_file_that_is_not_json_raises(content: bytes) -> None:
    with pytest.raises(BundleError, match="is not a tokenizer"):
        load_tokenizer(content, 32, "tokenizer.json")


@pytest.mark.parametrize("name", _OTHERS)
def test_another_kind_of_tokenizer_is_left_to_the_library(bundle_path: Path, name: str) -> None:
    assert read_wordpiece(_content(bundle_path, _OTHERS[name]), "tokenizer.json") is None


def test_special_tokens_that_fill_the_limit_raise(bundle_path: Path) -> None:
    content = (bundle_path / "tokenizer.json").read_bytes()
    with pytest.raises(BundleError, match="adds 2 special tokens, expected fewer than max_seq_length, which is 2"):
        load_tokenizer(content, 2, "tokenizer.json")
    with pytest.raises(BundleError, match="adds 3 special tokens"):
        load_tokenizer(content, 3, "tokenizer.json", is_pairs=True)


def test_a_missing_library_is_named_with_its_extra(bundle_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = _content(bundle_path, _OTHERS["another pre-tokenizer"])
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "edgeembed_runtime.tokenization.library", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[tokenizers\]'") as caught:
        load_tokenizer(content, 32, "b/tokenizer.json")
    assert caught.value.extra == "tokenizers"
    assert "tokenizers, which b/tokenizer.json needs, is not installed" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'"WordPiece"'])
def test_a_file_that_is_no_tokenizer_needs_no_library(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "edgeembed_runtime.tokenization.library", raising=False)
    with pytest.raises(BundleError, match="is not a tokenizer: "):
        load_tokenizer(content, 32, "tokenizer.json")


def test_a_wordpiece_bundle_does_not_load_the_library(bundle_path: Path) -> None:
    script = (
        "import sys\n"
        "from edgeembed_runtime import Encoder\n"
        "Encoder(sys.argv[1]).encode('The cat reads a file.')\n"
        "assert 'tokenizers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, bundle_path], check=True)
