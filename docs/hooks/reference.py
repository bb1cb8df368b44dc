"""MkDocs hook: generate the reference pages from the code, so that they cannot differ from it."""

import argparse
import inspect
import json
import logging
import os
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin, get_type_hints

import click
import edgeembed_runtime
import griffe
from edgeembed_exporters.precision import PRECISIONS, precision_names
from edgeembed_runtime.cli.main import _parser as runtime_parser
from edgeembed_runtime.manifest import SCHEMA_VERSION, Manifest
from edgeembed_runtime.parity import ClassifierParity, Parity, WorstPrediction, WorstSentence
from edgeembed_runtime.storage.folder_kind import FileRecord
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel

import edgeembed
from edgeembed.cli.main import group
from edgeembed.evaluation import TASKS
from edgeembed.export_settings import ExportSettings
from edgeembed.losses.base import LOSSES
from edgeembed.recipe.schema import Recipe
from edgeembed.students.base import STUDENTS

_LOG = logging.getLogger("mkdocs.hooks.reference")
_WIDTH = "80"
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}

_EDGEEMBED = """# Python: edgeembed

Every public name can be imported from the package: `edgeembed.distill`, `edgeembed.export` and so on. Importing the
package is fast; a function loads what it needs when it is used.
"""

_RUNTIME = """# Python: edgeembed_runtime

Every public name can be imported from the package: `from edgeembed_runtime import Encoder`. [The runtime, task by
task](../runtime.md) introduces them with examples.
"""

_CLI = """# Command line: {name}

The text that `--help` prints, for every command.
"""

_RECIPE = """# Recipe settings

A recipe is a TOML file with these settings. `edgeembed recipes NAME` prints one with every setting spelled out, and
`--set student.layers=2` changes one. [Distill a
student](../distilling.md#change-a-recipe) has an example. A setting that does not
exist, has the wrong type or is out of range is an error that names it.
"""

_EXPORT = """# Export settings

The fields of `edgeembed.ExportSettings`. They are the keyword arguments of [`edgeembed.export`](edgeembed.md) and the
options of [`edgeembed export`](cli-edgeembed.md#edgeembed-export), where `max_size_mb` is `--max-size-mb`.
"""

_TASKS = """# Evaluation tasks

The tasks of [`edgeembed evaluate`](../evaluation.md), and their classes for [`edgeembed.evaluate`](edgeembed.md). Those
of a [plugin](../evaluation.md#a-task-of-your-own) are used in the same way.
"""

