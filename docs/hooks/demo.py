"""MkDocs hook: give the demo page and the site's search their encoders, and an index of the site's sections."""

import html
import json
import re
from itertools import pairwise
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
_DEMO, _SEARCH = "nano", "micro"
"""The encoder of the demo page, and that of the site's search, which needs no engine."""
_HISTORY = "changelog/"
"""The page that only the search by words has: it mentions everything and explains nothing."""
_WORDS = 50
"""The words of a part of a section, which has a vector of its own: much less is no text, much more is blurred."""
_TAG = re.compile(r"<[^>]+>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the engine and of the bundles."""
    for place, path in {**_engine(), **_bundle(_DEMO), **_bundle(_SEARCH)}.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Fill in what the demo page says of sizes."""
    if page.file.src_uri != "demo.md":
        return markdown
    size = sum(path.stat().st_size for path in {**_engine(), **_bundle(_DEMO)}.values())
    numbers = {"megabytes": round(size / 1e6), "bytes": size, "dimension": Encoder(_DEMO).dimension, "words": _WORDS}
    return re.sub(r"\{\{ demo_(\w+) \}\}", lambda name: str(numbers[name[1]]), markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write the index: the sections that the search plugin found, in parts, and the embeddings of the parts as int8."""
    site = Path(config.site_dir)
    entries = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = {entry["location"]: entry["title"] for entry in entries}
    explaining = [entry for entry in entries if not entry["location"].startswith(_HISTORY)]
    sections = [_section(entry, titles) for entry in explaining if entry["text"]]
    folder = site / "demo/index"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sections.json").write_text(json.dumps(sections, ensure_ascii=False), encoding="utf-8")
    texts = [f"{section['title']}. {part}" for section in sections for part in section["parts"]]
    for name in (_DEMO, _SEARCH):
        encoder = Encoder(name)
        vectors = encoder.encode_document(texts, precision="int8", on_truncate="ignore", on_unknown="ignore")
        (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(vectors, dtype=np.int8).tobytes())


def _engine() -> dict[str, Path]:
    """Return the files of the demo's engine by their place in the site."""
    return {f"demo/engine/{Path(name).name}": _PACKAGES / name for name in _ENGINE}


def _bundle(name: str) -> dict[str, Path]:
    """Return the files of a bundle that a web page needs, by their place in the site."""
    bundle = Encoder(name).bundle
    files = ("edgeembed.json", "tokenizer.json", "tokenizer_config.json", bundle.model_file)
    return {f"demo/{name}/{file}": Path(str(bundle.path)) / file for file in files}


def _section(entry: dict[str, Any], titles: dict[str, str]) -> dict[str, Any]:
    """Return a section's address, its title with that of its page, and its text in parts, without tags."""
    page = titles.get(entry["location"].partition("#")[0], "")
    title = entry["title"] if entry["title"] == page else f"{page}: {entry['title']}"
    return {"location": entry["location"], "title": _plain(title), "parts": _parts(_plain(entry["text"]).split())}


def _parts(words: list[str]) -> list[str]:
    """Return words in parts of equal length, about _WORDS: a rest of a few words would be near to every query."""
    count = max(1, round(len(words) / _WORDS))
    ends = [len(words) * i // count for i in range(count + 1)]
    return [" ".join(words[start:end]) for start, end in pairwise(ends)]


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", text)).split())
