"""Write the table of characters with which the runtime normalizes texts as the package `tokenizers` does.

    python -m experiments.runtime.unicode_table [OUT]

Each property of each code point is asked of `tokenizers`, so that the table is the one that its Rust code has, whatever
the Unicode versions of its parts.
"""

import binascii
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import click
import tokenizers
from edgeembed_runtime.tokenization import bert_normalizer
from tokenizers import normalizers, pre_tokenizers

OUT = Path(bert_normalizer.__file__).with_name("unicode_table.py")
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]

_HANGUL = range(0xAC00, 0xD7A4)
_OPTIONS = dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False)
_LINE = 116
_HIGHEST = "\u0345"  # the mark of the highest combining class


def unicode_table() -> dict[str, object]:
    """Return the properties of all characters, in the form that `bert_normalizer` reads."""
    stripped = _normalized(strip_accents=True)
    marks = {character for character, result in stripped.items() if not result}
    decomposed = {c: result for c, result in stripped.items() if result and ord(c) not in _HANGUL}
    return {
        "removed": _ranges(c for c, result in _normalized(clean_text=True).items() if not result),
        "marks": _ranges(marks),
        "punctuation": _ranges(filter(_is_punctuation, CHARACTERS)),
        "decomposed": _runs(decomposed),
        "lowercase": _runs(_normalized(lowercase=True)),
        "combining_class": _class_runs(_combining_classes()),
    }


def module_source() -> str:
    """Return the source of the runtime's module."""
    content = json.dumps(unicode_table(), separators=(",", ":")).encode()
    text = binascii.b2a_base64(zlib.compress(content, 9), newline=False).decode()
    lines = [f'    b"{text[i : i + _LINE - 7]}"' for i in range(0, len(text), _LINE - 7)]
    return (
        f'"""The characters that `tokenizers` {tokenizers.__version__} knows; '
        'written by `python -m experiments.runtime.unicode_table`."""\n\nTABLE = (\n' + "\n".join(lines) + "\n)\n"
    )


def _normalized(**options: bool) -> dict[str, str]:
    """Return the characters that a normalizer changes, and what it returns for them."""
    normalizer = normalizers.BertNormalizer(**{**_OPTIONS, **options})
    results = {character: normalizer.normalize_str(character) for character in CHARACTERS}
    return {character: result for character, result in results.items() if result != character}


def _is_punctuation(character: str) -> bool:
    pieces = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{character}b")
    return [piece for piece, _ in pieces] == ["a", character, "b"]


def _combining_classes() -> dict[str, int]:
    """Return the rank of the combining class of each mark; 0, that of other characters, is left out."""
    nfd = normalizers.NFD()

    def goes_before(first: str, second: str) -> bool:
        return bool(nfd.normalize_str(second + first) == first + second)

    results = {character: nfd.normalize_str(character) for character in CHARACTERS}
    marks = [c for c, result in results.items() if result == c and (goes_before(c, _HIGHEST) or c == _HIGHEST)]
    classes: list[str] = []
    for mark in marks:
        if not any(_are_equal(nfd, mark, other) for other in classes):
            classes.append(mark)
    ranks = {mark: 1 + sum(goes_before(other, mark) for other in classes) for mark in marks}
    composed = {c: ranks[result[0]] for c, result in results.items() if result != c and set(result) <= set(marks)}
    return {**ranks, **composed}


def _are_equal(nfd: normalizers.NFD, first: str, second: str) -> bool:
    return all(nfd.normalize_str(text) == text for text in (first + second, second + first))


def _ranges(characters: Iterable[str]) -> list[int]:
    """Return the starts and ends of ranges, as differences."""
    bounds: list[int] = []
    for code in sorted(map(ord, characters)):
        if bounds and bounds[-1] == code:
            bounds[-1] += 1
        else:
            bounds += [code, code + 1]
    return [end - start for start, end in zip([0, *bounds], bounds, strict=False)]


def _runs(mapping: Mapping[str, str]) -> list[list[int]]:
    """Return a mapping of characters as runs: difference, step, count, offset, further characters."""
    runs: list[list[int]] = []
    keys, position, previous = sorted(mapping), 0, 0
    while position < len(keys):
        first = keys[position]
        tail = mapping[first][1:]
        offset = ord(mapping[first][0]) - ord(first)
        step = ord(keys[position + 1]) - ord(first) if position + 1 < len(keys) else 1
        step = step if step <= 2 else 1
        count = 1
        for key in keys[position + 1 :]:
            if ord(key) != ord(first) + count * step or mapping[key] != chr(ord(key) + offset) + tail:
                break
            count += 1
        runs.append([ord(first) - previous, step, count, offset, *map(ord, tail)])
        position, previous = position + count, ord(first)
    return runs


def _class_runs(classes: Mapping[str, int]) -> list[list[int]]:
    runs: list[list[int]] = []
    end = 0
    for character in sorted(classes):
        code = ord(character)
        if runs and code == end and runs[-1][2] == classes[character]:
            runs[-1][1] += 1
        else:
            runs.append([code - end, 1, classes[character]])
        end = code + 1
    return runs


@click.command(help=__doc__)
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path), default=OUT)
def main(out: Path) -> None:
    """Write the table."""
    out.write_text(module_source(), encoding="utf-8")


if __name__ == "__main__":
    main()
