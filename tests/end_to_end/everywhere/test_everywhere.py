"""What docs/loaders.md says of other libraries works as written: the code run here is the code printed there.

`make test-everywhere` installs the libraries under build/everywhere, apart from what edgeembed itself needs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_bench import Subject, start_worker
from edgeembed_exporters import BundleSettings, export
from edgeembed_exporters.precision import precision_names
from edgeembed_runtime import Bundle, Encoder

from experiments.runtime.random_students import ARCHITECTURES, Architecture, write_random_student

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TOOLS = ROOT / "build" / "everywhere"
PACKAGES = TOOLS / "node_modules"
FASTEMBED = TOOLS / "fastembed" / "bin" / "python"
CHROMIUM = shutil.which("chromium")
INSTALL = "run: make test-everywhere"

needs_node = pytest.mark.skipif(not (shutil.which("node") and PACKAGES.is_dir()), reason=f"needs Node.js; {INSTALL}")
needs_fastembed = pytest.mark.skipif(not FASTEMBED.is_file(), reason=INSTALL)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="run as root: apt-get install chromium")
needs_pyodide = pytest.mark.skipif(
    not [*PACKAGES.glob("pyodide/numpy-*.whl")], reason=f"needs Pyodide's NumPy; {INSTALL}"
)

PRECISIONS = precision_names()
DTYPES = {"fp32": "fp32", "fp16": "fp16", "int8": "q8", "int4": "q4"}
# In float32 only the order of additions differs.
CLOSE = {"fp32": 1e-5, "fp16": 1e-3}
# What is rounded to int8 on its way differs more, on some texts: docs/loaders.md. Random weights make more of it.
LEAST_COSINE = 0.99
SHIPPED_LEAST_COSINE = 0.998
TEXTS = [
    "the cat runs under the old bridge",
    "a bird",
    "",
    "near the river, the red train falls quietly today",
    "Zürich 42 ... (new!)",
    " ".join(["often"] * 40),
]

Exported = Callable[[str], Path]
Serving = Callable[[Path], AbstractContextManager[str]]
Vectors = np.ndarray[Any, Any]


@pytest.fixture(scope="session")
def exported(
    teacher_folder: Path, sentences: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Gives a tiny random model's bundle at a precision; each is exported once."""
    from sentence_transformers import SentenceTransformer

    model: SentenceTransformer = SentenceTransformer(str(teacher_folder), device="cpu")
    made: dict[str, Path] = {}

    def bundle(precision: Any) -> Path:
        if precision not in made:
            made[precision] = tmp_path_factory.mktemp("bundles") / precision
            export(model, made[precision], BundleSettings(precision=precision, min_cosine=0.9), sentences=sentences)
        return made[precision]

    return bundle


@pytest.fixture
def folder() -> Path:
    """An empty folder where Node finds the packages."""
    made = TOOLS / "run"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    return made


def check(vectors: Vectors, bundle: Path, precision: str) -> None:
    expected = Encoder.load(bundle).encode(TEXTS)
    if precision in CLOSE:
        np.testing.assert_allclose(vectors, expected, atol=CLOSE[precision])
    else:
        assert (vectors * expected).sum(axis=1).min() > LEAST_COSINE


