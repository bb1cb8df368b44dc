import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from edgeembed_bench import machine
from edgeembed_bench.machine import Load, LoadWatch, this_machine
from edgeembed_bench.runner import pin_to_cores
from edgeembed_runtime.builtin_models import builtin_bundle


def test_machine_is_described() -> None:
    described = this_machine()
    assert described.cpu
    assert 1 <= described.available_cores <= described.cores
    assert described.ram_bytes > 1e8
    assert described.versions["numpy"] == np.__version__
    assert described.flags


def test_linux_processor_has_the_name_and_flags_of_proc_cpuinfo() -> None:
    file = Path("/proc/cpuinfo")
    if not file.is_file():
        pytest.skip("needs /proc/cpuinfo")
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in file.read_text().splitlines())
    }
    if "model name" not in fields:
        pytest.skip("/proc/cpuinfo names no processor")
    described = this_machine()
    assert described.cpu == fields["model name"]
    assert set(fields["flags"].split()) <= set(described.flags)


def test_processor_is_looked_up_once_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def get_cpu_info() -> dict[str, object]:
        calls.append(1)
        return {"brand_raw": "A 1", "flags": ["b", "a"]}

    monkeypatch.setattr("cpuinfo.get_cpu_info", get_cpu_info)
    machine._processor.cache_clear()
    try:
        machines = [this_machine(), this_machine()]
    finally:
        machine._processor.cache_clear()
    assert (machines[0].cpu, machines[0].flags) == ("A 1", ("a", "b"))
    assert calls == [1]


def test_processor_that_py_cpuinfo_does_not_know_has_the_name_of_the_standard_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise Exception("py-cpuinfo currently only works on X86")  # noqa: TRY002  # as py-cpuinfo does

    monkeypatch.setattr("cpuinfo.get_cpu_info", fail)
    monkeypatch.setattr("platform.processor", lambda: "riscv64")
    machine._processor.cache_clear()
    try:
        described = this_machine()
    finally:
        machine._processor.cache_clear()
    assert (described.cpu, described.flags) == ("riscv64", ())


def test_all_logical_cores_are_allowed_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil.Process, "cpu_affinity", raising=False)
    described = this_machine()
    assert described.available_cores == described.cores


def _hidden(*_: object) -> None:
    raise FileNotFoundError(2, "No such file or directory", "/proc/stat")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux has /proc")
def test_machine_and_load_are_described_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = this_machine()

    def no_process(*_: object) -> None:
        raise psutil.NoSuchProcess(os.getpid())

    monkeypatch.setattr(psutil.Process, "__init__", no_process)
    for name in ("virtual_memory", "cpu_times", "getloadavg"):
        monkeypatch.setattr(psutil, name, _hidden)
    described, load = this_machine(), LoadWatch().load()
    assert described.available_cores == len(os.sched_getaffinity(0))
    assert described.ram_bytes == pytest.approx(expected.ram_bytes, rel=0.01)
    assert (load.load_average, load.steal_fraction, load.reasons) == (None, None, [])
    before = os.sched_getaffinity(0)
    with pin_to_cores(1) as cores:
        assert cores == (max(before),)
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before


def bench_where(hide: str, folder: Path) -> Any:
    """Return the report of a benchmark in a mount namespace where a shell command has hidden something."""
    if shutil.which("unshare") is None:
        pytest.skip("needs mount namespaces: there is no unshare here")
    namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if subprocess.run([*namespace, "sh", "-c", hide], check=False, capture_output=True).returncode:
        pytest.skip("needs a mount namespace, which is denied here")
    texts, out = folder / "texts.txt", folder / "a.json"
    texts.write_text("read a file\nsort a list\n")
    few = ["--runs", "4", "--processes", "2", "--no-sweep", "--texts", str(texts), "--out", str(out)]
    command = [sys.executable, "-m", "edgeembed.cli.main", "bench", str(builtin_bundle()), *few]
    hidden = [*namespace, "sh", "-c", f'{hide} && exec "$@"', "sh", *command]
    done = subprocess.run(hidden, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(out.read_text())


@pytest.mark.slow
def test_benchmark_runs_without_proc(tmp_path: Path) -> None:
    report = bench_where("mount -t tmpfs tmpfs /proc && ! test -e /proc/stat", tmp_path)
    assert report["subjects"][0]["processes"][0]["resident_bytes"] is None
    assert report["cores"]


def test_missing_package_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PACKAGES", ("no-such-package-here",))
    assert this_machine().versions == {"no-such-package-here": None}


def test_governors_are_listed_once(tmp_path: Path) -> None:
    for core, governor in enumerate(("powersave", "performance", "powersave")):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    assert machine._governor(tmp_path) == "performance, powersave"
    assert machine._governor(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (Load(1.3, 0.0, None, 2), "the load average was 1.3 before it began: close other programs"),
        (Load(0.1, 0.1, None, 2), "this virtual machine's host took 10% of its CPU time: use a less busy host"),
        (Load(0.1, 0.0, True, 2), "the machine ran on its battery, which slows its clock: plug it in"),
    ],
)
def test_load_has_a_reason_for_unstable_results(load: Load, reason: str) -> None:
    assert load.reasons == [reason]


@pytest.mark.parametrize("load", [Load(0.3, 0.0, False, 2), Load(2.0, None, None, 16), Load(None, None, None)])
def test_quiet_machine_has_no_reason(load: Load) -> None:
    assert load.reasons == []


def test_system_without_power_supplies_has_no_battery_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = str(tmp_path / "power_supply")
    if sys.platform == "linux":
        monkeypatch.setattr("psutil._pslinux.POWER_SUPPLY_PATH", absent)  # the real function, on such a system
    else:
        monkeypatch.setattr(psutil, "sensors_battery", lambda: os.listdir(absent), raising=False)  # noqa: PTH208
    with pytest.raises(FileNotFoundError):
        psutil.sensors_battery()
    assert LoadWatch().load().on_battery is None


@pytest.mark.parametrize(("plugged", "on_battery"), [(True, False), (False, True), (None, None)])
def test_battery_state_is_read(monkeypatch: pytest.MonkeyPatch, plugged: bool | None, on_battery: bool | None) -> None:
    battery = SimpleNamespace(percent=50, secsleft=60, power_plugged=plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert LoadWatch().load().on_battery is on_battery


@pytest.mark.slow
def test_benchmark_runs_without_power_supplies(tmp_path: Path) -> None:
    report = bench_where("mount -t tmpfs tmpfs /sys/class && ! test -e /sys/class/power_supply", tmp_path)
    assert report["load"]["on_battery"] is None


def test_steal_fraction_is_between_zero_and_one() -> None:
    load = LoadWatch().load()
    assert load.steal_fraction is None or 0 <= load.steal_fraction <= 1
