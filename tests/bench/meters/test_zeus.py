"""The zeus meter over stubs of zeus's SoC objects that replay energies in millijoules."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from edgeembed_bench.energy import EnergyWindow, IdlePower, energy_from, measure_idle, measure_window
from edgeembed_bench.meters import EnergyMeter, NullMeter, Reading, ZeusMeter, detect_meter


@dataclass
class AppleSiliconMeasurement:
    cpu_total_mj: int | None = None
    efficiency_cores_mj: list[int] | None = None
    performance_cores_mj: list[int] | None = None
    efficiency_cluster_mj: list[int] | None = None
    performance_cluster_mj: list[int] | None = None
    efficiency_core_manager_mj: int | None = None
    performance_core_manager_mj: int | None = None
    dram_mj: int | None = None
    gpu_mj: int | None = None
    gpu_sram_mj: int | None = None
    ane_mj: int | None = None


@dataclass
class JetsonMeasurement:
    cpu_energy_mj: float | None = None
    gpu_energy_mj: float | None = None
    total_energy_mj: float | None = None


class AppleSilicon:
    """Stub with the interface of `zeus.device.soc.apple.AppleSilicon` that replays measurements.

    An exception among the measurements is raised.
    """

    measurements: tuple[Any, ...] = ()

    def __init__(self, *measurements: Any) -> None:
        self._measurements = iter(measurements or self.measurements)
        self._open: set[str] = set()

    def begin_window(self, key: str, restart: bool = False) -> None:  # as in zeus
        if key in self._open and not restart:
            raise KeyError(key)
        self._open.add(key)

    def end_window(self, key: str) -> Any:
        self._open.remove(key)
        measurement = next(self._measurements)
        if isinstance(measurement, Exception):
            raise measurement
        return measurement


class Jetson(AppleSilicon):
    """Stub with the interface of `zeus.device.soc.jetson.Jetson`."""


class ZeusSoCInitError(Exception):
    """Stub of the error of the same name."""


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by one second at every call."""
    seconds = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(seconds)))


@pytest.fixture
def zeus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stubs of the modules of zeus that the meter imports."""
    contents: dict[str, dict[str, Any]] = {
        "zeus": {},
        "zeus.device": {},
        "zeus.device.soc": {},
        "zeus.device.soc.apple": {"AppleSilicon": AppleSilicon},
        "zeus.device.soc.common": {"ZeusSoCInitError": ZeusSoCInitError},
        "zeus.device.soc.jetson": {"Jetson": Jetson},
        "zeus_apple_silicon": {},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


def _read(soc: AppleSilicon) -> Reading:
    meter = ZeusMeter(soc)
    meter.begin()
    return meter.end()


def _detect(tmp_path: Path) -> EnergyMeter:
    return detect_meter(
        powercap=tmp_path / "powercap", power_supply=tmp_path / "supplies", tegra_release=tmp_path / "nv_tegra_release"
    )


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac with Apple silicon."""
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")


