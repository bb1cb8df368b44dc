"""`edgeembed encode --engine ray` on real Ray clusters of this machine, one after the other."""

import json
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_COMMAND = [sys.executable, "-m", "edgeembed.cli.main", "encode"]
_TEXTS_PER_SHARD = 250
_MODEL = ["--model", "nano", "--texts-per-shard", str(_TEXTS_PER_SHARD), "--json"]
_STORE_BYTES = 80 << 20  # the least that Ray takes is 75 MiB

# The files of the first run's workers are limited to 300 kB, which a shard of short texts does not reach.
_TWO_NODES = f"""
import json
import sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from edgeembed import encode
from edgeembed_runtime.errors import InputError

def limit_file_size():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))

node = {{"num_cpus": 1, "object_store_memory": {_STORE_BYTES}, "include_dashboard": False}}
cluster = Cluster(initialize_head=True, head_node_args=node)
cluster.add_node(**node)
corpus, out, result = sys.argv[1:]
settings = {{"engine": "ray", "workers": 2, "texts_per_shard": {_TEXTS_PER_SHARD}}}
environment = {{"worker_process_setup_hook": limit_file_size}}
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR", runtime_env=environment)
try:
    encode(corpus, "nano", out, **settings)
except InputError as error:
    message = str(error)
left = [file.name for file in Path(out).glob("shards/*.parquet")]
ray.shutdown()
report = encode(corpus, "nano", out, address=cluster.address, **settings)
Path(result).write_text(json.dumps({{"error": message, "left": left, "reused": report.reused_texts}}))
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a cluster, which leaves nothing behind in the home folder, and no log in /tmp."""
    # A short path, because the names of Ray's sockets have at most 107 bytes with it.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as temporary:
        home = tmp_path_factory.mktemp("home")
        yield {**os.environ, "HOME": str(home), "RAY_TMPDIR": temporary, "RAY_ADDRESS": "", "COLUMNS": "300"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for part in range(4):
        lines = (f"Number {number} of part {part} is a house with {number % 7} windows." for number in range(2600))
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw = random.Random(0)  # noqa: S311  # no secret
    words = ("".join(draw.choices(string.ascii_letters, k=6000)) for _ in range(80))
    (folder / "long.txt").write_text("\n".join(words), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("local") / "shards"
    subprocess.run([*_COMMAND, str(corpus), "--out", str(out), *_MODEL], check=True, capture_output=True)
    return out


def run(words: list[str], environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=500, env=environment)


def assert_equal_shards(found: Path, expected: Path) -> None:
    names = sorted(str(file.relative_to(expected)) for file in expected.rglob("*") if file.is_file())
    assert sorted(str(file.relative_to(found)) for file in found.rglob("*") if file.is_file()) == names
    for name in names:
        if name.endswith(".parquet"):
            assert pq.read_table(found / name).equals(pq.read_table(expected / name)), name
        else:
            assert (found / name).read_text() == (expected / name).read_text()


def is_encoding(process: psutil.Process) -> bool:
    """Return whether a process is a worker with a shard in hand: Ray writes the running method into its title."""
    title = "".join(process.cmdline())
    return "_ShardWriter" in title and ".submit" in title


def kill_worker_with_a_shard(driver: "subprocess.Popen[str]") -> None:
    """Kill a worker that has a shard in hand."""
    while driver.poll() is None:
        for process in psutil.Process(driver.pid).children(recursive=True):
            try:
                if is_encoding(process):
                    process.suspend()
                    if is_encoding(process):  # still, now that it cannot finish its shard any more
                        process.kill()
                        return
                    process.resume()
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.005)


def test_a_killed_worker_costs_nothing_but_time(
    corpus: Path, expected: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "shards"
    words = [*_COMMAND, str(corpus), "--out", str(out), *_MODEL, "--engine", "ray", "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None and not list(out.glob("shards/*.parquet")):
            time.sleep(0.005)
        kill_worker_with_a_shard(process)
        ended_before = process.poll() is not None
        stdout, stderr = process.communicate(timeout=500)
    assert process.returncode == 0, stderr
    assert not ended_before
    report = json.loads(stdout)
    assert (report["texts"], report["shards"]) == (10_480, 45)
    assert_equal_shards(out, expected)


def test_workers_beyond_the_cores_of_the_cluster_are_not_waited_for(
    corpus: Path, expected: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    words = [*_COMMAND, str(corpus), "--out", str(tmp_path / "shards"), *_MODEL, "--engine", "ray", "--workers", "5"]
    done = run(words, environment)
    assert done.returncode == 0, done.stderr
    assert_equal_shards(tmp_path / "shards", expected)


def test_two_nodes_go_on_after_a_full_disk_and_write_the_same_shards(
    corpus: Path, expected: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    out, result = tmp_path / "shards", tmp_path / "result.json"
    done = run([sys.executable, "-c", _TWO_NODES, str(corpus), str(out), str(result)], environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(result.read_text())
    assert f"cannot write {out}/shards/00004-000000-" in found["error"]
    assert ".parquet: Error writing bytes to file." in found["error"]
    assert "File too large" in found["error"]
    assert not any(name.startswith("00004-000000") for name in found["left"])
    assert 80 * len(found["left"]) <= found["reused"] < 10_480
    assert_equal_shards(out, expected)


def test_an_unreachable_cluster_is_one_line(corpus: Path, environment: dict[str, str], tmp_path: Path) -> None:
    words = [*_COMMAND, str(corpus), "--out", str(tmp_path / "shards"), *_MODEL, "--engine", "ray"]
    done = run([*words, "--address", "127.0.0.1:1"], environment)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("edgeembed: cannot connect to the Ray cluster at 127.0.0.1:1")
    assert not (tmp_path / "shards").exists()


def test_a_source_that_is_no_file_is_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    done = run([*_COMMAND, "pydoc:json", "--out", str(tmp_path / "shards"), *_MODEL, "--engine", "ray"], environment)
    assert done.returncode == 2
    assert "pydoc:json is not a file; expected files" in done.stderr
    assert not (tmp_path / "shards").exists()
