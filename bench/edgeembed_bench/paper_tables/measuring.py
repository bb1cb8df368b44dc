"""What the forms share: one process a subject, all of them open at once, and the frame of a filled form."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edgeembed_bench.machine import LoadWatch, this_machine
from edgeembed_bench.model_info import ModelInfo, read_model_info
from edgeembed_bench.paper_tables.base import PaperTable
from edgeembed_bench.runner import pin_to_cores
from edgeembed_bench.subjects import Subject, check_names
from edgeembed_bench.worker_client import Worker, start_worker


@dataclass(frozen=True)
class Opened:
    """Subjects ready to be measured.

    Attributes:
        workers: Their processes, by name.
        facts: What they tell of themselves, by name.
        frame: Makes the filled form of its columns, rows, notes and samples.
    """

    workers: dict[str, Worker]
    facts: dict[str, ModelInfo]
    frame: Callable[..., PaperTable]


@contextlib.contextmanager
def opened(subjects: Sequence[Subject], text: str, threads: int, form: str, source: str) -> Iterator[Opened]:
    """Start one process of each subject, all on the same cores; end them with the `with` block.

    Args:
        subjects: What is measured; names must differ.
        text: The first text of each.
        threads: Threads, and cores, that each may use.
        form: The form's name.
        source: The paper and its table.
    """
    check_names([subject.name for subject in subjects], None)
    machine, watch = this_machine(), LoadWatch()
    created_utc = datetime.now(UTC).isoformat(timespec="seconds")

    def frame(**content: Any) -> PaperTable:
        return PaperTable(form, source, machine=machine, load=watch.load(), created_utc=created_utc, **content)

    with pin_to_cores(threads), contextlib.ExitStack() as stack:
        workers = {
            subject.name: stack.enter_context(start_worker(subject, text, threads=threads)) for subject in subjects
        }
        facts = {subject.name: read_model_info(subject, workers[subject.name]) for subject in subjects}
        yield Opened(workers, facts, frame)
