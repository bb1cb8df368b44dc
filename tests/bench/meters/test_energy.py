import math
from dataclasses import astuple
from typing import Never

import pytest
from edgeembed_bench.energy import (
    Energy,
    EnergyWindow,
    IdlePower,
    energy_from,
    measure_idle,
    measure_window,
)
from edgeembed_bench.meters import NullMeter, Reading

from .replaying import ReplayMeter, replay


@pytest.fixture
def desktop() -> Energy:
    """Five windows of about 22 W and one that failed, with idle power of 7 W before and 8 W after."""
    return replay("desktop.csv")


def _energy(energy_j: float | None, idle_j: float, inferences: int = 10) -> Energy:
    def reading(value: float | None) -> Reading:
        return Reading(value, 1.0, {} if value is None else {"package": value}, None if value else "dead")

    idle = IdlePower(reading(idle_j), reading(idle_j))
    return Energy("replayed", idle, (EnergyWindow(inferences, reading(energy_j)),), None)


def test_energy_per_inference_has_quartiles_over_the_measured_windows(desktop: Energy) -> None:
    assert len(desktop.windows) == 6
    assert len(desktop.measured) == 5
    # 22/500, 22.35/500, 22.09/490, 22.95/510 and 22.275/495 joules
    assert desktop.mj_per_inference is not None
    assert astuple(desktop.mj_per_inference) == pytest.approx((44.7, 45.0, 45.0))
    assert desktop.reason is None


def test_discarded_windows_are_listed_with_their_reason(desktop: Energy) -> None:
    assert desktop.discarded == ["1 of 6 windows discarded: a RAPL counter disappeared"]


def test_window_whose_counter_ran_backwards_is_discarded_with_its_reason() -> None:
    energy = replay("backwards.csv")
    assert energy.mj_per_inference is not None
    assert energy.mj_per_inference.median == pytest.approx(40)
    assert energy.discarded == [
        "2 of 3 windows discarded: a RAPL counter ran backwards",
        "idle power after discarded: a RAPL counter ran backwards",
    ]


def test_reason_is_not_repeated_among_the_discarded_windows() -> None:
    energy = replay("dead.csv")
    assert energy.reason is not None
    assert energy.discarded == []


def test_idle_power_is_the_mean_of_before_and_after(desktop: Energy) -> None:
    assert desktop.idle is not None
    assert (desktop.idle.before_w, desktop.idle.after_w) == pytest.approx((7.0, 8.0))
    assert desktop.idle.total_w == pytest.approx(7.5)
    assert desktop.idle.power_w == pytest.approx({"package": 6.5, "core": 1.5, "dram": 1.0})


def test_energy_above_idle_subtracts_idle_power_times_window_length(desktop: Energy) -> None:
    assert desktop.mj_above_idle is not None
    # (22 - 7.5)/500, (22.35 - 7.5 x 1.01)/500, (22.09 - 7.5)/490, (22.95 - 7.5 x 1.02)/510, (22.275 - 7.5)/495
    assert desktop.mj_above_idle.median == pytest.approx(29.77551, rel=1e-5)


def test_energy_by_domain_with_and_without_idle_power(desktop: Energy) -> None:
    whole, above = desktop.domains_mj(), desktop.domains_mj(above_idle=True)
    assert set(whole) == set(above) == {"package", "core", "dram"}
    assert whole["core"].median == pytest.approx(28.43137, rel=1e-5)
    assert above["core"].median == pytest.approx((14.5 - 1.5 * 1.02) / 510 * 1e3)


def test_reason_is_the_most_common_one_if_every_window_failed() -> None:
    energy = replay("dead.csv")
    assert energy.mj_per_inference is None
    assert energy.mj_above_idle is None
    assert energy.domains_mj() == {}
    assert energy.reason == "a RAPL counter stood still"


def test_idle_power_uses_the_only_measured_side() -> None:
    idle = replay("dead.csv").idle
    assert idle is not None
    assert idle.after_w is None
    assert idle.before_w == idle.total_w == pytest.approx(7.0)


def test_energy_above_idle_is_none_without_idle_power() -> None:
    failed = Reading(None, 1.0, {}, "dead")
    windows = (EnergyWindow(10, Reading(5.0, 1.0, {"package": 5.0})),)
    for idle in (None, IdlePower(failed, failed)):
        energy = Energy("replayed", idle, windows, None)
        assert energy.mj_per_inference is not None
        assert energy.mj_above_idle is None
        assert energy.domains_mj(above_idle=True) == {}


def test_energy_above_idle_can_be_negative() -> None:
    above = _energy(5.0, 6.0).mj_above_idle
    assert above is not None
    assert above.median == pytest.approx(-100.0)


def test_energy_equal_to_idle_is_positive_zero() -> None:
    above = _energy(5.0, 5.0).mj_above_idle
    assert above is not None
    assert math.copysign(1, above.median) == 1


def test_window_without_inferences_is_not_measured() -> None:
    meter = ReplayMeter("desktop.csv")
    energy = energy_from(meter, None, [measure_window(meter, lambda _: 0)])
    assert energy.mj_per_inference is None
    assert energy.reason == "the window contained no inference"


def test_work_runs_for_the_minimum_window_or_the_requested_seconds() -> None:
    meter, given = ReplayMeter("desktop.csv"), []

    def work(seconds: float) -> int:
        given.append(seconds)
        return 1

    measure_window(meter, work)
    measure_window(meter, work, 0.25)
    assert given == [1.0, 0.25]


def test_failing_work_closes_the_window() -> None:
    meter = ReplayMeter("desktop.csv")

    def work(_: float) -> Never:
        raise RuntimeError("the model fell over")

    with pytest.raises(RuntimeError, match="the model fell over"):
        measure_window(meter, work)
    assert meter.end().window_s == 1.0
    assert meter.end().window_s == 1.01  # so the first was taken


def test_null_meter_neither_waits_nor_works() -> None:
    def work(_: float) -> Never:
        raise AssertionError("there is nothing to measure")

    meter = NullMeter("no counter")
    idle = IdlePower(measure_idle(meter, 3600), measure_idle(meter, 3600))
    energy = energy_from(meter, idle, [measure_window(meter, work)])
    assert (energy.source, energy.idle, energy.reason) == (None, None, "no counter")
    assert energy.mj_per_inference is None