_BUNDLE = """# Bundle format

A bundle is a folder. `edgeembed.json` describes it; [What is in a bundle](../runtime.md#what-is-in-a-bundle) lists the
other files. This page describes schema version {version}. A reader ignores fields that it does not know and rejects
another schema version. `edgeembed-runtime info` prints the most important fields, and `edgeembed-runtime verify`
compares every file with its size and SHA-256.

The model takes int64 `input_ids` and `attention_mask` of shape (texts, tokens). An encoder returns float32
`sentence_embedding` of shape (texts, dimension), L2-normalized: pooling, head and normalization are part of the graph.
A bundle for the NumPy backend has a [tensor file](../tensor-file.md) instead.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    os.environ["COLUMNS"] = _WIDTH
    os.environ["NO_COLOR"] = "1"
    pages = {
        "edgeembed.md": _EDGEEMBED + _names(edgeembed),
        "edgeembed_runtime.md": _RUNTIME + _names(edgeembed_runtime),
        "cli-edgeembed.md": _CLI.format(name="edgeembed") + _click_help(),
        "cli-edgeembed-runtime.md": _CLI.format(name="edgeembed-runtime") + _argparse_help(),
        "recipe.md": _RECIPE + _settings_of(Recipe, "The recipe") + _registered(),
        "evaluation-tasks.md": _TASKS + _evaluation_tasks(),
        "export-settings.md": _EXPORT + _export_settings() + _precisions(),
        "bundle.md": _BUNDLE.format(version=SCHEMA_VERSION) + _manifest(),
    }
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}", content=content))
    return files


def _names(package: Any) -> str:
    """Return a directive of mkdocstrings for each public name of a package, errors and warnings last."""
    names = [name for name in package.__all__ if not name.startswith("_")]
    names.sort(key=lambda name: (name.endswith(("Error", "Warning")), name.lower()))
    return "".join(f"\n::: {package.__name__}.{name}\n" for name in names)


def _click_help() -> str:
    context = click.Context(group, info_name="edgeembed", max_content_width=int(_WIDTH))
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    helps = [
        _section(f"edgeembed {name}", command.get_help(click.Context(command, parent=context, info_name=name)))
        for name, command in commands.items()
        if command is not None
    ]
    return "".join([_section("edgeembed", group.get_help(context)), *helps])


def _argparse_help() -> str:
    return "".join(_section(parser.prog, parser.format_help()) for parser in _parsers(runtime_parser()))


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def _section(command: str, text: str) -> str:
    return f"\n## {command}\n\n```text\n{text.rstrip()}\n```\n"


def _evaluation_tasks() -> str:
    """Return a section per kind of task: what it takes, its settings and its class."""
    sections = []
    for name, task in TASKS.items():
        options = [(f"--{name} {task.metavar}", task.help)]
        for setting, (about, kind, default) in task.settings().items():
            shown = "" if default is None else f" Default: {default}."
            flag = f"--{name}-{setting.replace('_', '-')} {about.metavar or kind.__name__}"
            options.append((flag, f"{about.help}{shown}"))
        table = "".join("| `{}` | {} |\n".format(*(part.replace("|", r"\|") for part in each)) for each in options)
        summary = (inspect.getdoc(task) or "").partition("\n")[0]
        path = f"`{task.__module__}.{task.__qualname__}`"
        sections.append(f"\n## {name}\n\n{summary} {path}\n\n| option | |\n|---|---|\n{table}")
    return "".join(sections)


def _settings_of(kind: type[BaseModel], title: str) -> str:
    """Return a table for a class of settings, and one for each class that its fields refer to."""
    schema = kind.model_json_schema()
    definitions = schema.get("$defs", {})
    places: dict[str, list[str]] = {}
    _find_places(schema, definitions, "", places)
    sections = [f"\n## {title}\n\n{_settings_table(kind, schema)}"]
    classes = {each.__name__: each for each in _subclasses(BaseModel)}
    for name, paths in places.items():
        table = paths[0].rpartition(".")[0]
        heading = f"`{paths[0]}`" if len(paths) == 1 else f"`{table}`: {', '.join(_last(path) for path in paths)}"
        sections.append(f"\n## {heading}\n\n{_settings_table(classes[name], definitions[name])}")
    return "".join(sections)


def _registered() -> str:
    """Return a table for each kind of student and each loss that has settings of its own."""
    kinds: dict[str, type[BaseModel]] = {f"student.shape` of `{name}": kind for name, kind in STUDENTS.items()}
    kinds |= {f"stages.losses.{name}": loss for name, loss in LOSSES.items()}
    schemas = {path: kind.model_json_schema() for path, kind in kinds.items()}
    return "".join(
        f"\n## `{path}`\n\n{_settings_table(kinds[path], schema)}"
        for path, schema in schemas.items()
        if schema.get("properties")
    )


def _export_settings() -> str:
    rows = [
        (
            f"`{name}`",
            _cell(ExportSettings.expected(name)),
            _cell(ExportSettings.default_text(name) or ""),
            _cell(ExportSettings.help(name)),
        )
        for name in ExportSettings.model_fields
    ]
    return "\n" + _table(("setting", "value", "default", "meaning"), rows)


def _precisions() -> str:
    limits = ("min_cosine", "min_rank", "min_overlap", "min_label_agreement", "max_probability_difference")
    rows = []
    for name in precision_names():
        each = PRECISIONS[name]
        measured = _cell((inspect.getdoc(each) or "").partition("\n\n")[2])
        stated = (f"`{name}`", f"`{each.file}`", str(each.bits), ", ".join(each.backends))
        rows.append((*stated, *(f"{getattr(each, limit):g}" for limit in limits), measured))
    header = ("precision", "ONNX file", "bits per weight", "backends", *(f"`{limit}`" for limit in limits), "measured")
    return f"\n## Precisions and their default limits\n\n{_table(header, rows)}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _find_places(schema: dict[str, Any], definitions: dict[str, Any], path: str, places: dict[str, list[str]]) -> None:
    """Collect the dotted paths at which each definition is used, in the order of the fields."""
    for field, value in schema["properties"].items():
        for name in _references(value):
            places.setdefault(name, []).append(f"{path}{field}")
            _find_places(definitions[name], definitions, f"{path}{field}.", places)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rpartition("/")[2]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _references(item)


def _subclasses(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _settings_table(kind: type, schema: dict[str, Any]) -> str:
    descriptions = _descriptions(kind)
    rows = [
        (f"`{name}`", _value(field), _default(field), _description(kind, name, descriptions))
        for name, field in schema["properties"].items()
    ]
    return f"{_summary(kind)}\n\n{_table(('setting', 'value', 'default', 'meaning'), rows)}"


def _value(field: dict[str, Any]) -> str:
    """Describe the values that a JSON schema permits."""
    if "anyOf" in field:
        return " or ".join(_value(each) for each in field["anyOf"] if each.get("type") != "null")
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "$ref" in field:
        return "table"
    if field.get("type") == "array":
        return "list of tables" if "$ref" in field.get("items", {}) else "list"
    if field.get("type") == "object":
        return "table"
    bounds = [
        f"{sign} {field[name]:g}"
        for name, sign in (("exclusiveMinimum", ">"), ("minimum", "≥"), ("exclusiveMaximum", "<"), ("maximum", "≤"))
        if name in field
    ]
    names = {"boolean": "true, false", "integer": "integer", "number": "number", "string": "string"}
    return " ".join([names[field["type"]], ", ".join(bounds)]).strip()


def _default(field: dict[str, Any]) -> str:
    if "$ref" in field or field.get("type") == "array" or field.get("default") is None:
        return ""
    return f"`{json.dumps(field['default'])}`"


def _manifest() -> str:
    """Return the tables of the manifest's fields, from its classes."""
    kinds = {
        "edgeembed.json": Manifest,
        "files": FileRecord,
        "parity of an encoder": Parity,
        "worst_sentences of an encoder": WorstSentence,
        "parity of a classifier": ClassifierParity,
        "worst_sentences of a classifier": WorstPrediction,
    }
    return "".join(_class_section(title, kind) for title, kind in kinds.items())


