"""Malicious bundles: their checksums are correct, but their content is not."""

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
from edgeembed_runtime.bundle import open_regular
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


def _error_message(bundle: Path, text: str = "the cat") -> str:
    with pytest.raises(EdgeEmbedError) as caught:
        Encoder.load(bundle, verify=True).encode([text], on_truncate="ignore", on_unknown="ignore")
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
def test_manifest_value_that_would_fill_the_memory_raises_before_loading(
    bundle_copy: Path, field: str, value: object
) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m.update({field: value}))
    assert "expected" in _error_message(bundle_copy)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf")])
def test_parity_outside_the_range_of_float_raises(bundle_copy: Path, value: float) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["parity"].update(min_cosine=value))
    with pytest.raises(BundleError, match="'min_cosine'") as caught:
        _ = Encoder(bundle_copy).bundle.parity
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", [10, 200, 400, 800, 900, 950, 980, 990, 5000])
def test_deeply_nested_value_raises_in_one_line(bundle_copy: Path, depth: int) -> None:
    text = (bundle_copy / "edgeembed.json").read_text(encoding="utf-8")
    nested = text.replace('"dimension": 8', f'"dimension": {"[" * depth}{"]" * depth}')
    (bundle_copy / "edgeembed.json").write_text(nested, encoding="utf-8")
    assert "edgeembed.json" in _error_message(bundle_copy)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\u2028b", "a\x1b[31m", "\0"])
def test_file_name_with_control_characters_raises(bundle_copy: Path, name: str) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][0].update(name=name))
    assert "stays inside the folder" in _error_message(bundle_copy)


def test_file_name_too_long_for_the_system_counts_as_missing(bundle_copy: Path) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][0].update(name="x" * 5000))
    assert "is missing" in _error_message(bundle_copy)


def test_path_too_long_for_the_system_raises() -> None:
    with pytest.raises(BundleError, match="is not a folder"):
        Encoder.load("x" * 5000)


