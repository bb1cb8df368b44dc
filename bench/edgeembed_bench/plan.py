"""How much a run of the bench measures."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from edgeembed_runtime.errors import InputError


@dataclass(frozen=True)
class Plan:
    """How much is measured; the defaults tell 5 % apart on a quiet machine.

    Attributes:
        runs: Counted batch-1 calls a subject; 1,000 as in the tables of the Xayn paper.
        processes: Fresh processes a subject, among which the calls are shared out. Two processes of one program differ
            for good, by where their memory lies, so that one alone says little; below 8 nothing is told apart.
        warmup: Calls in each process before the first counted one; caches settle within 20.
        block: Calls a turn: short against the drift of a machine, long against the calls that settle it.
        settle_ms: About how long a turn goes on before calls count, for caches are full of another's data: at least one
            call, at most ten.
        batches: Counted batches a subject; 0 leaves throughput out.
        batch_size: Texts in such a batch; 32 is the default of sentence-transformers.
        lengths: Tokens of the texts of the length sweep; empty leaves it out.
        sweep_runs: Counted calls a subject and length.
        threads: Threads, and cores, a subject may use; at batch 1 two are slower than one.
        seed: Decides the order of turns.
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
    threads: int = 1
    seed: int = 0

    @property
    def runs_a_process(self) -> int:
        """Counted calls in each process."""
        return -(-self.runs // self.processes)

    @property
    def batches_a_process(self) -> int:
        """Counted batches in each process."""
        return -(-self.batches // self.processes)

    @property
    def sweep_a_process(self) -> int:
        """Counted calls a length in each process."""
        return -(-self.sweep_runs // self.processes)

    def check(self, texts: Sequence[str]) -> None:
        """Refuse what cannot be measured.

        Args:
            texts: What would be encoded.

        Raises:
            InputError: If there are no texts, or a number is below what makes sense.
        """
        least = {"batches": 0, "sweep_runs": 0, "seed": 0, "settle_ms": 0}
        numbers = {name: number for name, number in asdict(self).items() if name != "lengths"} | {"texts": len(texts)}
        for name, number in numbers.items():
            if number < least.get(name, 1):
                raise InputError(f"{name}: {number} given; expected at least {least.get(name, 1)}")
        if any(length < 1 for length in self.lengths):
            raise InputError(f"lengths: {min(self.lengths)} given; expected at least 1 token")
