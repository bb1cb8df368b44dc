"""Model folders that name foreign code are rejected before any of it is imported."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_bench import Subject, start_worker
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.model_trust import STUDENT_CLASSES, needs_trust

from edgeembed.augmentation.back_translation import BackTranslation
from edgeembed.classification.examples import ClassificationData, read_classification_data
from edgeembed.classification.teachers import teacher_logits
from edgeembed.cli.main import main
from edgeembed.models import load_masked_lm, load_model

STUDENT = "edgeembed.students.transformer.CompactTransformer"
NORMALIZE = "sentence_transformers.models.Normalize"
Change = Callable[[Path], object]


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


def modules_of(folder: Path) -> Any:
    return json.loads((folder / "modules.json").read_text())


def name_types(folder: Path, *types: str) -> None:
    modules = [{"idx": i, "name": str(i), "path": "", "type": kind} for i, kind in enumerate(types)]
    (folder / "modules.json").write_text(json.dumps(modules))


def write_evil(folder: Path) -> Path:
    """Write a module that leaves a marker file where it is imported; return the marker's path."""
    marker = folder.with_name("marker")
    (folder / "sub").mkdir()
    (folder / "sub/evil.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).write_text('imported')\nclass X:\n    pass\n"
    )
    return marker


@pytest.fixture
def folder(teacher_folder: Path, tmp_path: Path) -> Path:
    """A sound sentence-transformers folder to tamper with."""
    return shutil.copytree(teacher_folder, tmp_path / "model")


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(sentences))
    return file


@pytest.mark.parametrize(
    "types",
    [
        ["edgeembed.students.factory.Normalize", "sub/evil.X"],
        [NORMALIZE, "sub/evil.X"],
        [STUDENT, "sub/evil.X"],
        [STUDENT, "sub.evil.X"],
    ],
)
@pytest.mark.parametrize("command", ["export", "evaluate", "bench", "distill"])
def test_every_command_rejects_foreign_code_with_one_line(
    folder: Path, corpus: Path, tmp_path: Path, types: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = write_evil(folder)
    name_types(folder, *types)
    scored = tmp_path / "pairs.tsv"
    scored.write_text("sentence1\tsentence2\tscore\na cat\ta dog\t3\na road\ta river\t1\n")
    out = tmp_path / "out"
    options: dict[str, list[object]] = {
        "export": [folder, "--out", out, "--sentences", corpus],
        "evaluate": [folder, "--sts", scored],
        "bench": [folder, "--runs", 4, "--processes", 1],
        "distill": ["--corpus", corpus, "--out", out, "--teacher", folder, "--set", "corpus.heldout=10"],
    }
    assert call(command, *options[command]) == 2
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith("edgeembed: ")
    assert "which would run code of its own" in last
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert not marker.exists()
    assert not out.exists()


def _python_file(folder: Path) -> None:
    name_types(folder, STUDENT)
    (folder / "a/b").mkdir(parents=True)
    (folder / "a/b/x.py").write_text("")


def _python_file_behind_a_link(folder: Path) -> None:
    name_types(folder, STUDENT)
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "x.py").write_text("")
    (elsewhere / "back").symlink_to(folder)
    (folder / "linked").symlink_to(elsewhere)


def _adapter(folder: Path) -> None:
    name_types(folder, STUDENT)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')


def _activation_function(folder: Path) -> None:
    name_types(folder, STUDENT)
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense/config.json").write_text('{"activation_function": "os.abort"}')


def _auto_map(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "evil.X"}}))


def _nested_auto_map(folder: Path) -> None:
    (folder / "0_Transformer").mkdir()
    (folder / "0_Transformer/tokenizer_config.json").write_text('{"a": [{"auto_map": {"AutoTokenizer": ["evil.X"]}}]}')


def _router(folder: Path) -> None:
    (folder / "1_Router").mkdir()
    (folder / "1_Router/router_config.json").write_text('{"types": {"0_X": "sub/evil.X"}, "structure": {}}')


def _word_tokenizer(folder: Path) -> None:
    (folder / "0_Words").mkdir()
    (folder / "0_Words/wordembedding_config.json").write_text('{"tokenizer_class": "evil.X"}')


def _nested_modules(folder: Path) -> None:
    (folder / "inner").mkdir()
    name_types(folder / "inner", "evil.X")


def _path_outside(folder: Path) -> None:
    modules = modules_of(folder)
    modules[1]["path"] = "../elsewhere"
    (folder / "modules.json").write_text(json.dumps(modules))


def _untyped(folder: Path) -> None:
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": ""}]')


