"""Load mutated bundles and encode arbitrary texts, in a separate process, because native code may crash.

    python fuzz_bundles.py bundles|texts BUNDLE FIRST COUNT SCRATCH

Each seed from FIRST on is one input, the same on every machine. Each seed is printed before its input is tried, so
that the last one printed is that of a crash. At the end, the number of inputs with each outcome is printed. A failed
assertion ends the process.
"""

import copy
import hashlib
import json
import random
import resource
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tokenizers
from edgeembed_runtime import EdgeEmbedError, Encoder, InputError
from edgeembed_runtime.tokenization.tokenizer import load_tokenizer

_MEMORY_BYTES = 8 << 30
_TIMEOUT_S = 60

_FILES_OF_EMBEDDINGS = ("edgeembed.json", "tokenizer.json", "model.onnx", "model_quantized.onnx", "model.safetensors")
_NUMBERS = (0, 1, 2, -1, 127, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 10**12)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, *_NUMBERS, 2**64, 10**30, 10**400, 1e308, -0.5, float("nan"), float("inf")),
    *("", "a", "[UNK]", "\0", "\ud800", "a\nb", "../x", "/etc/passwd", "a\\b", "C:x", "x" * 5000),
    *("Left", "Isolated", "Removed", "MergedWithNext", [], {}, [[]], [0] * 9),
)
_BERT = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
_PARTS: dict[str, tuple[Any, ...]] = {
    "normalizer": (
        *({"type": kind} for kind in ("NFKC", "NFD", "StripAccents", "Lowercase", "Nmt", "ByteLevel")),
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "xx"},
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABhAA=="},
    ),
    "pre_tokenizer": (
        *({"type": kind} for kind in ("Whitespace", "WhitespaceSplit", "UnicodeScripts")),
        {"type": "Split", "pattern": {"Regex": "\\w+|[^\\w\\s]+"}, "behavior": "Isolated", "invert": False},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        {"type": "FixedLength", "length": 3},
        _BYTE_LEVEL,
    ),
    "post_processor": (_BERT, {"type": "Sequence", "processors": [_BYTE_LEVEL, _BERT]}),
    "model": (
        {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
        {"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.0], ["e", -3.0]], "unk_id": 0, "byte_fallback": False},
        {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "b", "dropout": None},
    ),
}
_OPERATORS = (
    *("ConstantOfShape", "Expand", "Tile", "Range", "Reshape", "GatherND", "Slice", "Pad", "Resize", "NonZero"),
    *("TopK", "Div", "Mod", "Pow", "Cast", "Concat", "Split", "Transpose", "Gemm", "Softmax", "Log", "Where", "OneHot"),
)
_WORDS = ("the", "cat", "reads", "a", "file", "line", "by", "line.", "Network", "sockets", "don't", "open", "1984")
_TEXTS = ("", "the cat", "A dog's 2 files, \u00e9\u4e2d\U0001f600\0\u0301 [SEP]  read\tthem\n" * 9)


def mutated_bytes(content: bytes, dice: random.Random) -> bytes:
    """Return the bytes with some flipped, removed, moved, repeated, or overwritten with a number."""
    result = bytearray(content)
    for _ in range(dice.choice((1, 1, 1, 1, 2, 8))):
        start = dice.randrange(len(result) + 1)
        end = min(len(result), start + dice.choice((1, 2, 4, 8, 64, 512)))
        other = dice.randrange(len(result) + 1)
        width = dice.choice((1, 4, 8))
        number = (dice.choice(_NUMBERS) % 2 ** (8 * width)).to_bytes(width, "little")
        result[start:end] = dice.choice(
            (
                b"",
                bytes(end - start),
                bytes(byte ^ 1 << dice.randrange(8) for byte in result[start:end]),
                result[other : other + end - start],
                result[start:end] * 2,
                number,
                number + result[start + width : end],
                dice.randbytes(4) + result[start:end],
                str(dice.choice(_NUMBERS)).encode(),
            )
        )
        if dice.random() < 0.05:
            del result[start:]
    return bytes(result)


def mutated_json(content: bytes, dice: random.Random) -> bytes:
    """Return a JSON document with values replaced, removed, repeated or moved."""
    document = json.loads(content)
    for name, parts in _PARTS.items():
        if name in document and dice.random() < 0.15:
            document[name] = copy.deepcopy(dice.choice(parts))
    for _ in range(dice.choice((1, 1, 1, 2))):
        locations = list(_locations(document))
        if not locations:
            break
        container, key = dice.choice(locations)
        _change(container, key, dice)
    return json.dumps(document).encode()


def mutated_model(content: bytes, dice: random.Random) -> bytes:
    """Return an ONNX file with changed operators, inputs, outputs, shapes or weights."""
    model = onnx.load_from_string(content)
    graph = model.graph
    values = [*(tensor.name for tensor in graph.initializer), *(name for node in graph.node for name in node.output)]
    for _ in range(dice.choice((1, 1, 1, 2))):
        node, weight, kind = dice.choice(graph.node), dice.choice(graph.initializer), dice.randrange(9)
        if kind == 0:
            node.op_type = dice.choice(_OPERATORS)
        elif kind == 1:
            node.input[dice.randrange(len(node.input))] = dice.choice((*values, "input_ids", ""))
        elif kind == 2:
            node.output[0] = dice.choice((*values, ""))
        elif kind == 3:
            node.attribute.append(
                onnx.helper.make_attribute(dice.choice(("axis", "to", "perm")), dice.choice(_NUMBERS))
            )
        elif kind == 4:
            weight.dims.append(dice.choice(_NUMBERS))
        elif kind == 5:
            weight.data_type = dice.randrange(25)
        elif kind == 6:
            weight.raw_data = dice.choice((weight.raw_data[:-1], weight.raw_data * 2, b""))
        elif kind == 7:
            weight.raw_data = dice.choice((b"\xff", b"\0", b"\x7f", b"\x80")) * len(weight.raw_data)
        else:
            dice.choice((*graph.input, *graph.output)).type.tensor_type.elem_type = dice.randrange(23)
    return bytes(model.SerializeToString())


def mutated_tensors(content: bytes, dice: random.Random) -> bytes:
    """Return a safetensors file with a mutated header and the correct header length."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = mutated_json(content[8:start], dice)
    return len(header).to_bytes(8, "little") + header + content[start:]


def arbitrary_text(dice: random.Random) -> str:
    """Return a text: usually short, rarely a megabyte long, sometimes with a lone surrogate."""
    pools = (
        "abcdefghijklmnopqrstuvwxyz     .,!?'-0123456789",
        "\u0300\u0301\u0323\u20dd\u0489\u0e31a",  # combining marks
        "\u202a\u202e\u2066\u2069\u200f\u05d0\u0627a ",  # right to left
        "\0\x01\x1b\x7f\x85\u200b\ufeff\u2028\u3000\t\r\n a",
        "\U0001f468\u200d\U0001f469\ufe0f\U0001f3fd\u4e2d\u6587\uac00\uff21\ufb01\u0130\u00df",
    )
    pieces = ["[CLS]", "[PAD]", "##s", "the cat ", "x" * 120, "\u2581", "e\u0301" * 40, "\ufdfa"]
    length = dice.choice((0, 1, 2, 5, 20, 20, 60, 60, 60, 200, 1000))
    kind = dice.randrange(100)
    if kind < 40:
        return "".join(dice.choices(pools[dice.randrange(len(pools))], k=length))
    if kind < 60:
        return " ".join(dice.choices(_WORDS, k=length))
    if kind < 75:
        return "".join(_any_character(dice) for _ in range(length))
    if kind < 98:
        return "".join(dice.choices((*pieces, *dice.choice(pools)), k=min(length, 60)))
    if kind == 98:
        position = dice.randrange(length + 1)
        return "a" * position + chr(dice.randrange(0xD800, 0xE000)) + "b" * dice.randrange(3)
    unit: str = dice.choice((*pieces, *dice.choice(pools)))
    total_bytes = dice.choices((1000, 20_000, 1_000_000), (9, 9, 1))[0]
    return unit * (total_bytes // len(unit.encode()))


def try_bundles(bundle: Path, seeds: range, scratch: Path) -> Counter[str]:
    """Load and run a mutation of the bundle for each seed; return the number of inputs with each outcome."""
    outcomes: Counter[str] = Counter()
    folder = shutil.copytree(bundle, scratch / "bundle")
    originals = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    weights = [10 if file.name in _FILES_OF_EMBEDDINGS else 1 for file in originals]
    for seed in _printed(seeds):
        dice = random.Random(seed)  # noqa: S311
        file = dice.choices(list(originals), weights)[0]
        content = _mutation(file, originals[file], dice)
        has_checksum = file.name != "edgeembed.json" and dice.random() < 0.8
        file.write_bytes(content)
        if has_checksum:
            _update_checksum(folder, file, originals[folder / "edgeembed.json"])
        outcome = _outcome(folder, dice)
        if _is_undetected(file, has_checksum, content == originals[file], outcome):
            raise AssertionError(
                f"seed {seed}: {file.name} was changed but its checksum was not, and the bundle was loaded"
            )
        outcomes[f"{file.name}{', matching manifest' if has_checksum else ''}: {outcome}"] += 1
        for changed in {file, folder / "edgeembed.json"}:
            changed.write_bytes(originals[changed])
    return outcomes


def try_texts(bundle: Path, seeds: range) -> Counter[str]:
    """Encode a text for each seed; return the number of inputs with each outcome."""
    outcomes: Counter[str] = Counter()
    encoder = Encoder.load(bundle, threads=1)
    content = (bundle / "tokenizer.json").read_bytes()
    tokenizer = load_tokenizer(content, encoder.max_seq_length, "tokenizer.json")
    reference = tokenizers.Tokenizer.from_buffer(content)
    reference.no_padding()
    reference.enable_truncation(encoder.max_seq_length)
    for seed in _printed(seeds):
        text = arbitrary_text(random.Random(seed))  # noqa: S311
        if any("\ud800" <= character <= "\udfff" for character in text):
            outcomes[_surrogate_outcome(encoder, text)] += 1
            continue
        vector = encoder.encode(text, on_truncate="ignore", on_unknown="ignore")
        assert vector.shape == (encoder.dimension,), f"seed {seed}: shape {vector.shape}"
        assert abs(np.linalg.norm(vector) - 1) < 1e-3, f"seed {seed}: norm {np.linalg.norm(vector)}"
        tokens, whole = tokenizer.tokenize(text), reference.encode(text)
        assert tokens.ids == whole.ids, f"seed {seed}: other tokens than those of the whole text"
        assert len(tokens.ids) <= encoder.max_seq_length, f"seed {seed}: {len(tokens.ids)} tokens"
        outcomes["truncated" if tokens.truncated else "not truncated"] += 1
    return outcomes


def _printed(seeds: range) -> Iterator[int]:
    """Print and yield each seed; an alarm kills the process if an input takes too long."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for seed in seeds:
        print(seed, flush=True)
        signal.alarm(_TIMEOUT_S)
        yield seed
    signal.alarm(0)


def _mutation(file: Path, content: bytes, dice: random.Random) -> bytes:
    if dice.random() < 0.3:
        return mutated_bytes(content, dice)
    if file.suffix == ".json":
        return mutated_json(content, dice)
    if file.suffix == ".onnx":
        return mutated_model(content, dice)
    if file.name == "model.safetensors":
        return mutated_tensors(content, dice)
    return mutated_bytes(content, dice)


def _outcome(folder: Path, dice: random.Random) -> str:
    """Load the bundle and encode texts; check that only errors of edgeembed and finite embeddings result."""
    try:
        encoder = Encoder.load(folder, verify=dice.random() < 0.5, threads=1)
    except EdgeEmbedError as error:
        _check_message(error)
        return "error at load"
    outcome = "ran"
    for text in _TEXTS:
        try:
            vector, info = encoder.encode(text, on_truncate="ignore", on_unknown="ignore", return_info=True)
        except EdgeEmbedError as error:
            _check_message(error)
            outcome = "error when run"
            continue
        assert vector.shape == (encoder.dimension,)
        assert vector.dtype == np.float32
        assert np.isfinite(vector).all()
        assert info.tokens <= encoder.max_seq_length
    assert encoder.encode([]).shape == (0, encoder.dimension)
    return outcome


def _is_undetected(file: Path, has_checksum: bool, is_unchanged: bool, outcome: str) -> bool:
    """Return whether a file that embeddings depend on was changed without its checksum, and the bundle was loaded."""
    is_checked = file.name in _FILES_OF_EMBEDDINGS and file.name != "edgeembed.json"
    return is_checked and not has_checksum and not is_unchanged and outcome != "error at load"


def _surrogate_outcome(encoder: Encoder, text: str) -> str:
    try:
        encoder.encode(text)
    except InputError as error:
        _check_message(error)
        return "lone surrogate"
    raise AssertionError("a lone surrogate was accepted")


def _check_message(error: EdgeEmbedError) -> None:
    assert len(str(error).splitlines()) == 1, f"not one line: {error}"


def _update_checksum(folder: Path, file: Path, manifest: bytes) -> None:
    """Write a manifest with the current size and checksum of a file, as a malicious author would."""
    document = json.loads(manifest)
    content = file.read_bytes()
    for record in document["files"]:
        if record["name"] == file.relative_to(folder).as_posix():
            record.update(size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (folder / "edgeembed.json").write_text(json.dumps(document), encoding="utf-8")


def _locations(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container and key in a document; only 40 per container, because a vocabulary has very many."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys[:40]:
        yield value, key
        yield from _locations(value[key])


def _change(container: Any, key: Any, dice: random.Random) -> None:
    kind = dice.randrange(6)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    elif kind == 2:
        container[key] = copy.deepcopy(dice.choice(list(_locations(container)))[0])
    elif kind == 3 and isinstance(container[key], int):
        container[key] += dice.choice((-1, 1, 2**31, -(2**31)))
    else:
        container[key] = copy.deepcopy(dice.choice(_VALUES))


def _any_character(dice: random.Random) -> str:
    number = dice.randrange(0x110000 - 0x800)
    return chr(number if number < 0xD800 else number + 0x800)


def _main(kind: str, bundle: str, first: str, count: str, scratch: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seeds = range(int(first), int(first) + int(count))
    outcomes = try_texts(Path(bundle), seeds) if kind == "texts" else try_bundles(Path(bundle), seeds, Path(scratch))
    print(json.dumps(outcomes, indent=1, sort_keys=True))


if __name__ == "__main__":
    _main(*sys.argv[1:])
