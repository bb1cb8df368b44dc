"""Transformer students initialized from a teacher."""

import json
from collections.abc import Sequence
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from edgeembed_exporters.quantization.blockwise import find_row_levels
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from edgeembed.architectures import encoder_architecture, encoder_layers, ffn_width
from edgeembed.distillation.student import check_student
from edgeembed.models import copy_tokenizer, load_model
from edgeembed.recipe.loading import load_recipe
from edgeembed.students import transformer
from edgeembed.students.initialization import (
    build_transformer,
    check_source_model,
    student_tokenizer,
    with_padding_of,
)
from edgeembed.students.settings import StudentSettings
from edgeembed.students.transformer import FactorizedEmbedding, RoundedEmbedding, round_rows

ARCHITECTURES = ["bert", "camembert", "distilbert", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta"]
WHOLE: dict[str, Any] = {"layers": 0, "token_dim": 0}


def settings(**changes: Any) -> StudentSettings:
    return StudentSettings(**{"max_seq_length": 32, "layers": 1, "token_dim": 8} | changes)


def student_of(teacher: SentenceTransformer, /, sentences: Sequence[str] = (), **changes: Any) -> SentenceTransformer:
    shape = settings(**changes)
    table = teacher[0].auto_model.get_input_embeddings().weight.detach()
    tokenizer = student_tokenizer(copy_tokenizer(teacher), teacher, "teacher", shape.max_seq_length)
    transformer = build_transformer(teacher, tokenizer, table, torch.ones(len(table)), shape, sentences)
    width = transformer.get_embedding_dimension()
    return SentenceTransformer(modules=[transformer, Pooling(width, "mean"), Normalize()], device="cpu").eval()


def teacher_like(architecture: str, tokenizer: Tokenizer, folder: Path, **changes: Any) -> SentenceTransformer:
    """Return a random teacher of an architecture, with that architecture's padding id."""
    config = AutoConfig.for_model(architecture, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64)
    width = "hidden_dim" if architecture == "distilbert" else "intermediate_size"
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, width: 64, "initializer_range": 0.2}
    for name, value in {**sizes, **changes}.items():
        setattr(config, name, value)
    torch.manual_seed(5)
    AutoModel.from_config(config).save_pretrained(folder)
    pad = tokenizer.id_to_token(config.pad_token_id)
    special = {
        "pad_token": pad,
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    read = ["input_ids", "attention_mask"]  # DistilBERT takes nothing else
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=read, **special).save_pretrained(folder)
    transformer = Transformer(str(folder))
    transformer.max_seq_length = 32
    return SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()], device="cpu").eval()


def assert_same_vectors(ours: SentenceTransformer, theirs: SentenceTransformer, texts: list[str]) -> None:
    torch.testing.assert_close(torch.tensor(ours.encode(texts)), torch.tensor(theirs.encode(texts)), atol=2e-5, rtol=0)


