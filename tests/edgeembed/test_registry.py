"""Registries, and the plugins that add to them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.plugins import PluginWarning, load_plugins, recipe_folders
from edgeembed.registry import Registry


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[object]]:
    """Registry of a package that has one module, which registers one class."""
    package = tmp_path / "shapes_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from edgeembed.registry import Registry\nSHAPES = Registry('shape', __name__, 'shapes')\n", encoding="utf-8"
    )
    (package / "circle.py").write_text(
        "from shapes_of_a_test import SHAPES\n\n@SHAPES.register('circle')\nclass Circle: ...\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import shapes_of_a_test  # type: ignore[import-not-found]

    yield shapes_of_a_test.SHAPES
    for name in [each for each in sys.modules if each.startswith("shapes_of_a_test")]:
        del sys.modules[name]


def test_modules_of_the_package_are_found(shapes: Registry[object]) -> None:
    assert list(shapes) == ["circle"]
    assert shapes["circle"].__name__ == "Circle"
    assert "circle" in shapes
    assert "square" not in shapes


def test_unknown_name_is_refused_with_the_known_ones(shapes: Registry[object]) -> None:
    with pytest.raises(InputError) as raised:
        shapes["cirle"]
    assert str(raised.value) == "no shape is called cirle; did you mean circle? expected one of: circle"


def test_name_of_another_class_is_refused(shapes: Registry[object]) -> None:
    circle = shapes["circle"]
    shapes.register("circle")(circle)
    with pytest.raises(InputError, match=r"^the shape circle of .* is registered already, by shapes_of_a_test\.circle"):
        shapes.register("circle")(type("Circle", (), {}))


def _installed(folder: Path, package: str, source: str) -> None:
    """Install a plugin of one package in a folder, as pip would."""
    (folder / package / "recipes").mkdir(parents=True)
    (folder / package / "__init__.py").touch()
    (folder / package / "shapes").mkdir()
    (folder / package / "shapes" / "__init__.py").touch()
    (folder / package / "shapes" / "square.py").write_text(source, encoding="utf-8")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[edgeembed.plugins]\n{package} = {package}\n", encoding="utf-8")


@pytest.fixture
def fresh_plugins() -> Iterator[None]:
    load_plugins.cache_clear()
    yield
    load_plugins.cache_clear()


@pytest.mark.usefixtures("fresh_plugins")
def test_plugin_is_imported_once_and_its_recipes_are_found_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(tmp_path, "plugin_of_a_test", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert recipe_folders()["plugin_of_a_test"] == tmp_path / "plugin_of_a_test" / "recipes"
    assert "plugin_of_a_test" not in sys.modules
    assert "plugin_of_a_test" not in load_plugins("colors")
    assert "plugin_of_a_test.shapes" not in sys.modules
    assert "plugin_of_a_test" in load_plugins("shapes")
    del sys.modules["plugin_of_a_test.shapes.square"]
    load_plugins("shapes")
    assert "plugin_of_a_test.shapes.square" not in sys.modules


@pytest.mark.usefixtures("fresh_plugins")
def test_broken_plugin_is_left_out_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(tmp_path, "broken_plugin_of_a_test", "raise OSError('two\\nlines')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(PluginWarning) as warned:
        loaded = load_plugins("shapes")
    assert "broken_plugin_of_a_test" not in loaded
    (line,) = [str(each.message) for each in warned]
    assert line == (
        "the plugin broken_plugin_of_a_test (broken_plugin_of_a_test.shapes) cannot be imported and is left out: "
        "OSError: two lines; repair or uninstall it"
    )


def test_registry_and_plugins_import_no_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import edgeembed.registry, sys; sys.exit('torch' in sys.modules)"], check=False
    )
    assert done.returncode == 0
