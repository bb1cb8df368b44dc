"""A simulated machine: counters under /sys/class that advance at a known power, and the energy that the meters read.

Run in a mount namespace (`unshare -m`), where it mounts a tmpfs over /sys/class, this prints the results of all cases
as JSON. Other tests use its functions that write counter trees.
"""

import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")

SYS_CLASS = Path("/sys/class")
POWERCAP = SYS_CLASS / "powercap"
POWER_SUPPLY = SYS_CLASS / "power_supply"
INTEL_RANGE_UJ = 262_143_328_850
AMD_RANGE_UJ = 65_532_610_987
NOBODY = 65534
WINDOW_S = 0.3  # shorter than in a benchmark, and much longer than the simulator's steps of 1 ms
WINDOWS = 3
LATE_S = 0.003  # a step of the simulator after which its counters are behind by 1 % of a window
TRIES = 20
_WIDTH = 20


@dataclass(frozen=True)
class Zone:
    """A counter; its folder is relative to the powercap directory."""

    folder: str
    name: str
    idle_w: float = 0.0
    work_w: float = 0.0
    start_uj: int = 1_000_000
    range_uj: int = INTEL_RANGE_UJ


def write_zone(powercap: Path, zone: Zone) -> Path:
    """Write the files of a counter and return the file of its value."""
    folder = powercap / zone.folder
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{zone.name}\n")
    (folder / "max_energy_range_uj").write_text(f"{zone.range_uj}\n")
    (folder / "energy_uj").write_bytes(_digits(zone.start_uj))
    # Linux links every zone, nested ones too, in the powercap directory.
    (powercap / folder.name).symlink_to(folder)
    return folder / "energy_uj"


def write_supply(power_supply: Path, name: str, **files: object) -> Path:
    """Write the files of a battery or charger and return their directory."""
    folder = power_supply / name
    folder.mkdir(parents=True)
    for file, value in files.items():
        (folder / file).write_text(f"{value}\n")
    return folder


def _digits(value: int) -> bytes:
    # Fixed width: a reader never sees half a number while it is overwritten.
    return f"{value:<{_WIDTH}}\n".encode()


def advance(zones: Sequence[Zone]) -> None:
    """Advance the counters every millisecond until killed."""
    with contextlib.suppress(OSError):  # hardware counts no matter what else runs
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    files = [os.open(POWERCAP / zone.folder / "energy_uj", os.O_WRONLY) for zone in zones]
    load = os.open(SYS_CLASS / "load", os.O_RDONLY)
    late, late_steps = os.open(SYS_CLASS / "late", os.O_WRONLY), 0
    jump = os.open(SYS_CLASS / "jump", os.O_RDWR)
    energies_uj = [float(zone.start_uj) for zone in zones]
    last_s = time.monotonic()
    print("started", flush=True)
    while True:
        time.sleep(0.001)
        working, now_s = os.pread(load, 1, 0) == b"1", time.monotonic()
        if now_s - last_s > LATE_S:
            late_steps += 1
            os.pwrite(late, _digits(late_steps), 0)
        if (wanted := os.pread(jump, _WIDTH, 0).strip()) != b"":
            energies_uj[0] = float(wanted)
            os.pwrite(jump, b" " * _WIDTH, 0)
        for number, zone in enumerate(zones):
            energies_uj[number] += (zone.work_w if working else zone.idle_w) * (now_s - last_s) * 1e6
            os.pwrite(files[number], _digits(int(energies_uj[number]) % zone.range_uj), 0)
        last_s = now_s