def _no_list(folder: Path) -> None:
    (folder / "modules.json").write_text('{"type": "sentence_transformers.models.Pooling"}')


def _broken(folder: Path) -> None:
    (folder / "modules.json").write_text("[")


def _odd_library_class(folder: Path) -> None:
    name_types(folder, "sentence_transformers.x/../../evil.X")


def _library_lookalike(folder: Path) -> None:
    name_types(folder, "sentence_transformers_evil.X")


def _student_lookalike(folder: Path) -> None:
    name_types(folder, f"{STUDENT}.evil")


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (_python_file, "x.py is in the folder of an edgeembed student"),
        (_python_file_behind_a_link, "x.py is in the folder of an edgeembed student"),
        (_adapter, "adapter_config.json is in the folder"),
        (_activation_function, "'os.abort'; expected one of torch.nn"),
        (_auto_map, "config.json has an auto_map"),
        (_nested_auto_map, "tokenizer_config.json has an auto_map"),
        (_router, "'sub/evil.X', which would run code"),
        (_word_tokenizer, "'evil.X', which would run code"),
        (_nested_modules, "'evil.X', which would run code"),
        (_path_outside, "expected a path inside the folder"),
        (_untyped, "not a list of modules"),
        (_no_list, "not a list of modules"),
        (_broken, "cannot be read as JSON"),
        (_odd_library_class, "which would run code"),
        (_library_lookalike, "which would run code"),
        (_student_lookalike, "which would run code"),
    ],
)
def test_a_folder_that_names_foreign_code_is_an_error(folder: Path, tamper: Change, expected: str) -> None:
    tamper(folder)
    for check in (needs_trust, lambda path: load_model(str(path)), _start):
        with pytest.raises(InputError, match=expected.replace(".", r"\.")) as refused:
            check(folder)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("tamper", [_auto_map, _nested_auto_map])
@pytest.mark.parametrize(
    "load",
    [
        lambda folder, _: load_masked_lm(str(folder)),
        lambda folder, task: teacher_logits(str(folder), task, "cpu"),
        lambda folder, _: BackTranslation(str(folder), str(folder)).vary(["A cat."]),
    ],
    ids=["masked teacher", "classifier teacher", "translator"],
)
def test_models_for_transformers_that_name_code_are_an_error(
    folder: Path, tmp_path: Path, tamper: Change, load: Callable[[Path, ClassificationData], object]
) -> None:
    file = tmp_path / "task.tsv"
    file.write_text("text\tlabel\na cat\t0\na dog\t1\n")
    tamper(folder)
    with pytest.raises(InputError, match="has an auto_map, by which transformers would run code") as refused:
        load(folder, read_classification_data(file, file))
    assert "\n" not in str(refused.value)


def _start(folder: Path) -> None:
    with start_worker(Subject("evil", "sentence-transformer", str(folder)), "a text"):
        raise AssertionError("the worker started")


def test_a_standard_model_is_loaded_without_trust_even_with_scripts_in_its_folder(folder: Path) -> None:
    marker = write_evil(folder)  # as hub repositories that hold their training script
    assert not needs_trust(folder)
    assert not load_model(str(folder)).trust_remote_code
    assert not marker.exists()


def test_the_allowed_classes_exist() -> None:
    import importlib

    for name in STUDENT_CLASSES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)


def test_a_folder_of_symbolic_links_like_the_hub_cache_is_read(folder: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot"
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(path, link.parent))
    assert not needs_trust(snapshot)
    name_types(folder, "evil.X")
    with pytest.raises(InputError, match="which would run code"):
        needs_trust(snapshot)


def test_students_are_loaded_with_trust(teacher_folder: Path, tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    from edgeembed.models import copy_tokenizer
    from edgeembed.recipe.schema import StudentSettings
    from edgeembed.students.initialization import build_transformer, student_tokenizer

    teacher = load_model(str(teacher_folder))
    table = teacher[0].auto_model.get_input_embeddings().weight.detach()
    shape = StudentSettings(layers=1, token_dim=8, max_seq_length=32)
    words = student_tokenizer(copy_tokenizer(teacher), teacher, "teacher", 32)
    first = build_transformer(teacher, words, table, torch.ones(len(table)), shape, [])
    student = tmp_path / "student"
    SentenceTransformer(modules=[first, Pooling(32, "mean")], device="cpu").save(str(student), create_model_card=False)
    assert needs_trust(student)
    assert load_model(str(student)).encode("a cat").shape == (32,)
    with start_worker(Subject("student", "sentence-transformer", str(student)), "a cat") as worker:
        assert worker.dimension == 32
