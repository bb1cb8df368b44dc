"""Bundles whose author means harm: the checksums are right, what they cover is not."""

import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from edgeembed_runtime import Bundle, BundleError, EdgeEmbedError, Encoder, VerificationError
from edgeembed_runtime.bundle_files import open_regular
from edgeembed_runtime.cli.main import main
from edgeembed_runtime.cmow.safetensors import pack_tensors
from onnx import TensorProto, helper

Make = Callable[..., Path]
Rewrite = Callable[..., None]

_SEQUENCE = {"Sequence": {"id": "A", "type_id": 0}}
_SECOND = {"Sequence": {"id": "B", "type_id": 0}}
_UNKNOWN = {"SpecialToken": {"id": "[X]", "type_id": 0}}
_PAIR = [_SEQUENCE, _SECOND]


def _edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def _refusal(bundle: Path, text: str = "the cat") -> str:
    with pytest.raises(EdgeEmbedError) as caught:
        Encoder.load(bundle, verify=True).encode([text], on_truncate="ignore")
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def _template(*single: dict[str, Any]) -> dict[str, Any]:
    return {"type": "TemplateProcessing", "single": list(single), "pair": _PAIR, "special_tokens": {}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[(name, value) for name in ("dimension", "max_seq_length") for value in (10**12, 10**30, -(10**30))],
        *[
            ("num_parameters", 2**63),
            ("schema_version", 10**400),
            ("dimension", [[0] * 5000]),
            ("name", {"a": "\ud800"}),
        ],
    ],
)
def test_numbers_that_would_fill_the_memory_are_refused_before_anything_is_loaded(
    bundle_copy: Path, field: str, value: object
) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m.update({field: value}))
    assert "expected" in _refusal(bundle_copy)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf")])
def test_a_parity_that_no_float_holds_is_refused(bundle_copy: Path, value: float) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["parity"].update(min_cosine=value))
    assert "'min_cosine'" in _refusal(bundle_copy)


@pytest.mark.parametrize("depth", [10, 200, 400, 800, 900, 950, 980, 990, 5000])
def test_a_value_nested_deeply_is_refused_in_one_line(bundle_copy: Path, depth: int) -> None:
    text = (bundle_copy / "edgeembed.json").read_text(encoding="utf-8")
    nested = text.replace('"dimension": 8', f'"dimension": {"[" * depth}{"]" * depth}')
    (bundle_copy / "edgeembed.json").write_text(nested, encoding="utf-8")
    assert "edgeembed.json" in _refusal(bundle_copy)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\u2028b", "a\x1b[31m", "\0"])
def test_a_file_name_that_does_not_fit_in_a_line_is_refused(bundle_copy: Path, name: str) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][0].update(name=name))
    assert "stays inside the folder" in _refusal(bundle_copy)


def test_a_file_name_too_long_for_the_system_is_a_missing_file(bundle_copy: Path) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][0].update(name="x" * 5000))
    assert "is missing" in _refusal(bundle_copy)


def test_a_path_too_long_for_the_system_is_no_folder() -> None:
    with pytest.raises(BundleError, match="is not a folder"):
        Encoder.load("x" * 5000)


@pytest.mark.parametrize("size", [10 * 2**30, 2**62, 10**30])
def test_a_file_too_large_to_read_is_refused_by_what_the_manifest_says(bundle_copy: Path, size: int) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][-1].update(size_bytes=size))
    assert "expected" in _refusal(bundle_copy)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "README.md"])
