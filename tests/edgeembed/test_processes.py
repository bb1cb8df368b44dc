"""Training in several processes, which torchrun, accelerate or `--processes` start."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from click.exceptions import Abort
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError

from edgeembed import hardware, processes
from edgeembed.classification.finetuning import finetune
from edgeembed.cli import main
from edgeembed.cli.distill import command as distill_command
from edgeembed.cli.launching import launch
from edgeembed.distillation import distill
from edgeembed.launchers import LostProcessError, OtherProcessError, is_main_process, launched_processes
from edgeembed.models import load_model
from edgeembed.training import batches, trainer

_COMMAND = [sys.executable, "-m", "edgeembed.cli.main", "distill"]

# bfloat16 would round more than the order of additions does.
_IN_FLOAT32 = """
import edgeembed.hardware
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
patient = 0.5
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
    """Options of a distillation of two stages; its last batches are one sentence, and three pairs."""
    (tmp_path / "text.txt").write_text("\n".join(sentences[:289]) + "\n")
    pairs = [f"{sentences[row]}\t{sentences[row + 100]}\t{row % 6}" for row in range(51)]
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


def torchrun(*words: str) -> list[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    return [*launcher, "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1", *words]


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
    together = run(torchrun(str(tmp_path / "main.py"), "distill", *options, "--out", str(two), "--json"))
    assert together.returncode == 0, together.stderr
    expected, found = json.loads(alone.stdout), json.loads(together.stdout)

    assert [len(stage) for stage in losses(found)] == [len(stage) for stage in losses(expected)]
    for stage, same in zip(losses(found), losses(expected), strict=True):
        np.testing.assert_allclose(stage, same, atol=2e-4)  # they are logged with four digits
    np.testing.assert_allclose(found["dev_spearman"], expected["dev_spearman"], atol=0.5)
    np.testing.assert_allclose(encoded(two, sentences), encoded(one, sentences), atol=0.01)
    assert found["reused_sentences"] == found["sentences"] == 289
    assert {file.name for file in tmp_path.iterdir() if file.is_dir()} == {"one", "two", "cache"}
    assert not list((tmp_path / "cache").rglob("checkpoint-*"))
    for step in ("teacher", "stage 1", "stage 2"):
        assert sum(line.startswith(f"{step}:") for line in together.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)  # two processes start, perhaps on two busy cores
def test_a_killed_process_ends_the_command_in_one_line_and_resume_goes_on(
    recipe: Path, sentences: list[str], tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(sentences) + "\n")
    out = tmp_path / "student"
    words = [*_COMMAND, "--recipe", str(recipe), "--corpus", str(tmp_path / "text.txt"), "--out", str(out), "--json"]
    stage = "[{epochs = 40, batch_size = 60, checkpoint_steps = 25, losses = {cosine = 1.0}}]"
    words += ["--set", f"stages={stage}", "--processes", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        while command.poll() is None and not list(tmp_path.rglob("trainer_state.json")):
            time.sleep(0.02)
        children = psutil.Process(command.pid).children()
        second = next(child for child in children if child.environ().get("RANK") == "1")
        second.kill()
        _, stderr = command.communicate(timeout=300)
    assert command.returncode == 128 + signal.SIGKILL, stderr
    assert stderr.splitlines()[-1].startswith("edgeembed: process 2 of 2 was killed by SIGKILL; the same command with")
    assert "Traceback" not in stderr
    assert not out.exists()

    resumed = run([*words, "--resume"])
    assert resumed.returncode == 0, resumed.stderr
    steps = [step for step, _ in json.loads(resumed.stdout)["history"][0]]
    assert steps == list(range(20, 201, 20))
    assert out.is_dir()


@pytest.mark.parametrize(
    ("error", "code", "output"),
    [(OtherProcessError("hidden"), 0, ""), (LostProcessError("lost"), 1, "edgeembed: lost\n"), (Abort(), 130, "")],
)
def test_a_process_prints_only_what_the_main_one_does_not(
    error: Exception, code: int, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(main.group, "main", fail)
    monkeypatch.setattr(main, "launched_processes", lambda: 1)  # ends by SystemExit, not by os._exit
    with pytest.raises(SystemExit) as ended:
        main.main([])
    assert ended.value.code == code
    assert capsys.readouterr().err == output


def test_finetune_trains_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"a launcher started 2 processes \(WORLD_SIZE=2\); expected one"):
        finetune("missing", "missing.tsv", "missing.tsv", "out")


@pytest.mark.parametrize(
    ("count", "rank", "processes", "is_main"), [("", "", 1, True), ("4", "0", 4, True), ("4", "3", 4, False)]
)
def test_the_launcher_states_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch, count: str, rank: str, processes: int, is_main: bool
) -> None:
    monkeypatch.setenv("WORLD_SIZE", count)
    monkeypatch.setenv("RANK", rank)
    assert (launched_processes(), is_main_process()) == (processes, is_main)


def test_more_processes_than_gpus_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match="--processes is 2, but each needs a GPU; expected at most 1"):
        launch(2)


