"""Training in several processes, which accelerate or torchrun start."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError

from edgeembed import hardware, processes
from edgeembed.classification.finetuning import finetune
from edgeembed.cli.distill import command as distill_command
from edgeembed.distillation import distill
from edgeembed.models import load_model
from edgeembed.processes import process_count, process_index
from edgeembed.training import trainer

# bfloat16 would round more than the order of additions does.
_IN_FLOAT32 = """
import os
import edgeembed.hardware
assert os.environ["WORLD_SIZE"] == "2"
edgeembed.hardware.has_bf16 = lambda device: False
from edgeembed.cli.main import main
main()
"""

_RECIPE = """
name = "shared-batches"
[student]
hidden_size = 16
token_dim = 0
table_init = "random"
layers = 2
max_seq_length = 32
[vocabulary]
kind = "teacher"
[head]
kind = "linear"
dim = 32
[corpus]
heldout = 0
[[stages]]
epochs = 2
batch_size = 32
learning_rate = 0.002
checkpoint_steps = 5
[stages.losses]
mse = 0.5
similarity = 1.0
contrastive_distillation = { bank_size = 100, weight = 0.2 }
hidden_states = 0.5
[[stages]]
batch_size = 16
[stages.losses]
contrastive = {}
"""


@pytest.fixture
def recipe(tmp_path: Path, teacher_folder: Path) -> Path:
    file = tmp_path / "recipe.toml"
    file.write_text(f'teacher = "{teacher_folder.as_posix()}"\n{_RECIPE}')
    return file


@pytest.fixture
def options(tmp_path: Path, recipe: Path, sentences: list[str]) -> list[str]:
    """Options of a distillation of two stages."""
    (tmp_path / "text.txt").write_text("\n".join(sentences[:288]) + "\n")
    pairs = [f"{sentences[row]}\t{sentences[row + 100]}\t{row % 6}" for row in range(48)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["anchor\tpositive\tscore", *pairs]) + "\n")
    (tmp_path / "dev.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *pairs]) + "\n")
    given = {
        "recipe": recipe,
        "corpus": tmp_path / "text.txt",
        "pairs": f"{tmp_path / 'pairs.tsv'}#anchor,positive",
        "dev": tmp_path / "dev.tsv",
        "cache": tmp_path / "cache",
    }
    return [word for name, value in given.items() for word in (f"--{name}", str(value))]


def run(words: list[str]) -> "subprocess.CompletedProcess[str]":
    # gloo looks up the host's own name otherwise, which a machine may not resolve.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, env=environment)


def launch(*words: str) -> list[str]:
    """Return a command that starts two processes."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "2", "--num_machines", "1"]
    return [
        *launcher,
        "--multi_gpu",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
        *words,
    ]


def losses(report: dict[str, Any]) -> list[list[float]]:
    return [[loss for _, loss in stage] for stage in report["history"]]


def encoded(student: Path, texts: list[str]) -> Any:
    return load_model(str(student), device="cpu").encode(texts)


@pytest.mark.slow
@pytest.mark.timeout(900)  # two processes start, perhaps on two busy cores
def test_two_processes_train_the_student_of_one(
    options: list[str], sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "main.py").write_text(_IN_FLOAT32)
    one, two = tmp_path / "one", tmp_path / "two"
    for module in (trainer, hardware):
        monkeypatch.setattr(module, "has_bf16", lambda _device: False)
    alone = CliRunner().invoke(distill_command, [*options, "--out", str(one), "--json"], catch_exceptions=False)
    together = run(launch(str(tmp_path / "main.py"), "distill", *options, "--out", str(two), "--json"))
    assert together.returncode == 0, together.stderr
    expected, found = json.loads(alone.stdout), json.loads(together.stdout)

    assert [len(stage) for stage in losses(found)] == [len(stage) for stage in losses(expected)]
    for stage, same in zip(losses(found), losses(expected), strict=True):
        np.testing.assert_allclose(stage, same, atol=2e-4)  # they are logged with four digits
    np.testing.assert_allclose(found["dev_spearman"], expected["dev_spearman"], atol=0.5)
    np.testing.assert_allclose(encoded(two, sentences), encoded(one, sentences), atol=0.01)
    assert found["reused_sentences"] == found["sentences"] == 288
    assert {file.name for file in tmp_path.iterdir() if file.is_dir()} == {"one", "two", "cache"}
    assert not list((tmp_path / "cache").rglob("checkpoint-*"))
    for step in ("teacher", "stage 1", "stage 2"):
        assert sum(line.startswith(f"{step}:") for line in together.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)  # two processes start, perhaps on two busy cores