def test_a_sparse_file_of_ten_gigabytes_is_not_read(bundle_copy: Path, rewrite_manifest: Rewrite, name: str) -> None:
    os.truncate(bundle_copy / name, 10 << 30)
    assert f"{name} has {10 << 30} bytes, expected" in _refusal(bundle_copy)
    manifest = json.loads((bundle_copy / "edgeembed.json").read_text(encoding="utf-8"))
    for record in manifest["files"]:
        if record["name"] == name:
            record["size_bytes"] = 10 << 30
    (bundle_copy / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "'files'" in _refusal(bundle_copy)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in a folder are of Unix")
@pytest.mark.parametrize("name", ["edgeembed.json", "onnx/model.onnx", "tokenizer.json", "README.md"])
def test_a_pipe_or_a_folder_or_a_device_in_a_file_s_place_is_refused(bundle_copy: Path, name: str) -> None:
    place = bundle_copy / name
    puts: list[Callable[[], object]] = [lambda: os.mkfifo(place), place.mkdir, lambda: place.symlink_to("/dev/zero")]
    for put in puts:
        if place.is_dir():
            place.rmdir()
        else:
            place.unlink()
        put()
        assert re.search("is missing|has no|leads out of the folder", _refusal(bundle_copy))


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "README.md", "edgeembed.json", "onnx"])
def test_a_symbolic_link_out_of_the_folder_is_refused_even_to_the_same_content(bundle_copy: Path, name: str) -> None:
    outside = bundle_copy.parent / "outside"
    (bundle_copy / name).rename(outside)
    (bundle_copy / name).symlink_to(outside)
    assert "symbolic link that leads out of the folder, expected a file inside it" in _refusal(bundle_copy)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="there is no kernel log that looks like a regular file")
@pytest.mark.parametrize("name", ["onnx/model.onnx", "edgeembed.json", "edgeembed.json.sha256"])
def test_a_link_to_a_file_that_never_ends_is_not_read(bundle_copy: Path, name: str) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][1].update(bytes=0))  # as the kernel log says of itself
    (bundle_copy / name).unlink(missing_ok=True)
    (bundle_copy / name).symlink_to("/proc/kmsg")
    assert "symbolic link that leads out of the folder" in _refusal(bundle_copy)


def test_a_link_to_itself_is_a_missing_file(bundle_copy: Path) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    model.unlink()
    model.symlink_to(model)
    assert "is missing" in _refusal(bundle_copy)


def test_a_link_within_the_folder_is_followed(bundle_copy: Path, encoder: Encoder) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    model.rename(bundle_copy / "onnx" / "weights")
    model.symlink_to("weights")
    (bundle_copy.parent / "linked").symlink_to(bundle_copy)
    loaded = Encoder.load(bundle_copy.parent / "linked", verify=True)
    assert np.array_equal(loaded.encode("the cat"), encoder.encode("the cat"))


def test_a_snapshot_in_the_cache_of_the_hub_is_loaded_and_no_link_out_of_its_cache_entry(
    bundle_copy: Path, tmp_path: Path, encoder: Encoder
) -> None:
    entry = tmp_path / "hub" / "models--someone--tiny"
    snapshot = entry / "snapshots" / "0123456789abcdef"
    (entry / "blobs").mkdir(parents=True)
    for number, file in enumerate(sorted(file for file in bundle_copy.rglob("*") if file.is_file())):
        link = snapshot / file.relative_to(bundle_copy)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(file.rename(entry / "blobs" / str(number)), link.parent))
    loaded = Encoder.load(snapshot, verify=True)
    assert np.array_equal(loaded.encode("the cat"), encoder.encode("the cat"))

    (snapshot / "README.md").resolve().rename(tmp_path / "outside")
    (snapshot / "README.md").unlink()
    (snapshot / "README.md").symlink_to(tmp_path / "outside")
    assert "README.md is a symbolic link that leads out of the folder" in _refusal(snapshot)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in a folder are of Unix")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "pipe")


def test_a_prompt_of_a_megabyte_is_cut_like_any_text(tmp_path: Path, make_bundle: Make) -> None:
    path = make_bundle(tmp_path / "b", prompts={"query": "cat " * 250_000}, default_prompt_name="query")
    assert np.isfinite(Encoder.load(path).encode("a dog", on_truncate="ignore")).all()


def test_half_of_a_surrogate_pair_in_a_prompt_is_one_line(tmp_path: Path, make_bundle: Make) -> None:
    path = make_bundle(tmp_path / "b", prompts={"query": "\ud800"}, default_prompt_name="query")
    assert "expected an object of strings" in _refusal(path)