@pytest.mark.parametrize("size", [10 * 2**30, 2**62, 10**30])
def test_file_size_above_the_limit_in_the_manifest_raises(bundle_copy: Path, size: int) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][-1].update(size_bytes=size))
    assert "expected" in _error_message(bundle_copy)


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "README.md"])
def test_sparse_file_of_10_gib_is_not_read(bundle_copy: Path, rewrite_manifest: Rewrite, name: str) -> None:
    os.truncate(bundle_copy / name, 10 << 30)
    assert f"{name} has {10 << 30} bytes, expected" in _error_message(bundle_copy)
    manifest = json.loads((bundle_copy / "edgeembed.json").read_text(encoding="utf-8"))
    for record in manifest["files"]:
        if record["name"] == name:
            record["size_bytes"] = 10 << 30
    (bundle_copy / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "'files'" in _error_message(bundle_copy)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need Unix")
@pytest.mark.parametrize("name", ["edgeembed.json", "onnx/model.onnx", "tokenizer.json", "README.md"])
def test_pipe_folder_or_device_in_place_of_a_file_raises(bundle_copy: Path, name: str) -> None:
    path = bundle_copy / name
    replacements: list[Callable[[], object]] = [
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: path.symlink_to("/dev/zero"),
    ]
    for replace in replacements:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
        replace()
        assert re.search("is missing|has no|leads out of the folder", _error_message(bundle_copy))


@pytest.mark.parametrize("name", ["onnx/model.onnx", "tokenizer.json", "README.md", "edgeembed.json", "onnx"])
def test_symbolic_link_out_of_the_folder_raises_even_with_the_same_content(bundle_copy: Path, name: str) -> None:
    outside = bundle_copy.parent / "outside"
    (bundle_copy / name).rename(outside)
    (bundle_copy / name).symlink_to(outside)
    assert "symbolic link that leads out of the folder, expected a file inside it" in _error_message(bundle_copy)


@pytest.mark.skipif(
    not Path("/proc/kmsg").exists(), reason="this system has no kernel log that looks like a regular file"
)
@pytest.mark.parametrize("name", ["onnx/model.onnx", "edgeembed.json", "edgeembed.json.sha256"])
def test_link_to_an_endless_file_is_not_read(bundle_copy: Path, name: str) -> None:
    _edit(bundle_copy / "edgeembed.json", lambda m: m["files"][1].update(size_bytes=0))  # as the kernel log reports
    (bundle_copy / name).unlink(missing_ok=True)
    (bundle_copy / name).symlink_to("/proc/kmsg")
    assert "symbolic link that leads out of the folder" in _error_message(bundle_copy)


def test_link_to_itself_counts_as_missing(bundle_copy: Path) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    model.unlink()
    model.symlink_to(model)
    assert "is missing" in _error_message(bundle_copy)


def test_link_within_the_folder_is_followed(bundle_copy: Path, encoder: Encoder) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    model.rename(bundle_copy / "onnx" / "weights")
    model.symlink_to("weights")
    (bundle_copy.parent / "linked").symlink_to(bundle_copy)
    loaded = Encoder.load(bundle_copy.parent / "linked", verify=True)
    assert np.array_equal(loaded.encode("the cat"), encoder.encode("the cat"))


def test_snapshot_in_the_hub_cache_is_loaded_unless_a_link_leaves_its_cache_entry(
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
    assert "README.md is a symbolic link that leads out of the folder" in _error_message(snapshot)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need Unix")
def test_opening_a_pipe_raises_instead_of_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(tmp_path / "pipe")


def test_prompt_of_a_megabyte_is_truncated_like_any_text(tmp_path: Path, make_bundle: Make) -> None:
    path = make_bundle(tmp_path / "b", prompts={"query": "cat " * 250_000}, default_prompt_name="query")
    assert np.isfinite(Encoder.load(path).encode("a dog", on_truncate="ignore")).all()


def test_lone_surrogate_in_a_prompt_raises(tmp_path: Path, make_bundle: Make) -> None:
    path = make_bundle(tmp_path / "b", prompts={"query": "\ud800"}, default_prompt_name="query")
    assert "expected an object of strings" in _error_message(path)


@pytest.mark.parametrize("field", ["name", "pooling", "teacher"])
def test_lone_surrogate_in_the_manifest_raises(tmp_path: Path, make_bundle: Make, field: str) -> None:
    assert "expected a string" in _error_message(make_bundle(tmp_path / "b", **{field: "a\ud800"}))


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT8, TensorProto.STRING])
def test_output_of_another_dtype_raises_at_load(bundle_copy: Path, rewrite_manifest: Rewrite, kind: int) -> None:
    path = bundle_copy / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    model.graph.node[-1].output[0] = "float_embedding"
    model.graph.node.append(helper.make_node("Cast", ["float_embedding"], ["sentence_embedding"], to=kind))
    model.graph.output[0].type.tensor_type.elem_type = kind
    onnx.save(model, str(path))
    rewrite_manifest(bundle_copy)
    assert "expected a tensor(float)" in _error_message(bundle_copy)


_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
_THOUSAND = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}


def _precompiled(table: object) -> dict[str, object]:
    return {"type": "Precompiled", "precompiled_charsmap": table}


def _charsmap(units: dict[int, int], texts: str) -> str:
    """Return a precompiled_charsmap whose trie has these units, and zeros elsewhere."""
    trie = np.zeros(1280, dtype="<u4")
    trie[list(units)] = list(units.values())
    return base64.b64encode(len(trie.tobytes()).to_bytes(4, "little") + trie.tobytes() + texts.encode()).decode()


