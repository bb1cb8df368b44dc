"""Every example of docs/integrations.md runs, with the versions that the page names."""

import importlib.metadata
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
_INTRODUCTION, *_SECTIONS = re.split(r"^## ", _PAGE, flags=re.MULTILINE)
_MODULES = {
    "LangChain": "langchain_core",
    "LlamaIndex": "llama_index.core",
    "Haystack": "haystack",
    "Chroma": "chromadb",
    "LanceDB": "lancedb",
    "scikit-learn": "sklearn",
    "spaCy": "spacy",
    "sqlite-vec": "sqlite_vec",
    "DuckDB": "duckdb",
}


def _code(section: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", section, flags=re.DOTALL | re.MULTILINE))


_EXAMPLES = {section.partition("\n")[0]: _code(section) for section in _SECTIONS if _code(section)}


@pytest.mark.parametrize("name", _EXAMPLES)
@pytest.mark.filterwarnings("ignore:.*W007")
def test_the_example_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(_MODULES[name], reason=f"make test-integrations installs {name}")
    monkeypatch.chdir(tmp_path)
    code = _code(_INTRODUCTION) + _EXAMPLES[name]
    expected = re.findall(r"^(?:print.*?|)# (.*)$", code, flags=re.MULTILINE)
    assert expected
    for _ in range(2):
        exec(compile(code, "integrations.md", "exec"), {"__name__": "example"})  # noqa: S102 - text of this repository
        for line, pattern in zip(capsys.readouterr().out.splitlines(), expected, strict=True):
            assert re.fullmatch(re.escape(pattern).replace(r"\.\.\.", r"\d+"), line)


def test_every_library_of_the_table_has_an_example() -> None:
    assert list(_EXAMPLES) == list(_MODULES) == re.findall(r"^\| ([^|]+) \| [a-z].*\d", _INTRODUCTION, re.MULTILINE)


def test_the_page_and_the_requirements_name_the_installed_versions() -> None:
    lines = (_ROOT / "requirements-integrations.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    named = dict(re.findall(r"([a-z-]+) (\d+(?:\.\d+)+)", _INTRODUCTION))
    assert named.items() <= pinned.items()
    try:
        importlib.metadata.version("llama-index-core")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("make test-integrations installs these versions")
    assert {name: importlib.metadata.version(name) for name in pinned} == pinned


def test_the_example_of_the_runtimes_readme_runs() -> None:
    pytest.importorskip("langchain_core", reason="make test-integrations installs LangChain")
    text = (_ROOT / "runtime" / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if "edgeembed_runtime.integrations" in block)
    block += "assert embeddings.embed_query('bread')"
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - text of this repository