@pytest.mark.parametrize("field", ["name", "pooling", "teacher"])
def test_half_of_a_surrogate_pair_is_no_text(tmp_path: Path, make_bundle: Make, field: str) -> None:
    assert "expected a string" in _refusal(make_bundle(tmp_path / "b", **{field: "a\ud800"}))


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.STRING])
def test_a_vector_of_another_type_is_refused_at_load(bundle_copy: Path, rewrite_manifest: Rewrite, kind: int) -> None:
    path = bundle_copy / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = "float_embedding"
    model.graph.node.append(helper.make_node("Cast", ["float_embedding"], ["sentence_embedding"], to=kind))
    model.graph.output[0].type.tensor_type.elem_type = kind
    onnx.save(model, str(path))
    rewrite_manifest(bundle_copy)
    assert "expected a tensor(float)" in _refusal(bundle_copy)


_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
_THOUSAND = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}


def _table(table: object) -> dict[str, object]:
    return {"type": "Precompiled", "precompiled_charsmap": table}


def _charsmap(units: dict[int, int], texts: str) -> str:
    """Return a character table whose trie has these units, and zeros elsewhere."""
    trie = np.zeros(1280, dtype="<u4")
    trie[list(units)] = list(units.values())
    return base64.b64encode(len(trie.tobytes()).to_bytes(4, "little") + trie.tobytes() + texts.encode()).decode()


def _wide_a(value: int = 0, beyond: int = 0) -> str:
    """Return the table that puts the first text in the place of a full-width a, which is EF BD 81 in UTF-8."""
    first, second, third = 256 ^ 0xEF, 512 ^ 0xBD, 768 ^ 0x81
    leaf = 1 << 8
    units = {
        0: 256 << 10,
        first: 0xEF | (first ^ 512) << 10,
        second: 0xBD | (second ^ 768) << 10,
        third: 0x81 | leaf | (third ^ 1024 ^ beyond) << 10,
        1024: value,
    }
    return _charsmap(units, "cat\0é\0")


_TOKENIZERS: dict[str, tuple[dict[str, Any], str]] = {
    "a table of characters that is none": ({"normalizer": _table("")}, "claims 0"),
    "a table that is no text": ({"normalizer": _table(3)}, "is not a tokenizer"),
    "a table that claims four gigabytes": ({"normalizer": _table("/////w==")}, "claims 4294967295"),
    "a table that points beyond its end": (
        {"normalizer": _table("BAAAAP////8AAA==")},
        "points beyond its end",
    ),
    "a table of no nodes": ({"normalizer": _table("AAAAAGEA")}, "claims 0"),
    "a table whose last step leads beyond its end": ({"normalizer": _table(_wide_a(beyond=4096))}, "beyond its end"),
    "a table with a text that begins beyond its end": ({"normalizer": _table(_wide_a(value=8))}, "beyond its end"),
    "a table with a text that begins within a character": ({"normalizer": _table(_wide_a(value=5))}, "beyond its end"),
    "a template with a token that is not there": (
        {"post_processor": _template(_UNKNOWN, _SEQUENCE)},
        "the token '[X]', which it does not define",
    ),
    "a template with a second text": (
        {"post_processor": _template(_SECOND)},
        "a second text, which it does",
    ),
    "a template that repeats the text": ({"post_processor": _template(*[_SEQUENCE] * 3)}, "repeats a text's tokens"),
    "a thousand letters for one, over and over": (
        {"normalizer": {"type": "Sequence", "normalizers": [_THOUSAND] * 2000}},
        "expected at most 1000",
    ),
    "bytes made characters over and over": (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [_BYTE_LEVEL] * 40}},
        "expected at most 1000",
    ),
    "a table with a long text": ({"normalizer": _table(_charsmap({}, "a" * 1200))}, "expected at most 1000"),
    "pieces of no length": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "pieces of length 0"),
    "an expression that is none": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
        "is not a tokenizer",
    ),
    "an expression that would take for ever": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+b"}, "behavior": "Isolated", "invert": False}},
        "may never finish",
    ),
    "no token for what is unknown": (
        {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}},
        "cannot be read",
    ),
    "tokens at random": (
        {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "dropout": 0.5}},
        "at random",
    ),
    "words of any length": (
        {
            "model": {
                "type": "WordPiece",
                "vocab": {"[UNK]": 0},
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 10**15,
            }
        },
        "expected at most 1000",
    ),
    "a token that the model has no row for": (
        {"model": {"type": "WordLevel", "vocab": {"[UNK]": 2**32 - 1}, "unk_token": "[UNK]"}},
        "cannot run",
    ),
}


