"""`edgeembed encode --engine ray` on real Ray clusters of this machine."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

_COMMAND = [sys.executable, "-m", "edgeembed.cli.main", "encode"]
_MODEL = ["--model", "nano", "--texts-per-shard", "40", "--json"]

# Two nodes, each with one core.
_TWO_NODES = """
import sys
from ray.cluster_utils import Cluster
from edgeembed import encode

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
corpus, out = sys.argv[1:]
print(encode(corpus, "nano", out, engine="ray", address=cluster.address, workers=2, texts_per_shard=40).to_json())
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for part in range(4):
        lines = (f"Number {number} of part {part} is a house with {number % 7} windows." for number in range(500))
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local") / "shards"
    subprocess.run([*_COMMAND, str(corpus), "--out", str(out), *_MODEL], check=True, capture_output=True)
    return out


def assert_equal_shards(found: Path, expected: Path) -> None:
    names = sorted(file.name for file in expected.iterdir())
    assert sorted(file.name for file in found.iterdir()) == names
    for name in names:
        if name.endswith(".parquet"):
            assert pq.read_table(found / name).equals(pq.read_table(expected / name)), name
        else:
            assert (found / name).read_text() == (expected / name).read_text()


def ray_workers(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """Return the processes that hold a copy of the model."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "_ShardWriter" in "".join(child.cmdline())]


def test_a_killed_worker_costs_nothing_but_time(corpus: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    words = [*_COMMAND, str(corpus), "--out", str(out), *_MODEL, "--engine", "ray", "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(out.glob("*.parquet")):
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()[1]
        workers = ray_workers(process)
        workers[0].kill()
        stdout, stderr = process.communicate(timeout=400)
    assert process.returncode == 0, stderr
    report = json.loads(stdout)
    assert (report["texts"], report["shards"]) == (2000, 52)
    assert_equal_shards(out, expected)


def test_two_nodes_write_the_same_shards(corpus: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "shards"
    words = [sys.executable, "-c", _TWO_NODES, str(corpus), str(out)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert_equal_shards(out, expected)


def test_an_unreachable_cluster_is_one_line(corpus: Path, tmp_path: Path) -> None:
    words = [*_COMMAND, str(corpus), "--out", str(tmp_path / "shards"), *_MODEL, "--engine", "ray"]
    done = subprocess.run(
        [*words, "--address", "127.0.0.1:1"], check=False, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("edgeembed: cannot connect to the Ray cluster at 127.0.0.1:1")


def test_a_source_that_is_no_file_is_one_line(tmp_path: Path) -> None:
    words = [*_COMMAND, "pydoc:json", "--out", str(tmp_path / "shards"), *_MODEL, "--engine", "ray"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=400)
    assert done.returncode == 2
    assert "pydoc:json is not a file; expected files" in done.stderr
