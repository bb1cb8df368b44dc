import os
from dataclasses import replace
from pathlib import Path

import pytest
from edgeembed_bench import find_preset, presets, start_worker
from edgeembed_runtime.errors import InputError

_SPY = """
import os
from pathlib import Path

Path(os.environ["SPY"]).write_text(os.environ.get("ORT_DISABLE_TELEMETRY", "not set"))
"""


def test_runtime_preset_holds_the_built_in_models_to_limits(tmp_path: Path) -> None:
    preset = find_preset("runtime", peers=tmp_path)
    assert [subject.name for subject in preset.subjects] == ["mini", "micro", "nano"]
    assert preset.floor.adapter == "nothing"
    assert (preset.budget.max_start_ratio, preset.budget.max_memory_ratio, preset.budget.max_overhead_us) == (
        1.5,
        1.5,
        15.0,
    )
    assert preset.settings.part_runs == 3 * preset.settings.runs == 3000
    assert (preset.settings.processes, preset.settings.batches, preset.settings.sweep_runs) == (10, 0, 0)


def test_missing_peers_are_left_out_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "teacher-int8").mkdir()
    preset = find_preset("runtime", peers=tmp_path)
    assert "teacher int8" in [subject.name for subject in preset.peers]
    assert {"numpy hybrid", "numpy cbow", "teacher ort-int8", "model2vec"} <= preset.left_out.keys()
    assert (
        preset.left_out["teacher ort-int8"]
        == f"{tmp_path}/teacher-ort-int8 does not exist; build it with make bench-runtime"
    )


def test_random_students_are_held_to_the_limits_too(tmp_path: Path) -> None:
    (tmp_path / "random-cbow").mkdir()
    preset = find_preset("runtime", peers=tmp_path)
    assert [subject.name for subject in preset.subjects] == ["mini", "micro", "nano", "numpy cbow"]
    loaded = {subject.name: subject.imports for subject in preset.subjects[:-1]}
    assert "onnxruntime" in loaded["nano"]
    assert "onnxruntime" not in loaded["micro"]


def test_unknown_preset_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no preset called fast; expected one of: runtime"):
        find_preset("fast")


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("0", "0")])
def test_floor_and_runtime_have_the_same_telemetry_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, expected: str
) -> None:
    # The variable is set in this process if the runtime was imported before.
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if given is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", given)
    (tmp_path / "spy.py").write_text(_SPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ.get("PYTHONPATH", ""))
    settings = {}
    for subject in (presets.floor(), find_preset("runtime", peers=tmp_path).subjects[0]):
        monkeypatch.setenv("SPY", str(tmp_path / subject.name))
        with start_worker(replace(subject, modules=(*subject.imports, "spy")), "a text"):
            settings[subject.name] = (tmp_path / subject.name).read_text()
    assert settings == {"floor": expected, "mini": expected}


def test_floor_leaves_no_identifier_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "ORT_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with start_worker(presets.floor(), "a text"):
        assert list(tmp_path.rglob("*")) == []
