"""MkDocs hook: give the demo page its engine, its bundle, and an index of the site's sections."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from edgeembed_runtime import Encoder
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[2]
_PACKAGES = _ROOT / "build/docs-engine/node_modules"
_ENGINE = (
    "onnxruntime-web/dist/ort.wasm.bundle.min.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "@huggingface/tokenizers/dist/tokenizers.min.mjs",
)
_ENCODER = "nano"
_WORDS = 50
"""The words of a part of a section, which has a vector of its own: much less is no text, much more is blurred."""
_TAG = re.compile(r"<[^>]+>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of engine and bundle."""
    for place, path in _assets().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Fill in what the demo page says of sizes."""
    if page.file.src_uri != "demo.md":
        return markdown
    size = sum(path.stat().st_size for path in _assets().values())
    numbers = {"megabytes": round(size / 1e6), "bytes": size, "dimension": Encoder(_ENCODER).dimension, "words": _WORDS}
    return re.sub(r"\{\{ demo_(\w+) \}\}", lambda name: str(numbers[name[1]]), markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the index: the sections that the search plugin found, in parts, and the embedding of each part as int8."""
    site = Path(config.site_dir)
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = {entry["location"]: entry["title"] for entry in entries}
    sections = [_section(entry, titles) for entry in entries if entry["text"]]
    encoder = Encoder(_ENCODER)
    texts = [f"{section['title']}. {part}" for section in sections for part in section["parts"]]
    vectors = encoder.encode_document(texts, precision="int8", on_truncate="ignore", on_unknown="ignore")
    folder = site / "demo/index"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vectors.bin").write_bytes(np.ascontiguousarray(vectors, dtype=np.int8).tobytes())
    content = {"dimension": encoder.dimension, "sections": sections}
    (folder / "sections.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _assets() -> dict[str, Path]:
    """Return the files of engine and bundle by their place in the site."""
    bundle = Encoder(_ENCODER).bundle
    names = ("edgeembed.json", "tokenizer.json", "tokenizer_config.json", bundle.model_file)
    engine = {f"demo/engine/{Path(name).name}": _PACKAGES / name for name in _ENGINE}
    return {**engine, **{f"demo/bundle/{name}": Path(str(bundle.path)) / name for name in names}}


def _section(entry: dict[str, Any], titles: dict[str, str]) -> dict[str, Any]:
    """Return a section's address, its title with that of its page, and its text in parts, without tags."""
    page = titles.get(entry["location"].partition("#")[0], "")
    title = entry["title"] if entry["title"] == page else f"{page}: {entry['title']}"
    words = _plain(entry["text"]).split()
    parts = [" ".join(words[start : start + _WORDS]) for start in range(0, len(words), _WORDS)]
    return {"location": entry["location"], "title": _plain(title), "parts": parts}


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())
