"""Run a command of edgeembed, or a script, with the options that a pipeline's parameters give it.

    python -m experiments.run experiments/simtde evaluate scores --out build/scores.json
    python -m experiments.run experiments/simtde experiments.folder_facts rates --out build/rates.json

The first argument is the pipeline's folder, the second the command or the script's module. Parameters follow, by dotted
names, each a mapping of options; later ones replace earlier ones. Everything from the first option on is appended.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from experiments.parameters import arguments, lookup, merge, read_parameters

# glibc otherwise returns the memory of each training step to the system, which has to clear it again for the next one.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
_TRAINING = ("distill", "finetune")


def command_line(folder: Path, command: str, names: Sequence[str], extra: Sequence[str] = ()) -> list[str]:
    """Return a command or module, and its arguments with the options of some parameters."""
    parameters = read_parameters(folder)
    options = merge(*(lookup(parameters, name) for name in names))
    return [command, *arguments(options, parameters), *extra]


def run_command(line: Sequence[str], stdout: IO[str] | None = None) -> None:
    """Run a command of edgeembed or a module of ours, offline.

    Args:
        line: The command or the module, and its arguments.
        stdout: Where its output goes; None for that of this process.

    Raises:
        SystemExit: If it fails, with its exit status.
    """
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"} | (_KEEP_MEMORY if line[0] in _TRAINING else {})
    module = [] if "." in line[0] else ["edgeembed.cli.main"]
    program = [sys.executable, "-m", *module, *line]
    status = subprocess.run(program, env=environment, stdout=stdout, check=False)  # noqa: S603  # our own command
    if status.returncode:
        raise SystemExit(status.returncode)


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("command")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED)
def main(folder: Path, command: str, rest: tuple[str, ...]) -> None:
    """Run it."""
    first = next((index for index, each in enumerate(rest) if each.startswith("-")), len(rest))
    run_command(command_line(folder, command, rest[:first], rest[first:]))


if __name__ == "__main__":
    main()
