import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from edgeembed_bench import machine
from edgeembed_bench.machine import Load, LoadWatch, this_machine
from edgeembed_runtime.builtin_models import builtin_bundle


def test_the_machine_is_described() -> None:
    found = this_machine()
    assert found.cpu
    assert 1 <= found.cores_allowed <= found.cores
    assert found.ram_bytes > 1e8
    assert found.versions["numpy"] == np.__version__
    if Path("/proc/cpuinfo").is_file():
        assert found.flags


def test_a_package_that_is_absent_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "PACKAGES", ("no-such-package-here",))
    assert this_machine().versions == {"no-such-package-here": None}


def test_governors_of_all_cores_are_told_once(tmp_path: Path) -> None:
    for core, governor in enumerate(("powersave", "performance", "powersave")):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    assert machine._governor(tmp_path) == "performance, powersave"
    assert machine._governor(tmp_path / "none") is None


def test_an_arm_processor_tells_its_features(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd i8mm\n\nprocessor\t: 1\n")
    assert machine._cpuinfo(tmp_path / "cpuinfo")["Features"] == "fp asimd i8mm"


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (Load(1.3, 0.0, None, 2), "the load average was 1.3 before it began: close other programs"),
        (Load(0.1, 0.1, None, 2), "this virtual machine's host took 10% of its time: choose a quieter one"),
        (Load(0.1, 0.0, True, 2), "the machine ran on its battery, which slows its clock: plug it in"),
    ],
)
def test_what_makes_figures_unsteady_is_told_with_what_to_do(load: Load, reason: str) -> None:
    assert load.reasons == [reason]


@pytest.mark.parametrize("load", [Load(0.3, 0.0, False, 2), Load(2.0, None, None, 16), Load(None, None, None)])
def test_a_quiet_machine_gives_no_reason_to_doubt(load: Load) -> None:
    assert load.reasons == []


def test_a_system_without_power_supplies_is_not_on_battery(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = str(tmp_path / "power_supply")
    if sys.platform == "linux":
        monkeypatch.setattr("psutil._pslinux.POWER_SUPPLY_PATH", absent)  # the real function, on such a system
    else:
        monkeypatch.setattr(psutil, "sensors_battery", lambda: os.listdir(absent), raising=False)  # noqa: PTH208
    with pytest.raises(FileNotFoundError):
        psutil.sensors_battery()
    assert LoadWatch().found().on_battery is None


@pytest.mark.parametrize(("plugged", "on_battery"), [(True, False), (False, True), (None, None)])
def test_a_battery_tells_whether_it_is_plugged_in(
    monkeypatch: pytest.MonkeyPatch, plugged: bool | None, on_battery: bool | None
) -> None:
    battery = SimpleNamespace(percent=50, secsleft=60, power_plugged=plugged)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert LoadWatch().found().on_battery is on_battery


@pytest.mark.slow
def test_the_bench_runs_where_no_power_supply_is(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs mount namespaces: there is no unshare here")
    hide = "mount -t tmpfs tmpfs /sys/class && ! test -e /sys/class/power_supply"
    namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if subprocess.run([*namespace, "sh", "-c", hide], check=False, capture_output=True).returncode:
        pytest.skip("needs a mount namespace, which is denied here")
    texts = tmp_path / "texts.txt"
    texts.write_text("read a file\nsort a list\n")
    out = tmp_path / "a.json"
    few = ["--runs", "4", "--processes", "2", "--no-sweep", "--texts", str(texts), "--out", str(out)]
    command = [sys.executable, "-m", "edgeembed.cli.main", "bench", str(builtin_bundle()), *few]
    hidden = [*namespace, "sh", "-c", f'{hide} && exec "$@"', "sh", *command]
    done = subprocess.run(hidden, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["load"]["on_battery"] is None


def test_what_went_on_is_watched() -> None:
    found = LoadWatch().found()
    assert found.stolen_share is None or 0 <= found.stolen_share <= 1
