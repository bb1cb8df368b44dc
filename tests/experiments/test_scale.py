"""The model of costs, and the summary of throughput."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.scale.encode_throughput import summarize
from experiments.scale.scale_costs import Assumptions, main, measured_rates


def assumptions(gpu_rate: float) -> Assumptions:
    return Assumptions(
        sentences=1e6,
        characters=100.0,
        tokens=10.0,
        layers=2,
        width=100,
        peak_tflops=1.0,
        utilization=0.5,
        gpu_rate=gpu_rate,
        cores=4,
        read_rate=5000.0,
        tokenize_rate=1000.0,
        write_rate=4000.0,
        gpu_price=1.0,
        storage_price=1.0,
        network_gbit=1.0,
    )


def test_flops_and_rates_by_hand() -> None:
    given = assumptions(gpu_rate=0.0)
    assert given.gflop == pytest.approx((2 * 12 * 100**2 * 2 * 10 + 4 * 2 * 10**2 * 100) / 1e9)
    assert given.device_rate == pytest.approx(0.5e12 / (given.gflop * 1e9))
    assert assumptions(gpu_rate=2000.0).worker_rate == pytest.approx(1 / (1 / 4000 + 1 / 2000 + 1 / 4000))


def test_one_file_has_one_reader() -> None:
    limits = assumptions(gpu_rate=2000.0).limits(8, files=1)
    assert (limits["readers"], limits["workers"]) == (5000.0, 8000.0)
    assert limits["shared storage"] == pytest.approx(1e9 / 8 / (2 * 100 + 100 + 100))


def test_the_page_states_what_is_assumed_and_what_was_measured(tmp_path: Path) -> None:
    page, throughput = tmp_path / "scale.md", tmp_path / "throughput.json"
    words = ["--out", str(page), "--throughput", str(throughput), "--model", "nano"]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert "a core tokenizes | 20,000 sentences/s: **assumed, not measured**" in page.read_text()
    rows = [
        {"model": "nano", "step": step, "texts_per_second": rate}
        for rate in (100.0, 300.0, 200.0)
        for step in ("read", "tokenize", "write")
    ]
    throughput.write_text(json.dumps({"rows": rows}))
    assert measured_rates(throughput, "nano")["tokenize"] == 200.0
    assert CliRunner().invoke(main, [*words, "--gpu-rate", "1000"]).exit_code == 0
    assert "a core tokenizes | 200 sentences/s: median of" in page.read_text()
    assert "a GPU encodes | 1,000 sentences/s: given" in page.read_text()


def test_throughput_is_summarized_by_medians() -> None:
    rows = [
        {"model": "nano", "step": step, "texts_per_second": rate}
        for step, rates in {"local": (100.0, 200.0, 400.0), "ray": (90.0, 220.0, 380.0)}.items()
        for rate in rates
    ]
    assert list(summarize(rows)) == [
        "nano, local: 200 texts/s (100 to 400)",
        "nano, ray: 220 texts/s (90 to 380)",
        "nano, ray / local: 0.95 (0.90 to 1.10)",
    ]
