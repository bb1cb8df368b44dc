"""A meter that replays recorded readings."""

import csv
from collections.abc import Callable
from pathlib import Path

from edgeembed_bench.energy import Energy, IdlePower, energy_from, measure_idle, measure_window
from edgeembed_bench.meters import Reading

_TRACES = Path(__file__).parent / "traces"


class ReplayMeter:
    """A meter that returns the readings of a recorded trace, in order.

    Columns of a trace: phase (idle or work), inferences, window_s, joules by domain, reason.
    """

    source = "replayed"
    min_window_s = 1.0

    def __init__(self, trace: str) -> None:
        with (_TRACES / trace).open(newline="") as file:
            self.rows = list(csv.DictReader(file))
        self._readings = iter([_reading(row) for row in self.rows])

    def begin(self) -> None:
        """Open a window."""

    def end(self) -> Reading:
        return next(self._readings)


def replay(trace: str) -> Energy:
    """Return the energy of a trace that begins and ends with an idle window."""
    meter = ReplayMeter(trace)
    before = measure_idle(meter, 0)
    work = [int(row["inferences"]) for row in meter.rows if row["phase"] == "work"]
    windows = [measure_window(meter, _counted(count)) for count in work]
    return energy_from(meter, IdlePower(before, measure_idle(meter, 0)), windows)


def _counted(inferences: int) -> Callable[[float], int]:
    return lambda _: inferences


def _reading(row: dict[str, str]) -> Reading:
    domains_j = {key.removesuffix("_j"): float(row[key]) for key in row if key.endswith("_j") and row[key]}
    energy_j = sum(domains_j[name] for name in ("package", "dram")) if domains_j else None
    return Reading(energy_j, float(row["window_s"]), domains_j, row["reason"] or None)
