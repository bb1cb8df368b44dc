"""The process that one subject is measured in: this file, the standard library, and the subject's own packages.

It runs as a script, in whichever Python the subject needs, and the bench never imports it:

    python worker.py MODULES ADAPTER ARGUMENT THREADS TEXT TRUST

TRUST is "trusted" if sentence-transformers may import the classes that the model folder names, else "".

It imports the modules (a comma between them), loads the subject by its adapter, encodes the text, and tells in one JSON
line when each of that was done and the memory that it took. Then it answers what it is asked, line by line, until stdin
ends. An item is a text or a list of texts:

    {"time": [item, ...]}         encode each: {"times_ns": [...], "cpu_ns": of all threads together}
    {"parts": [item, ...]}        encode each, and do its parts bare: {"parts_ns": {"encode": [...], ...}}, {} if hidden
    {"run": [item, ...]}          tokenize each untimed, then time the rest: {"times_ns": [...]}, null if that is hidden
    {"nothing": n}                time n calls of nothing as "time" does: {"times_ns": [...]}
    {"work": {"seconds": s, "texts": [text, ...]}}      encode one by one for that long: {"inferences": n}
    {"encode": {"texts": [...], "as": "query" | "document" | "", "out": FILE}}
                                  write float32 rows to the file: {"shape": [n, dim]}
    {"tokens": [text, ...]}       tokens of each, uncut: {"tokens": [...]}, or null if the subject does not tell
    {"facts": null}               what the subject is made of, see `_facts`
    {"memory": null}              {"resident_bytes": ..., "peak_bytes": ...}

What the subject prints goes to stderr.
"""

from __future__ import annotations

import importlib
import importlib.util
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
    modules, adapter, argument, threads, text, trust = sys.argv[1:]
    text = text.encode("ascii").decode("unicode_escape")
    names = modules.split(",") if modules else []
    if adapter == "function":
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as python -m does; imports add memory
    for name in names:
        importlib.import_module(name)
    imported_ns = time.monotonic_ns()
    loaded = _ADAPTERS[adapter](argument, int(threads), **({"trust_remote_code": True} if trust else {}))
    loaded_ns = time.monotonic_ns()
    vector = loaded.encode(text)
    first_ns = time.monotonic_ns()
    start = _memory() | {"begun_ns": begun_ns, "imported_ns": imported_ns, "loaded_ns": loaded_ns, "first_ns": first_ns}
    _answer(answers, start | {"dimension": _dimension(vector)})
    _serve(loaded, names, answers)


class _Loaded:
    """A subject that encodes, and what else it can tell.

    Attributes:
        encode: A text to its vector, a list of n texts to n vectors.
        tokenize: What makes of a text, or of texts, all that `run` needs; None if the subject hides its parts.
        run: What makes vectors of that.
        count: The number of a text's tokens, uncut; None if the subject does not tell.
        vocabulary: The number of tokens known, likewise.
        weights: What counts (all numbers of the model, those of its embedding tables); None likewise.
        packages: The distributions that it takes to run the subject.
        max_tokens: Where it cuts a text; None if it does not tell.

    All but how to encode, and the packages, are known once it was `seen`.
    """

    def __init__(self, encode: Any, packages: list[str], look: Any = None) -> None:
        self.encode = encode
        self.encode_query = self.encode_document = encode
        self.packages = packages
        self.max_tokens: Any = None
        self.tokenize: Any = None
        self.run: Any = None
        self.count: Any = None
        self.vocabulary: Any = None
        self.weights: Any = None
        self._look = look

    def seen(self) -> _Loaded:
        """Look at what the subject is made of, once: only after its start and its memory were measured."""
        if self._look is not None:
            self._look(self)
            self._look = None
        return self


def _serve(loaded: _Loaded, names: list[str], answers: IO[str]) -> None:
    import json  # only now: it is no part of the start

    questions: dict[str, Any] = {
        "time": lambda items: _times(loaded.encode, items),
        "parts": lambda items: {"parts_ns": _parts_ns(loaded.seen(), items)},
        "run": lambda items: {"times_ns": _run_times_ns(loaded.seen(), items)},
        "nothing": lambda calls: _times(_nothing, [""] * calls),
        "work": lambda work: {"inferences": _work(loaded.encode, work["texts"], work["seconds"])},
        "encode": lambda job: {"shape": _encode(loaded, job["texts"], job["as"], job["out"])},
        "tokens": lambda texts: {"tokens": _tokens(loaded.seen(), texts)},
        "facts": lambda _: _facts(loaded.seen(), names),
        "memory": lambda _: _memory(),
    }
    for line in sys.stdin:
        ((question, content),) = json.loads(line).items()
        _answer(answers, questions[question](content))


