"""The notebooks in docs/ run from the first cell to the last."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent.parent / "docs" / "notebooks"

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # its types are partial
    NotebookClient(notebook, timeout=800, resources={"metadata": {"path": str(tmp_path / "notebooks")}}).execute()
    code = [line for cell in notebook.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    assert len([line for line in code if line.strip()]) < 25
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert sum(output.output_type == "execute_result" for output in shown) >= 5