def _wide_a(value: int = 0, beyond: int = 0) -> str:
    """Return the charsmap that replaces a full-width a (EF BD 81 in UTF-8) by its first text."""
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
    "empty charsmap": ({"normalizer": _precompiled("")}, "claims 0"),
    "charsmap that is not a string": ({"normalizer": _precompiled(3)}, "is not a tokenizer"),
    "charsmap that claims 4 GB": ({"normalizer": _precompiled("/////w==")}, "claims 4294967295"),
    "charsmap that points beyond its end": (
        {"normalizer": _precompiled("BAAAAP////8AAA==")},
        "points beyond its end",
    ),
    "charsmap without nodes": ({"normalizer": _precompiled("AAAAAGEA")}, "claims 0"),
    "charsmap whose last step leads beyond its end": (
        {"normalizer": _precompiled(_wide_a(beyond=4096))},
        "beyond its end",
    ),
    "charsmap with a text that begins beyond its end": (
        {"normalizer": _precompiled(_wide_a(value=8))},
        "beyond its end",
    ),
    "charsmap with a text that begins within a character": (
        {"normalizer": _precompiled(_wide_a(value=5))},
        "beyond its end",
    ),
    "template with an undefined token": (
        {"post_processor": _template(_UNKNOWN, _SEQUENCE)},
        "the token '[X]', which it does not define",
    ),
    "template with a second text": (
        {"post_processor": _template(_SECOND)},
        "a second text, which it does",
    ),
    "template that repeats the text": ({"post_processor": _template(*[_SEQUENCE] * 3)}, "repeats a text's tokens"),
    "repeated replacement of one letter by a thousand": (
        {"normalizer": {"type": "Sequence", "normalizers": [_THOUSAND] * 2000}},
        "expected at most 1000",
    ),
    "repeated byte-level encoding": (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [_BYTE_LEVEL] * 40}},
        "expected at most 1000",
    ),
    "charsmap with a long text": ({"normalizer": _precompiled(_charsmap({}, "a" * 1200))}, "expected at most 1000"),
    "pieces of length 0": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "pieces of length 0"),
    "invalid regex": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}},
        "is not a tokenizer",
    ),
    "regex with catastrophic backtracking": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+b"}, "behavior": "Isolated", "invert": False}},
        "may never finish",
    ),
    "no unknown token": (
        {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}},
        "cannot be read",
    ),
    "dropout of merges": (
        {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "dropout": 0.5}},
        "at random",
    ),
    "words of unlimited length": (
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
    "token id outside the embedding table": (
        {"model": {"type": "WordLevel", "vocab": {"[UNK]": 2**32 - 1}, "unk_token": "[UNK]"}},
        "cannot run",
    ),
}


@pytest.mark.parametrize("name", _TOKENIZERS)
@pytest.mark.usefixtures("library")
def test_tokenizer_that_would_crash_the_library_raises_in_one_line(
    bundle_copy: Path, rewrite_manifest: Rewrite, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    parts, message = _TOKENIZERS[name]
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(parts))
    rewrite_manifest(bundle_copy)
    assert message in _error_message(bundle_copy, "the cat " + "a" * 40)
    assert capfd.readouterr() == ("", "")  # a panic of the library prints a backtrace


@pytest.mark.usefixtures("library")
def test_valid_charsmap_is_applied(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(normalizer=_precompiled(_wide_a())))
    rewrite_manifest(bundle_copy)
    encoder = Encoder.load(bundle_copy)
    assert np.array_equal(encoder.encode("the \uff41 "), encoder.encode("the cat "))


_GPT_4 = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*[\r\n]|\s+(?!\S)|\s"


@pytest.mark.parametrize(
    ("pattern", "raises"),
    [
        *((pattern, True) for pattern in ("(a+)+", "(a|b)*c", "((a|aa))+b", "(?:x*y){2,}", "a(b(c|d)e)*")),
        *(
            (pattern, False)
            for pattern in (_GPT_4, r"(?:\r?\n)+", r"\(a|b\)+", "[(a|b)]+", " {2,}", r"(a|b){3}", "(a|b)?")
        ),
        (r" ?[^(\s|[.,!?…])]+", False),
    ],
)
@pytest.mark.usefixtures("library")
def test_regex_that_may_backtrack_raises_and_published_ones_do_not(
    bundle_copy: Path, rewrite_manifest: Rewrite, pattern: str, raises: bool
) -> None:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(pre_tokenizer=split))
    rewrite_manifest(bundle_copy)
    if raises:
        assert "has the regular expression" in _error_message(bundle_copy)
    else:
        Encoder.load(bundle_copy).encode("the cat", on_unknown="ignore")