def _load_nothing(_argument: str, _threads: int) -> _Loaded:
    """Give what encodes nothing, for the cost of the imports alone."""
    return _Loaded(_nothing, [])


def _load_bundle(path: str, threads: int) -> _Loaded:
    """Load a bundle; the one in the wheel where there is no path."""
    import functools

    from edgeembed_runtime import Encoder

    encoder = Encoder.load(path, threads=threads) if path else Encoder(threads=threads)
    # A warning per long text would be timed with it; the other encoders cut long texts silently.
    encode = functools.partial(encoder.encode, on_truncate="ignore")
    loaded = _Loaded(encode, ["edgeembed-runtime"], functools.partial(_look_into_bundle, encoder))
    loaded.max_tokens = encoder.max_seq_length
    loaded.encode_query = functools.partial(encoder.encode_query, on_truncate="ignore")
    loaded.encode_document = functools.partial(encoder.encode_document, on_truncate="ignore")
    return loaded


def _look_into_bundle(encoder: Any, loaded: _Loaded) -> None:
    content = encoder.bundle.read("tokenizer.json")
    _count_with(loaded, content)
    cut = _tokenizer(content)
    cut.enable_truncation(encoder.max_seq_length)
    engine = _engine(encoder)
    if encoder.bundle.backend == "numpy":
        loaded.tokenize = lambda text: [cut.encode(each).ids for each in _as_list(text)]
        loaded.run = lambda rows: [engine.embed(row) for row in rows]
    else:
        loaded.tokenize = lambda text: [_graph_inputs(cut.encode(each).ids) for each in _as_list(text)]
        loaded.run = lambda rows: [engine.run(["sentence_embedding"], row)[0][0] for row in rows]  # as the encoder does


def _engine(encoder: Any) -> Any:
    """Return the session, or the NumPy backend, that an encoder itself runs.

    A second session of the same model may differ from it by more than what is to be measured.
    """
    backend = encoder._pipeline._backend
    return backend._session if encoder.bundle.backend == "onnx" else backend


def _load_sentence_transformer(path: str, threads: int, **options: Any) -> _Loaded:
    import functools

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(path, device="cpu", **options)
    # Only a student of ours is trusted.
    packages = ["sentence-transformers", *(["edgeembed"] if options.get("trust_remote_code") else [])]
    loaded = _Loaded(_quietly(model.encode), packages, functools.partial(_look_into_transformer, model))
    loaded.encode_query, loaded.encode_document = _quietly(model.encode_query), _quietly(model.encode_document)
    loaded.max_tokens = model.max_seq_length if isinstance(model.max_seq_length, int) else None
    return loaded


def _look_into_transformer(model: Any, loaded: _Loaded) -> None:
    import torch

    prepare = getattr(model, "preprocess", None) or model.tokenize  # renamed in sentence-transformers 6

    def run(features: Any) -> Any:
        with torch.inference_mode():
            return model(dict(features))["sentence_embedding"].numpy()  # a copy, since a model writes into its input

    loaded.tokenize, loaded.run = (lambda text: prepare(_as_list(text))), run
    tokenizer = model.tokenizer
    if hasattr(tokenizer, "to_str"):  # a static model's is of the tokenizers library
        _count_with(loaded, tokenizer.to_str().encode())
    else:
        loaded.count = lambda text: len(tokenizer(text, truncation=False, verbose=False)["input_ids"])
        loaded.vocabulary = len(tokenizer)
    sizes = [weight.numel() for weight in model.parameters()]
    if sizes:  # the ONNX backend has none
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        tables = {each.weight: None for each in model.modules() if isinstance(each, kinds)}
        loaded.weights = sum(sizes), sum(table.numel() for table in tables)


def _load_sentence_transformer_onnx(path: str, threads: int, **options: Any) -> _Loaded:
    """Load sentence-transformers with its ONNX backend, which needs optimum."""
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    session = {"provider": "CPUExecutionProvider", "session_options": session_options}
    loaded = _load_sentence_transformer(path, threads, backend="onnx", model_kwargs=session, **options)
    loaded.packages.append("optimum-onnx")
    return loaded


def _load_model2vec(path: str, _threads: int) -> _Loaded:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(path)

    def look(loaded: _Loaded) -> None:
        loaded.count = lambda text: len(model.tokenizer.encode(text, add_special_tokens=False).ids)
        loaded.tokenize = lambda text: model.tokenize(_as_list(text))
        loaded.vocabulary = model.tokenizer.get_vocab_size()
        loaded.weights = int(model.embedding.size), int(model.embedding.size)

    return _Loaded(model.encode, ["model2vec"], look)


