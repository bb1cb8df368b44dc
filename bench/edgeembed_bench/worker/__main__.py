"""Protocol of the worker process: load a subject, report the cold start, and answer requests.

    python .../edgeembed_bench/worker/__main__.py MODULES ADAPTER ARGUMENT THREADS TRUST

MODULES are imported first, separated by commas; then the adapter loads the subject and encodes the first line of stdin,
a text whose line breaks and other characters beyond ASCII are escaped as in a string of Python. TRUST is "trusted" if
sentence-transformers may import the classes that the model folder names, else "".

The first line of output is JSON: when each stage of the cold start ended, memory, and the embedding dimension. Then
each further line of stdin is a request, and each line of output its answer, until stdin ends. An item is a text or a
list of texts.

    {"time": [item, ...]}         encode each: {"times_ns": [...], "cpu_ns": summed over threads}
    {"parts": [item, ...]}        time each part of encoding: {"parts_ns": {"encode": [...], ...}}; {} if impossible
    {"run": [item, ...]}          tokenize each untimed, then time the model: {"times_ns": [...]}; null if impossible
    {"timer": n}                  time n empty calls as "time" does: {"times_ns": [...]}
    {"encode_for": {"seconds": s, "texts": [text, ...]}}     encode one by one for that long: {"inferences": n}
    {"encode": {"texts": [...], "role": "query" | "document" | "", "out": FILE}}
                                  write float32 rows to the file: {"shape": [n, dim]}
    {"count_tokens": [text, ...]} tokens of each before truncation: {"tokens": [...]}; null if unknown
    {"info": null}                model and packages, see `installed_packages.subject_info`
    {"memory": null}              {"resident_bytes": ..., "peak_bytes": ...}

Everything that the subject prints goes to stderr.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from typing import IO, Any

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - as below


def main() -> None:
    """Load the subject described by the command-line arguments, and answer requests until stdin ends."""
    adapters = _import_neighbor("adapters")
    begun_ns = time.monotonic_ns()
    output = _redirect_stdout()
    modules, adapter, argument, threads, trust = sys.argv[1:]
    text = sys.stdin.readline().removesuffix("\n").encode("ascii").decode("unicode_escape")
    names = modules.split(",") if modules else []
    if adapter == "function":
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - like python -m; importing pathlib would count as memory
    for name in names:
        importlib.import_module(name)
    imported_ns = time.monotonic_ns()
    subject = adapters.load(adapter, argument, int(threads), trust=bool(trust))
    loaded_ns = time.monotonic_ns()
    vector = subject.encode(text)
    first_ns = time.monotonic_ns()
    start = _memory() | {"begun_ns": begun_ns, "imported_ns": imported_ns, "loaded_ns": loaded_ns, "first_ns": first_ns}
    _write_line(output, start | {"dimension": _dimension(vector)})
    _serve(subject, names, output)


def _import_neighbor(name: str) -> Any:
    """Import a module of this package by its path, because the package may not be installed in this Python."""
    sys.path.insert(0, _ROOT)
    try:
        return importlib.import_module(f"edgeembed_bench.worker.{name}")
    finally:
        sys.path.remove(_ROOT)


def _serve(subject: Any, names: list[str], output: IO[str]) -> None:
    import json  # after the cold start was measured, like the modules below

    loaded_subject, packages = _import_neighbor("loaded_subject"), _import_neighbor("installed_packages")
    handlers: dict[str, Any] = {
        "time": lambda items: loaded_subject.time_encoding(subject, items),
        "parts": lambda items: {"parts_ns": loaded_subject.time_parts(subject.inspected(), items)},
        "run": lambda items: {"times_ns": loaded_subject.time_model(subject.inspected(), items)},
        "timer": loaded_subject.time_empty_calls,
        "encode_for": lambda work: {"inferences": loaded_subject.encode_for(subject, work["texts"], work["seconds"])},
        "encode": lambda job: {"shape": _encode(subject, job["texts"], job["role"], job["out"])},
        "count_tokens": lambda texts: {"tokens": subject.inspected().count_tokens(texts)},
        "info": lambda _: packages.subject_info(subject.inspected(), names),
        "memory": lambda _: _memory(),
    }
    for line in sys.stdin:
        ((request, content),) = json.loads(line).items()
        _write_line(output, handlers[request](content))


def _encode(subject: Any, texts: list[str], role: str, out: str) -> list[int]:
    import array

    encode = {"": subject.encode, "query": subject.encode_query, "document": subject.encode_document}[role]
    rows = [array.array("f", vector) for vector in encode(texts)]
    with open(out, "wb") as file:  # noqa: PTH123 - importing pathlib would count as memory
        for row in rows:
            row.tofile(file)
    return [len(rows), len(rows[0]) if rows else 0]


def _memory() -> dict[str, int | None]:
    """Return the resident memory and its peak in bytes; None where the system does not report them."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - as above
            fields = dict(line.split(":", 1) for line in file)
    except OSError:
        return {"resident_bytes": None, "peak_bytes": None}
    return {name: _kilobytes(fields.get(key)) for name, key in (("resident_bytes", "VmRSS"), ("peak_bytes", "VmHWM"))}


def _kilobytes(field: str | None) -> int | None:
    return None if field is None else int(field.split()[0]) * 1024


def _dimension(vector: Any) -> int | None:
    import math

    if vector is None:
        return None
    try:
        numbers = [float(number) for number in vector]
    except (TypeError, ValueError):
        raise SystemExit(f"it returned {str(vector)[:60]!r} for a text; expected a vector of numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise SystemExit("the first embedding is not finite")
    return len(numbers)


def _redirect_stdout() -> IO[str]:
    """Return a stream for answers, and send everything else that is printed to stderr."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def _write_line(output: IO[str], content: dict[str, Any]) -> None:
    import json

    output.write(json.dumps(content) + "\n")
    output.flush()


if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as above
    sys.path[:] = [path for path in sys.path if path != folder]  # hide this folder's modules from the subject's imports
    main()
