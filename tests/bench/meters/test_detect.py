from pathlib import Path

import edgeembed_bench.meters
import pytest
from edgeembed_bench.meters import BatteryMeter, EnergyMeter, NullMeter, RaplMeter, Reading, detect_meter

from .simulated import Zone, write_supply, write_zone


def _find(root: Path) -> EnergyMeter:
    return detect_meter(powercap=root / "powercap", power_supply=root / "power_supply")


def _reason(root: Path) -> str:
    meter = _find(root)
    assert isinstance(meter, NullMeter)
    return meter.reason


def test_public_names_are_sorted_and_there() -> None:
    names = edgeembed_bench.meters.__all__
    assert names == sorted(names)
    assert all(hasattr(edgeembed_bench.meters, name) for name in names)


def test_a_machine_with_nothing_says_what_is_absent(tmp_path: Path) -> None:
    assert _reason(tmp_path) == (
        f"no RAPL counter on this machine ({tmp_path}/powercap is absent) and no battery ({tmp_path}/power_supply "
        "is absent), as in virtual machines and containers; measure on the machine itself"
    )


def test_folders_that_hold_nothing_of_use_say_so(tmp_path: Path) -> None:
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "psys"))
    write_supply(tmp_path / "power_supply", "AC", type="Mains", online=1)
    reason = _reason(tmp_path)
    assert "powercap shows no package" in reason
    assert "power_supply shows none" in reason


def test_the_battery_of_a_mouse_is_not_the_machines(tmp_path: Path) -> None:
    write_supply(tmp_path / "power_supply", "hidpp_battery_0", type="Battery", scope="Device", status="Discharging")
    assert "no battery" in _reason(tmp_path)


def test_a_battery_is_taken_where_there_is_no_rapl(tmp_path: Path) -> None:
    files = {"type": "Battery", "status": "Discharging", "power_now": 9_000_000}
    write_supply(tmp_path / "power_supply", "BAT0", **files)
    assert isinstance(_find(tmp_path), BatteryMeter)


def test_a_battery_on_mains_says_to_unplug(tmp_path: Path) -> None:
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Full", power_now=0)
    assert _reason(tmp_path).startswith("no RAPL counter, and on mains: unplug")


def test_rapl_is_preferred_to_a_battery(tmp_path: Path) -> None:
    pytest.importorskip("pyJoules", reason="needs pyJoules: edgeembed[energy]")
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "package-0"))
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Discharging", power_now=9_000_000)
    assert isinstance(_find(tmp_path), RaplMeter)


def test_counters_that_cannot_be_read_are_not_replaced_by_a_battery(tmp_path: Path) -> None:
    write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "package-0")).unlink()
    write_supply(tmp_path / "power_supply", "BAT0", type="Battery", status="Discharging", power_now=9_000_000)
    assert "a RAPL counter disappeared" in _reason(tmp_path)


@pytest.mark.parametrize(
    ("platform", "missing"), [("darwin", "powermetrics"), ("win32", "signed drivers"), ("freebsd14", "freebsd14")]
)
def test_other_systems_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, missing: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    reason = _reason(tmp_path)
    assert missing in reason
    assert reason.endswith("measure under Linux, on the machine itself")


def test_a_null_meter_gives_its_reason_and_nothing_else() -> None:
    meter = NullMeter("no counter")
    meter.begin()
    assert meter.end() == Reading(None, 0.0, {}, "no counter")
    assert (meter.source, meter.window_s) == (None, 0.0)
