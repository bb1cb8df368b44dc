"""The runtime imports only its dependencies, and no network module."""

import ast
import sys
from pathlib import Path

import edgeembed_runtime

# faiss is the extra of that name, bm25s the extra "hybrid", pyarrow the extra "parquet".
_ALLOWED = {"bm25s", "edgeembed_runtime", "faiss", "numpy", "onnxruntime", "pyarrow", "tokenizers"}
# What an integration adapts to, by its module. asyncio is there for its `to_thread`.
_ALLOWED_IN_INTEGRATIONS = {
    "chroma.py": {"chromadb"},
    "haystack.py": {"haystack"},
    "lancedb.py": {"lancedb", "pydantic"},
    "langchain.py": {"langchain_core"},
    "llamaindex.py": {"asyncio", "llama_index"},
    "sklearn.py": {"sklearn"},
    "spacy.py": {"spacy"},
}
_NETWORK = {
    *(
        "asyncio",
        "ftplib",
        "http",
        "imaplib",
        "nntplib",
        "poplib",
        "select",
        "selectors",
        "smtplib",
        "socket",
    ),
    *("socketserver", "ssl", "telnetlib", "urllib", "webbrowser", "xmlrpc", "multiprocessing", "subprocess"),
}


class _WithoutTypeChecking(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def _imported(file: Path) -> set[str]:
    tree = _WithoutTypeChecking().visit(ast.parse(file.read_text(encoding="utf-8")))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any(node.level for node in froms), f"{file} imports relatively"
    return {name.partition(".")[0] for name in names | {node.module or "" for node in froms}}


def test_source_imports_only_its_dependencies_and_no_network_module() -> None:
    folder = Path(edgeembed_runtime.__file__).parent
    imported = {file: _imported(file) for file in folder.rglob("*.py")}
    assert imported.pop(folder / "_pyinstaller" / "hook-edgeembed_runtime.py") == {"PyInstaller"}  # which runs it
    for name, libraries in _ALLOWED_IN_INTEGRATIONS.items():
        imported[folder / "integrations" / name] -= libraries
    assert len(imported) > 10
    allowed = _ALLOWED | (set(sys.stdlib_module_names) - _NETWORK)
    foreign = {str(file): names - allowed for file, names in imported.items() if names - allowed}
    assert foreign == {}
