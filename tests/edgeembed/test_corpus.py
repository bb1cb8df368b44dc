"""Corpora: reading, cleaning, deduplication, sampling, and errors."""

import gzip
import io
import json
import lzma
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from edgeembed_runtime.errors import InputError

from edgeembed.corpus import gather_corpus, held_out_count, read_corpus, split_holdout
from edgeembed.corpus.tables import read_tsv

LINES = [
    "The cat sleeps near the river.",
    "A train runs under the bridge.",
    "Old letters fall behind the house.",
]


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.compress, ".gz": gzip.compress, ".zst": zst}


def test_a_text_file_is_read_line_by_line(tmp_path: Path) -> None:
    assert read_corpus([write(tmp_path / "a.txt", LINES)]) == LINES


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_compressed_file_is_decompressed(tmp_path: Path, ending: str) -> None:
    lines = [f"{line} {number}" for number in range(9000) for line in LINES]
    file = tmp_path / f"a.txt{ending}"
    file.write_bytes(COMPRESSORS[ending]("\n".join(lines).encode()))
    assert read_corpus([file]) == lines


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_concatenated_compressed_streams_are_all_read(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.txt{ending}"
    file.write_bytes(b"".join(COMPRESSORS[ending](f"{line}\n".encode()) for line in LINES))
    assert read_corpus([file]) == LINES


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_truncated_compressed_file_is_an_error(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.txt{ending}"
    file.write_bytes(COMPRESSORS[ending](os.urandom(3000).hex().encode() * 50)[:-7])
    with pytest.raises(InputError, match=rf"a\.txt\{ending} cannot be decompressed"):
        read_corpus([file])


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_file_whose_compression_differs_from_its_ending_is_an_error(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InputError, match="cannot be decompressed"):
        read_corpus([write(tmp_path / f"a.txt{ending}", LINES)])


def test_white_space_is_normalized_and_duplicates_are_dropped_across_files(tmp_path: Path) -> None:
    first = write(tmp_path / "a.txt", [LINES[0], f"  {LINES[0].replace(' ', chr(9))} "])
    second = write(tmp_path / "b.txt", [LINES[0].replace(" ", "\u00a0"), LINES[1]])
    corpus = gather_corpus([first, second])
    assert corpus.sentences == LINES[:2]
    assert corpus.counts.to_dict() == {
        "read": 4, "kept": 2, "too_short": 0, "too_long": 0, "duplicate": 2, "not_sampled": 0,
    }  # fmt: skip


def test_windows_line_ends_and_a_byte_order_mark_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(LINES).encode())
    assert read_corpus([file]) == LINES


def test_unicode_line_separators_do_not_end_a_line(tmp_path: Path) -> None:
    assert read_corpus([write(tmp_path / "a.txt", ["one\u2028two\x0bthree"])]) == ["one two three"]


def test_short_and_long_lines_are_dropped_and_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", ["", "ab", *LINES, "x" * 1_000_000])
    counts = gather_corpus([file]).counts
    assert (counts.read, counts.kept, counts.too_short, counts.too_long) == (6, 3, 2, 1)
    assert str(counts) == "6 read, 3 kept, 0 duplicate, 2 too short, 1 too long, 0 not sampled"


def test_a_corpus_without_a_usable_sentence_is_an_error_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable sentence \(1 read, .* 1 too long"):
        read_corpus([write(tmp_path / "a.txt", ["x" * 1_000_000])])


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl"])
def test_an_empty_file_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"no usable sentence \(0 read"):
        read_corpus([write(tmp_path / name, [])])


def test_text_that_is_not_utf8_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(InputError, match=r"a\.txt line 2 is not UTF-8 \(byte 3 is 0xef\)"):
        read_corpus([file])


def test_an_empty_list_of_sources_is_an_error() -> None:
    with pytest.raises(InputError, match="no corpus"):
        read_corpus([])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.txt does not exist"):
        read_corpus([tmp_path / "nowhere.txt"])


@pytest.mark.parametrize("name", ["a.doc", "a", "a.xz", "a.parquet.gz", "a.txt.xz.gz"])
def test_an_unknown_ending_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="has an unknown ending"):
        read_corpus([write(tmp_path / name, LINES)])


def test_a_folder_is_replaced_by_its_corpus_files_sorted_by_path(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "b.txt", LINES[1:2])
    write(tmp_path / "a.txt", LINES[:1])
    write(tmp_path / "README.md", ["not text to learn from"])
    assert read_corpus([tmp_path]) == LINES[:2]


