import subprocess
import sys

import edgeembed_bench
import pytest


def test_importing_all_public_names_imports_neither_edgeembed_nor_torch() -> None:
    code = (
        "import sys, edgeembed_bench\n"
        "for name in edgeembed_bench.__all__: getattr(edgeembed_bench, name)\n"
        "print({'edgeembed', 'torch', 'pyJoules'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_package_and_worker_import_only_the_standard_library() -> None:
    code = (
        "import sys; before = {*sys.modules}\n"
        "import edgeembed_bench, edgeembed_bench.worker.adapters\n"
        "names = {name.partition('.')[0] for name in {*sys.modules} - before}\n"
        "print(names - {'edgeembed_bench'} - sys.stdlib_module_names)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_public_names_are_sorted_and_listed_by_dir() -> None:
    assert edgeembed_bench.__all__ == sorted(edgeembed_bench.__all__)
    assert set(edgeembed_bench.__all__) <= set(dir(edgeembed_bench))
    for name in edgeembed_bench.__all__:
        assert getattr(edgeembed_bench, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        edgeembed_bench.nothing  # noqa: B018
