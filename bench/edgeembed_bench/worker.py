"""The process that one subject is measured in: this file, the standard library, and the subject's own packages.

It runs as a script, in whichever Python the subject needs, and the bench never imports it:

    python worker.py MODULES ADAPTER ARGUMENT TEXT

It imports the modules (a comma between them), loads the subject by its adapter, encodes the text, and tells in one JSON
line when each of that was done and the memory that it took. Then it answers what it is asked, line by line, until stdin
ends:

    {"time": [text, ...]}     encode each: {"times_ns": [...]}
    {"parts": [text, ...]}    encode each, and do its parts bare: {"parts_ns": {"encode": [...], "run": [...], ...}}
    {"memory": null}          {"resident_bytes": ..., "peak_bytes": ...}

What the subject prints goes to stderr.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import IO, Any

_PACKAGES = ("numpy", "onnxruntime", "tokenizers", "torch", "transformers")


def main() -> None:
    """Load the subject that the arguments name, and answer until stdin ends."""
    begun_ns = time.monotonic_ns()
    del sys.path[0]  # the folder of this file, whose neighbours are no business of the subject
    answers = _own_stdout()
    modules, adapter, argument, text = sys.argv[1:]
    names = modules.split(",") if modules else []
    for name in names:
        importlib.import_module(name)
    imported_ns = time.monotonic_ns()
    encode = _ADAPTERS[adapter](argument)
    loaded_ns = time.monotonic_ns()
    vector = encode(text)
    first_ns = time.monotonic_ns()
    start = _memory() | {"begun_ns": begun_ns, "imported_ns": imported_ns, "loaded_ns": loaded_ns, "first_ns": first_ns}
    facts = {"dimension": _dimension(vector), "python": sys.version.split()[0], "versions": _versions(names)}
    _answer(answers, start | facts)
    _serve(encode, answers)


def _serve(encode: Any, answers: IO[str]) -> None:
    import json  # only now: it is no part of the start

    bare = None
    for line in sys.stdin:
        ((question, texts),) = json.loads(line).items()
        if question == "memory":
            _answer(answers, _memory())
        elif question == "time":
            _answer(answers, {"times_ns": [_time_ns(encode, text) for text in texts]})
        else:
            bare = bare or _bundle_parts(encode.__self__)
            _answer(answers, {"parts_ns": _parts_ns(encode, bare, texts)})


def _load_nothing(_argument: str) -> Any:
    """Give what encodes nothing, for the cost of the imports alone."""
    return lambda _text: None


def _load_bundle(path: str) -> Any:
    """Load a bundle; the one in the wheel where there is no path."""
    from edgeembed_runtime import Encoder

    return (Encoder.load(path) if path else Encoder()).encode


def _load_sentence_transformer(path: str) -> Any:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(path, device="cpu")
    return lambda text: model.encode(text, show_progress_bar=False)


def _load_model2vec(path: str) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(path).encode


def _load_onnx(path: str) -> Any:
    """Load a folder's model.onnx and tokenizer.json with as little around them as will do."""
    from pathlib import Path

    import numpy as np
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(Path(path, "model.onnx"), options)
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(path, "tokenizer.json")))
    tokenizer.no_padding()

    def encode(text: str) -> Any:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        return session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]

    return encode


def _load_function(path: str) -> Any:
    """Load `module:function`, which takes a text."""
    module, _, function = path.partition(":")
    return getattr(importlib.import_module(module), function)


_ADAPTERS = {
    "nothing": _load_nothing,
    "bundle": _load_bundle,
    "sentence-transformer": _load_sentence_transformer,
    "model2vec": _load_model2vec,
    "onnx": _load_onnx,
    "function": _load_function,
}


def _bundle_parts(encoder: Any) -> Any:
    """Give what makes, of a text, the calls that encoding it cannot do without, and all of them in one: "bare"."""
    import functools

    import numpy as np
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_buffer(encoder.bundle.read("tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(encoder.max_seq_length)
    engine = _engine(encoder.bundle.backend)

    def tokenize(text: str) -> Any:
        return tokenizer.encode(text).ids

    def inputs(ids: Any) -> Any:
        if encoder.bundle.backend == "numpy":
            return (ids,)
        row = np.array([ids], dtype=np.int64)
        return None, {"input_ids": row, "attention_mask": np.ones_like(row)}

    run = engine.embed if encoder.bundle.backend == "numpy" else engine.run

    def bare(text: str) -> Any:
        return run(*inputs(tokenize(text)))

    def parts(text: str) -> Any:
        prepared = functools.partial(run, *inputs(tokenize(text)))
        return {"tokenize": functools.partial(tokenize, text), "run": prepared, "bare": functools.partial(bare, text)}

    return parts


def _engine(backend: str) -> Any:
    """Find the very session (or matrix backend) that the encoder runs, wherever it keeps it.

    A second session of the same model may differ from it by more than what is to be measured.
    """
    import gc

    module, name = {
        "onnx": ("onnxruntime", "InferenceSession"),
        "numpy": ("edgeembed_runtime.backends.numpy", "NumpyBackend"),
    }[backend]
    kind = getattr(importlib.import_module(module), name)
    (engine,) = (thing for thing in gc.get_objects() if isinstance(thing, kind))
    return engine


def _parts_ns(encode: Any, bare: Any, texts: list[str]) -> dict[str, list[int]]:
    """Time encoding and its parts, text by text; which comes first takes turns."""
    times: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        parts = bare(text)
        calls = [("encode", lambda text=text: encode(text))]
        for _, call in [*calls, *parts.items()]:  # what comes first finds the caches as what comes second does
            call()
        ordered = [*calls, *parts.items()] if number % 2 else [*parts.items(), *calls]
        for name, call in ordered:
            start = time.perf_counter_ns()
            call()
            times.setdefault(name, []).append(time.perf_counter_ns() - start)
    return times


def _time_ns(encode: Any, text: str) -> int:
    start = time.perf_counter_ns()
    encode(text)
    return time.perf_counter_ns() - start


def _memory() -> dict[str, int | None]:
    """Give the resident memory now and at most; None where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - imports add memory
            fields = dict(line.split(":", 1) for line in file)
    except OSError:
        return {"resident_bytes": None, "peak_bytes": None}
    return {
        name: int(fields[key].split()[0]) * 1024 for name, key in (("resident_bytes", "VmRSS"), ("peak_bytes", "VmHWM"))
    }


def _dimension(vector: Any) -> int | None:
    import math

    if vector is None:
        return None
    if not all(math.isfinite(number) for number in vector):
        raise SystemExit("the first vector is not finite")
    return len(vector)


def _versions(names: list[str]) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in [*(name.partition(".")[0] for name in names), *(name for name in _PACKAGES if name in sys.modules)]:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _own_stdout() -> IO[str]:
    """Give a stream to the bench that nothing the subject prints can reach."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _answer(answers: IO[str], content: dict[str, Any]) -> None:
    import json

    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