def test_a_folder_without_a_corpus_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no corpus file"):
        read_corpus([tmp_path])


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode())))
    assert read_corpus(["-"]) == LINES


def test_standard_input_that_is_not_utf8_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n")))
    with pytest.raises(InputError, match="standard input line 1"):
        read_corpus(["-"])


TABLE = ["sentence1\tlabel\tsentence2", f'{LINES[0]}\t1\t"{LINES[1]}', f"{LINES[2]}\t0\t{LINES[0]}"]


def test_default_columns_of_a_tsv_are_read_and_quotes_are_kept(tmp_path: Path) -> None:
    assert read_corpus([write(tmp_path / "a.tsv", TABLE)]) == [LINES[0], f'"{LINES[1]}', LINES[2]]


def test_columns_are_chosen_after_a_hash(tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", TABLE)
    assert read_corpus([f"{file}#sentence2"]) == [f'"{LINES[1]}', LINES[0]]


def test_a_file_name_may_contain_a_hash(tmp_path: Path) -> None:
    assert read_corpus([write(tmp_path / "c#.txt", LINES)]) == LINES


def test_columns_of_a_text_file_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="asks for columns"):
        read_corpus([f"{write(tmp_path / 'a.txt', LINES)}#text"])


def test_a_table_without_a_default_column_is_an_error_with_its_columns(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its columns are complex, split: choose with PATH#"):
        read_corpus([write(tmp_path / "a.tsv", ["complex\tsplit", "a\tb"])])


def test_a_missing_column_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column body; its columns are sentence1, label, sentence2"):
        read_corpus([f"{write(tmp_path / 'a.tsv', TABLE)}#body"])


def test_a_short_tsv_row_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 4 has 1 tab-separated fields; expected 3"):
        read_corpus([write(tmp_path / "a.tsv", [*TABLE, "alone"])])


CSV = [
    "sentence1,label,sentence2",
    f'"{LINES[0]}",1,"She said ""stay, please"" and left,',
    'without a word."',
    "",
    f'{LINES[2]},0,"{LINES[0]}"',
]
QUOTED = 'She said "stay, please" and left, without a word.'


@pytest.mark.parametrize("ending", ["", *COMPRESSORS])
def test_a_csv_file_may_have_quoted_fields(tmp_path: Path, ending: str) -> None:
    compress = COMPRESSORS.get(ending, bytes)
    (tmp_path / f"a.csv{ending}").write_bytes(compress("".join(f"{line}\r\n" for line in CSV).encode("utf-8-sig")))
    assert read_corpus([tmp_path / f"a.csv{ending}"]) == [LINES[0], QUOTED, LINES[2]]
    assert read_corpus([f"{tmp_path / f'a.csv{ending}'}#sentence2"]) == [QUOTED, LINES[0]]
    assert read_corpus([tmp_path]) == [LINES[0], QUOTED, LINES[2]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["text,label", "one,2,3"], "line 2 has 3 comma-separated fields; expected 2"),
        (["text,label", '"never closed,2', "more,3"], r"lines 2 to 3 are not CSV \(unexpected end of data\)"),
        (["text,label", '"closed" too early,2'], r"line 2 is not CSV \(',' expected after '\"'\)"),
        (["a;b", "one;two"], "its columns are a;b: choose with PATH#"),
    ],
)
def test_an_invalid_csv_file_is_an_error_with_its_line(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_corpus([write(tmp_path / "a.csv", rows)])


def test_a_missing_file_is_named_in_full_even_if_its_name_has_a_hash() -> None:
    with pytest.raises(InputError, match=r"^C# notes\.txt does not exist"):
        read_corpus([Path("C# notes.txt")])


@pytest.mark.parametrize("ending", ["", ".GZ", ".xz", ".Zst"])
def test_endings_may_have_any_case(tmp_path: Path, ending: str) -> None:
    compress = COMPRESSORS.get(ending.lower(), bytes)
    tables = {"A.TXT": LINES[0], "B.Csv": f'text\n"{LINES[1]}"', "C.JSONL": json.dumps({"text": LINES[2]})}
    for name, content in tables.items():
        (tmp_path / f"{name}{ending}").write_bytes(compress(content.encode()))
    assert read_corpus([tmp_path]) == LINES
    assert [read_corpus([tmp_path / f"{name}{ending}"]) for name in tables] == [[line] for line in LINES]


def test_a_parquet_file_may_end_in_upper_case(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": LINES}), tmp_path / "A.PARQUET")
    assert read_corpus([tmp_path]) == LINES


MARK = b"\xef\xbb\xbf"


def test_byte_order_marks_in_joined_files_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"".join(MARK + f"{line}\n".encode() for line in LINES))
    assert read_corpus([tmp_path / "a.txt"]) == LINES
    (tmp_path / "a.tsv").write_bytes(MARK + b"label\ttext\na\tx\n" + MARK + b"a\ty\n")
    assert [row["label"] for row in read_tsv(tmp_path / "a.tsv", ("label",), (), "")] == ["a", "a"]


def test_a_file_of_a_mark_alone_has_no_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(MARK)
    with pytest.raises(InputError, match="gave no usable sentence"):
        read_corpus([tmp_path / "a.txt"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl"])
def test_utf16_with_or_without_a_mark_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_bytes("text\none sentence here\nété\n".encode(encoding))
    with pytest.raises(InputError, match=r"line 1 .* looks like UTF-16; expected UTF-8 text: save the file as UTF-8"):
        read_corpus([tmp_path / name])


def test_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_corpus(["-"])


def test_default_keys_of_json_lines_are_read(tmp_path: Path) -> None:
    rows = [{"id": 1, "text": LINES[0]}, {"text": None, "title": LINES[1]}]
    assert read_corpus([write(tmp_path / "a.jsonl", map_json(rows))]) == LINES[:2]


def map_json(rows: Sequence[object]) -> list[str]:
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[]", "line 1 holds a list"),
        ('{"text": 3}', "key text holds a int"),
        ('{"words": "a"}', "its columns are words"),
        ('{"text": "\\ud800 half"}', "lone surrogate"),
        ("[" * 100_000, "line 1 is not JSON"),
    ],
)
def test_an_invalid_json_line_is_an_error_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_corpus([write(tmp_path / "a.jsonl", [line])])


def test_default_columns_of_a_parquet_file_are_read_row_by_row(tmp_path: Path) -> None:
    table = pa.table({"text": [LINES[0], None], "id": [1, 2], "answer": [LINES[1], LINES[2]]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_corpus([tmp_path / "a.parquet"]) == LINES


def test_a_parquet_column_without_strings_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="column id holds int64"):
        read_corpus([f"{tmp_path / 'a.parquet'}#id"])


def test_an_invalid_parquet_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_corpus([write(tmp_path / "a.parquet", LINES)])


def many(tmp_path: Path) -> list[Path]:
    return [
        write(tmp_path / name, [f"{name} has sentence number {number}." for number in range(200)])
        for name in ("a.txt", "b.txt")
    ]


def test_a_limit_draws_a_sample_determined_by_the_seed(tmp_path: Path) -> None:
    files = many(tmp_path)
    sample = read_corpus(files, limit=50, seed=1)
    assert len(sample) == 50
    assert sample == read_corpus(files, limit=50, seed=1)
    assert sample != read_corpus(files, limit=50, seed=2)
    everything = read_corpus(files)
    assert sample == sorted(sample, key=everything.index)
    assert {line[0] for line in sample} == {"a", "b"}


def test_a_limit_per_source_samples_each_file(tmp_path: Path) -> None:
    many(tmp_path)
    corpus = gather_corpus([tmp_path], limit_per_source=30)
    assert [sum(line.startswith(name) for line in corpus.sentences) for name in "ab"] == [30, 30]
    assert corpus.counts.not_sampled == 340


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_an_error(tmp_path: Path, limit: int) -> None:
    with pytest.raises(InputError, match=f"limit is {limit}"):
        read_corpus(many(tmp_path), limit=limit)


def test_the_held_out_split_is_disjoint_and_in_order() -> None:
    sentences = [str(number) for number in range(100)]
    train, held = split_holdout(sentences, 10, seed=4)
    assert sorted([*train, *held], key=int) == sentences
    assert len(held) == 10
    assert train == sorted(train, key=int)
    assert split_holdout(sentences, 10, seed=4) == (train, held)
    assert split_holdout(sentences, 0) == (sentences, [])


@pytest.mark.parametrize(("sentences", "count"), [(0, 0), (9, 0), (40, 4), (400, 40), (999, 99), (50_000, 1000)])
def test_the_held_out_split_is_a_tenth_up_to_a_maximum(sentences: int, count: int) -> None:
    assert held_out_count(sentences, 1000) == count


@pytest.mark.parametrize("count", [-1, 3, 4])
def test_an_impossible_size_of_the_held_out_split_is_an_error(count: int) -> None:
    with pytest.raises(InputError, match=f"{count} of 3 sentences cannot be held out"):
        split_holdout(LINES, count)