def _load_fastembed(path: str, threads: int) -> _Loaded:
    """Load a model that fastembed knows by name, or a bundle's folder."""
    from fastembed import TextEmbedding

    options = _fastembed_folder(path) if os.path.isdir(path) else {"model_name": path}  # noqa: PTH112 - as above
    model = TextEmbedding(threads=threads, **options)

    def encode(text: Any) -> Any:
        vectors = list(model.embed(_as_list(text)))
        return vectors[0] if isinstance(text, str) else vectors

    return _Loaded(encode, ["fastembed"], lambda loaded: _count_with(loaded, model.model.tokenizer.to_str().encode()))


def _fastembed_folder(path: str) -> dict[str, Any]:
    import json
    from pathlib import Path

    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    manifest = json.loads(Path(path, "edgeembed.json").read_text(encoding="utf-8"))
    TextEmbedding.add_custom_model(
        model=path,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=path),
        dim=manifest["dimension"],
        model_file=manifest["model_file"],
        output_name="sentence_embedding",
    )
    return {"model_name": path, "specific_model_path": path}


def _load_onnx(path: str, threads: int) -> _Loaded:
    """Load a folder's model.onnx and tokenizer.json with as little around them as will do.

    A graph that gives token vectors alone is pooled by their mean.
    """
    from pathlib import Path

    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    names = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
    graphs = [file for file in (Path(path, name) for name in names) if file.is_file()]
    if not graphs:
        raise SystemExit(f"{path} holds no model.onnx; expected one in it or in its folder onnx")
    session = onnxruntime.InferenceSession(graphs[0], options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(path, "tokenizer.json")))
    tokenizer.no_padding()
    wanted = {each.name for each in session.get_inputs()}
    outputs = [each.name for each in session.get_outputs()]
    is_pooled = "sentence_embedding" in outputs

    def tokenize(text: Any) -> Any:
        return [_graph_inputs(tokenizer.encode(each).ids, wanted) for each in _as_list(text)]

    def run(rows: Any) -> Any:
        found = [session.run(["sentence_embedding"] if is_pooled else outputs[:1], row)[0][0] for row in rows]
        return found if is_pooled else [vectors.mean(axis=0) for vectors in found]

    def encode(text: Any) -> Any:
        vectors = run(tokenize(text))
        return vectors[0] if isinstance(text, str) else vectors

    def look(loaded: _Loaded) -> None:
        loaded.tokenize, loaded.run = tokenize, run
        _count_with(loaded, tokenizer.to_str().encode())

    return _Loaded(encode, ["numpy", "onnxruntime", "tokenizers"], look)


def _load_function(path: str, _threads: int) -> _Loaded:
    """Load `module:function`, which takes a list of texts and gives as many vectors."""
    module, _, function = path.partition(":")
    embed = getattr(importlib.import_module(module), function)

    def encode(text: Any) -> Any:
        vectors = embed(_as_list(text))
        if not hasattr(vectors, "__getitem__") or len(vectors) != len(_as_list(text)):
            raise SystemExit(f"{path} gives {str(vectors)[:60]!r}; expected a vector for each text of a list")
        return vectors[0] if isinstance(text, str) else vectors

    def look(loaded: _Loaded) -> None:
        file = getattr(sys.modules[module], "__file__", None) or ""
        # To find the distribution all installed ones are read; a file of one's own is of none.
        loaded.packages = [_distribution(module) if "-packages" in file else ""]

    return _Loaded(encode, [], look)


_ADAPTERS = {
    "nothing": _load_nothing,
    "bundle": _load_bundle,
    "sentence-transformer": _load_sentence_transformer,
    "sentence-transformer-onnx": _load_sentence_transformer_onnx,
    "model2vec": _load_model2vec,
    "fastembed": _load_fastembed,
    "onnx": _load_onnx,
    "function": _load_function,
}


def _nothing(_item: Any) -> None:
    return None


