"""Every stage of every pipeline names commands, options, recipes, parameters and files that exist."""

import functools
import importlib
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import click
import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.cli.main import group as edgeembed
from experiments import reproduce
from experiments.cmow.classifier import classifier_line
from experiments.parameters import lookup, read_parameters
from experiments.run import command_line
from experiments.sources.sources import students
from experiments.stages import Stage, read_stages
from experiments.student import student_line

ROOT = Path(__file__).parents[2]
SHELL = {"cp", "mkdir", "rm", "head", "echo", "git", "tar", "true", "["}


@pytest.fixture(scope="module", params=["full", "small"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all pipelines, at both scales."""
    if request.param == "full":
        return ROOT / "experiments"
    small = tmp_path_factory.mktemp("small")
    reproduce.write_small(small)
    return small


@pytest.fixture(autouse=True)
def files_need_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda *arguments: Path(arguments[1]))
    monkeypatch.setattr(click.File, "convert", lambda *arguments: arguments[1])
    monkeypatch.chdir(ROOT)


@functools.cache
def stages_of(folder: Path, name: str) -> list[Stage]:
    return list(read_stages(folder / name))


def all_outs(folder: Path) -> list[str]:
    return [out for name in reproduce.pipelines() for stage in stages_of(folder, name) for out in stage.outs]


@pytest.mark.parametrize("name", reproduce.pipelines())
def test_every_command_parses(folder: Path, name: str) -> None:
    for stage in stages_of(folder, name):
        for command in stage.commands:
            for line in programs(command):
                try:
                    check(located(line, folder))
                except (click.ClickException, InputError, KeyError, LookupError) as error:
                    message = error.format_message() if isinstance(error, click.ClickException) else error
                    pytest.fail(f"{stage.name}: {shlex.join(line)}: {message}")


@pytest.mark.parametrize("name", reproduce.pipelines())
def test_every_recipe_exists_with_its_settings(folder: Path, name: str) -> None:
    for student, found in students(read_parameters(folder / name)).items():
        assert found["options"].keys() & {"corpus", "parallel", "pairs", "scored"}, f"{student} learns from nothing"


@pytest.mark.parametrize(
    "name", [each for each in reproduce.pipelines() if (ROOT / f"experiments/{each}/params.yaml").is_file()]
)
def test_the_settings_of_students_that_are_not_trained_are_valid_too(name: str) -> None:
    parameters = read_parameters(ROOT / "experiments" / name)
    for group in parameters.values():
        if isinstance(group, dict) and "rows" in group and "with" in group and "tasks" not in group:
            students({"all": group | {"rows": list(group["with"])}})


@pytest.mark.parametrize("name", reproduce.pipelines())
def test_every_parameter_and_dependency_exists(folder: Path, name: str) -> None:
    shared = read_parameters(folder / name)
    outs = set(all_outs(folder))
    above_outs = outs | {str(each) for out in outs for each in Path(out).parents}
    for stage in stages_of(folder, name):
        for names in stage.params.values():
            for parameter in names:
                lookup(shared, parameter)
        for dependency in stage.deps:
            made = dependency in above_outs or any(str(each) in outs for each in Path(dependency).parents)
            is_data = Path(dependency).is_relative_to(shared["data"])
            assert made or is_data or (ROOT / dependency).exists(), f"{stage.name}: {dependency} does not exist"


def test_every_output_is_written_by_one_stage(folder: Path) -> None:
    outs = all_outs(folder)
    assert len(outs) == len(set(outs))


def test_rates_are_texts(folder: Path) -> None:
    """A number would be written in other ways by each reader of YAML: 1e-3, 0.001."""
    for name in reproduce.pipelines():
        for group in read_parameters(folder / name).values():
            if isinstance(group, dict):
                assert all(isinstance(rate, str) for rate in group.get("rates", []))


@pytest.mark.parametrize(
    "document", sorted({*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")}), ids=lambda file: file.name
)
def test_the_commands_of_a_document_name_stages_and_modules_that_exist(document: Path) -> None:
    text = " ".join(document.read_text(encoding="utf-8").split())
    pattern = r'make reproduce WHAT=([\w-]+)(?: STAGES=(?:"([^"]+)"|([\w-]+)))?'
    for what, several, one in re.findall(pattern, text):
        if what != "NAME":
            known = {stage.name.partition(":")[2].partition("@")[0] for stage in stages_of(ROOT / "experiments", what)}
            unknown = {*several.split(), *filter(None, [one])} - known
            assert not unknown, f"{document.name}: {what} has no stages {unknown}"
    for file in re.findall(r"`experiments/([\w/.-]+)`", text):
        of_earlier_commit = file.endswith(".sh")
        exists = (ROOT / "experiments" / file).exists()
        assert exists or of_earlier_commit or file.startswith("NAME/"), (
            f"{document.name}: experiments/{file} does not exist"
        )


def programs(command: str) -> Iterator[list[str]]:
    """Yield the programs of a shell command with their arguments, without redirections."""
    words = shlex.split(command)
    line: list[str] = []
    for word in [*words, ";"]:
        if word in {"&&", "||", "|", ";"}:
            if line:
                yield line[: line.index(">")] if ">" in line else line
            line = []
        else:
            line.append(word)


def located(line: list[str], folder: Path) -> list[str]:
    """Return a command with the pipelines of the small scale where the test has them."""
    return [word.replace("build/small/", f"{folder}/", 1) if is_pipeline(word) else word for word in line]


def is_pipeline(word: str) -> bool:
    return word.removeprefix("build/small/") in reproduce.pipelines()


def check(line: list[str]) -> None:
    """Check that a program exists, and that it accepts its arguments."""
    program, *arguments = line
    if program == "edgeembed":
        check_edgeembed(arguments)
    elif program == "make":
        planned = [each for each in arguments if "=" not in each]
        subprocess.run(["make", "--dry-run", *planned], capture_output=True, check=True)
    elif program == "python" and arguments[0] == "-m" and arguments[1].startswith("experiments."):
        check_module(arguments[1], arguments[2:])
    elif program == "python":
        assert arguments[0] == "-c" or arguments[1] == "pip"
    else:
        assert program in SHELL, f"{program} is none of {SHELL}"


def check_edgeembed(arguments: list[str]) -> None:
    name, *rest = arguments
    context = click.Context(edgeembed)
    command = edgeembed.get_command(context, name)
    assert command is not None, f"edgeembed has no command {name}"
    command.make_context(name, rest, parent=context)


def _is_command(found: object) -> TypeGuard[click.Command]:
    return isinstance(found, click.Command)


def check_module(name: str, arguments: list[str]) -> None:
    module = importlib.import_module(name)
    command = next(each for each in (getattr(module, name, None) for name in ("main", "command")) if _is_command(each))
    context = command.make_context(name, list(arguments))
    given = context.params
    if isinstance(command, click.Group):
        subcommand = command.commands[arguments[0]]
        subcommand.make_context(arguments[0], arguments[1:], parent=context)
    if name == "experiments.run":
        rest = given["rest"]
        first = next((index for index, each in enumerate(rest) if each.startswith("-")), len(rest))
        line = command_line(given["folder"], given["command"], rest[:first], rest[first:])
        check_module(line[0], line[1:]) if "." in line[0] else check_edgeembed(line)
    elif name == "experiments.student":
        line = student_line(given["folder"], given["group"], given["row"], rate=given["rate"], seed=given["seed"] or 0)
        check_edgeembed([*line, "--out", "out"])
    elif name == "experiments.cmow.classifier":
        parts = (given["group"], given["row"], given["task"])
        line = classifier_line(read_parameters(given["folder"]), *parts, rate="1e-3", seed=0)
        check_edgeembed([*line, "--out", "out"])
    elif name == "experiments.export.bundle":
        line = command_line(given["folder"], "export", [given["name"]], [*given["options"], "--out", "out"])
        check_edgeembed(line)