def test_a_killed_process_ends_the_others_and_resume_goes_on(
    recipe: Path, sentences: list[str], tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(sentences) + "\n")
    out = tmp_path / "student"
    words = ["distill", "--recipe", str(recipe), "--corpus", str(tmp_path / "text.txt"), "--out", str(out), "--json"]
    words += ["--set", "stages=[{epochs = 40, batch_size = 60, checkpoint_steps = 25, losses = {cosine = 1.0}}]"]
    command = launch("-m", "edgeembed.cli.main", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        while started.poll() is None and not list(tmp_path.rglob("trainer_state.json")):
            time.sleep(0.02)
        children = psutil.Process(started.pid).children(recursive=True)
        second = next(child for child in children if child.environ().get("RANK") == "1")
        second.kill()
        _, stderr = started.communicate(timeout=300)
    assert started.returncode != 0
    assert "edgeembed: process 1 of 2 lost the connection to another one" in stderr or "SIGTERM" in stderr
    assert not out.exists()

    resumed = run([*command, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    steps = [step for step, _ in json.loads(resumed.stdout)["history"][0]]
    assert steps == list(range(20, 201, 20))
    assert out.is_dir()


def test_finetune_trains_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"a launcher started 2 processes \(WORLD_SIZE=2\); expected one"):
        finetune("missing", "missing.tsv", "missing.tsv", "out")


@pytest.mark.parametrize(("count", "rank", "found"), [("", "", (1, 0)), ("4", "0", (4, 0)), ("4", "3", (4, 3))])
def test_the_launcher_states_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch, count: str, rank: str, found: tuple[int, int]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", count)
    monkeypatch.setenv("RANK", rank)
    assert (process_count(), process_index()) == found


def test_a_batch_that_the_processes_cannot_share_raises(
    monkeypatch: pytest.MonkeyPatch, recipe: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("edgeembed.distillation.inputs.process_count", lambda: 3)
    with pytest.raises(InputError, match=r"stages\.batch_size is 32, which 3 processes cannot share equally"):
        distill(recipe, ["a text"], tmp_path / "student")


@pytest.fixture
def second_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("RANK", "1")


@pytest.mark.usefixtures("second_of_three")
def test_gathered_rows_have_gradients_for_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = torch.arange(18.0).reshape(9, 2)
    own = batch[3:6].clone().requires_grad_()

    def all_gather(gathered: list[torch.Tensor], _own: torch.Tensor) -> None:
        for tensor, rows in zip(gathered, torch.split(batch, 3), strict=True):
            tensor.copy_(rows)

    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    found = processes.gather_rows(own)
    assert torch.equal(found, batch)
    found.sum().backward()  # type: ignore[no-untyped-call]  # torch's
    assert own.grad is not None
    assert torch.equal(own.grad, torch.ones_like(own))


@pytest.mark.usefixtures("second_of_three")
def test_mean_weighs_the_items_of_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_reduce(total: torch.Tensor) -> None:
        total += torch.tensor([6.0, 3.0])  # three items of others, with the mean 2

    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    own = torch.tensor(10.0, requires_grad=True)
    mean = processes.mean_over_processes(own, 1)
    assert mean.item() == pytest.approx((6 + 10) / 4)
    mean.backward()  # type: ignore[no-untyped-call]  # torch's
    assert own.grad is not None
    assert own.grad.item() == pytest.approx(1 / 4)
