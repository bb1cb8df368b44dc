"""pyJoules as the reader of counters that we found: the only module that needs the extra `energy`."""

from collections.abc import Sequence
from typing import TextIO

from pyJoules.device.rapl_device import RaplDevice

from edgeembed_bench.meters.counters import Counter


class CounterDevice(RaplDevice):  # type: ignore[misc]  # pyJoules has no types
    """A device of pyJoules whose domains are given instead of searched for.

    The search of pyJoules 0.5.1 stops at the first gap between sockets and knows no dies, no psys and no tree but
    Intel's; its reads leave files open. Those two are replaced, the rest is used.

    Args:
        counters: What `get_energy` reads, in this order.
    """

    def __init__(self, counters: Sequence[Counter]) -> None:
        self._counters = list(counters)
        super().__init__()
        self.configure()

    def available_domains(self) -> list[Counter]:
        """Give the counters."""
        return self._counters

    def _get_domain_file_name(self, counter: Counter) -> str:
        return str(counter.file)

    def _read_energy_value(self, api_file: TextIO) -> float:
        with api_file:
            try:
                value: float = super()._read_energy_value(api_file)
            except ValueError:
                raise ValueError(f"{api_file.name} holds no number") from None
            except OSError as error:
                raise OSError(error.errno, error.strerror, api_file.name) from error
        return value