def test_processes_besides_those_of_a_launcher_raise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    done = CliRunner().invoke(distill_command, ["--out", str(tmp_path / "out"), "--processes", "2"])
    assert done.exit_code == 2
    assert "--processes is 2, but a launcher started 4 processes; omit it" in done.output


def test_a_batch_that_the_processes_cannot_share_raises(
    monkeypatch: pytest.MonkeyPatch, recipe: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("edgeembed.distillation.inputs.launched_processes", lambda: 3)
    with pytest.raises(InputError, match=r"stages\.batch_size is 32, which 3 processes cannot share equally"):
        distill(recipe, ["a text"], tmp_path / "student")


@pytest.fixture
def second_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (processes, batches):
        monkeypatch.setattr(module, "process_count", lambda: 3)
        monkeypatch.setattr(module, "process_index", lambda: 1)


class _Collator:
    valid_label_columns = ("label",)

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"texts": [row["text"] for row in rows]}


@pytest.mark.usefixtures("second_of_three")
@pytest.mark.parametrize(("rows", "own"), [(7, ["1", "4"]), (2, ["1"]), (1, ["0"])])
def test_a_process_tokenizes_its_own_rows_and_keeps_all_labels(rows: int, own: list[str]) -> None:
    batch = batches.OwnRowsCollator(_Collator())([{"text": str(row), "label": row} for row in range(rows)])
    assert batch["texts"] == own
    assert batch["label"].tolist() == list(range(rows))
    assert processes.own_rows(rows) == (len(own) if rows > 1 else 0)


@pytest.mark.usefixtures("second_of_three")
@pytest.mark.parametrize("rows", [7, 6, 1])
def test_gathered_rows_have_the_order_of_the_batch_and_own_gradients(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = torch.arange(2.0 * rows).reshape(rows, 2)
    own = (batch[1::3] if rows > 1 else batch[:1]).clone().requires_grad_()

    def all_gather(gathered: list[torch.Tensor], _own: torch.Tensor) -> None:
        for index, tensor in enumerate(gathered):
            tensor[: len(batch[index::3])] = batch[index::3]

    monkeypatch.setattr(torch.distributed, "all_gather", all_gather)
    found = processes.gather_rows(own, rows)
    assert torch.equal(found, batch)
    found.sum().backward()  # type: ignore[no-untyped-call]  # torch's
    assert own.grad is not None
    assert torch.equal(own.grad, torch.full_like(own, 1.0 if rows > 1 else 0.0))


@pytest.mark.parametrize(("index", "error"), [(0, InputError), (1, OtherProcessError)])
def test_a_process_that_does_not_see_the_cache_ends_all(
    index: int, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_main_process(function: Callable[[], object]) -> object:
        return function()

    def all_gather_object(seen: list[Any], own: Any) -> None:
        assert own[0]
        seen[:] = [own, (False, "other-machine")]

    monkeypatch.setattr(processes, "process_count", lambda: 2)
    monkeypatch.setattr(processes, "process_index", lambda: index)
    monkeypatch.setattr(processes, "on_main_process", on_main_process)
    monkeypatch.setattr(torch.distributed, "all_gather_object", all_gather_object)
    message = r"cache is not visible to process 2 \(on other-machine\) of 2; expected a folder that all machines share"
    with pytest.raises(error, match=message if index == 0 else "main process"):
        processes.check_shared_folder(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())