@pytest.mark.parametrize("name", _TOKENIZERS)
def test_a_tokenizer_that_breaks_the_library_is_refused_in_one_line(
    bundle_copy: Path, rewrite_manifest: Rewrite, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    parts, message = _TOKENIZERS[name]
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(parts))
    rewrite_manifest(bundle_copy)
    assert message in _refusal(bundle_copy, "the cat " + "a" * 40)
    assert capfd.readouterr() == ("", "")  # a panic of the library prints a trace of its calls


def test_a_sound_table_of_characters_is_used(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(normalizer=_table(_wide_a())))
    rewrite_manifest(bundle_copy)
    encoder = Encoder.load(bundle_copy)
    assert np.array_equal(encoder.encode("the \uff41 "), encoder.encode("the cat "))


_GPT_4 = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]|\s+(?!\S)|\s"


@pytest.mark.parametrize(
    ("pattern", "is_refused"),
    [
        *((pattern, True) for pattern in ("(a+)+", "(a|b)*c", "((a|aa))+b", "(?:x*y){2,}", "a(b(c|d)e)*")),
        *(
            (pattern, False)
            for pattern in (_GPT_4, r"(?:\r?\n)+", r"\(a|b\)+", "[(a|b)]+", " {2,}", r"(a|b){3}", "(a|b)?")
        ),
        (r" ?[^(\s|[.,!?…])]+", False),
    ],
)
def test_an_expression_that_repeats_alternatives_is_refused_and_those_in_use_are_not(
    bundle_copy: Path, rewrite_manifest: Rewrite, pattern: str, is_refused: bool
) -> None:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(pre_tokenizer=split))
    rewrite_manifest(bundle_copy)
    if is_refused:
        assert "has the regular expression" in _refusal(bundle_copy)
    else:
        Encoder.load(bundle_copy).encode("the cat")


