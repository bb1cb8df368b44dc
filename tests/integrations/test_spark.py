"""Spark: the `pandas_udf` of docs/encoding.md encodes a column, and `Index.build_from` reads what Spark writes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Encoder, Index, InputError

pyspark = pytest.importorskip("pyspark.sql", reason="make test-integrations installs pyspark")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def _has_java() -> bool:
    """Return whether the Java that Spark would start runs."""
    home = os.environ.get("JAVA_HOME")
    command = [f"{home}/bin/java" if home else "java", "-version"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _has_java(), reason="Spark needs Java: apt-get install openjdk-17-jre-headless")

_PAGE = (Path(__file__).parents[2] / "docs" / "encoding.md").read_text(encoding="utf-8")
_SECTION = _PAGE.partition("## With Spark\n")[2].partition("\n## ")[0]
_RECIPE, _INDEX = re.findall(r"^```python\n(.*?)^```$", _SECTION, re.DOTALL | re.MULTILINE)


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a session in an empty folder, in which Java then resolves relative paths."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # else the first Python on PATH
    builder = pyspark.SparkSession.builder.master("local[2]")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def write_documents(folder: Path, ids: list[str], texts: list[str], years: list[int]) -> None:
    """Write the documents and one without a text to two files, so that there are two tasks."""
    folder.mkdir()
    for part in range(2):
        rows = {"id": ids[part::2], "text": texts[part::2], "year": years[part::2]}
        without_text = pa.table({"id": [f"none-{part}"], "text": pa.array([None], pa.string()), "year": [2000]})
        pq.write_table(pa.concat_tables([pa.table(rows), without_text]), folder / f"{part}.parquet")


@pytest.mark.timeout(600)
def test_the_recipe_encodes_documents_for_an_index(spark: Any, tmp_path: Path) -> None:
    texts = [f"How to bake bread number {number}" for number in range(40)]
    ids, years = [f"bread-{number}" for number in range(40)], list(range(2000, 2040))
    write_documents(tmp_path / "documents", ids, texts, years)

    exec(compile(_RECIPE, "encoding.md", "exec"), {"__name__": "recipe"})  # noqa: S102 - text of this repository
    exec(compile(_INDEX, "encoding.md", "exec"), {"__name__": "recipe"})  # noqa: S102

    encoder = Encoder("nano")
    index = Index.open(tmp_path / "index", encoder)
    found = {each.id: (each.text, each.metadata) for each in index}
    assert found == {ids[i]: (texts[i], {"year": years[i]}) for i in range(40)}
    hits, expected = (each.search("bread number 7", top_k=5) for each in (index, Index.build(encoder, texts, ids=ids)))
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in expected], atol=1e-6)

    (tmp_path / "embedded" / "_temporary").mkdir()
    with pytest.raises(InputError, match="is incomplete: it holds the folder _temporary of a job that did not end"):
        Index.build_from(encoder, "embedded", "other")