@pytest.fixture
def jetson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Jetson board."""
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "nv_tegra_release").touch()


def test_apple_silicon_energy_is_the_sum_of_cpu_gpu_neural_engine_and_dram() -> None:
    measured = AppleSiliconMeasurement(
        cpu_total_mj=4200, efficiency_cores_mj=[100, 200], dram_mj=600, gpu_mj=50, gpu_sram_mj=5, ane_mj=0
    )
    reading = _read(AppleSilicon(measured))
    assert reading.energy_j == pytest.approx(4.85)
    assert reading.domains_j == {"cpu": 4.2, "gpu": 0.05, "gpu_sram": 0.005, "neural_engine": 0.0, "dram": 0.6}
    assert reading.window_s == 1.0
    assert reading.reason is None


def test_domain_that_the_chip_lacks_is_absent() -> None:
    reading = _read(AppleSilicon(AppleSiliconMeasurement(cpu_total_mj=4200, dram_mj=0)))
    assert reading.energy_j == pytest.approx(4.2)
    assert reading.domains_j == {"cpu": 4.2}


def test_jetson_energy_is_that_of_the_board() -> None:
    reading = _read(Jetson(JetsonMeasurement(cpu_energy_mj=3000.0, gpu_energy_mj=500.0, total_energy_mj=9000.0)))
    assert reading.energy_j == pytest.approx(9.0)
    assert reading.domains_j == {"cpu": 3.0, "gpu": 0.5, "board": 9.0}


def test_jetson_energy_without_a_board_sensor_is_cpu_and_gpu() -> None:
    assert _read(Jetson(JetsonMeasurement(3000.0, 500.0))).energy_j == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (AppleSiliconMeasurement(), "reports no CPU energy"),
        (AppleSiliconMeasurement(cpu_total_mj=0, dram_mj=5), "counter of the cpu stood still"),
        (AppleSiliconMeasurement(cpu_total_mj=-4), "ran backwards"),
        (JetsonMeasurement(3000.0, 500.0, 0.0), "counter of the board stood still"),
        (RuntimeError("IOReport\nfailed"), "zeus cannot read the energy counters: IOReport failed; run again"),
        (TimeoutError(), "zeus cannot read the energy counters: TimeoutError; run again"),
    ],
)
def test_window_that_was_not_measured_has_a_reason_and_no_energy(measured: Any, reason: str) -> None:
    reading = _read(AppleSilicon(measured))
    assert (reading.energy_j, reading.domains_j) == (None, {})
    assert reason in (reading.reason or "")


def test_end_without_begin_is_not_measured() -> None:
    assert ZeusMeter(AppleSilicon()).end().reason == "no window was begun"


def test_begin_that_fails_leaves_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    soc = AppleSilicon()

    def fail(key: str, restart: bool = False) -> None:
        raise RuntimeError("no sensor")

    monkeypatch.setattr(soc, "begin_window", fail)
    assert "no sensor" in (_read(soc).reason or "")


def test_begin_drops_a_window_that_is_still_open() -> None:
    meter = ZeusMeter(AppleSilicon(AppleSiliconMeasurement(cpu_total_mj=1000)))
    meter.begin()
    meter.begin()
    assert meter.end().energy_j == pytest.approx(1.0)


def test_energy_per_inference_is_replayed_from_a_recorded_run() -> None:
    windows_mj = (2000, 8000, 9000, 2000)
    meter = ZeusMeter(AppleSilicon(*(AppleSiliconMeasurement(cpu_total_mj=each, dram_mj=500) for each in windows_mj)))
    before = measure_idle(meter, 0)
    windows: list[EnergyWindow] = [measure_window(meter, lambda _: 100, 0) for _ in range(2)]
    energy = energy_from(meter, IdlePower(before, measure_idle(meter, 0)), windows)
    assert energy.mj_per_inference is not None
    assert energy.mj_per_inference.median == pytest.approx((85 + 95) / 2)
    assert energy.mj_above_idle is not None
    assert energy.mj_above_idle.median == pytest.approx(90 - 25)
    assert energy.source == "Apple silicon CPU + GPU + neural engine + DRAM, by zeus, where the chip reports them"


@pytest.mark.usefixtures("zeus", "mac")
def test_zeus_is_the_meter_of_apple_silicon(tmp_path: Path) -> None:
    meter = _detect(tmp_path)
    assert isinstance(meter, ZeusMeter)
    assert meter.min_window_s == 1.0


@pytest.mark.usefixtures("zeus", "jetson")
def test_zeus_is_the_meter_of_a_jetson(tmp_path: Path) -> None:
    meter = _detect(tmp_path)
    assert isinstance(meter, ZeusMeter)
    assert meter.min_window_s == 10.0
    assert (meter.source or "").startswith("Jetson power sensors")


@pytest.mark.parametrize("machine", ["mac", "jetson"])
def test_missing_zeus_names_the_extra(
    machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(machine)
    for name in ("zeus", "zeus.device", "zeus.device.soc.common", "zeus_apple_silicon"):
        monkeypatch.setitem(sys.modules, name, None)
    meter = _detect(tmp_path)
    assert isinstance(meter, NullMeter)
    assert meter.reason == "zeus is not installed; install it with: pip install 'edgeembed[zeus]'"


@pytest.mark.usefixtures("zeus")
@pytest.mark.parametrize(("machine", "counters"), [("mac", "energy counters"), ("jetson", "power sensors")])
def test_counters_that_cannot_be_opened_leave_a_reason(
    machine: str, counters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(machine)

    def fail(*_: object) -> None:
        raise ZeusSoCInitError("not found")

    monkeypatch.setattr(AppleSilicon, "__init__", fail)
    meter = _detect(tmp_path)
    assert isinstance(meter, NullMeter)
    assert f"{counters} cannot be opened: not found" in meter.reason


def test_stubs_have_the_interface_of_zeus() -> None:
    apple = pytest.importorskip("zeus.device.soc.apple", reason="needs zeus: edgeembed[zeus]")
    board = pytest.importorskip("zeus.device.soc.jetson", reason="needs zeus: edgeembed[zeus]")
    for stub, real in (
        (AppleSiliconMeasurement, apple.AppleSiliconMeasurement),
        (JetsonMeasurement, board.JetsonMeasurement),
    ):
        assert [field.name for field in fields(stub)] == [field.name for field in fields(real)]
    for name in ("begin_window", "end_window"):
        assert callable(getattr(apple.AppleSilicon, name))
        assert callable(getattr(board.Jetson, name))
