"""Write what results come from, besides data: the versions of libraries, fingerprints of our code, resolved recipes.

    python -m experiments.sources.sources experiments

Writes OUT/sources/KIND.json for each kind of stage in params.yaml: Python's and the libraries' versions, and a
fingerprint of each of our subpackages that such a stage runs. Comments, docstrings and layout do not count. And
OUT/sources/PIPELINE/GROUP/STUDENT.json for each student: what the kind `train` has, its recipe with all settings, and
the other options of its training. A stage that depends on these files is stale when a version, the code or a recipe
changes.
"""

import ast
import hashlib
import json
import platform
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from edgeembed import load_recipe
from experiments.parameters import Parameters, assignments, lookup, read_parameters
from experiments.student import student_options

ROOT = Path(__file__).parents[2]


def code_fingerprint(files: Iterable[Path]) -> str:
    """Return a hash of what Python files do: of their syntax trees without docstrings."""
    digest = hashlib.sha256()
    for file in sorted(files):
        tree = ast.parse(file.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                documented = ast.get_docstring(node) is not None
                node.body = node.body[1:] if documented else node.body
        digest.update(f"{file.name}\n{ast.dump(tree)}\n".encode())
    return digest.hexdigest()[:16]


def code(folders: Iterable[str], without: Iterable[str]) -> dict[str, str]:
    """Return the fingerprint of each subpackage of some folders of ours.

    Args:
        folders: Folders, relative to the root of the repository.
        without: Folders in them to leave out.
    """
    packages: dict[str, list[Path]] = defaultdict(list)
    left_out = [ROOT / each for each in without]
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if not any(file.is_relative_to(each) for each in left_out):
                packages[file.parent.relative_to(ROOT).as_posix()].append(file)
    return {name: code_fingerprint(files) for name, files in packages.items()}


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of those libraries that are installed."""
    installed = {name.lower(): version for name, version in _installed()}
    return {"python": platform.python_version()} | {each: installed[each] for each in libraries if each in installed}


def _installed() -> Iterable[tuple[str, str]]:
    return ((each.metadata["Name"], each.version) for each in metadata.distributions() if each.metadata["Name"])


def students(parameters: Parameters) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the options of each student's training by its group and name, with its recipe in full: no classifiers.

    Raises:
        InputError: If a recipe or one of its settings does not exist.
    """
    found = {}
    for name, group in parameters.items():
        if isinstance(group, Mapping) and "rows" in group and "tasks" not in group:
            for row in group["rows"]:
                options = student_options(group, row)
                recipe = load_recipe(options.pop("recipe"), assignments(options.pop("set", {}))).to_dict()
                found[name, row] = {"recipe": recipe, "options": options}
    return found


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Write them."""
    parameters = read_parameters(folder / "sources")
    out = Path(parameters["out"], "sources")
    kinds = {
        kind: {"versions": versions(parts["libraries"]), "code": code(parts["code"], parts.get("without", []))}
        for kind, parts in lookup(parameters, "kinds").items()
    }
    for kind, found in kinds.items():
        _write(out / f"{kind}.json", found)
    for pipeline in sorted(folder.glob("*/params.yaml")):
        for (group, row), options in students(read_parameters(pipeline.parent)).items():
            _write(out / pipeline.parent.name / group / f"{row}.json", options | kinds["train"])


if __name__ == "__main__":
    main()