@contextlib.contextmanager
def machine(*zones: Zone) -> Iterator[None]:
    """Mount a machine with these counters over /sys/class; they advance while the context is open."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", SYS_CLASS], check=True)
    try:
        (SYS_CLASS / "load").write_bytes(b"0")
        (SYS_CLASS / "late").write_bytes(_digits(0))
        (SYS_CLASS / "jump").write_bytes(b" " * _WIDTH)
        for zone in zones:
            write_zone(POWERCAP, zone)
        with _advancing(zones):
            yield
    finally:
        subprocess.run(["umount", SYS_CLASS], check=True)


@contextlib.contextmanager
def _advancing(zones: Sequence[Zone]) -> Iterator[None]:
    command = [sys.executable, __file__, json.dumps([asdict(zone) for zone in zones])]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as simulator:
        assert simulator.stdout is not None
        simulator.stdout.readline()
        try:
            yield
        finally:
            simulator.kill()


def _meter() -> str:
    from edgeembed_bench.meters import detect_meter

    return type(detect_meter()).__name__


def encode(seconds: float) -> int:
    """Sleep for 4 ms per inference and return the number of inferences."""
    end_s, inferences = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        time.sleep(0.004)
        inferences += 1
    return inferences


def on_time(measure: Callable[[], Result]) -> Result:
    """Measure, and measure again if the host of a virtual machine held up the simulator meanwhile."""
    for _ in range(TRIES):
        before = (SYS_CLASS / "late").read_text()
        result = measure()
        if (SYS_CLASS / "late").read_text() == before:
            break
    return result


def measure_energy(
    work: Callable[[float], int] = encode, windows: int = WINDOWS, before_each: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Return the energy per inference and the idle power that the detected meter measures."""
    from edgeembed_bench.energy import EnergyWindow, IdlePower, energy_from, measure_idle, measure_window
    from edgeembed_bench.meters import detect_meter

    meter = detect_meter()

    def window(number: int) -> EnergyWindow:
        before_each(number)
        return measure_window(meter, work, WINDOW_S)

    before = on_time(lambda: measure_idle(meter, WINDOW_S))
    (SYS_CLASS / "load").write_bytes(b"1")
    time.sleep(0.02)  # until the next step of the simulator
    energy_windows = [on_time(functools.partial(window, number)) for number in range(windows)]
    (SYS_CLASS / "load").write_bytes(b"0")
    time.sleep(0.02)
    after = on_time(lambda: measure_idle(meter, WINDOW_S))
    energy = energy_from(meter, IdlePower(before, after), energy_windows)
    spent_s = sorted(window.reading.window_s / (window.inferences or 1) for window in energy_windows)
    return {
        "meter": type(meter).__name__,
        "source": energy.source,
        "reason": energy.reason,
        "discarded": energy.discarded,
        "mj": energy.mj_per_inference and energy.mj_per_inference.median,
        "mj_above_idle": energy.mj_above_idle and energy.mj_above_idle.median,
        "domains_mj": {name: spread.median for name, spread in energy.domains_mj().items()},
        "idle_w": energy.idle and energy.idle.total_w,
        "ms_per_inference": spent_s[len(spent_s) // 2] * 1e3,
    }


def one_socket() -> dict[str, Any]:
    with machine(Zone("intel-rapl/intel-rapl:0", "package-0", idle_w=5, work_w=20)):
        return measure_energy()


def two_sockets() -> dict[str, Any]:
    zones = (
        Zone("intel-rapl/intel-rapl:0", "package-0-die-0", 2, 10),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", 1, 7),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:1", "dram", 1, 3),
        Zone("intel-rapl/intel-rapl:2", "package-1-die-0", 2, 8),
        Zone("intel-rapl/intel-rapl:2/intel-rapl:2:0", "dram", 1, 1),
        Zone("intel-rapl/intel-rapl:3", "psys", 20, 50),
        Zone("intel-rapl-mmio/intel-rapl-mmio:0", "package-0", 2, 10),
    )
    with machine(*zones):
        return measure_energy()


def mirrored_dies() -> dict[str, Any]:
    """Show the counter of each of two sockets once for each of its dies."""
    powers = {
        "package-0-die-0": (4, 20),
        "package-0-die-1": (4, 20),
        "package-1-die-0": (3, 10),
        "package-1-die-1": (3, 10),
    }
    zones = [Zone(f"intel-rapl/intel-rapl:{place}", name, *watts) for place, (name, watts) in enumerate(powers.items())]
    with machine(*zones):
        return measure_energy()


def jump_to(energy_uj: int) -> None:
    """Set the first counter to a value and wait until it shows."""
    with (SYS_CLASS / "jump").open("r+b") as file:
        file.write(b"%-*d" % (_WIDTH, energy_uj))
    while (SYS_CLASS / "jump").read_bytes().strip():
        time.sleep(0.001)


