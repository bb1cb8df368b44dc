"""Arbitrary texts and mutated bundles: no crash, no hang, valid embeddings that do not depend on the batch."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from edgeembed_runtime import Encoder, InputError
from edgeembed_runtime.tokenization.tokenizer import Tokenizer, load_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st

tokenizers = pytest.importorskip("tokenizers", reason="compares tokens with those of the package tokenizers")

Make = Callable[..., Path]
Jobs = list[tuple[str, Path, int, int]]

_DRIVER = Path(__file__).with_name("fuzz_bundles.py")
_on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the memory limit of a process is specific to Linux")
_is_old = tuple(map(int, re.findall(r"\d+", onnxruntime.__version__)[:2])) < (1, 25)
_from_onnxruntime_1_25 = pytest.mark.skipif(_is_old, reason="onnxruntime before 1.25 crashes on some damaged models")
_PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
_UNITS = (
    "cat ",
    "the dog reads a file. ",
    "x",
    "\u0301",
    "\u4e2d",
    "\U0001f468\u200d",
    "\u202e\u05d0",
    "\0",
    " ",
    "\u2581",
    "1",
)

_FORK_SCRIPT = """
import os, signal, sys
import numpy as np
from edgeembed_runtime import Encoder
encoder = Encoder.load(sys.argv[1], threads=2)
texts = [f"cat {i} reads a file " * (i % 5) for i in range(80)]
one, many = encoder.encode("the cat"), encoder.encode(texts)
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = np.array_equal(encoder.encode("the cat"), one) and np.array_equal(encoder.encode(texts), many)
    os._exit(0 if same else 1)
assert np.array_equal(encoder.encode(texts), many)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

_MEMORY_SCRIPT = """
import random, re, sys
from edgeembed_runtime import Encoder
def resident_kb():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
dice = random.Random(0)
encoder = Encoder.load(sys.argv[1])
for done in range(500, 20_001, 500):
    words = dice.choices(["cat", "file", "reads", "the", "line"], k=500)
    texts = [" ".join(words[: dice.randint(1, dice.choice((32, 32, 32, 500)))]) for _ in range(500)]
    encoder.encode(texts, on_truncate="ignore", on_unknown="ignore")
    if done in (500, 20_000):
        print(resident_kb())
"""


@pytest.fixture(scope="session")
def numpy_bundle(tmp_path_factory: pytest.TempPathFactory, make_numpy_bundle: Make) -> Path:
    return make_numpy_bundle(tmp_path_factory.mktemp("bundles") / "numpy")


@pytest.fixture(scope="session")
def numpy_encoder(numpy_bundle: Path) -> Encoder:
    return Encoder.load(numpy_bundle)


@pytest.fixture(scope="session")
def shipped_encoder(shipped: Path) -> Encoder:
    return Encoder.load(shipped)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a folder in memory if the system has one, because files are written thousands of times."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def _texts() -> st.SearchStrategy[str]:
    valid = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    repeated = st.builds(lambda unit, count: unit * count, st.sampled_from(_UNITS) | valid, st.integers(1, 400))
    return valid | repeated | st.lists(st.sampled_from(_UNITS) | valid, max_size=8).map("".join)


@functools.cache
def _tokenizers(bundle: Path, max_seq_length: int) -> tuple[Tokenizer, Any]:
    """Return the runtime's tokenizer, and a tokenizer of the library, which reads each text to its end."""
    content = (bundle / "tokenizer.json").read_bytes()
    reference = tokenizers.Tokenizer.from_buffer(content)
    reference.no_padding()
    reference.enable_truncation(max_seq_length)
    return load_tokenizer(content, max_seq_length, "tokenizer.json"), reference


def _check_text(encoder: Encoder, text: str) -> None:
    vector, info = encoder.encode(text, on_truncate="ignore", on_unknown="ignore", return_info=True)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)
    assert np.array_equal(vector, encoder.encode(text, on_truncate="ignore", on_unknown="ignore"))
    tokenizer, reference = _tokenizers(Path(str(encoder.bundle.path)), encoder.max_seq_length)
    tokens, whole = tokenizer.tokenize(text), reference.encode(text)
    assert (tokens.ids, tokens.truncated) == (whole.ids, bool(whole.overflowing))
    assert (info.tokens, info.truncated) == (len(tokens.ids), tokens.truncated)
    assert info.tokens <= encoder.max_seq_length


@settings(max_examples=150, deadline=None)
@given(text=_texts())
@example(text="")
def test_any_text_has_an_embedding_and_the_tokens_of_the_whole_text(encoder: Encoder, text: str) -> None:
    _check_text(encoder, text)


@settings(max_examples=30, deadline=None)
@given(text=_texts())
def test_any_text_has_an_embedding_with_the_built_in_encoder(shipped_encoder: Encoder, text: str) -> None:
    _check_text(shipped_encoder, text)


@settings(max_examples=150, deadline=None)
@given(text=_texts())
def test_any_text_has_an_embedding_with_the_numpy_backend(numpy_encoder: Encoder, text: str) -> None:
    _check_text(numpy_encoder, text)


@settings(max_examples=50, deadline=None)
@given(before=st.text(max_size=20), half=st.characters(categories=["Cs"]), after=st.text(max_size=20))
def test_lone_surrogate_anywhere_raises_in_one_line(encoder: Encoder, before: str, half: str, after: str) -> None:
    with pytest.raises(InputError, match="a lone surrogate") as caught:
        encoder.encode(["the cat", before + half + after])
    assert len(str(caught.value).splitlines()) == 1


