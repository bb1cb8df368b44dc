"""The workload of a benchmark: its texts, and the numbers of runs, processes, threads and warm-up calls."""

import bisect
import hashlib
import importlib
import inspect
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from edgeembed_runtime.errors import InputError

_DOCUMENTED = ("argparse", "collections", "csv", "email.message", "json", "pathlib", "random", "re", "shutil", "socket")

TokenCounter = Callable[[Sequence[str]], list[int] | None]
"""Returns the number of tokens of each text, or None if it cannot count them."""


@dataclass(frozen=True)
class BenchmarkSettings:
    """Settings of a benchmark; with the defaults, a difference of 5 % is significant on a quiet machine.

    Attributes:
        runs: Timed single texts per subject; 1,000 as in the tables of the Xayn paper.
        processes: Fresh processes per subject, which share the runs. Two processes of the same program differ a little
            in speed as long as they live, so one process is not enough; the significance test needs 8.
        warmup: Warm-up calls at the start of each process; caches are warm within 20.
        block: Timed texts per turn; short turns let a drift of the machine affect all subjects equally.
        settle_ms: Approximate duration in milliseconds of the warm-up calls at the start of each turn, when the caches
            hold another subject's data; at least one call, at most ten.
        batches: Timed full batches per subject; 0 skips throughput.
        batch_size: Texts per batch; 32 is the default of sentence-transformers.
        lengths: Token counts of the length sweep; empty skips the sweep.
        sweep_runs: Timed calls per subject and length.
        part_runs: Texts per subject whose tokenization and model are timed separately, which takes eight times as long
            as encoding them. At most 10 per process for subjects other than bundles.
        threads: Threads per subject, and cores to pin it to; at batch size 1, two threads are slower than one.
        seed: Seed of the order of turns.
    """

    runs: int = 1000
    processes: int = 10
    warmup: int = 20
    block: int = 10
    settle_ms: float = 10.0
    batches: int = 20
    batch_size: int = 32
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256, 512)
    sweep_runs: int = 20
    part_runs: int = 100
    threads: int = 1
    seed: int = 0

    @property
    def runs_per_process(self) -> int:
        """Timed single texts in each process, rounded up."""
        return -(-self.runs // self.processes)

    @property
    def batches_per_process(self) -> int:
        """Timed batches in each process, rounded up."""
        return -(-self.batches // self.processes)

    @property
    def sweep_runs_per_process(self) -> int:
        """Timed calls per length in each process, rounded up."""
        return -(-self.sweep_runs // self.processes)

    @property
    def part_runs_per_process(self) -> int:
        """Texts whose parts are timed in each process, rounded up."""
        return -(-self.part_runs // self.processes)

    def check(self, texts: Sequence[str]) -> None:
        """Raise InputError if these settings cannot be measured on these texts.

        Args:
            texts: The texts to encode.

        Raises:
            InputError: If there are no texts, or a number is too small.
        """
        minimum = {"batches": 0, "sweep_runs": 0, "part_runs": 0, "seed": 0, "settle_ms": 0}
        numbers = {name: number for name, number in asdict(self).items() if name != "lengths"} | {"texts": len(texts)}
        for name, number in numbers.items():
            if number < minimum.get(name, 1):
                raise InputError(f"{name}: {number} given; expected at least {minimum.get(name, 1)}")
        if any(length < 1 for length in self.lengths):
            raise InputError(f"lengths: {min(self.lengths)} given; expected at least 1 token")


@dataclass(frozen=True)
class TextInfo:
    """The texts of a benchmark.

    Attributes:
        source: Where they come from.
        count: Number of texts.
        sha256: Hash of the texts, joined by line feeds.
        mean_characters: Mean length in characters.
        counted_by: Name of the subject whose tokenizer counted the tokens of the length sweep; "" without a sweep.
    """

    source: str
    count: int
    sha256: str
    mean_characters: float
    counted_by: str = ""

    @classmethod
    def of(cls, texts: Sequence[str], source: str, counted_by: str = "") -> Self:
        """Return the description of some texts.

        Args:
            texts: The texts.
            source: Where they come from.
            counted_by: Name of the subject whose tokenizer counted the tokens of the length sweep.
        """
        sha256 = hashlib.sha256("\n".join(texts).encode()).hexdigest()
        return cls(source, len(texts), sha256, statistics.fmean(map(len, texts)), counted_by)


def docstring_sentences() -> list[str]:
    """Return several hundred different sentences, the first lines of docstrings in Python's standard library."""
    return list(dict.fromkeys(_first_lines()))


def texts_of_lengths(
    texts: Sequence[str], lengths: Sequence[int], per_length: int, count_tokens: TokenCounter
) -> dict[int, list[str]]:
    """Return texts of at most the given numbers of tokens, as long as whole words allow.

    Args:
        texts: Texts whose words are used in order, and repeated if there are too few.
        lengths: Numbers of tokens, special tokens included.
        per_length: Number of texts per length.
        count_tokens: Function that counts the tokens of texts.

    Returns:
        The texts by length; empty if tokens cannot be counted. A length that a single word exceeds is left out.
    """
    words = " ".join(texts).split()
    if not words or not lengths or count_tokens(words[:1]) is None:
        return {}
    words *= -(-(max(lengths) * (per_length + 1)) // len(words))
    by_length: dict[int, list[str]] = {}
    for length in lengths:
        made = [_text_of_length(words[start:], length, count_tokens) for start in range(0, per_length * length, length)]
        if all(made):
            by_length[length] = made
    return by_length


def _first_lines() -> Iterator[str]:
    for name in _DOCUMENTED:
        module = importlib.import_module(name)
        for documented in [module, *vars(module).values()]:
            first, *_ = (inspect.getdoc(documented) or "").splitlines() or [""]
            if len(first.split()) > 2:
                yield first


def _text_of_length(words: Sequence[str], length: int, count_tokens: TokenCounter) -> str:
    # A word has at least one token, so at most `length` words are needed.
    def tokens(number: int) -> int:
        return (count_tokens([" ".join(words[:number])]) or [0])[0]

    return " ".join(words[: bisect.bisect_right(range(1, length + 1), length, key=tokens)])
