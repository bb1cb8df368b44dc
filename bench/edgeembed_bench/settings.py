"""Settings of a benchmark: numbers of runs, processes, threads and warm-up calls."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from edgeembed_runtime.errors import InputError


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
