from pathlib import Path

import edgeembed_bench.meters
import pytest
from edgeembed_bench.meters import BatteryMeter, EnergyMeter, NullMeter, RaplMeter, Reading, detect_meter

from .simulated import Zone, write_supply, write_zone


def _find(root: Path) -> EnergyMeter:
    return detect_meter(
        powercap=root / "powercap", power_supply=root / "power_supply", tegra_release=root / "nv_tegra_release"
    )


def _reason(root: Path) -> str:
    meter = _find(root)
    assert isinstance(meter, NullMeter)
    return meter.reason


def test_public_names_are_sorted_and_exist() -> None:
    names = edgeembed_bench.meters.__all__
    assert names == sorted(names)
    assert all(hasattr(edgeembed_bench.meters, name) for name in names)


def test_reason_names_what_the_machine_lacks(tmp_path: Path) -> None:
    assert _reason(tmp_path) == (
        f"no RAPL counter on this machine ({tmp_path}/powercap is absent) and no battery ({tmp_path}/power_supply "
        "is absent), as in virtual machines and containers; measure on the machine itself"
    )


def test_reason_names_directories_without_counters(tmp_path: Path) -> None:
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "psys"))
    write_supply(tmp_path / "power_supply", "AC", type="Mains", online=1)
    reason = _reason(tmp_path)
    assert "powercap shows no package" in reason
    assert "power_supply shows none" in reason


def test_battery_of_a_mouse_is_ignored(tmp_path: Path) -> None:
    write_supply(tmp_path / "power_supply", "hidpp_battery_0", type="Battery", scope="Device", status="Discharging")
    assert "no battery" in _reason(tmp_path)


def test_battery_is_used_without_rapl(tmp_path: Path) -> None:
    files = {"type": "Battery", "status": "Discharging", "power_now": 9_000_000}
    write_supply(tmp_path / "power_supply", "BAT0", **files)
    assert isinstance(_find(tmp_path), BatteryMeter)


def test_battery_on_mains_says_to_unplug(tmp_path: Path) -> None:
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Full", power_now=0)
    assert _reason(tmp_path).startswith("no RAPL counter, and on mains: unplug")


def test_rapl_is_preferred_to_a_battery(tmp_path: Path) -> None:
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "package-0"))
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Discharging", power_now=9_000_000)
    assert isinstance(_find(tmp_path), RaplMeter)


def test_counters_that_cannot_be_read_are_not_replaced_by_a_battery(tmp_path: Path) -> None:
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "package-0")).unlink()
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Discharging", power_now=9_000_000)
    assert "a RAPL counter disappeared" in _reason(tmp_path)


def test_windows_reason_names_the_interfaces_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    reason = _reason(tmp_path)
    assert "RAPL" in reason
    assert "Energy Meter Interface (EMI)" in reason
    assert reason.endswith("measure under Linux, on the machine itself")


def test_intel_mac_reason_names_root_and_the_arm64_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    reason = _reason(tmp_path)
    assert "install an arm64 Python" in reason
    assert "only root" in reason


def test_unknown_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "freebsd14")
    assert _reason(tmp_path).startswith("edgeembed has no energy meter for freebsd14")


def test_null_meter_returns_its_reason_and_no_energy() -> None:
    meter = NullMeter("no counter")
    meter.begin()
    assert meter.end() == Reading(None, 0.0, {}, "no counter")
    assert (meter.source, meter.min_window_s) == (None, 0.0)
