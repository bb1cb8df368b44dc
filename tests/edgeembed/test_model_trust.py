"""Model folders that name foreign code are rejected before any of it is imported.

What can make the loading libraries import or call something was looked for in the sources of sentence-transformers 5.7
and 6.2, transformers 4.57 and 5.23, and optimum 2.1 with optimum-onnx 0.1: every `import_module`, `getattr` on a
module, `from_pretrained`, `torch.load`, `pickle` and `exec`. Checked here, by file:

- modules.json: `type` (any attribute of a module below `sentence_transformers.` would do, functions too), `path`;
- router_config.json and config.json of a Router: `types`, whose keys are folders; wordembedding_config.json:
  `tokenizer_class`;
- config.json of a Dense: `activation_function` (version 5 calls any name below `torch.`); of a cross-encoder:
  `activation_fn` and `sbert_ce_default_activation_function`;
- sentence_bert_config.json and its six siblings: `model_args` and `model_kwargs` (`weights_only` false allows any
  pickle, providers of ONNX Runtime load libraries), `tokenizer_args`, `processor_kwargs`, `config_args` and
  `config_kwargs` (`_configuration_file` reads another file);
- config.json, tokenizer_config.json, the processors' and any other with "config" in its name: `auto_map` at any
  depth, `attn_implementation` and `experts_implementation` (downloaded kernels);
- adapter_config.json: `megatron_core`, `tokenizer_kwargs`, `base_model_name_or_path`.

Looked at, and left: `model_type`, `architectures`, `tokenizer_class` and `processor_class` without a dot,
`image_processor_type`, `hidden_act`, `quantization_config` and `transformer_task` choose from fixed tables or from
transformers' own classes; `trust_remote_code` in sentence_bert_config.json is ignored; `custom_generate/` is read with
trust only, which transformers never gets; `modality_config` names methods of the encoder; `prompts` and
`similarity_fn_name` of config_sentence_transformers.json are data, and `model_type` there must be SentenceTransformer;
`transformers_weights` and the weight map of an index name files of weights, read with `weights_only`; chat templates
run in a sandbox; pickles of TransfoXL and RAG need the environment variable TRUST_REMOTE_CODE; `custom_pipelines` are
read by transformers' `pipeline` alone; losses are named in no file that is loaded.
"""

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from edgeembed_bench import Subject, start_worker
from edgeembed_runtime import model_trust
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.model_trust import STUDENT_CLASSES, needs_trust
from sentence_transformers.sentence_transformer.modules import Dense
from torch import nn

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
        ["edgeembed.distillation.student.Normalize", "sub/evil.X"],
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
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')


def _student_with_an_encoder(folder: Path) -> None:
    name_types(folder, STUDENT, "sentence_transformers.models.Transformer")


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


def _router_with_a_path_outside(folder: Path) -> None:
    (folder / "1_Router").mkdir()
    (folder / "1_Router/config.json").write_text(json.dumps({"types": {"../../elsewhere": NORMALIZE}}))


def _nested_activation(folder: Path) -> None:
    (folder / "config.json").write_text('{"sentence_transformers": {"activation_fn": "os.abort"}}')


def _old_activation(folder: Path) -> None:
    (folder / "config.json").write_text('{"sbert_ce_default_activation_function": "torch.utils.collect_env.main"}')


