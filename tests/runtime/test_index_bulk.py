"""`Index.build_from`: indexes of documents and embeddings in Parquet files."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import Encoder, Index, InputError, MissingExtraError
from edgeembed_runtime.cli import main
from edgeembed_runtime.index.engine import INDEX_PRECISIONS, IndexPrecision
from edgeembed_runtime.store_manifest import SHARDS_FOLDER, EncodedBy, Shard, StoreManifest

pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
pq = pytest.importorskip("pyarrow.parquet")

_TEXTS = [f"the {noun}{'s' * (number % 2)} {number}" for number in range(5) for noun in ("cat", "dog")]
_IDS = [f"document {number}" for number in range(10)]
_SPACE = "bert-8-0123456789abcdef"

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgeembed_runtime.index.parquet._BATCH_ROWS", 3)


@pytest.fixture
def embeddings(encoder: Encoder) -> npt.NDArray[np.float32]:
    encoded: npt.NDArray[np.float32] = encoder.encode_document(_TEXTS)
    return encoded


@pytest.fixture
def folder(tmp_path: Path, embeddings: npt.NDArray[np.float32]) -> Path:
    """Return a folder with two files of six and four documents, and what Spark writes beside them."""
    folder = tmp_path / "embedded"
    folder.mkdir()
    metadata = [{"year": 2000 + i, "tags": ["a"] * (i % 3), "rating": i / 2, "draft": None} for i in range(10)]
    rows = [
        {"text": text, "embedding": vector.tolist(), "id": each, **fields}
        for text, vector, each, fields in zip(_TEXTS, embeddings, _IDS, metadata, strict=True)
    ]
    # Written out of order: the order of documents is that of the names.
    write(folder / "part-1.parquet", rows[6:])
    write(folder / "part-0.parquet", rows[:6])
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_bytes(b"crc")
    (folder / "_metadata.parquet").write_bytes(b"of another program")
    return folder


def write(file: Path, rows: list[dict[str, Any]], **columns: Any) -> None:
    """Write rows, of which some columns have other types."""
    table = pa.Table.from_pylist(rows)
    for name, kind in columns.items():
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(kind))
    pq.write_table(table, file)


def state(folder: Path, encoder: Encoder, counts: dict[str, int] | None, **fields: Any) -> None:
    """Make a folder a store of an encoder, with other fields; None for one that is not complete."""
    bundle = encoder.bundle
    stated = {"name": "tiny", "fingerprint": bundle.fingerprint, "dimension": 8, "space": bundle.space, **fields}
    (folder / SHARDS_FOLDER).mkdir(exist_ok=True)
    for file in folder.glob("part-*.parquet"):
        file.rename(folder / SHARDS_FOLDER / file.name)
    shards = tuple(Shard(name, rows, "0" * 64) for name, rows in (counts or {}).items())
    encoded_by = EncodedBy(normalized=True, precision="fp32", prompt="", **stated)
    StoreManifest(encoded_by, "float16", shards, is_complete=counts is not None).write(folder)


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("precision", INDEX_PRECISIONS)
def test_the_folder_is_that_of_an_index_built_in_memory(
    folder: Path, tmp_path: Path, encoder: Encoder, embeddings: npt.NDArray[np.float32], precision: IndexPrecision
) -> None:
    names = ["year", "tags", "rating", "draft"]
    count = Index.build_from(
        encoder, folder, tmp_path / "index", id_column="id", metadata_columns=names, precision=precision
    )
    metadata = [{"year": 2000 + i, "tags": ["a"] * (i % 3), "rating": i / 2, "draft": None} for i in range(10)]
    expected = Index.build(encoder, _TEXTS, ids=_IDS, metadata=metadata, embeddings=embeddings, precision=precision)
    expected.save(tmp_path / "expected")
    assert count == 10
    assert content(tmp_path / "index") == content(tmp_path / "expected")
    index = Index.open(tmp_path / "index", encoder, verify=True)
    assert index.search(_TEXTS[7], top_k=1)[0].id == _IDS[7]
    index.add(["a socket"])
    assert len(index) == 11


def test_ids_are_positions_by_default(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    Index.build_from(encoder, str(folder), str(tmp_path / "index"))
    index = Index.open(tmp_path / "index", encoder)
    assert [(each.id, each.text, each.metadata) for each in index] == [(i, text, {}) for i, text in enumerate(_TEXTS)]
    assert index.add(["a socket"]) == [10]


def test_integer_ids_of_several_widths(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    for number, kind in enumerate([pa.int64(), pa.uint16()]):
        file = folder / f"part-{number}.parquet"
        rows = pq.read_table(file).to_pylist()
        write(file, [{**row, "id": int(row["id"][9:]) + 40} for row in rows], id=kind)
    Index.build_from(encoder, folder, tmp_path / "index", id_column="id")
    index = Index.open(tmp_path / "index", encoder)
    assert [each.id for each in index] == list(range(40, 50))
    assert index.add(["a socket"]) == [50]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.float16(), 8), pa.list_(pa.int8())]
)
def test_lists_of_any_kind_of_numbers_are_embeddings(
    folder: Path, tmp_path: Path, encoder: Encoder, embeddings: npt.NDArray[np.float32], kind: Any
) -> None:
    scaled = (np.rint(embeddings * 100) + 0).tolist()  # no -0.0, which int8 does not have
    for number, rows in enumerate([slice(6), slice(6, 10)]):
        vectors = pa.array(scaled[rows], pa.list_(pa.float32())).cast(kind)
        pq.write_table(pa.table({"text": _TEXTS[rows], "embedding": vectors}), folder / f"part-{number}.parquet")
    Index.build_from(encoder, folder, tmp_path / "index")
    Index.build(encoder, _TEXTS, embeddings=scaled).save(tmp_path / "expected")
    assert content(tmp_path / "index") == content(tmp_path / "expected")


def test_shards_have_the_order_of_their_manifest(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    state(folder, encoder, {"part-1": 4, "part-0": 6})
    Index.build_from(encoder, folder, tmp_path / "index")
    assert [each.text for each in Index.open(tmp_path / "index", encoder)] == _TEXTS[6:] + _TEXTS[:6]


def test_shards_of_a_teacher_make_an_index_for_a_student_of_its_space(
    folder: Path, tmp_path: Path, make_bundle: Make
) -> None:
    student = Encoder.load(make_bundle(tmp_path / "student", seed=2, space=_SPACE))
    stated = {"name": "teacher", "fingerprint": "0" * 64, "space": _SPACE}
    state(folder, student, {"part-0": 6, "part-1": 4}, **stated)
    Index.build_from(student, folder, tmp_path / "index")
    encoder = json.loads((tmp_path / "index" / "index.json").read_text(encoding="utf-8"))["encoder"]
    assert encoder == stated
    assert len(Index.open(tmp_path / "index", student)) == 10


def test_shards_of_another_space_are_refused(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    for space, others in ((None, ": pass that one"), (_SPACE, f" or another one of the space {_SPACE}: pass that one")):
        state(folder, encoder, {"part-0": 6, "part-1": 4}, name="teacher", fingerprint="0" * 64, space=space)
        with pytest.raises(InputError, match=rf"of 'teacher' \(0+.*expected the encoder that computed them{others}"):
            Index.build_from(encoder, folder, tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (None, "embedded is incomplete; expected all shards: run edgeembed encode again to write the rest"),
        ({"part-0": 6, "part-2": 4}, r"lacks part-2\.parquet; expected all shards"),
        ({"part-0": 6, "part-1": 5}, r"part-1\.parquet has 4 rows, expected 5 as in manifest\.json"),
        ({"../part-0": 6}, "expected the name of a shard, which is not a path"),
    ],
)
def test_shards_that_are_not_complete_are_refused(
    folder: Path, tmp_path: Path, encoder: Encoder, counts: dict[str, int] | None, message: str
) -> None:
    state(folder, encoder, counts)
    with pytest.raises(InputError, match=message):
        Index.build_from(encoder, folder, tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["embedded"]


def _change(column: str, row: int, value: Any) -> Callable[[list[dict[str, Any]]], Any]:
    def change(rows: list[dict[str, Any]]) -> Any:
        rows[row] = {**rows[row], column: value}
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_change("text", 2, None), r"part-1\.parquet, counted from row 0: document 2 is NoneType, expected str"),
        (_change("embedding", 3, None), r"counted from row 3: embedding 0 is null, expected 8 numbers"),
        (_change("embedding", 1, [1.0] * 7), r"embedding 1 is a list of 7 numbers, expected 8 numbers"),
        (_change("embedding", 1, [float("nan")] * 8), r"embedding 1 contains NaN or infinity"),
        (_change("embedding", 1, [None, *[1.0] * 7]), r"embedding 1 contains NaN or infinity"),
        (
            _change("id", 3, None),
            r"the column id of .*part-1\.parquet, row 3 from 0: the id is null, expected a str or a",
        ),
        (_change("id", 0, _IDS[2]), r"the id 'document 2' is twice in the column id of .*embedded, expected a diff"),
        (_change("rating", 1, float("inf")), r"the metadata of document 1: 'rating' is inf, expected"),
        (lambda rows: [{**row, "text": 1} for row in rows], r"column text of .* has the type int64, expected strings"),
        (
            lambda rows: [{**row, "embedding": "x"} for row in rows],
            r"the type string, expected lists of floats or of signed",
        ),
        (
            lambda rows: [{**row, "embedding": ["x"]} for row in rows],
            r"type list<.*string>, expected lists of floats or of signed",
        ),
        (lambda rows: [{**row, "id": 0.5} for row in rows], r"has the type double, expected integers or strings"),
        (
            lambda rows: [{**row, "id": i} for i, row in enumerate(rows)],
            r"column id of .*part-1\.parquet has integers, unlike that of the first file; expected one type",
        ),
        (lambda rows: [{**row, "rating": {"a": 1}} for row in rows], r"column rating of .* the type struct<a: int64>"),
        (
            lambda rows: [{"text": row["text"], "embedding": row["embedding"]} for row in rows],
            r"part-1\.parquet has the columns text, embedding; expected one called id",
        ),
    ],
)
def test_invalid_documents_are_one_line_and_the_old_index_stays(
    folder: Path, tmp_path: Path, encoder: Encoder, change: Callable[[list[dict[str, Any]]], Any], message: str
) -> None:
    Index.build(encoder, ["the cat"]).save(tmp_path / "index")
    before = content(tmp_path / "index")
    file = folder / "part-1.parquet"
    write(file, change(pq.read_table(file).to_pylist()))
    with pytest.raises(InputError, match=message) as caught:
        Index.build_from(encoder, folder, tmp_path / "index", id_column="id", metadata_columns=["rating"], force=True)
    assert "\n" not in str(caught.value)
    assert content(tmp_path / "index") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["embedded", "index"]


def test_an_id_beyond_64_bits_and_embeddings_of_unsigned_integers_are_named(
    folder: Path, tmp_path: Path, encoder: Encoder
) -> None:
    file = folder / "part-1.parquet"
    table = pq.read_table(file)
    rows, ids = table.to_pylist(), pa.array([2**63 - 2 + i for i in range(4)], pa.uint64())
    pq.write_table(table.set_column(table.column_names.index("id"), "id", ids), file)
    with pytest.raises(
        InputError, match=r"column id of .*part-1\.parquet, row 2 from 0: the id is 9223372036854775808, e"
    ):
        Index.build_from(encoder, folder, tmp_path / "index", id_column="id")
    write(file, [{**row, "embedding": [1] * 8} for row in rows], embedding=pa.list_(pa.uint8()))
    with pytest.raises(InputError, match=r"the type list<.*uint8>, expected lists of floats or of signed integers"):
        Index.build_from(encoder, folder, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_the_largest_id_of_64_bits_is_kept(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    for number in range(2):
        file = folder / f"part-{number}.parquet"
        rows = pq.read_table(file).to_pylist()
        write(file, [{**row, "id": 2**63 - 1 - 10 * number - i} for i, row in enumerate(rows)], id=pa.uint64())
    Index.build_from(encoder, folder, tmp_path / "index", id_column="id")
    assert next(iter(Index.open(tmp_path / "index", encoder))).id == 2**63 - 1


def test_damaged_files_are_one_line(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    file = folder / "part-1.parquet"
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :]):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"cannot read .*part-1\.parquet: .*; expected a Parquet file") as caught:
            Index.build_from(encoder, folder, tmp_path / "index")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "index").exists()


def test_folders_without_documents_are_refused(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows").mkdir()
    pq.write_table(pq.read_table(folder)[:0], tmp_path / "rows" / "0.parquet")
    (folder / "_temporary").mkdir()
    for name, message in (
        ("missing", "missing is not a folder"),
        ("empty", r"holds neither manifest\.json nor \*\.parquet"),
        ("rows", "have no rows, expected at least one document"),
        ("embedded", "is incomplete: it holds the folder _temporary of a job that did not end"),
    ):
        with pytest.raises(InputError, match=message):
            Index.build_from(encoder, tmp_path / name, tmp_path / "index")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shards": 1}, "the path is int, expected the path of a folder of Parquet files as a str or Path"),
        ({"out": ""}, "the path is empty, expected the path of an index's folder"),
        ({"precision": "int4"}, "the precision is 'int4'"),
        ({"metadata_columns": "year"}, "the columns are 'year', expected a list of names"),
        ({"metadata_columns": [1]}, "a column is called 1, expected a str"),
        ({"id_column": 1}, "a column is called 1, expected a str"),
        ({"encoder": "mini"}, "the encoder is str"),
    ],
)
def test_wrong_arguments_are_refused(
    folder: Path, tmp_path: Path, encoder: Encoder, arguments: dict[str, Any], message: str
) -> None:
    given = {"encoder": encoder, "shards": folder, "out": tmp_path / "index", **arguments}
    with pytest.raises(InputError, match=message):
        Index.build_from(**given)


def test_only_an_index_is_replaced(folder: Path, tmp_path: Path, encoder: Encoder) -> None:
    Index.build_from(encoder, folder, tmp_path / "index")
    with pytest.raises(InputError, match="exists already, expected a new path"):
        Index.build_from(encoder, folder, tmp_path / "index")
    Index.build_from(encoder, folder, tmp_path / "index", force=True)
    with pytest.raises(InputError, match=r"holds no index\.json"):
        Index.build_from(encoder, folder, folder, force=True)


def test_a_missing_pyarrow_names_the_extra(
    folder: Path, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("edgeembed_runtime.index.bulk", "edgeembed_runtime.index.parquet"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed-runtime\[parquet\]'"):
        Index.build_from(encoder, folder, tmp_path / "index")


def test_the_command_builds_an_index(
    folder: Path, tmp_path: Path, bundle_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["index", "--from", str(folder), "--out", str(tmp_path / "index"), "--bundle", str(bundle_path)]
    columns = ["--id-column", "id", "--metadata-column", "year", "--metadata-column", "tags", "--precision", "int8"]
    assert main([*words, *columns, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 10
    assert main(["search", str(tmp_path / "index"), _TEXTS[4], "-k", "1", "--bundle", str(bundle_path)]) == 0
    assert capsys.readouterr().out == f'1.0000\tdocument 4\t{_TEXTS[4]}\t{{"year": 2004, "tags": ["a"]}}\n'


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--from", "X", "notes.txt"], "--from builds an index of Parquet files alone; leave out FILE"),
        (["--from", "X", "--append"], "--from builds an index of Parquet files alone"),
        (["--from", "X", "--engine", "faiss-ivf"], "--from saves an index for the engine numpy; leave out --engine"),
        (["--text", "a cat", "--id-column", "id"], "name columns of Parquet files; add --from FOLDER"),
        (["--from", "missing"], "missing is not a folder"),
    ],
)
def test_the_command_refuses_wrong_options(
    tmp_path: Path, bundle_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["index", "--out", str(tmp_path / "index"), "--bundle", str(bundle_path), *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
