"""The comparison of the runtime's tokenizer with the package `tokenizers`."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from edgeembed_runtime.tokenization.tokenizer import Tokens

from experiments import tokenizer_identity
from experiments.tokenizer_identity import SETTINGS, count_differences, main, pair, read, train

SENTENCES = ["The cat reads a file.", "Größe und Länge", "Прочитать файл", "İstanbul'da [MASK] 中文"] * 5


def test_each_choice_of_settings_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_identity, "code_points", lambda: ["a \u0301 é"])
    file = tmp_path / "text.txt.xz"
    file.write_bytes(lzma.compress("\n".join(SENTENCES).encode()))
    done = CliRunner().invoke(main, [str(file), "--sentences", "8"])
    assert done.exit_code == 0, done.output
    _, *results = map(json.loads, done.output.splitlines())
    assert [result["settings"] for result in results] == list(SETTINGS)
    for result in results:
        none = {"ids": 0, "truncated": 0, "unknown": 0, "offsets": 0}
        assert (result["sentences"], result["code points"]) == ({"texts": 8, **none}, {"texts": 1, **none})


def test_a_difference_is_counted() -> None:
    tokenizer, reference = pair(train(SENTENCES), {}, 16)

    class Wrong:
        def tokenize(self, text: Any) -> Tokens:
            return tokenizer.tokenize(text)._replace(truncated=True, unknown=7)

        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

    counts = count_differences(Wrong(), reference, SENTENCES)
    assert counts == {"texts": 20, "ids": 0, "truncated": 20, "unknown": 20, "offsets": 0}


def test_sentences_are_taken_from_each_file_and_more_from_the_last(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.xz", "b.xz")]
    files[0].write_bytes(lzma.compress(b"one\ntwo\n"))
    files[1].write_bytes(lzma.compress(b"three\nfour\nfive\nsix\nseven\n"))
    assert read(files, 6) == ["one", "two", "three", "four", "five", "six"]
