"""What the forms share: one process a subject, all of them open at once, and the frame of a filled form."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edgeembed_bench.facts import Facts, facts_of
from edgeembed_bench.forms.filled import FilledForm
from edgeembed_bench.machine import LoadWatch, this_machine
from edgeembed_bench.processes import Worker, held_to_cores, started
from edgeembed_bench.subjects import Subject, check_names


@dataclass(frozen=True)
class Opened:
    """Subjects ready to be measured.

    Attributes:
        workers: Their processes, by name.
        facts: What they tell of themselves, by name.
        frame: Makes the filled form of its columns, rows, notes and samples.
    """

    workers: dict[str, Worker]
    facts: dict[str, Facts]
    frame: Callable[..., FilledForm]


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

    def frame(**content: Any) -> FilledForm:
        return FilledForm(form, source, machine=machine, load=watch.found(), created_utc=created_utc, **content)

    with held_to_cores(threads), contextlib.ExitStack() as stack:
        workers = {subject.name: stack.enter_context(started(subject, text, threads=threads)) for subject in subjects}
        facts = {subject.name: facts_of(subject, workers[subject.name]) for subject in subjects}
        yield Opened(workers, facts, frame)
