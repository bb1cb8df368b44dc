"""Which texts are blank."""

import pytest
from edgeembed_runtime.characters import is_blank

BLANK = {
    "nothing": "",
    "white space": " \t\r\n\x0b\x85\xa0\u2003\u2028\u3000",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "soft hyphen": "\u00ad",
    "directions": "\u200e\u202b\u2066\u2069",
    "tags": "\U000e0041\U000e007f",
    "controls": "\0\x01\x1b\x7f\x9f",
    "lone marks": "\u0301 \u093f \u0e31",
    "variation selector": "\ufe0f",
    "invisible letters": "\u115f\u1160\u3164\uffa0",
    "braille blank": "\u2800",
    "replacement character": "\ufffd\ufffd",
    "object replacement character": "\ufffc",
    "private use": "\ue000\uf8ff\U00100000",
    "not a character": "\uffff\ufdd0",
    "dots": "...",
    "heading": "###",
    "dashes": "\u2014 -- \u2013",
    "quotes and brackets": '"()" \u00ab\u00bb \u3010\u3011',
    "punctuation of other scripts": "\u3002\u060c\u0964\u00bf",
    "bullets": "\u2022 *",
    "ASCII punctuation": "!\"#%&'()*,-./:;<=>?@[\\]^_`{|}~",
    "rulers": "==== ~~~~ ||| \u2500\u2502\u2588",
    "spacing accents": "\u00b4 \u00a8 ^ `",
}
CONTENT = [
    "C++",
    "+",
    "$",
    "\u20ac",
    "\u2211",
    "\u2192",
    "\u00b0",
    "\u2605",
    "\u2103",
    "7",
    "\u00b2",
    "\u00bd",
    "\u2167",
]
CONTENT += [
    "\u65e5",
    "\u0915\u093f",
    "\U0001f600",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea",
]
CONTENT += ["1\ufe0f\u20e3", "\u2764\ufe0f", "\ufffda", " \u200bI ", "...!" * 1000 + "x", "\u30fc", "\u00aa"]


@pytest.mark.parametrize("text", BLANK.values(), ids=BLANK)
def test_text_without_letters_digits_and_symbols_is_blank(text: str) -> None:
    assert is_blank(text)
    assert all(map(is_blank, text))


@pytest.mark.parametrize("text", CONTENT, ids=ascii)
def test_text_with_a_letter_a_digit_or_a_symbol_is_not_blank(text: str) -> None:
    assert not is_blank(text)