@pytest.mark.parametrize("token_dim", [0, 32], ids=["full table", "projection of full width"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_of_the_teachers_size_gives_the_same_embeddings(
    architecture: str, token_dim: int, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    student = student_of(teacher, layers=0, token_dim=token_dim)
    assert_same_vectors(student, teacher, sentences[:12])


@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query"])
def test_relative_position_embeddings_are_copied(
    kind: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    if not hasattr(AutoConfig.for_model("bert"), "position_embedding_type"):
        pytest.skip("this transformers has dropped BERT's relative positions")
    teacher = teacher_like("bert", tokenizer, tmp_path, position_embedding_type=kind)
    assert_same_vectors(student_of(teacher, **WHOLE), teacher, sentences[:12])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_starts_with_copies_of_the_last_layers(
    architecture: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    ours = encoder_layers(student_of(teacher, layers=2)[0].auto_model)
    theirs = encoder_layers(teacher[0].auto_model)[1:]
    assert len(ours) == 2
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
        assert mine is not other


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pruning_redundant_neurons_changes_no_embedding(
    architecture: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    paths = encoder_architecture(teacher[0].auto_model).feed_forward
    with torch.no_grad():
        for layer in encoder_layers(teacher[0].auto_model):
            up = attrgetter(paths.up)(layer)
            up.weight[20:40], up.bias[20:40] = up.weight[:20], up.bias[:20]  # duplicates
            up.weight[40:], up.bias[40:] = 0, 1.5  # constant
    student = student_of(teacher, sentences, **WHOLE, intermediate_size=20)
    assert ffn_width(student[0].auto_model) == 20
    cosines = (torch.tensor(student.encode(sentences)) * torch.tensor(teacher.encode(sentences))).sum(dim=1)
    assert cosines.min() > 0.9999


def test_pruned_layers_are_much_closer_to_the_teacher_than_random_ones(
    teacher_folder: Path, sentences: list[str]
) -> None:
    teacher = load_model(str(teacher_folder))
    wanted, cosines = torch.tensor(teacher.encode(sentences)), {}
    for name, start in (("kept", "last"), ("random", "random")):
        student = student_of(teacher, sentences, **WHOLE, intermediate_size=32, layer_init=start)
        cosines[name] = (torch.tensor(student.encode(sentences)) * wanted).sum(dim=1).mean()
    assert cosines["kept"] > 0.9 > cosines["random"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_saved_student_loads_with_sentence_transformers_and_gives_the_same_vectors(
    architecture: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    student = student_of(teacher_like(architecture, tokenizer, tmp_path / "teacher"), layers=2)
    student.save(str(tmp_path / "student"), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path / "student"), device="cpu", trust_remote_code=True)
    for model in (loaded, load_model(str(tmp_path / "student"))):
        assert_same_vectors(model, student, sentences[:8])
    assert loaded.max_seq_length == 32


def test_layers_and_embedding_table_can_be_initialized_randomly(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    fresh = student_of(teacher, layer_init="random", table_init="random")[0].auto_model
    weights, theirs = fresh.state_dict(), teacher[0].auto_model.state_dict()
    positions, layer = "embeddings.position_embeddings.weight", "encoder.layer.{}.output.dense.weight"
    assert torch.equal(weights[positions], theirs[positions])
    assert not torch.equal(weights[layer.format(0)], theirs[layer.format(3)])
    table, wanted = fresh.get_input_embeddings(), teacher[0].auto_model.get_input_embeddings().weight
    ids = torch.arange(len(wanted))
    kept = student_of(teacher)[0].auto_model.get_input_embeddings()
    assert (kept(ids) - wanted).square().mean() < 0.9 * wanted.square().mean()
    assert (table(ids) - wanted).square().mean() > 0.99 * wanted.square().mean()


def test_a_smaller_hidden_size_keeps_the_width_of_attention_heads(teacher_folder: Path) -> None:
    config = student_of(load_model(str(teacher_folder)), hidden_size=16, token_dim=0)[0].auto_model.config
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (16, 2, 32)


def test_the_number_of_heads_is_kept_if_their_width_does_not_divide_the_hidden_size(teacher_folder: Path) -> None:
    config = student_of(load_model(str(teacher_folder)), hidden_size=12, token_dim=0)[0].auto_model.config
    assert (config.hidden_size, config.num_attention_heads) == (12, 4)


def test_random_layers_have_the_requested_number_of_heads(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    narrow = student_of(teacher, hidden_size=24, attention_heads=3, token_dim=0)
    wide = student_of(teacher, attention_heads=2, layer_init="random")
    assert [each[0].auto_model.config.num_attention_heads for each in (narrow, wide)] == [3, 2]


def test_the_table_of_a_narrow_student_is_factorized_from_the_teachers(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    embedding = student_of(teacher, hidden_size=16, token_dim=8)[0].auto_model.get_input_embeddings()
    same_width = student_of(teacher, token_dim=8)[0].auto_model.get_input_embeddings()
    torch.testing.assert_close(embedding.table.weight, same_width.table.weight)
    projection = embedding.projection.weight
    torch.testing.assert_close(projection.T @ projection, torch.eye(8), atol=1e-5, rtol=0)


def test_the_embedding_table_has_the_requested_width(teacher_folder: Path, tokenizer: Tokenizer) -> None:
    embedding = student_of(load_model(str(teacher_folder)), token_dim=5)[0].auto_model.get_input_embeddings()
    assert tuple(embedding.table.weight.shape) == (tokenizer.get_vocab_size(), 5)


@pytest.mark.parametrize("token_dim", [0, 16, 24], ids=["plain", "projected", "projected down"])
def test_a_rounded_table_is_folded_into_a_plain_one_of_the_same_rounded_rows(
    token_dim: int, teacher_folder: Path, sentences: list[str]
) -> None:
    student = student_of(load_model(str(teacher_folder)), hidden_size=16, token_dim=token_dim, table_bits=4)
    vectors = torch.tensor(student.encode(sentences[:8]))
    student[0].fold_rounded_table()
    torch.testing.assert_close(torch.tensor(student.encode(sentences[:8])), vectors)
    table = student[0].auto_model.get_input_embeddings().weight.detach()
    torch.testing.assert_close(round_rows(table, 4), table)


def test_the_rows_of_a_table_narrower_than_the_layers_are_rounded(teacher_folder: Path, sentences: list[str]) -> None:
    student = student_of(load_model(str(teacher_folder)), token_dim=8, table_bits=4)
    vectors = torch.tensor(student.encode(sentences[:8]))
    student[0].fold_rounded_table()
    torch.testing.assert_close(torch.tensor(student.encode(sentences[:8])), vectors)
    table = student[0].auto_model.get_input_embeddings().table.weight.detach()
    assert table.shape[1] == 8
    torch.testing.assert_close(round_rows(table, 4), table)


def test_the_export_finds_the_levels_that_rows_are_rounded_to() -> None:
    rows = round_rows(torch.randn(300, 64, generator=torch.Generator().manual_seed(0)), 4)
    rows[5] = 0
    blocks = find_row_levels(rows.numpy(), bits=4)
    assert blocks is not None
    torch.testing.assert_close(torch.from_numpy(blocks.dequantized()), rows)


def test_a_rounded_table_learns_what_it_is_rounded_from() -> None:
    table = torch.nn.Embedding(4, 6)
    RoundedEmbedding(table, bits=4)(torch.tensor([[1, 1, 3]])).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.sum(dim=1).tolist() == [0, 12, 0, 6]


def test_a_rounded_table_learns_through_its_projection() -> None:
    embedding = FactorizedEmbedding(4, 6, 8)
    embedding.table_bits = 4
    torch.nn.init.ones_(embedding.projection.weight)
    embedding(torch.tensor([[1, 1, 3]])).sum().backward()
    assert embedding.table.weight.grad is not None
    assert embedding.table.weight.grad.sum(dim=1).tolist() == [0, 96, 0, 48]


@pytest.mark.parametrize("hidden_size", [0, 8], ids=["narrow table", "projected down"])
def test_a_student_saved_in_training_keeps_the_table_that_is_rounded(
    hidden_size: int, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    student = student_of(load_model(str(teacher_folder)), hidden_size=hidden_size, table_bits=4)
    student.save(str(tmp_path / "student"), create_model_card=False)
    loaded = load_model(str(tmp_path / "student"))
    for name, weight in student.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], weight)
    assert_same_vectors(loaded, student, sentences[:8])


@pytest.mark.parametrize(("device", "attention"), [("cpu", "eager"), ("cuda", "sdpa")])
def test_students_attend_by_batched_matmuls_on_a_cpu(
    device: str, attention: str, teacher_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "default_device", lambda: device)
    encoder = student_of(load_model(str(teacher_folder)))[0].auto_model
    assert encoder.config._attn_implementation == attention  # no public name


def test_the_error_names_the_source_model_that_is_too_small(teacher_folder: Path) -> None:
    requested = settings(layers=5, source="small-model")
    with pytest.raises(InputError, match=r"student.layers is 5, but student.source \(small-model\) has only 4"):
        check_source_model(load_model(str(teacher_folder)), requested)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"layers": 5}, "student.layers is 5, but the teacher has only 4"),
        ({"token_dim": 33}, "student.token_dim is 33"),
        ({"hidden_size": 40}, "student.hidden_size is 40, but the teacher has only 32"),
        (
            {"hidden_size": 10},
            "student.hidden_size is 10; expected a multiple of 4, the attention heads of the teacher, or of 8",
        ),
        ({"intermediate_size": 65}, "student.intermediate_size is 65, but the teacher has only 64"),
        ({"max_seq_length": 65}, "student.max_seq_length is 65, but the teacher has only 64"),
        ({"hidden_size": 16, "attention_heads": 3}, "student.attention_heads is 3; expected a divisor of 16"),
        (
            {"attention_heads": 2},
            "student.attention_heads is 2; expected 4, since the layers are copied from the teacher",
        ),
    ],
)
def test_a_student_larger_than_its_teacher_is_an_error(
    teacher_folder: Path, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_source_model(load_model(str(teacher_folder)), settings(**sizes))


def test_the_position_offset_of_roberta_is_not_counted(tokenizer: Tokenizer, tmp_path: Path) -> None:
    teacher = teacher_like("roberta", tokenizer, tmp_path)
    with pytest.raises(InputError, match=r"student.max_seq_length is 63, but the teacher has only 62"):
        check_source_model(teacher, settings(max_seq_length=63))


def test_an_unsupported_architecture_is_an_error() -> None:
    with pytest.raises(InputError, match="the teacher is a Linear; expected one of these architectures: bert"):
        check_source_model(SentenceTransformer(modules=[torch.nn.Linear(2, 2)], device="cpu"), settings())


@pytest.mark.parametrize("architecture", ["mpnet", "xlm-roberta"])
def test_padding_moves_to_the_id_that_positions_are_numbered_from(
    architecture: str, tokenizer: Tokenizer, teacher_folder: Path, tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    moved = with_padding_of(teacher, tokenizer, "file")
    assert student_tokenizer(moved, teacher, "file", 32).pad_token_id == teacher[0].tokenizer.pad_token_id == 1
    assert moved.encode("a cat").tokens == tokenizer.encode("a cat").tokens
    assert moved.get_vocab_size() == tokenizer.get_vocab_size()
    assert with_padding_of(load_model(str(teacher_folder)), tokenizer, "file") is tokenizer


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_length_groups_give_the_same_embeddings_and_gradients(
    architecture: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    student = student_of(teacher)
    for module in student.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    short = [" ".join(text.split()[: number % 3 + 1]) for number, text in enumerate(sentences * 80)]
    texts = [" ".join(sentences), *short[:99]]
    read: list[torch.Tensor] = []
    student[0].auto_model.register_forward_pre_hook(
        lambda _module, _arguments, named: read.append(named["input_ids"]), with_kwargs=True
    )
    outcomes = []
    for training in (False, True):
        student.train(training)
        student.zero_grad()
        vectors = student(student.preprocess(texts))["sentence_embedding"]
        (vectors * torch.arange(vectors.numel()).reshape(vectors.shape).sin()).sum().backward()
        outcomes.append((vectors.detach(), [weight.grad for weight in student.parameters()]))
    torch.testing.assert_close(outcomes[1], outcomes[0], atol=1e-5, rtol=1e-3)
    whole, *parts = [ids.numel() for ids in read]
    assert len(parts) == 2
    assert sum(parts) < 0.75 * whole


def test_a_tokenizer_input_that_the_encoder_does_not_take_is_one_clear_error(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = teacher_like("distilbert", tokenizer, tmp_path)
    model[0].tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    if any(each.kind is each.VAR_KEYWORD for each in signature(model[0].auto_model.forward).parameters.values()):
        pytest.skip("this version of transformers ignores inputs that a model does not have")
    with pytest.raises(InputError, match="tokenizer returns token_type_ids, which DistilBertModel does not take"):
        load_model(model)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "mpnet"])
@pytest.mark.parametrize("kind", ["trimmed", "trained", "file", "teacher"])
def test_a_students_tokenizer_returns_the_inputs_of_its_teachers(
    architecture: str, kind: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    teacher = load_model(saved(teacher_like(architecture, tokenizer, tmp_path / "raw"), tmp_path / "teacher"))
    words = student_tokenizer(copy_tokenizer(teacher), teacher, kind, 32)
    assert words.model_input_names == teacher[0].tokenizer.model_input_names
    table = teacher[0].auto_model.get_input_embeddings().weight.detach()
    first = build_transformer(teacher, words, table, torch.ones(len(table)), settings())
    modules = [first, Pooling(first.get_embedding_dimension(), "mean")]
    folder = saved(SentenceTransformer(modules=modules, device="cpu"), tmp_path / "student")
    student = load_model(folder)
    assert student[0].tokenizer.model_input_names == teacher[0].tokenizer.model_input_names
    assert student.encode("a small cat").shape == (32,)


def saved(model: SentenceTransformer, folder: Path) -> Path:
    model.save(str(folder), create_model_card=False)
    return folder


def test_a_student_lowercases_as_its_teacher_does(tokenizer: Tokenizer, tmp_path: Path) -> None:
    content = json.loads(tokenizer.to_str())
    content["normalizer"]["lowercase"] = False
    folder = saved(
        teacher_like("bert", Tokenizer.from_str(json.dumps(content)), tmp_path / "raw"), tmp_path / "teacher"
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 48, "do_lower_case": true}')
    teacher = load_model(folder)
    check_source_model(teacher, settings())
    words = student_tokenizer(copy_tokenizer(teacher), teacher, "trimmed", 32)
    assert words("A Small CAT")["input_ids"] == words("a small cat")["input_ids"]
    assert words("A Small CAT")["input_ids"] == teacher[0].tokenizer("A Small CAT")["input_ids"]


def test_a_model_without_a_transformer_cannot_be_a_source(tokenizer: Tokenizer) -> None:
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    with pytest.raises(InputError, match="the teacher starts with a StaticEmbedding; expected a transformer encoder"):
        check_student(load_recipe("micro"), 8, static, static)
