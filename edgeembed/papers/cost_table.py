"""What the cost tables of papers share: the result, the processes of its subjects, and the options of its command.

Each paper's module is a command of its own: `python -m edgeembed.papers.simtde.cost_table --help`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from edgeembed_bench.machine import Load, LoadWatch, Machine, check_threads, this_machine
from edgeembed_bench.model_info import ModelInfo, read_model_info
from edgeembed_bench.render.html import html_document
from edgeembed_bench.render.markdown import markdown_document
from edgeembed_bench.render.tables import Table
from edgeembed_bench.render.terminal import terminal_document
from edgeembed_bench.renderable import Renderable
from edgeembed_bench.runner import pin_to_cores
from edgeembed_bench.subjects import Subject, check_names
from edgeembed_bench.worker_client import Worker, start_worker
from edgeembed_runtime.errors import InputError

from edgeembed.cli.options import Outputs
from edgeembed.cli.output import print_result

Command = TypeVar("Command", bound=Callable[..., Any])

SCHEMA_VERSION = 2  # 1: the first; 2: "form" is "name"


@dataclass(frozen=True)
class PaperTable(Renderable):
    """A cost table of a paper with a row for each subject.

    Attributes:
        name: "simtde", "xayn" or "cmow".
        source: The paper and its table.
        columns: Column titles with units; the first is the subject's name.
        rows: One row for each subject, as text.
        notes: The method, and its differences from the paper's.
        samples: Raw samples by subject and by name, such as "pass_s" for seconds per pass.
        machine: The machine.
        load: Load of the machine by other work.
        created_utc: Time of the measurement, ISO 8601.
    """

    name: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    samples: dict[str, dict[str, Any]]
    machine: Machine
    load: Load
    created_utc: str

    def to_dict(self) -> dict[str, Any]:
        """Return the table and its raw samples as built-in types."""
        return {"schema_version": SCHEMA_VERSION, "kind": "edgeembed paper table"} | asdict(self)

    def _markdown(self) -> str:
        return markdown_document(self.source, _table(self), _notes(self))

    def _html(self, *, is_page: bool) -> str:
        return html_document(self.source, _table(self), _notes(self), is_page=is_page)


@dataclass(frozen=True)
class OpenSubjects:
    """Running processes of the subjects of a table.

    Attributes:
        workers: The processes, by subject name.
        info: Properties of the subjects' models, by name.
        machine: The machine.
        watch: Load of the machine since the processes started.
        created_utc: Time of the start, ISO 8601.
    """

    workers: dict[str, Worker]
    info: dict[str, ModelInfo]
    machine: Machine
    watch: LoadWatch
    created_utc: str

    def table(self, name: str, source: str, **content: Any) -> PaperTable:
        """Return a table measured with these processes.

        Args:
            name: Name of the table.
            source: The paper and its table.
            content: Columns, rows, notes and samples.
        """
        return PaperTable(
            name, source, machine=self.machine, load=self.watch.load(), created_utc=self.created_utc, **content
        )


@contextlib.contextmanager
def open_subjects(subjects: Sequence[Subject], text: str, threads: int) -> Iterator[OpenSubjects]:
    """Start one process of each subject, all on the same cores, and end them after the `with` block.

    Args:
        subjects: The subjects; their names must differ.
        text: The text that each subject encodes first.
        threads: Number of threads and cores that each may use.

    Raises:
        InputError: If there are no subjects, two share a name, or there are fewer cores than threads.
        CheckError: If a subject fails.
    """
    check_names([subject.name for subject in subjects], None)
    check_threads(threads)
    machine, watch = this_machine(), LoadWatch()
    created_utc = datetime.now(UTC).isoformat(timespec="seconds")
    with pin_to_cores(threads), contextlib.ExitStack() as stack:
        workers = {
            subject.name: stack.enter_context(start_worker(subject, text, threads=threads)) for subject in subjects
        }
        info = {subject.name: read_model_info(subject, workers[subject.name]) for subject in subjects}
        yield OpenSubjects(workers, info, machine, watch, created_utc)


def check_counts(**counts: int) -> None:
    """Raise InputError if one of some numbers of things is below 1.

    Args:
        counts: The numbers, by name.

    Raises:
        InputError: If one is too small.
    """
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{name}: {count} given; expected at least 1")


def cost_options(command: Command) -> Command:
    """Add the arguments and options of every cost table to a command."""
    options = (
        click.argument("models", metavar="SUBJECT...", nargs=-1, required=True),
        click.option("--against", metavar="SUBJECT", multiple=True, help="More rows. Repeatable."),
        click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1), help="Per subject."),
        click.option("--seed", default=0, show_default=True, help="Of the order in which subjects take turns."),
        click.option("--out", type=click.Path(path_type=Path), help="Write the table, with all samples, as JSON."),
        click.option("--html", type=click.Path(path_type=Path), help="Write a self-contained page."),
        click.option("--markdown", type=click.Path(path_type=Path), help="Write the table as Markdown."),
        click.option("--force", is_flag=True, help="Replace existing files."),
        click.option("--json", "as_json", is_flag=True, help="Print the table as JSON."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def print_table(
    measure: Callable[[], PaperTable],
    *,
    out: Path | None,
    html: Path | None,
    markdown: Path | None,
    force: bool,
    as_json: bool,
    inputs: Sequence[str] = (),
) -> None:
    """Measure a table, write the files that are wanted, and print it.

    Args:
        measure: Measures the table.
        out: File for the table and all samples as JSON; None writes none.
        html: File for a page; None writes none.
        markdown: File for the table as Markdown; None writes none.
        force: Whether existing files are replaced.
        as_json: Whether to print the table as JSON.
        inputs: Files that are read, which are never replaced.

    Raises:
        InputError: If a file exists, before anything is measured.
    """
    written = Outputs({"json": out, "html": html, "markdown": markdown}, force=force, inputs=inputs)
    filled = measure()
    written.write("json", filled.to_json)
    written.write("html", filled.to_html)
    written.write("markdown", filled.to_markdown)
    if as_json:
        print_result(filled, as_json=True)
        return
    from rich.console import Console

    Console().print(terminal_document(_table(filled), [filled.source, *_notes(filled)]))


def _table(filled: PaperTable) -> Table:
    first, *columns = filled.columns
    return Table(first, ("subject", *columns), filled.rows, legend="")


def _notes(filled: PaperTable) -> list[str]:
    return [*filled.notes, *filled.load.reasons, filled.machine.cpu]
