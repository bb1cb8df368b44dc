import sys
from pathlib import Path
from typing import Any, Never

import pytest
from edgeembed_bench.meters import NullMeter, RaplMeter, find_meter, rapl_reading


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A RAPL tree of one socket."""
    domain = tmp_path / "powercap" / "intel-rapl" / "intel-rapl:0"
    domain.mkdir(parents=True)
    (domain / "name").write_text("package-0\n")
    (domain / "energy_uj").write_text("123456\n")
    return domain.parent


def _reason(tree: Path) -> str:
    meter = find_meter(tree)
    assert isinstance(meter, NullMeter)
    return meter.reason


def test_a_machine_without_powercap_says_so(tmp_path: Path) -> None:
    meter = find_meter(tmp_path / "powercap" / "intel-rapl")
    meter.begin()
    reading = meter.end()
    assert reading.energy_j is None
    assert reading.reason == f"no RAPL counter on this machine ({tmp_path}/powercap is absent)"
    assert meter.source is None


def test_a_powercap_folder_without_rapl_says_so(tmp_path: Path) -> None:
    (tmp_path / "powercap").mkdir()
    assert "holds none" in _reason(tmp_path / "powercap" / "intel-rapl")


def test_denied_permission_names_the_counter_and_the_command(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, **_: Any) -> Never:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", denied)
    meter = find_meter(tree)
    assert isinstance(meter, NullMeter)
    assert meter.reason.startswith(f"permission denied: {tree}/intel-rapl:0/energy_uj")
    assert f"sudo chmod -R a+r {tree}/" in meter.reason


def test_a_broken_counter_says_so(tree: Path) -> None:
    (tree / "intel-rapl:0" / "energy_uj").write_text("")
    assert "energy_uj cannot be read" in _reason(tree)


def test_absent_pyjoules_names_the_extra(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyJoules", None)
    monkeypatch.delitem(sys.modules, "pyJoules.energy_meter", raising=False)
    monkeypatch.delitem(sys.modules, "pyJoules.device.rapl_device", raising=False)
    assert "pip install 'edgeembed[energy]'" in _reason(tree)


def test_pyjoules_reads_the_joules_between_begin_and_end(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rapl = pytest.importorskip("pyJoules.device.rapl_device", reason="needs pyJoules: edgeembed[energy]")
    monkeypatch.setattr(rapl, "RAPL_API_DIR", str(tree))
    meter = find_meter(tree)
    assert isinstance(meter, RaplMeter)
    meter.begin()
    (tree / "intel-rapl:0" / "energy_uj").write_text(f"{123456 + 2_500_000}\n")
    reading = meter.end()
    assert reading.energy_j == pytest.approx(2.5)
    assert reading.reason is None


def test_packages_and_dram_of_all_sockets_add_up_and_cores_are_not_counted_twice() -> None:
    recorded_uj = {"package_0": 3e6, "package_1": 2e6, "dram_0": 5e5, "core_0": 2.5e6, "uncore_0": 1e5}
    assert rapl_reading(recorded_uj).energy_j == pytest.approx(5.5)


@pytest.mark.parametrize(
    ("recorded_uj", "reason"),
    [
        ({"package_0": -2.6e11}, "wrapped around"),
        ({"package_0": 1e6, "dram_0": -1.0}, "wrapped around"),
        ({"package_0": 0.0}, "stood still"),
        ({"core_0": 1e6}, "no package counter"),
        ({}, "no package counter"),
    ],
)
def test_what_cannot_be_trusted_is_not_measured(recorded_uj: dict[str, float], reason: str) -> None:
    reading = rapl_reading(recorded_uj)
    assert reading.energy_j is None
    assert reason in (reading.reason or "")