def _as_list(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else text


def _quietly(encode: Any) -> Any:
    return lambda text: encode(text, show_progress_bar=False)


def _tokenizer(content: bytes) -> Any:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_buffer(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _count_with(loaded: _Loaded, content: bytes) -> None:
    tokenizer = _tokenizer(content)
    loaded.count = lambda text: len(tokenizer.encode(text).ids)
    loaded.vocabulary = tokenizer.get_vocab_size()


def _graph_inputs(ids: list[int], wanted: Any = ("input_ids", "attention_mask")) -> dict[str, Any]:
    import numpy as np

    row = np.array([ids], dtype=np.int64)
    inputs = {"input_ids": row, "attention_mask": np.ones_like(row)}
    return inputs | {"token_type_ids": np.zeros_like(row)} if "token_type_ids" in wanted else inputs


def _tokens(loaded: _Loaded, texts: list[str]) -> list[int] | None:
    return [loaded.count(text) for text in texts] if loaded.count else None


def _times(encode: Any, items: list[Any]) -> dict[str, Any]:
    cpu_ns = time.process_time_ns()
    times_ns = [_time_ns(encode, item) for item in items]
    return {"times_ns": times_ns, "cpu_ns": time.process_time_ns() - cpu_ns}


def _run_times_ns(loaded: _Loaded, items: list[Any]) -> list[int] | None:
    if loaded.run is None:
        return None
    return [_time_ns(loaded.run, loaded.tokenize(item)) for item in items]


def _parts_ns(loaded: _Loaded, items: list[Any]) -> dict[str, list[int]]:
    """Time encoding and its parts, item by item; which comes first takes turns."""
    times: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        calls = _part_calls(loaded, item)
        for _, call in calls:  # what comes first finds the caches as what comes second does
            call()
        for name, call in calls if number % 2 else reversed(calls):
            start = time.perf_counter_ns()
            call()
            times.setdefault(name, []).append(time.perf_counter_ns() - start)
    return times


def _part_calls(loaded: _Loaded, item: Any) -> list[Any]:
    """Give encoding, and what it cannot do without: tokenizing, running what that gives, and both in one: "bare"."""
    if loaded.tokenize is None:
        return []
    calls = [("encode", lambda: loaded.encode(item)), ("tokenize", lambda: loaded.tokenize(item))]
    if loaded.run is not None:
        prepared = loaded.tokenize(item)
        calls.append(("run", lambda: loaded.run(prepared)))
        calls.append(("bare", lambda: loaded.run(loaded.tokenize(item))))
    return calls


def _time_ns(encode: Any, item: Any) -> int:
    start = time.perf_counter_ns()
    encode(item)
    return time.perf_counter_ns() - start


def _work(encode: Any, texts: list[str], seconds: float) -> int:
    import itertools

    inferences, end = 0, time.perf_counter() + seconds
    endless = itertools.cycle(texts)
    while time.perf_counter() < end:
        encode(next(endless))
        inferences += 1
    return inferences


def _encode(loaded: _Loaded, texts: list[str], kind: str, out: str) -> list[int]:
    import array

    encode = {"": loaded.encode, "query": loaded.encode_query, "document": loaded.encode_document}[kind]
    rows = [array.array("f", vector) for vector in encode(texts)]
    with open(out, "wb") as file:  # noqa: PTH123 - as everywhere here
        for row in rows:
            row.tofile(file)
    return [len(rows), len(rows[0]) if rows else 0]


def _facts(loaded: _Loaded, names: list[str]) -> dict[str, Any]:
    parameters, embedding_parameters = loaded.weights or (None, None)
    return {
        "python": sys.version.split()[0],
        "versions": _versions(names),
        "vocabulary": loaded.vocabulary,
        "max_tokens": loaded.max_tokens,
        "parameters": parameters,
        "embedding_parameters": embedding_parameters,
        "footprint_bytes": _footprint(loaded.packages),
    }


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
    try:
        numbers = [float(number) for number in vector]
    except (TypeError, ValueError):
        raise SystemExit(f"it gives {str(vector)[:60]!r} for a text; expected a vector of numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise SystemExit("the first vector is not finite")
    return len(numbers)


def _versions(names: list[str]) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in [*(name.partition(".")[0] for name in names), *(name for name in _PACKAGES if name in sys.modules)]:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _distribution(module: str) -> str:
    from importlib.metadata import packages_distributions

    return next(iter(packages_distributions().get(module.partition(".")[0], [])), "")


def _footprint(packages: list[str]) -> dict[str, int] | None:
    """Give the bytes of installed distributions and of all that they need, without extras; None if one is absent."""
    import re
    from importlib.metadata import PackageNotFoundError, distribution

    found: dict[str, int] = {}
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            package = distribution(name)
        except (PackageNotFoundError, ValueError):
            if name in packages or not name:
                return None
            continue  # needed on other systems alone
        found[name] = _installed_bytes(package)
        needed = [line.partition(";") for line in package.requires or []]
        waiting += [_name(line) for line, _, marker in needed if "extra" not in marker]
    return found or None


def _name(requirement: str) -> str:
    import re

    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    return found[0] if found else ""


def _installed_bytes(package: Any) -> int:
    from pathlib import Path

    files = [Path(package.locate_file(file)) for file in package.files or []]
    if '"editable": true' in (package.read_text("direct_url.json") or ""):  # such an install lists no files of its own
        spec = importlib.util.find_spec(package.metadata["Name"].replace("-", "_"))
        places = (spec.submodule_search_locations if spec else None) or []
        files = [file for place in places for file in Path(place).rglob("*")]
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")


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