def code(section: str, number: int = 0) -> str:
    """A block of code of a section of docs/loaders.md."""
    text = (ROOT / "docs/loaders.md").read_text(encoding="utf-8")
    (body,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return str(re.findall(r"^```\w+\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)[number])


def filled(text: str, values: dict[str, str]) -> str:
    """That code for another bundle than the one it is printed for."""
    for printed, meant in values.items():
        assert printed in text
        text = text.replace(printed, meant)
    return text


def output(command: list[str], **options: Any) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def run_in_node(program: str, folder: Path, texts: list[str] = TEXTS) -> Vectors:
    script = folder / "program.mjs"
    ends = f"const texts = {json.dumps(texts)};\n", "\nconsole.log(JSON.stringify(vectors));\n"
    script.write_text(program.join(ends), encoding="utf-8")
    return np.array(output(["node", str(script)]))


@needs_fastembed
@pytest.mark.parametrize("precision", PRECISIONS)
def test_fastembed(exported: Exported, precision: str, tmp_path: Path) -> None:
    bundle = exported(precision)
    names = {
        "path/to/bundle": str(bundle),
        "onnx/model_quantized.onnx": Bundle.open(bundle).model_file,
        "dim=384": f"dim={Encoder.load(bundle).dimension}",
    }
    script = tmp_path / "program.py"
    ends = f"import json\ntexts = {TEXTS!r}\n", "print(json.dumps([vector.tolist() for vector in vectors]))\n"
    script.write_text(filled(code("fastembed"), names).join(ends), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    check(np.array(output([str(FASTEMBED), str(script)], env=environment)), bundle, precision)


@needs_fastembed
def test_the_bench_measures_a_bundle_in_fastembed() -> None:
    encoder = Encoder()
    subject = Subject("peer", "fastembed", str(encoder.bundle.path), str(FASTEMBED))
    texts = [text for text in TEXTS if text]
    with start_worker(subject, texts[0]) as worker:
        cosines = np.einsum("nd,nd->n", worker.encode(texts), encoder.encode(texts))
        assert (worker.count_tokens(["read a file"]) or [0])[0] == 5
        assert "fastembed" in worker.info()["installed_bytes"]
    assert min(cosines) > SHIPPED_LEAST_COSINE


@needs_node
@pytest.mark.parametrize("precision", PRECISIONS)
def test_transformers_js_in_node(exported: Exported, precision: str, folder: Path) -> None:
    bundle = exported(precision)
    names = {"path/to/bundle": str(bundle), '"q8"': f'"{DTYPES[precision]}"'}
    check(run_in_node(filled(code("transformers.js in Node"), names), folder), bundle, precision)


@needs_node
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_pipeline_of_transformers_js_in_node(exported: Exported, precision: str, folder: Path) -> None:
    bundle = exported(precision)
    names = {"path/to/bundle": str(bundle), '"q8"': f'"{DTYPES[precision]}"'}
    check(run_in_node(filled(code("transformers.js in Node", 1), names), folder), bundle, precision)


@needs_node
def test_the_encoder_in_the_wheel_in_node(folder: Path) -> None:
    encoder = Encoder()
    names = {"path/to/bundle": str(encoder.bundle.path), '"q8"': f'"{DTYPES[encoder.bundle.precision]}"'}
    vectors = run_in_node(filled(code("transformers.js in Node"), names), folder)
    assert (vectors * encoder.encode(TEXTS)).sum(axis=1).min() > SHIPPED_LEAST_COSINE


@needs_node
def test_a_long_text_in_node_keeps_its_last_special_token(folder: Path) -> None:
    encoder, texts = Encoder(), ["a bird", "", " ".join(["often"] * 400), "the cat sat on the mat " * 90]
    names = {"path/to/bundle": str(encoder.bundle.path), '"q8"': f'"{DTYPES[encoder.bundle.precision]}"'}
    first, model, rest = filled(code("transformers.js in Node"), names).partition("const { sentence_embedding }")
    vectors = run_in_node(first + code("transformers.js in Node", 2) + model + rest, folder, texts)
    expected = encoder.encode(texts, on_truncate="ignore", on_unknown="ignore")
    assert (vectors * expected).sum(axis=1).min() > 0.9999


def run_in_chromium(bundle: Path, precision: str, folder: Path, serving: Serving) -> Vectors:
    names = {"path/to/bundle": "bundle", '"q8"': f'"{DTYPES[precision]}"'}
    (folder / "index.html").write_text(filled(code("transformers.js in a browser"), names), encoding="utf-8")
    (folder / "bundle").symlink_to(bundle)
    return browse(folder, serving)


def browse(folder: Path, serving: Serving) -> Vectors:
    """What the encode() of a folder's page makes of the texts."""
    (folder / "node_modules").symlink_to(PACKAGES)
    shutil.copy(HERE / "browse.mjs", folder)
    with serving(folder) as origin:
        command = ["node", str(folder / "browse.mjs"), str(CHROMIUM), origin]
        return np.array(output(command, input=json.dumps(TEXTS)))


@needs_node
@needs_chromium
@pytest.mark.parametrize("precision", PRECISIONS)
def test_transformers_js_in_chromium_with_nothing_from_elsewhere(
    exported: Exported, precision: str, folder: Path, serving: Serving
) -> None:
    bundle = exported(precision)
    check(run_in_chromium(bundle, precision, folder, serving), bundle, precision)


@needs_node
@needs_chromium
@pytest.mark.parametrize("name", ["mini", "nano"])
def test_an_encoder_in_the_wheel_in_chromium(name: str, folder: Path, serving: Serving) -> None:
    encoder = Encoder(name)
    vectors = run_in_chromium(Path(str(encoder.bundle.path)), encoder.bundle.precision, folder, serving)
    assert (vectors * encoder.encode(TEXTS)).sum(axis=1).min() > SHIPPED_LEAST_COSINE


@pytest.fixture(scope="session")
def runtime_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime's wheel, made from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT / "runtime")]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


_INDEX = """
from edgeembed_runtime import Encoder, Index
encoder = Encoder("/bundle", threads=4)
documents = ["the cat", "read a file"] * 100
Index.build(encoder, documents).save("/index")
assert Index.open("/index", encoder).search("read a file", top_k=1)[0].text == "read a file"
assert Index.build(Encoder("micro"), documents).search("a kitten", top_k=1)[0].text == "the cat"
"""


@needs_node
@needs_chromium
@needs_pyodide
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_this_runtime_in_pyodide_in_chromium(
    architecture: Architecture, runtime_wheel: Path, folder: Path, tmp_path: Path, serving: Serving
) -> None:
    bundle = tmp_path / "bundle"
    write_random_student(bundle, architecture, Encoder("nano").bundle)
    shutil.make_archive(str(folder / "bundle"), "zip", bundle)
    shutil.copy(runtime_wheel, folder)
    names = {
        "edgeembed_runtime-0.1.0-py3-none-any.whl": runtime_wheel.name,
        "  globalThis.encode": f"  python.runPython({json.dumps(_INDEX)});\n  globalThis.encode",
    }
    page = filled(code("Pyodide: this runtime in a web page"), names)
    (folder / "index.html").write_text(page, encoding="utf-8")
    np.testing.assert_allclose(browse(folder, serving), Encoder.load(bundle).encode(TEXTS), atol=1e-6)
