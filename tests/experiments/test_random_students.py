from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from edgeembed_runtime import Bundle, Encoder
from edgeembed_runtime.builtin_models import builtin_bundle

from experiments.runtime.random_students import ARCHITECTURES, command


def test_random_students_are_bundles_that_encode(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, ["--out", str(tmp_path)])
    assert run.exit_code == 0, run.output
    for architecture in ARCHITECTURES:
        embedding = Encoder.load(tmp_path / f"random-{architecture}", verify=True).encode("A man is playing a guitar.")
        assert embedding.shape == (Bundle.open(builtin_bundle()).dimension,)
        assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-5)