def wrap() -> dict[str, Any]:
    """Begin every window 3 J before the end of the counter's range."""
    zone = Zone("intel-rapl/intel-rapl:0", "package-0", 20, 20, range_uj=AMD_RANGE_UJ)
    with machine(zone):
        return measure_energy(before_each=lambda _: jump_to(AMD_RANGE_UJ - 3_000_000))


def _jumping(start_uj: int, jump_uj: int) -> dict[str, Any]:
    """Measure with a counter that jumps in the middle of every window."""

    def work(seconds: float) -> int:
        inferences = encode(seconds / 2)
        jump_to(jump_uj)
        return inferences + encode(seconds / 2)

    with machine(Zone("intel-rapl/intel-rapl:0", "package-0", 20, 20, range_uj=AMD_RANGE_UJ)):
        return measure_energy(work, before_each=lambda _: jump_to(start_uj))


def backwards() -> dict[str, Any]:
    return _jumping(30_000_000_000, 29_990_000_000)


def early_wrap() -> dict[str, Any]:
    return _jumping(2**32 - 3_000_000, 0)


def backwards_once() -> dict[str, Any]:
    """Let the counter run backwards in one of three windows."""
    numbers: list[int] = []

    def begin(number: int) -> None:
        numbers.append(number)
        jump_to(30_000_000_000)  # a window that is measured again starts as it did before

    def work(seconds: float) -> int:
        inferences = encode(seconds / 2)
        if numbers[-1] == 1:
            jump_to(1_000_000)
        return inferences + encode(seconds / 2)

    with machine(Zone("intel-rapl/intel-rapl:0", "package-0", 20, 20, range_uj=AMD_RANGE_UJ)):
        return measure_energy(work, before_each=begin)


def vanishing() -> dict[str, Any]:
    def work(seconds: float) -> int:
        shutil.rmtree(POWERCAP, ignore_errors=True)
        return encode(seconds / 10)

    with machine(Zone("intel-rapl/intel-rapl:0", "package-0", 5, 20)):
        return measure_energy(work, windows=1)


def denied() -> dict[str, Any]:
    """Measure as an ordinary user, then again after running the suggested command."""
    zones = (
        Zone("intel-rapl/intel-rapl:0", "package-0", 5, 20),
        Zone("intel-rapl/intel-rapl:0/intel-rapl:0:0", "dram", 1, 2),
    )
    with machine(*zones):
        for zone in zones:
            (POWERCAP / zone.folder / "energy_uj").chmod(0o400)
        try:
            with _nobody():
                before = measure_energy(windows=1)
        except OSError as error:
            return {"skipped": f"needs another user, which a user namespace has not: {error}"}
        command = re.search("run: sudo ([^;]+);", before["reason"])
        assert command is not None, before
        subprocess.run(shlex.split(command[1]), check=True)
        with _nobody():
            return before | {"meter_after": _meter()}


@contextlib.contextmanager
def _nobody() -> Iterator[None]:
    # In this process: another user may not be allowed to start this Python.
    (SYS_CLASS / "load").chmod(0o666)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def battery() -> dict[str, Any]:
    with machine():
        write_supply(POWER_SUPPLY, "AC", type="Mains", online=0)
        write_supply(POWER_SUPPLY, "BAT0", type="Battery", status="Discharging", power_now=9_000_000)
        now = {"current_now": -250_000, "voltage_now": 12_000_000}
        write_supply(POWER_SUPPLY, "BAT1", type="Battery", status="Discharging", **now)
        return measure_energy()


def nothing() -> dict[str, Any]:
    with machine():
        return measure_energy(windows=1)


CASES = (
    one_socket,
    two_sockets,
    mirrored_dies,
    wrap,
    backwards,
    early_wrap,
    backwards_once,
    vanishing,
    denied,
    battery,
    nothing,
)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        advance([Zone(**zone) for zone in json.loads(sys.argv[1])])
    print(json.dumps({case.__name__: case() for case in CASES}))