def _any_pickle(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text('{"model_args": {"weights_only": false}}')


def _any_pickle_by_the_new_name(folder: Path) -> None:
    (folder / "sentence_roberta_config.json").write_text('{"model_kwargs": {"dtype": "float32", "weights_only": 0}}')


def _other_configuration(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text('{"config_args": {"_configuration_file": "other.txt"}}')


def _kernels(folder: Path) -> None:
    (folder / "config.json").write_text('{"text_config": {"_attn_implementation": "someone/kernels"}}')


def _kernels_by_part(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text('{"model_args": {"attn_implementation": {"": "a/b:c"}}}')


def _function_of_the_library(folder: Path) -> None:
    name_types(folder, "sentence_transformers.util.http_get")


def _import_of_the_library(folder: Path) -> None:
    name_types(folder, "sentence_transformers.base.modules.module.torch")


def _tokenizer_that_is_a_module(folder: Path) -> None:
    (folder / "wordembedding_config.json").write_text(json.dumps({"tokenizer_class": NORMALIZE}))


def _modules_in_capitals(folder: Path) -> None:
    name_types(folder, "evil.X")
    (folder / "modules.json").rename(folder / "MODULES.json")  # the same file for some file systems


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
        (_adapter, "adapter_config.json belongs to an adapter"),
        (_student_with_an_encoder, "which would be loaded with the same trust"),
        (_router_with_a_path_outside, "expected a path inside the folder"),
        (_nested_activation, "'os.abort'; expected a class of torch.nn"),
        (_old_activation, "'torch.utils.collect_env.main'; expected a class of torch.nn"),
        (_any_pickle, "passes 'weights_only' to transformers in model_args"),
        (_any_pickle_by_the_new_name, "passes 'weights_only' to transformers in model_kwargs"),
        (_other_configuration, "passes '_configuration_file' to transformers in config_args"),
        (_kernels, "names 'someone/kernels' as _attn_implementation"),
        (_kernels_by_part, "names 'a/b:c' as attn_implementation"),
        (_function_of_the_library, "which would run code"),
        (_import_of_the_library, "which would run code"),
        (_tokenizer_that_is_a_module, "which would run code"),
        (_modules_in_capitals, "'evil.X', which would run code"),
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


def name_activation(folder: Path, *function: object) -> None:
    """Let a folder end in a Dense with this activation function; without one, the file does not mention any."""
    types = ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling"]
    name_types(folder, *types, "sentence_transformers.models.Dense")
    modules = modules_of(folder)
    for module, path in zip(modules, ("", "1_Pooling", "2_Dense"), strict=True):
        module["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    Dense(32, 8).save(str(folder / "2_Dense"))
    config = json.loads((folder / "2_Dense/config.json").read_text())
    del config["activation_function"]
    changed = {**config, "activation_function": function[0]} if function else config
    (folder / "2_Dense/config.json").write_text(json.dumps(changed))


@pytest.fixture
def with_dense(folder: Path) -> Path:
    (folder / "2_Dense").mkdir()
    return folder


@pytest.mark.parametrize(
    "function",
    [
        "torch.distributed.run.main",
        "torch.utils.collect_env.main",
        "torch.nn.modules.activation.torch.hub.load",
        "torch.nn.modules.module.Module",
        "torch.nn.functional.tanh",
        "torch.nn.modules.activation.MultiheadAttention",
        "torch.nn.modules.container.Sequential",
        "torch.nn.Tanh.",
        "torch.tanh",
        "os.getpid",
        "transformers.activations.GELUActivation",
        "__main__.function",
        "function",
        "linear",
        "",
        None,
        ["torch.nn.Tanh"],
    ],
)
def test_an_activation_function_other_than_torchs_is_an_error(with_dense: Path, function: object) -> None:
    name_activation(with_dense, function)
    for check in (needs_trust, lambda path: load_model(str(path)), _start):
        with pytest.raises(InputError, match=r"expected a class of torch\.nn") as refused:
            check(with_dense)
        assert f"2_Dense/config.json names the activation function {function!r};" in str(refused.value)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (["torch.nn.modules.activation.GELU"], nn.GELU),
        (["torch.nn.ReLU"], nn.ReLU),
        (["torch.nn.modules.linear.Identity"], nn.Identity),
        ([], nn.Tanh),  # the default of sentence-transformers
    ],
)
def test_torchs_activation_functions_are_loaded(with_dense: Path, function: list[str], expected: type) -> None:
    name_activation(with_dense, *function)
    assert type(load_model(str(with_dense))[-1].activation_function) is expected


def test_all_allowed_activation_functions_need_no_argument_and_keep_the_dimension() -> None:
    for name in model_trust._ACTIVATIONS.split():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Softmax asks for a dimension
            assert getattr(nn, name)()(torch.ones(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("key", ["activation_function", "hidden_act"])
def test_names_without_a_dot_in_an_encoders_configuration_are_its_own(folder: Path, key: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: "gelu"}))
    assert load_model(str(folder)).encode("a cat").shape == (32,)


def test_settings_that_run_no_code_are_passed_on(folder: Path) -> None:
    arguments = {"attn_implementation": "eager", "trust_remote_code": True}
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48, "model_args": arguments}))
    loaded = load_model(str(folder))
    assert (loaded[0].auto_model.config._attn_implementation, loaded.trust_remote_code) == ("eager", False)


def test_a_pickle_is_not_run(folder: Path) -> None:
    marker = folder.with_name("marker")
    (folder / "model.safetensors").unlink()
    with (folder / "pytorch_model.bin").open("wb") as file:
        torch.save({"weight": _Evil(marker)}, file)
    _any_pickle(folder)
    with pytest.raises(InputError, match="weights_only"):
        load_model(str(folder))
    (folder / "sentence_bert_config.json").unlink()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_model(str(folder))
    assert not marker.exists()


class _Evil:
    """Writes a marker where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self.marker, "unpickled")


def test_every_module_of_the_library_is_allowed() -> None:
    from sentence_transformers.sentence_transformer import modules

    for name in set(modules.__all__) - {"Module", "InputModule"}:
        for named in (f"sentence_transformers.models.{name}", f"{getattr(modules, name).__module__}.{name}"):
            model_trust._check_class(Path(), named, model_trust._LIBRARY_MODULES)


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
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    from edgeembed.models import copy_tokenizer
    from edgeembed.students.initialization import build_transformer, student_tokenizer
    from edgeembed.students.settings import StudentSettings

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