@settings(max_examples=40, deadline=None)
@given(first=_texts(), second=_texts(), precision=st.sampled_from(_PRECISIONS))
@pytest.mark.parametrize("name", ["encoder", "numpy_encoder", "shipped_encoder"])
def test_embedding_does_not_depend_on_another_text_of_the_batch(
    request: pytest.FixtureRequest, name: str, first: str, second: str, precision: Any
) -> None:
    _check_pair(request.getfixturevalue(name), first, second, precision)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pairs"), [("encoder", 4000), ("numpy_encoder", 4000), ("shipped_encoder", 500)])
def test_embedding_does_not_depend_on_another_text_of_very_different_length(
    request: pytest.FixtureRequest, name: str, pairs: int
) -> None:
    encoder, random = request.getfixturevalue(name), np.random.default_rng(0)
    words = np.array(["cat", "the", "file", "reads", "network", "7", "\u4e2d", "un##known", "\U0001f600", "socket."])
    for number in range(pairs):
        short, long = int(random.integers(0, 8)), int(random.integers(100, 600))
        texts = [" ".join(random.choice(words, size)) for size in random.permutation([short, long])]
        _check_pair(encoder, texts[0], texts[1], _PRECISIONS[number % len(_PRECISIONS)])


def _check_pair(encoder: Encoder, first: str, second: str, precision: Any) -> None:
    alone = encoder.encode(first, on_truncate="ignore", on_unknown="ignore", precision=precision)
    together = encoder.encode([first, second], on_truncate="ignore", on_unknown="ignore", precision=precision)[0]
    assert alone.dtype == together.dtype
    assert alone.shape == together.shape
    if precision == "float32":
        assert np.abs(alone - together).max() <= 1e-5
    else:
        assert np.array_equal(alone, together)


@pytest.mark.parametrize("name", ["encoder", "numpy_encoder", "shipped_encoder"])
def test_eight_threads_that_share_an_encoder_get_the_serial_embeddings(
    request: pytest.FixtureRequest, name: str
) -> None:
    encoder = request.getfixturevalue(name)
    texts = [f"cat {number} reads the file. " * (number % 4) for number in range(80)]
    serial = np.stack([encoder.encode(text, on_truncate="ignore", on_unknown="ignore") for text in texts])
    start = threading.Barrier(8)

    def work(number: int) -> npt.NDArray[np.float32]:
        start.wait()
        if number % 2:
            return np.stack([encoder.encode(text, on_truncate="ignore", on_unknown="ignore") for text in texts])
        vectors: npt.NDArray[np.float32] = encoder.encode(texts, on_truncate="ignore", on_unknown="ignore")
        return vectors

    with ThreadPoolExecutor(8) as pool:
        for vectors in pool.map(work, range(8)):
            assert np.array_equal(vectors, serial)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("name", ["bundle_path", "numpy_bundle", "shipped"])
def test_encoder_works_after_a_fork(request: pytest.FixtureRequest, name: str) -> None:
    # Python warns about forking a process with threads, which is what this test does.
    command = [
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        _FORK_SCRIPT,
        str(request.getfixturevalue(name)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="this system has no /proc to read the memory use from"
)
def test_memory_does_not_grow_over_20_000_texts(shipped: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY_SCRIPT, str(shipped)], capture_output=True, text=True, timeout=800, check=True
    )
    early, late = (int(line) for line in done.stdout.split())
    assert late <= 1.1 * early


@_on_linux
@_from_onnxruntime_1_25
def test_mutated_bundles_raise_or_work(bundle_path: Path, numpy_bundle: Path, scratch: Path) -> None:
    outcomes = _fuzz([("bundles", bundle_path, 0, 300), ("bundles", numpy_bundle, 0, 300)], scratch)
    assert sum(outcomes.values()) == 600


@pytest.mark.slow
@pytest.mark.timeout(900)
@_on_linux
@_from_onnxruntime_1_25
def test_25_000_texts_and_mutated_bundles_cause_no_crash(
    bundle_path: Path, numpy_bundle: Path, shipped: Path, scratch: Path
) -> None:
    jobs: Jobs = []
    for kind, bundle, count in (
        *(("texts", shipped, 2500), ("bundles", shipped, 100)),
        *(("texts", bundle_path, 6200), ("texts", numpy_bundle, 6200)),
        *(("bundles", bundle_path, 5000), ("bundles", numpy_bundle, 5000)),
    ):
        jobs += [(kind, bundle, first, count // 2) for first in (0, count // 2)]
    outcomes = _fuzz(jobs, scratch)
    assert sum(outcomes.values()) == 25_000
    for part in ("error at load", "error when run", "ran", "not truncated", "truncated", "lone surrogate"):
        assert any(outcome.endswith(part) for outcome in outcomes), f"no input had the outcome {part}"


def _fuzz(jobs: Jobs, scratch: Path) -> Counter[str]:
    """Return the number of inputs with each outcome, tried in separate processes, two at a time."""

    def run(number: int) -> Counter[str]:
        kind, bundle, first, count = jobs[number]
        folder = scratch / str(number)
        folder.mkdir()
        command = [sys.executable, "-W", "error", str(_DRIVER), kind, str(bundle), str(first), str(count), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=800, check=False)
        seeds, _, outcomes = done.stdout.partition("{")
        last = (seeds.split() or ["none"])[-1]
        assert done.returncode == 0, (
            f"{kind} of {bundle.name}: exit {done.returncode} at seed {last}; to repeat it: "
            f"{_DRIVER.name} {kind} BUNDLE {last} 1 SCRATCH\n{done.stderr[-2000:]}"
        )
        return Counter(json.loads("{" + outcomes))

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(run, range(len(jobs))), Counter())
