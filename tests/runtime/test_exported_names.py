"""The public names of the package, and the modules that importing it loads."""

import subprocess
import sys

import edgeembed_runtime
import pytest


def test_all_is_sorted_and_exact() -> None:
    assert list(edgeembed_runtime.__all__) == sorted(edgeembed_runtime.__all__)
    assert edgeembed_runtime.__all__ == [
        "Bundle",
        "BundleError",
        "Center",
        "CheckError",
        "Classifier",
        "Document",
        "EdgeEmbedError",
        "Encoder",
        "Engine",
        "Hit",
        "Index",
        "InputError",
        "InterestSettings",
        "MissingExtraError",
        "Passage",
        "PassageSettings",
        "Prediction",
        "RelevanceRanker",
        "RoleWarning",
        "SemanticRanker",
        "TextInfo",
        "TruncationWarning",
        "UnknownTextWarning",
        "VerificationError",
        "__version__",
    ]


def test_every_exported_name_exists_and_is_listed() -> None:
    for name in edgeembed_runtime.__all__:
        assert getattr(edgeembed_runtime, name) is not None
        assert name in dir(edgeembed_runtime)


def test_dir_lists_exactly_the_public_names() -> None:
    assert dir(edgeembed_runtime) == sorted(edgeembed_runtime.__all__)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = edgeembed_runtime.NoSuchName


@pytest.mark.parametrize(
    "statement",
    [
        "import edgeembed_runtime",
        "from edgeembed_runtime.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    ],
)
def test_import_and_help_load_no_heavy_library(statement: str) -> None:
    heavy = "{'numpy', 'onnxruntime', 'tokenizers', 'torch'}"
    code = f"{statement}\nimport sys\nassert not {heavy} & set(sys.modules), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_loading_the_encoder_class_loads_no_onnxruntime() -> None:
    code = "from edgeembed_runtime import Encoder\nimport sys\nassert 'onnxruntime' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