@pytest.mark.usefixtures("library")
def test_charsmap_with_an_escaped_type_name_raises(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    file = bundle_copy / "tokenizer.json"
    _edit(file, lambda t: t.update(normalizer=_precompiled("/////w==")))
    hidden = file.read_text(encoding="utf-8").replace("Precompiled", "\\u0050recompiled")
    file.write_text(hidden, encoding="utf-8")
    rewrite_manifest(bundle_copy)
    assert "claims 4294967295" in _error_message(bundle_copy)


@pytest.mark.usefixtures("library")
def test_unknown_token_with_a_huge_id_is_handled(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    model = {"type": "WordLevel", "vocab": {"[UNK]": 1, "the": 2**32 - 1}, "unk_token": "[UNK]"}
    _edit(bundle_copy / "tokenizer.json", lambda t: t.update(model=model))
    rewrite_manifest(bundle_copy)
    _, info = Encoder.load(bundle_copy).encode("a cat", on_unknown="ignore", return_info=True)
    assert info.unknown == ("a", "cat")


def test_output_of_another_shape_than_declared_raises(bundle_copy: Path, rewrite_manifest: Rewrite) -> None:
    for declared in (8, "dimension"):
        _write_graph(bundle_copy, [helper.make_node("Cast", ["input_ids"], ["sentence_embedding"], to=1)], {}, declared)
        rewrite_manifest(bundle_copy)
        assert "returns a vector of shape (4,), expected (8,)" in _error_message(bundle_copy)
        with pytest.raises(BundleError, match="returns a vector of shape"):
            Encoder.load(bundle_copy).encode("the cat")


def test_invalid_utf8_name_in_a_model_raises_without_output(
    bundle_copy: Path, rewrite_manifest: Rewrite, capfd: pytest.CaptureFixture[str]
) -> None:
    file = bundle_copy / "onnx" / "model.onnx"
    for name in (b"sentence_embedding", b"attention_mask", b"MatMul"):
        content = file.read_bytes()
        file.write_bytes(content.replace(name, b"\xff\xfe" + name[2:]))
        rewrite_manifest(bundle_copy)
        assert "model.onnx" in _error_message(bundle_copy)
        file.write_bytes(content)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("names", [("input_ids", "a\nb" * 100), ("a\nb" * 100, "sentence_embedding")])
def test_long_names_in_a_model_are_shortened_in_the_message(
    bundle_copy: Path, rewrite_manifest: Rewrite, names: tuple[str, str]
) -> None:
    model = onnx.load(str(bundle_copy / "onnx" / "model.onnx"))
    input_name, output_name = names
    model.graph.input[0].name = model.graph.node[0].input[1] = input_name
    model.graph.output[0].name = model.graph.node[-1].output[0] = output_name
    onnx.save(model, str(bundle_copy / "onnx" / "model.onnx"))
    rewrite_manifest(bundle_copy)
    message = _error_message(bundle_copy)
    assert "'a\\nb" in message
    assert len(message) < 500


def test_control_characters_of_a_manifest_are_escaped(
    tmp_path: Path, make_bundle: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_bundle(tmp_path / "b", name="a\x1b[2J\nverified \u202e")
    assert main(["info", str(path)]) == 0
    assert "a\\x1b[2J verified \\u202e\n" in capsys.readouterr().out


@pytest.mark.parametrize("shape", [(2**40,), (2**33, 2**33), (2**62,)])
def test_model_that_needs_too_much_memory_raises_when_run(
    bundle_copy: Path, rewrite_manifest: Rewrite, shape: tuple[int, ...]
) -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("Expand", ["sum", "expected"], ["sentence_embedding"]),
    ]
    _write_graph(bundle_copy, nodes, {"shape": shape, "expected": (1, 8)}, 8)
    rewrite_manifest(bundle_copy)
    assert "model.onnx" in _error_message(bundle_copy)


def test_signaling_nan_weights_raise_without_a_warning(tmp_path: Path, make_numpy_bundle: Make) -> None:
    tensors: dict[str, Any] = {
        "cbow.weight": np.ones((70, 8), dtype=np.float16),
        "head.weight": np.full((8, 8), 127, dtype=np.int8),
        "head.scale": np.array([0x7FA00000] * 8, dtype=np.uint32).view(np.float32),  # signaling NaNs
        "head.bias": np.array([0x7FA00000] * 8, dtype=np.uint32).view(np.float32),
    }
    settings = {"format": "edgeembed-matrix", "format_version": "1", "architecture": "cbow", "cbow_pooling": "sum"}
    assert "not finite or not normalized" in _error_message(
        make_numpy_bundle(tmp_path / "b", model=pack_tensors(tensors, settings))
    )


def test_file_changed_after_verification_raises(bundle_copy: Path) -> None:
    bundle = Bundle.open(bundle_copy, verify=True)
    tokenizer = bundle_copy / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes().replace(b'"cat"', b'"dog"'))
    with pytest.raises(VerificationError, match=r"tokenizer\.json has SHA-256"):
        Encoder(bundle)


def _write_graph(
    bundle: Path, nodes: list[onnx.NodeProto], sizes: dict[str, tuple[int, ...]], dimension: int | str
) -> None:
    """Write a model of a few nodes and constants, which declares the dimension of its output."""
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