def _class_section(title: str, kind: type) -> str:
    descriptions = _descriptions(kind)
    hints = get_type_hints(kind)
    if kind is Manifest:  # a property, parsed when it is read
        hints["parity"] = Parity
        descriptions["parity"] = (inspect.getdoc(Manifest.parity) or "").partition("\n")[0]
    rows = [(f"`{name}`", _type(hint), _description(kind, name, descriptions)) for name, hint in hints.items()]
    return f"\n## {title}\n\n{_summary(kind)}\n\n{_table(('field', 'type', 'meaning'), rows)}"


def _type(annotation: Any) -> str:
    """Return the JSON type of a manifest's field."""
    if isinstance(annotation, types.UnionType):
        return " or ".join(_type(each) for each in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"list of {_type(get_args(annotation)[0])}"
    if annotation is types.NoneType:
        return "null"
    return _JSON_TYPES.get(get_origin(annotation) or annotation, "object")


def _descriptions(kind: type) -> dict[str, str]:
    """Return the descriptions of a class's attributes, from its docstring and those of its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("edgeembed"):
            for section in griffe.Docstring(inspect.cleandoc(each.__doc__ or "")).parse("google", warnings=False):
                if section.kind is griffe.DocstringSectionKind.attributes:
                    found |= {attribute.name: attribute.description for attribute in section.value}
    return found


def _description(kind: type, name: str, descriptions: dict[str, str]) -> str:
    if name not in descriptions:
        _LOG.warning("%s.%s is not described in the docstring's Attributes", kind.__name__, name)
    return _cell(descriptions.get(name, ""))


def _summary(kind: type) -> str:
    """Return a docstring without its sections."""
    text = inspect.cleandoc(kind.__doc__ or "")
    return re.split(r"\n(?:Args|Raises|Attributes):", text)[0].strip()


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
