"""The meters with their default paths, on counters under /sys/class that advance at a known power."""

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

from . import simulated

NAMESPACES = (["unshare", "-m"], ["unshare", "-Urm"])
COVER = ["mount", "-t", "tmpfs", "tmpfs", str(simulated.SYS_CLASS)]
TOLERANCE = 0.02

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    """Results of every case, measured once for all tests."""
    if shutil.which("unshare") is None:
        pytest.skip("needs mount namespaces: there is no unshare here")
    tries = {
        tuple(command): subprocess.run([*command, *COVER], check=False, capture_output=True) for command in NAMESPACES
    }
    allowed = next((command for command, tried in tries.items() if tried.returncode == 0), None)
    if allowed is None:
        pytest.skip(f"needs a mount namespace, which is denied here: {[tried.stderr for tried in tries.values()]}")
    command = [*allowed, sys.executable, "-W", "error::ResourceWarning", simulated.__file__]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning" not in done.stderr
    cases: dict[str, Any] = json.loads(done.stdout)
    return cases


def _assert_costs(case: dict[str, Any], mj: float, watts: float) -> None:
    assert case["reason"] is None
    assert mj == pytest.approx(watts * case["ms_per_inference"], rel=TOLERANCE)


def test_energy_per_inference_is_power_times_time(cases: dict[str, Any]) -> None:
    _assert_costs(cases["one_socket"], cases["one_socket"]["mj"], 20)


def test_energy_above_idle_is_the_power_that_work_adds(cases: dict[str, Any]) -> None:
    _assert_costs(cases["one_socket"], cases["one_socket"]["mj_above_idle"], 20 - 5)


def test_energy_is_summed_over_two_sockets_with_dies_gaps_and_dram(cases: dict[str, Any]) -> None:
    case = cases["two_sockets"]
    assert case["source"] == "RAPL package + DRAM, by pyJoules, 2 sockets"
    _assert_costs(case, case["mj"], 10 + 3 + 8 + 1)
    for domain, watts in {"package": 18, "core": 7, "dram": 4, "psys": 50}.items():
        _assert_costs(case, case["domains_mj"][domain], watts)


def test_dies_that_mirror_their_sockets_counter_count_once(cases: dict[str, Any]) -> None:
    case = cases["mirrored_dies"]
    assert case["source"] == "RAPL package, by pyJoules, 2 sockets"
    _assert_costs(case, case["mj"], 20 + 10)
    _assert_costs(case, case["mj_above_idle"], 20 - 4 + 10 - 3)


def test_counter_wrap_within_the_window_is_corrected(cases: dict[str, Any]) -> None:
    _assert_costs(cases["wrap"], cases["wrap"]["mj"], 20)


@pytest.mark.parametrize("name", ["backwards", "early_wrap"])
def test_counter_that_runs_backwards_or_wraps_early_is_not_measured(cases: dict[str, Any], name: str) -> None:
    case = cases[name]
    assert (case["mj"], case["mj_above_idle"], case["domains_mj"]) == (None, None, {})
    assert case["reason"].startswith("a RAPL counter ran backwards or wrapped around before the end of its range:")
    assert case["idle_w"] == pytest.approx(20, rel=TOLERANCE)


def test_window_whose_counter_runs_backwards_is_discarded(cases: dict[str, Any]) -> None:
    case = cases["backwards_once"]
    _assert_costs(case, case["mj"], 20)
    (line,) = case["discarded"]
    assert line.startswith("1 of 3 windows discarded: a RAPL counter ran backwards")


def test_counter_that_disappears_is_not_measured(cases: dict[str, Any]) -> None:
    case = cases["vanishing"]
    assert (case["mj"], case["mj_above_idle"], case["domains_mj"]) == (None, None, {})
    assert case["reason"].startswith(
        "a RAPL counter disappeared: /sys/class/powercap/intel-rapl/intel-rapl:0/energy_uj"
    )


def test_permission_error_names_a_command_that_grants_access(cases: dict[str, Any]) -> None:
    case = cases["denied"]
    if "skipped" in case:
        pytest.skip(case["skipped"])
    assert (case["meter"], case["mj"]) == ("NullMeter", None)
    assert case["reason"].startswith("permission denied: /sys/class/powercap/intel-rapl/intel-rapl:0/energy_uj")
    assert case["meter_after"] == "RaplMeter"


def test_batteries_are_measured_on_a_machine_without_rapl(cases: dict[str, Any]) -> None:
    case = cases["battery"]
    assert case["source"].startswith("discharge of BAT0 + BAT1")
    _assert_costs(case, case["mj"], 9 + 3)


def test_machine_without_meters_has_a_reason(cases: dict[str, Any]) -> None:
    case = cases["nothing"]
    assert (case["meter"], case["source"], case["mj"], case["idle_w"]) == ("NullMeter", None, None, None)
    assert case["reason"].startswith("no RAPL counter on this machine (/sys/class/powercap is absent)")
