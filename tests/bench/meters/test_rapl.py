import logging
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench.meters import NullMeter, RaplMeter, Reading, detect_meter
from edgeembed_bench.meters.rapl import _without_pyjoules_warnings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .simulated import AMD_RANGE_UJ, INTEL_RANGE_UJ, Zone, write_zone

PACKAGE = Zone("intel-rapl/intel-rapl:0", "package-0")


@pytest.fixture
def powercap(tmp_path: Path) -> Path:
    """Path of a powercap tree that does not exist yet."""
    return tmp_path / "powercap"


_clock_s = [0.0]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by one second whenever a test sets a counter."""
    _clock_s[0] = 100.0
    monkeypatch.setattr("time.perf_counter", lambda: _clock_s[0])


class _Machine:
    """Counters that a test sets, and the meter that reads them."""

    def __init__(self, powercap: Path, *zones: Zone) -> None:
        self.zones = {zone.folder.rpartition("/")[2]: zone for zone in zones}
        self.files = {name: write_zone(powercap, zone) for name, zone in self.zones.items()}
        self.meter = detect_meter(powercap=powercap)

    def reading(self, **joules: float) -> Reading:
        """Return the reading of a window in which zones, named by their numbers, advance by some joules."""
        self.meter.begin()
        for number, energy_j in joules.items():
            self.add(number.replace("_", ":").replace("z", "intel-rapl:"), energy_j)
        return self.meter.end()

    def add(self, name: str, energy_j: float) -> None:
        advanced_uj = int(self.files[name].read_text()) + round(energy_j * 1e6)
        self.set(name, advanced_uj % self.zones[name].range_uj)

    def set(self, name: str, energy_uj: int) -> None:
        """Write a value one second later."""
        _clock_s[0] += 1
        self.files[name].write_text(f"{energy_uj}\n")


def test_energy_is_the_sum_of_packages_and_dram_of_all_sockets(powercap: Path) -> None:
    machine = _Machine(
        powercap,
        PACKAGE,
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "core"),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:1", "uncore"),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:2", "dram"),
        Zone("intel-rapl/intel-rapl:1", "package-1"),
        Zone("intel-rapl/intel-rapl:1/intel-rapl:1:0", "core"),
        Zone("intel-rapl/intel-rapl:1/intel-rapl:1:1", "dram"),
        Zone("intel-rapl/intel-rapl:2", "psys"),
    )
    reading = machine.reading(z0=3, z0_0=2.5, z0_1=0.1, z0_2=0.5, z1=2, z1_0=1.5, z1_1=0.25, z2=9)
    assert reading.energy_j == pytest.approx(5.75)
    assert reading.domains_j == pytest.approx({"package": 5, "core": 4, "uncore": 0.1, "dram": 0.75, "psys": 9})
    assert reading.reason is None
    assert reading.window_s > 0
    assert machine.meter.source == "RAPL package + DRAM, by pyJoules, 2 sockets"


def test_gaps_between_sockets_and_several_dies_of_a_socket_are_supported(powercap: Path) -> None:
    machine = _Machine(
        powercap,
        Zone("intel-rapl/intel-rapl:1", "package-0-die-0"),
        Zone("intel-rapl/intel-rapl:3", "package-0-die-1"),
        Zone("intel-rapl/intel-rapl:3/intel-rapl:3:2", "dram"),
    )
    assert machine.reading(z1=1, z3=2, z3_2=0.5).energy_j == pytest.approx(3.5)
    assert machine.meter.source == "RAPL package + DRAM, by pyJoules, 1 socket"


def _dies(*names: str, tree: str = "intel-rapl", **values: int) -> list[Zone]:
    return [Zone(f"{tree}/{tree}:{place}", name, **values) for place, name in enumerate(names)]


@pytest.mark.parametrize("tree", ["intel-rapl", "amd-rapl"])
def test_dies_that_mirror_the_counter_of_their_socket_count_once(powercap: Path, tree: str) -> None:
    machine = _Machine(powercap, *_dies("package-0-die-0", "package-0-die-1", tree=tree))
    machine.meter.begin()
    for die in range(2):
        machine.files[f"{tree}:{die}"].write_text("69000000\n")
    _clock_s[0] += 1
    reading = machine.meter.end()
    assert reading.energy_j == pytest.approx(68)
    assert reading.domains_j == pytest.approx({"package": 68})


def test_mirrored_dies_count_once_for_each_of_two_sockets(powercap: Path) -> None:
    names = [f"package-{socket}-die-{die}" for socket in range(2) for die in range(2)]
    machine = _Machine(powercap, *_dies(*names))
    machine.meter.begin()
    for die, energy_j in enumerate((40, 40, 30, 30)):
        machine.files[f"intel-rapl:{die}"].write_text(f"{1_000_000 + energy_j * 1_000_000}\n")
    _clock_s[0] += 1
    assert machine.meter.end().energy_j == pytest.approx(70)


def test_sockets_of_equal_energy_are_summed(powercap: Path) -> None:
    machine = _Machine(powercap, *_dies("package-0", "package-1"))
    assert machine.reading(z0=20, z1=20).energy_j == pytest.approx(40)


def test_reads_of_mirrored_dies_may_differ_by_what_the_socket_uses_meanwhile(powercap: Path) -> None:
    first, second = _dies("package-0-die-0", "package-0-die-1")
    machine = _Machine(powercap, first, replace(second, start_uj=1_002_000))
    machine.meter.begin()
    machine.files["intel-rapl:0"].write_text("69000000\n")
    machine.set("intel-rapl:1", 69_130_000)  # read 2 ms later
    assert machine.meter.end().energy_j == pytest.approx(68)


@pytest.mark.parametrize("late_uj", [AMD_RANGE_UJ - 30_000, AMD_RANGE_UJ + 30_000])
def test_mirrored_dies_may_be_read_before_and_after_a_wrap(powercap: Path, late_uj: int) -> None:
    dies = _dies("package-0-die-0", "package-0-die-1", start_uj=AMD_RANGE_UJ - 20_000_000, range_uj=AMD_RANGE_UJ)
    machine = _Machine(powercap, *dies)
    machine.meter.begin()
    machine.files["intel-rapl:0"].write_text(f"{AMD_RANGE_UJ - 10_000}\n")
    machine.set("intel-rapl:1", late_uj % AMD_RANGE_UJ)
    assert machine.meter.end().energy_j == pytest.approx(20, abs=0.05)


@pytest.mark.parametrize(
    ("starts_j", "energies_j"),
    [
        ((1, 1), (34, 33)),  # equal values at the beginning alone
        ((1, 2), (34, 33)),  # at the end alone
        ((1, 500), (34, 34)),  # equal energies of counters that hold different values
    ],
)
def test_dies_with_counters_of_their_own_are_summed(
    powercap: Path, starts_j: tuple[int, int], energies_j: tuple[int, int]
) -> None:
    dies = _dies("package-0-die-0", "package-0-die-1")
    dies = [replace(die, start_uj=start_j * 1_000_000) for die, start_j in zip(dies, starts_j, strict=True)]
    machine = _Machine(powercap, *dies)
    machine.meter.begin()
    for number, energy_j in enumerate(energies_j):
        advanced_uj = (starts_j[number] + energy_j) * 1_000_000
        machine.files[f"intel-rapl:{number}"].write_text(f"{advanced_uj}\n")
    _clock_s[0] += 1
    assert machine.meter.end().energy_j == pytest.approx(sum(energies_j))


@pytest.mark.parametrize(("second_die_j", "dram_j"), [(20, 1), (25, 2)])
def test_memory_within_dies_counts_once_only_if_the_dies_mirror_each_other(
    powercap: Path, second_die_j: float, dram_j: float
) -> None:
    machine = _Machine(
        powercap,
        *_dies("package-0-die-0", "package-0-die-1"),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram"),
        Zone("intel-rapl/intel-rapl:1/intel-rapl:1:0", "dram"),
    )
    reading = machine.reading(z0=20, z1=second_die_j, z0_0=1, z1_0=1)
    package_j = 20 if second_die_j == 20 else 45
    assert reading.domains_j == pytest.approx({"package": package_j, "dram": dram_j})
    assert reading.energy_j == pytest.approx(package_j + dram_j)


@pytest.mark.parametrize("tree", ["intel-rapl", "amd-rapl"])
def test_amd_counters_are_read(powercap: Path, tree: str) -> None:
    machine = _Machine(powercap, Zone(f"{tree}/{tree}:0", "package-0"), Zone(f"{tree}/{tree}:0/{tree}:0:0", "core"))
    machine.meter.begin()
    machine.add(f"{tree}:0", 2.5)
    machine.add(f"{tree}:0:0", 1.5)
    reading = machine.meter.end()
    assert reading.energy_j == pytest.approx(2.5)
    assert reading.domains_j == pytest.approx({"package": 2.5, "core": 1.5})
    assert machine.meter.source == "RAPL package, by pyJoules, 1 socket"


def test_memory_mapped_copy_of_a_package_is_not_counted_twice(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE, Zone("intel-rapl-mmio/intel-rapl-mmio:0", "package-0"))
    machine.meter.begin()
    machine.add("intel-rapl:0", 2)
    machine.add("intel-rapl-mmio:0", 2)
    assert machine.meter.end().energy_j == pytest.approx(2)


def test_memory_mapped_counters_are_used_if_there_are_no_others(powercap: Path) -> None:
    machine = _Machine(powercap, Zone("intel-rapl-mmio/intel-rapl-mmio:0", "package-0"))
    machine.meter.begin()
    machine.add("intel-rapl-mmio:0", 2)
    assert machine.meter.end().energy_j == pytest.approx(2)


def test_counter_wrap_is_corrected(powercap: Path) -> None:
    zone = replace(PACKAGE, start_uj=65_532_000_000, range_uj=AMD_RANGE_UJ)
    machine = _Machine(powercap, zone)
    assert machine.reading(z0=2.5).energy_j == pytest.approx(2.5)
    assert int(machine.files["intel-rapl:0"].read_text()) < 2_500_000


@pytest.mark.parametrize("range_uj", [INTEL_RANGE_UJ, AMD_RANGE_UJ])
@pytest.mark.parametrize(
    ("before_uj", "after_uj"),
    [
        (1_000_000_000, 999_000_000),  # a step back
        (1_000_000_000, 0),  # a reset
        (2**32 - 10_000_000, 10_000_000),  # wrapped at 32 bits, before the end of the range
        (AMD_RANGE_UJ - 1_001_000_000, 0),  # 1,001 W to the end of AMD's range, far from the end of Intel's
    ],
)
def test_counter_that_runs_backwards_or_wraps_early_is_not_measured(
    powercap: Path, range_uj: int, before_uj: int, after_uj: int
) -> None:
    machine = _Machine(powercap, replace(PACKAGE, start_uj=before_uj, range_uj=range_uj))
    machine.meter.begin()
    machine.set("intel-rapl:0", after_uj)
    _assert_not_measured(machine.meter.end(), "ran backwards or wrapped around before the end of its range")
    assert machine.reading(z0=2).energy_j == pytest.approx(2)  # the next window is sound


def test_wrap_at_the_maximum_power_is_corrected(powercap: Path) -> None:
    machine = _Machine(powercap, replace(PACKAGE, start_uj=AMD_RANGE_UJ - 900_000_000, range_uj=AMD_RANGE_UJ))
    assert machine.reading(z0=999).energy_j == pytest.approx(999)


def test_wrap_of_a_range_smaller_than_the_window_energy_is_not_measured(powercap: Path) -> None:
    machine = _Machine(powercap, replace(PACKAGE, start_uj=15_000_000, range_uj=20_000_000))
    machine.meter.begin()
    machine.set("intel-rapl:0", 10_000_000)
    _assert_not_measured(machine.meter.end(), "its range of 20 J is too small to tell which")


def test_counter_that_starts_above_its_range_is_not_measured(powercap: Path) -> None:
    machine = _Machine(powercap, replace(PACKAGE, start_uj=AMD_RANGE_UJ + 5_000_000, range_uj=AMD_RANGE_UJ))
    machine.meter.begin()
    machine.set("intel-rapl:0", AMD_RANGE_UJ - 5_000_000)
    _assert_not_measured(machine.meter.end(), "ran backwards")


def test_counter_above_the_maximum_power_is_not_measured(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE)
    _assert_not_measured(machine.reading(z0=1001), "advanced by more than 1,000 W")


def test_core_counter_that_runs_backwards_is_omitted(powercap: Path) -> None:
    core = Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", start_uj=9_000_000)
    machine = _Machine(powercap, PACKAGE, core)
    machine.meter.begin()
    machine.set("intel-rapl:0:0", 1_000_000)
    machine.add("intel-rapl:0", 2)
    reading = machine.meter.end()
    assert reading.energy_j == pytest.approx(2)
    assert reading.domains_j == pytest.approx({"package": 2})


def test_counter_that_runs_backwards_with_unknown_range_is_not_measured(powercap: Path) -> None:
    write_zone(powercap, PACKAGE)
    (powercap / PACKAGE.folder / "max_energy_range_uj").unlink()
    meter = detect_meter(powercap=powercap)
    meter.begin()
    (powercap / PACKAGE.folder / "energy_uj").write_text("5\n")
    _assert_not_measured(meter.end(), "ran backwards")


@pytest.mark.parametrize(("package_j", "dram_j"), [(0, 1), (1, 0), (0, 0)])
def test_counter_that_stands_still_is_not_measured(powercap: Path, package_j: float, dram_j: float) -> None:
    machine = _Machine(powercap, PACKAGE, Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram"))
    _assert_not_measured(machine.reading(z0=package_j, z0_0=dram_j), "stood still")


def test_uncore_counter_that_stands_still_is_omitted(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE, Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "uncore"))
    assert machine.reading(z0=2).domains_j == pytest.approx({"package": 2})


def test_counter_that_disappears_is_not_measured_until_it_returns(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE)
    file = machine.files["intel-rapl:0"]
    machine.meter.begin()
    file.rename(file.with_name("away"))
    _assert_not_measured(machine.meter.end(), f"disappeared: {file}")
    machine.meter.begin()
    file.with_name("away").rename(file)
    _assert_not_measured(machine.meter.end(), "disappeared")
    assert machine.reading(z0=1).energy_j == pytest.approx(1)


def test_reason_names_a_counter_that_holds_no_number(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE)
    machine.meter.begin()
    machine.files["intel-rapl:0"].write_text("")
    _assert_not_measured(machine.meter.end(), f"{machine.files['intel-rapl:0']} contains no number")


def test_end_without_begin_is_not_measured(powercap: Path) -> None:
    machine = _Machine(powercap, PACKAGE)
    _assert_not_measured(machine.meter.end(), "no window was begun")


def test_interrupted_read_is_repeated(powercap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine(powercap, PACKAGE)
    clock_s = iter([0.0, 0.5, 0.5, 0.5, 2.5, 2.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock_s))
    assert machine.reading(z0=2).window_s == pytest.approx(2.0)


@pytest.mark.parametrize("broken", ["", "energy\n"])
def test_detection_names_a_broken_counter(powercap: Path, broken: str) -> None:
    file = write_zone(powercap, PACKAGE)
    file.write_text(broken)
    assert _reason(powercap) == f"a RAPL counter cannot be read: {file} contains no number"


def test_permission_error_names_the_counter_the_command_and_the_udev_rule(
    powercap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dram = Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram")
    files = [str(write_zone(powercap, zone)) for zone in (PACKAGE, dram)]
    read_text = Path.read_text

    def denied(path: Path, **options: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read_text(path, **options)

    monkeypatch.setattr(Path, "read_text", denied)
    reason = _reason(powercap)
    assert reason.startswith(
        f"permission denied: {files[0]} belongs to root; run: sudo chmod a+r {files[0]} {files[1]};"
    )
    assert 'KERNEL=="intel-rapl:*", RUN+="/bin/chmod a+r /sys%p/energy_uj"' in reason
    assert reason.endswith("| sudo tee /etc/udev/rules.d/70-powercap.rules")
    assert "\n" not in reason


def test_only_pyjoules_warnings_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    def log(file: str) -> None:
        exec(compile(f"import logging\nlogging.warning('of {file}')", file, "exec"), {})  # noqa: S102

    handlers = list(logging.root.handlers)
    with _without_pyjoules_warnings():
        log("/lib/pyJoules/device/device_factory.py")
        log("/lib/another.py")
        logging.getLogger("another").warning("of a logger")
        assert logging.root.manager.disable == logging.NOTSET
    log("/lib/pyJoules/device/later.py")
    assert [record.getMessage() for record in caplog.records] == [
        "of /lib/another.py",
        "of a logger",
        "of /lib/pyJoules/device/later.py",
    ]
    assert logging.root.handlers == handlers


def test_detection_prints_nothing_and_leaves_the_root_logger_unchanged(powercap: Path) -> None:
    write_zone(powercap, PACKAGE)
    code = (
        "import logging, pathlib, sys\n"
        "from edgeembed_bench.meters import RaplMeter, detect_meter\n"
        "assert isinstance(detect_meter(powercap=pathlib.Path(sys.argv[1])), RaplMeter)\n"
        "assert not logging.root.handlers and not logging.root.filters"
    )
    done = subprocess.run([sys.executable, "-c", code, powercap], check=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_pyjoules_comes_with_edgeembed_without_an_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [Requirement(line) for line in project["dependencies"]]
    (pyjoules,) = [each for each in required if canonicalize_name(each.name) == "pyjoules"]
    assert pyjoules.marker is not None
    assert pyjoules.marker.evaluate({"sys_platform": "linux"})
    assert not pyjoules.marker.evaluate({"sys_platform": "win32"})


def _reason(powercap: Path) -> str:
    meter = detect_meter(powercap=powercap)
    assert isinstance(meter, NullMeter)
    return meter.reason


def _assert_not_measured(reading: Reading, reason: str) -> None:
    assert reading.energy_j is None
    assert reading.domains_j == {}
    assert reason in (reading.reason or "")


def test_minimum_window_is_a_thousand_counter_updates() -> None:
    assert RaplMeter.min_window_s == 1.0
