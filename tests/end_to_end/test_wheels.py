"""The wheels hold our packages and nothing else, and the runtime's is for every platform."""

import email
import email.message
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow


def build(folder: Path, out: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, folder], check=True, capture_output=True, text=True
    )
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "runtime", tmp_path_factory.mktemp("runtime"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def read(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode("utf-8")


def headers(wheel: Path, name: str) -> email.message.Message:
    (full_name,) = (found for found in names(wheel) if found.endswith(f".dist-info/{name}"))
    return email.message_from_string(read(wheel, full_name))


def test_the_wheel_of_edgeembed_holds_the_three_rooms(tmp_path: Path) -> None:
    found = names(build(ROOT, tmp_path))
    roots = {name.split("/")[0] for name in found}
    assert {root for root in roots if not root.endswith(".dist-info")} == {
        "edgeembed",
        "edgeembed_exporters",
        "edgeembed_bench",
    }
    assert "edgeembed/recipe/compact.toml" in found
    papers = {"simtde", "hpd", "distilcse", "xayn", "cmow"}
    assert {f"edgeembed/papers/{paper}/README.md" for paper in papers} <= found
    assert "edgeembed/papers/simtde/recipes/simtde-32-L2(128).toml" in found
    assert "edgeembed/py.typed" in found
    assert {"edgeembed_bench/render/report.html.j2", "edgeembed_bench/render/content.html.j2"} <= found


def test_the_wheel_of_the_runtime_is_for_every_platform(runtime: Path) -> None:
    assert runtime.name.endswith("-py3-none-any.whl")
    assert headers(runtime, "WHEEL").get_all("Tag") == ["py3-none-any"]
    assert headers(runtime, "WHEEL")["Root-Is-Purelib"] == "true"
    assert headers(runtime, "METADATA")["Requires-Python"] == ">=3.10"


def test_the_wheel_of_the_runtime_asks_for_two_libraries(runtime: Path) -> None:
    wanted = headers(runtime, "METADATA").get_all("Requires-Dist") or []
    always = {requirement.split(">=")[0].split("<")[0] for requirement in wanted if "extra" not in requirement}
    assert always == {"numpy", "onnxruntime"}
    extras = headers(runtime, "METADATA").get_all("Provides-Extra") or []
    assert {"faiss", "hybrid", "parquet", "tokenizers"} <= set(extras)
    for package, extra in (("tokenizers", "tokenizers"), ("faiss-cpu", "faiss")):
        assert any(each.startswith(package) and each.endswith(f"; extra == '{extra}'") for each in wanted)


def test_the_wheel_of_the_runtime_holds_its_source_three_encoders_and_nothing_else(runtime: Path) -> None:
    found = names(runtime)
    (about,) = {name.split("/")[0] for name in found if ".dist-info/" in name}
    manifests = {name for name in found if name.endswith("/edgeembed.json")}
    assert manifests == {f"edgeembed_runtime/models/{name}/edgeembed.json" for name in ("mini", "nano", "micro")}
    listed = manifests | {f"{manifest}.sha256" for manifest in manifests}
    for manifest in manifests:
        listed |= {
            manifest.removesuffix("edgeembed.json") + file["name"]
            for file in json.loads(read(runtime, manifest))["files"]
        }
    assert {name for name in found if name.startswith("edgeembed_runtime/models/")} == listed

    source = {path.relative_to(ROOT / "runtime").as_posix() for path in (ROOT / "runtime").rglob("*.py")}
    files = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert found - listed == source | {"edgeembed_runtime/py.typed"} | {f"{about}/{name}" for name in files}
