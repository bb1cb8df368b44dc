import time
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench.meters import BatteryMeter, Reading

from .simulated import write_supply

SECOND = 1.0


def _battery(supplies: Path, name: str = "BAT0", **files: Any) -> Path:
    return write_supply(supplies, name, type="Battery", **{"status": "Discharging", "power_now": 10_000_000} | files)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock in seconds that advances only when a test sets it."""
    now_s = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now_s[0])
    return now_s


def _reading(clock: list[float], *batteries: Path, seconds: float = 2.0, **changes: Any) -> Reading:
    """Return the reading of a window at whose end the first battery's files change; no sample falls in between."""
    meter = BatteryMeter(batteries, interval_s=3600)
    meter.begin()
    clock[0] += seconds
    for file, value in changes.items():
        (batteries[0] / file).write_text(f"{value}\n")
    return meter.end()


def test_power_is_integrated_over_the_window(tmp_path: Path, clock: list[float]) -> None:
    reading = _reading(clock, _battery(tmp_path), power_now=14_000_000)
    assert reading.energy_j == pytest.approx((10 + 14) / 2 * 2)
    assert reading.domains_j == {"battery": reading.energy_j}
    assert reading.window_s == pytest.approx(2.0)


def test_power_is_current_times_voltage_if_the_battery_reports_no_power(tmp_path: Path, clock: list[float]) -> None:
    battery = _battery(tmp_path, current_now=-500_000, voltage_now=12_000_000)
    (battery / "power_now").unlink()
    assert _reading(clock, battery).energy_j == pytest.approx(0.5 * 12 * 2)


def test_power_is_summed_over_discharging_batteries_only(tmp_path: Path, clock: list[float]) -> None:
    batteries = (
        _battery(tmp_path, "BAT0"),
        _battery(tmp_path, "BAT1", power_now=5_000_000),
        _battery(tmp_path, "BAT2", status="Not charging"),
    )
    assert _reading(clock, *batteries).energy_j == pytest.approx(30.0)


def test_power_is_sampled_while_the_window_is_open(tmp_path: Path) -> None:
    battery, samples = _battery(tmp_path), 4

    class Counted(BatteryMeter):
        taken = 0

        def _sample(self) -> Any:
            self.taken += 1
            return super()._sample()

    meter = Counted([battery], interval_s=0.001)
    meter.begin()
    while meter.taken < samples:
        time.sleep(0.001)
    reading = meter.end()
    assert reading.energy_j == pytest.approx(10 * reading.window_s)


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown"])
def test_window_on_mains_is_not_measured(tmp_path: Path, clock: list[float], status: str) -> None:
    reading = _reading(clock, _battery(tmp_path), status=status)
    assert (reading.energy_j, reading.domains_j) == (None, {})
    assert reading.reason == f"on mains: unplug, so that the battery discharges (BAT0: {status})"


@pytest.mark.parametrize("power", [0, "", "?"])
def test_battery_without_a_power_value_is_not_measured(tmp_path: Path, clock: list[float], power: object) -> None:
    reading = _reading(clock, _battery(tmp_path), power_now=power)
    assert reading.energy_j is None
    assert reading.reason is not None
    assert "power" in reading.reason


def test_battery_that_disappears_is_not_measured(tmp_path: Path, clock: list[float]) -> None:
    battery = _battery(tmp_path)
    meter = BatteryMeter([battery], interval_s=3600)
    meter.begin()
    battery.rename(tmp_path / "away")
    assert meter.end() == Reading(None, 0.0, {}, "the battery disappeared: BAT0; run again")


def test_begin_drops_a_window_that_is_still_open(tmp_path: Path, clock: list[float]) -> None:
    meter = BatteryMeter([_battery(tmp_path)], interval_s=3600)
    meter.begin()
    clock[0] += 5 * SECOND
    meter.begin()
    clock[0] += SECOND
    assert meter.end().energy_j == pytest.approx(10.0)


def test_source_names_the_batteries_and_what_is_included(tmp_path: Path) -> None:
    source = BatteryMeter([_battery(tmp_path, "BAT0"), _battery(tmp_path, "BAT1")]).source
    assert source == "discharge of BAT0 + BAT1, sampled every 0.2 s, the whole machine included"
