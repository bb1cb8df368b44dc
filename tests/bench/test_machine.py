from pathlib import Path

import numpy as np
import pytest
from edgeembed_bench import machine
from edgeembed_bench.machine import Load, LoadWatch, this_machine


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


def test_what_went_on_is_watched() -> None:
    found = LoadWatch().found()
    assert found.stolen_share is None or 0 <= found.stolen_share <= 1