def test_a_table_whose_name_is_hidden_by_an_escape_is_refused_too(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    file = bundle_copy / "tokenizer.json"
    _edit(file, lambda t: t.update(normalizer=_table("/////w==")))
    hidden = file.read_text(encoding="utf-8").replace("Precompiled", "\\u0050recompiled")
    file.write_text(hidden, encoding="utf-8")
    rewrite_manifest(bundle_copy)
    assert "claims 4294967295" in _refusal(bundle_copy)


def test_an_unknown_token_of_a_huge_number_costs_no_time(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    model = {"type": "WordLevel", "vocab": {"[UNK]": 1, "the": 2**32 - 1}, "unk_token": "[UNK]"}
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(model=model))
    rewrite_manifest(bundle_copy)
    _, info = Encoder.load(bundle_copy).encode("a cat", return_info=True)
    assert info.unknown == ("a", "cat")


def test_a_model_that_gives_another_shape_than_it_says_is_refused(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    for said in (8, "dimension"):
        _write_graph(bundle_copy, [helper.make_node("Cast", ["input_ids"], ["sentence_embedding"], to=1)], {}, said)
        rewrite_manifest(bundle_copy)
        assert "returns a vector of shape (4,), expected (8,)" in _refusal(bundle_copy)
        with pytest.raises(BundleError, match="returns a vector of shape"):
            Encoder.load(bundle_copy).encode("the cat")


def test_a_model_with_a_name_that_is_no_text_is_refused_and_nothing_is_printed(
    bundle_copy: Path, rewrite_manifest: Rewrite, capfd: pytest.CaptureFixture[str]
) -> None:
    file = bundle_copy / "onnx" / "model.onnx"
    for name in (b"sentence_embedding", b"attention_mask", b"MatMul"):
        content = file.read_bytes()
        file.write_bytes(content.replace(name, b"\xff\xfe" + name[2:]))
        rewrite_manifest(bundle_copy)
        assert "model.onnx" in _refusal(bundle_copy)
        file.write_bytes(content)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("names", [("input_ids", "a\nb" * 100), ("a\nb" * 100, "sentence_embedding")])
def test_names_in_a_model_fit_in_the_line_that_refuses_it(
    bundle_copy: Path, rewrite_manifest: Rewrite, names: tuple[str, str]
) -> None:
    model = onnx.load(str(bundle_copy / "onnx" / "model.onnx"))
    taken, given = names
    model.graph.input[0].name = model.graph.node[0].input[1] = taken
    model.graph.output[0].name = model.graph.node[-1].output[0] = given
    onnx.save(model, str(bundle_copy / "onnx" / "model.onnx"))
    rewrite_manifest(bundle_copy)
    message = _refusal(bundle_copy)
    assert "'a\\nb" in message
    assert len(message) < 500


def test_a_manifest_cannot_steer_the_terminal(
    tmp_path: Path, make_bundle: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_bundle(tmp_path / "b", name="a\x1b[2J\nverified \u202e")
    assert main(["info", str(path)]) == 0
    assert "a\\x1b[2J verified \\u202e\n" in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(2**40,), (2**33, 2**33), (2**62,)])
def test_a_model_that_asks_for_more_memory_than_there_is_is_refused_when_run(
    bundle_copy: Path, rewrite_manifest: Rewrite, shape: tuple[int, ...]
) -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("Expand", ["sum", "expected"], ["sentence_embedding"]),
    ]
    _write_graph(bundle_copy, nodes, {"shape": shape, "expected": (1, 8)}, 8)
    rewrite_manifest(bundle_copy)
    assert "model.onnx" in _refusal(bundle_copy)


def test_tables_whose_numbers_are_none_give_an_error_and_no_warning(tmp_path: Path, make_numpy_bundle: Make) -> None:
    tensors: dict[str, Any] = {
        "cbow.weight": np.ones((70, 8), dtype=np.float16),
        "head.weight": np.full((8, 8), 127, dtype=np.int8),
        "head.scale": np.array([0x7FA00000] * 8, dtype=np.uint32).view(np.float32),  # numbers that signal
        "head.bias": np.array([0x7FA00000] * 8, dtype=np.uint32).view(np.float32),
    }
    settings = {"format": "edgeembed-matrix", "format_version": "1", "architecture": "cbow", "cbow_pooling": "sum"}
    assert "not finite or not normalized" in _refusal(
        make_numpy_bundle(tmp_path / "b", model=pack_tensors(tensors, settings))
    )


def test_a_file_changed_after_it_was_verified_is_refused(bundle_copy: Path) -> None:
    bundle = Bundle.open(bundle_copy, verify=True)
    tokenizer = bundle_copy / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes().replace(b'"cat"', b'"dog"'))
    with pytest.raises(VerificationError, match=r"tokenizer\.json has SHA-256"):
        Encoder(bundle)


def _write_graph(
    bundle: Path, nodes: list[onnx.NodeProto], sizes: dict[str, tuple[int, ...]], dimension: int | str
) -> None:
    """Write a model of a few nodes and constants, which says that its vectors have a dimension."""
    names = ("input_ids", "attention_mask")
    graph = helper.make_graph(
        nodes,
        "hostile",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", dimension])],
        [onnx.numpy_helper.from_array(np.array(size, dtype=np.int64), name) for name, size in sizes.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (bundle / "onnx" / "model.onnx").write_bytes(model.SerializeToString())
