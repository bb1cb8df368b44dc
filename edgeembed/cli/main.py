"""The `edgeembed` command line: import each command on first use, and report errors in one line."""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click
from edgeembed_runtime.errors import CheckError, EdgeEmbedError, InputError, one_line
from edgeembed_runtime.termination import Terminated, Terminations, raised_terminations

from edgeembed.cli.output import prepare_stdout
from edgeembed.processes import LostProcessError

_COMMANDS = {
    "demo": "Distill, export, search and benchmark on text that comes with Python.",
    "augment": "Augment a corpus with synonyms or back-translation.",
    "mine": "Find hard negatives for labeled pairs.",
    "encode": "Encode a corpus of any size, on this machine or on a Ray cluster.",
    "distill": "Distill a compact student from a teacher.",
    "recipes": "List the recipes, or print one as TOML.",
    "vocab": "Train or trim a vocabulary and report its coverage.",
    "export": "Export a model to a quantized ONNX bundle, behind a quality gate.",
    "verify": "Check a bundle's files, and its embeddings on this machine.",
    "finetune": "Train a text classifier on top of an encoder.",
    "evaluate": "Score models or bundles on similarity, retrieval and other tasks.",
    "bench": "Benchmark latency, energy, size and memory of models, side by side.",
    "compare": "Compare two benchmark reports.",
}


# Commands whose result is what they print. Others print a summary of the file or folder that they wrote.
_PRINTING = {"recipes", "evaluate", "bench", "compare"}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"edgeembed.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS:
            close = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"expected one of: {', '.join(_COMMANDS)}"
            ctx.fail(f"no command called {args[0]}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="edgeembed")
def group() -> None:
    """Make sentence encoders small enough for a phone, measure what they cost, and run them.

    Results go to stdout, progress to stderr. Exit codes: 0 done, 1 a check or gate failed, 2 bad input,
    129 SIGHUP, 130 Ctrl-C, 141 broken pipe, 143 SIGTERM.
    """


def main(arguments: Sequence[str] | None = None, *, command: click.Command = group) -> NoReturn:
    """Run the command line and exit with its exit code.

    Args:
        arguments: The arguments after `edgeembed`; None uses those of the process.
        command: The command that takes them; a plugin may have one of its own.
    """
    # Progress is reported by our own reporter, on stderr.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    sys.exit(_run_until_signal(arguments, command))


def _run_until_signal(arguments: Sequence[str] | None, command: click.Command) -> int:
    with raised_terminations() as terminations:
        try:
            code = _run(arguments, terminations, command)
            terminations.ignore()
        except Terminated as error:
            code = _report_interrupted("terminated", error.exit_code)
    return code


def _run(arguments: Sequence[str] | None, terminations: Terminations, command: click.Command) -> int:
    try:
        prepare_stdout()
        _expect_stdout(sys.argv[1:] if arguments is None else arguments)
        code = command.main(arguments, prog_name="edgeembed" if command is group else None, standalone_mode=False)
    except (KeyboardInterrupt, click.exceptions.Abort):
        code = _report_interrupted("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141  # as shells report a closed pipe
    except (click.ClickException, EdgeEmbedError, ImportError, OSError) as error:
        if terminations.first and isinstance(error, ImportError):  # the signal interrupted an import
            raise terminations.first from error
        code = _report_error(error)
    return code if isinstance(code, int) else 0


def _report_error(error: Exception) -> int:
    """Print what is known about the error in one line, and return the exit code. Raise any other."""
    match error:
        case click.ClickException():
            return _report(error.format_message(), 2)
        case EdgeEmbedError():
            return _report(str(error), 1 if isinstance(error, CheckError | LostProcessError) else 2)
        case OSError():
            return _report(f"{error.filename or 'the system'}: {error.strerror or error}", 2)
    raise error


def _expect_stdout(arguments: Sequence[str]) -> None:
    """Raise InputError if the result goes to stdout, which is closed: no work is done for a result that is lost."""
    if sys.stdout is None and (not _PRINTING.isdisjoint(arguments[:1]) or "--json" in arguments):
        raise InputError("stdout is closed; expected a place for the result: leave it open, or redirect it")


def _report_interrupted(happened: str, code: int) -> int:
    return _report(f"{happened}; nothing was left half-written", code)


def _report(message: str, code: int) -> int:
    click.echo(f"edgeembed: {one_line(message)}", err=True)
    return code


if __name__ == "__main__":
    main()
