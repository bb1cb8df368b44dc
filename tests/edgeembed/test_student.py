from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from edgeembed.models import load_model, tokenizer_of
from edgeembed.recipe_settings import StudentSettings
from edgeembed.students.building import build_student, check_source, student_tokenizer
from edgeembed.students.encoders import encoder_kind, layers_of, neurons_of

ARCHITECTURES = ["bert", "camembert", "distilbert", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta"]
WHOLE: dict[str, Any] = {"layers": 0, "token_dim": 0}


def settings(**changes: Any) -> StudentSettings:
    return StudentSettings(**{"max_seq_length": 32, "layers": 1, "token_dim": 8} | changes)


def student_of(teacher: SentenceTransformer, /, sentences: Sequence[str] = (), **changes: Any) -> SentenceTransformer:
    shape = settings(**changes)
    table = teacher[0].auto_model.get_input_embeddings().weight.detach()
    tokenizer = student_tokenizer(tokenizer_of(teacher), teacher, "teacher", shape.max_seq_length)
    transformer = build_student(teacher, tokenizer, table, torch.ones(len(table)), shape, sentences)
    width = transformer.get_embedding_dimension()
    return SentenceTransformer(modules=[transformer, Pooling(width, "mean"), Normalize()], device="cpu").eval()


def teacher_like(architecture: str, tokenizer: Tokenizer, folder: Path, **changes: Any) -> SentenceTransformer:
    """A random teacher of an architecture, its padding token where that has it."""
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


@pytest.mark.parametrize("token_dim", [0, 32], ids=["whole table", "projection of full width"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_of_all_layers_and_full_width_is_its_teacher(
    architecture: str, token_dim: int, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    student = student_of(teacher, layers=0, token_dim=token_dim)
    assert_same_vectors(student, teacher, sentences[:12])


@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query"])
def test_relative_positions_are_taken_along(
    kind: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    if not hasattr(AutoConfig.for_model("bert"), "position_embedding_type"):
        pytest.skip("this transformers has dropped BERT's relative positions")
    teacher = teacher_like("bert", tokenizer, tmp_path, position_embedding_type=kind)
    assert_same_vectors(student_of(teacher, **WHOLE), teacher, sentences[:12])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_takes_the_teachers_last_layers(architecture: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    ours = layers_of(student_of(teacher, layers=2)[0].auto_model)
    theirs = layers_of(teacher[0].auto_model)[1:]
    assert len(ours) == 2
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
        assert mine is not other


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neurons_that_others_speak_for_are_cut_without_loss(
    architecture: str, tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    teacher = teacher_like(architecture, tokenizer, tmp_path)
    paths = encoder_kind(teacher[0].auto_model).feed_forward
    with torch.no_grad():
        for layer in layers_of(teacher[0].auto_model):
            widen = attrgetter(paths.widen)(layer)
            widen.weight[20:40], widen.bias[20:40] = widen.weight[:20], widen.bias[:20]  # twins
            widen.weight[40:], widen.bias[40:] = 0, 1.5  # say the same of every token
    student = student_of(teacher, sentences, **WHOLE, intermediate_size=20)
    assert neurons_of(student[0].auto_model) == 20
    cosines = (torch.tensor(student.encode(sentences)) * torch.tensor(teacher.encode(sentences))).sum(dim=1)
    assert cosines.min() > 0.9999


def test_of_fewer_neurons_those_are_kept_that_matter(teacher_folder: Path, sentences: list[str]) -> None:
    teacher = load_model(str(teacher_folder))
    wanted, cosines = torch.tensor(teacher.encode(sentences)), {}
    for name, start in (("kept", "last"), ("anew", "random")):
        student = student_of(teacher, sentences, **WHOLE, intermediate_size=32, layer_init=start)
        cosines[name] = (torch.tensor(student.encode(sentences)) * wanted).sum(dim=1).mean()
    assert cosines["kept"] > 0.9 > cosines["anew"]


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


def test_layers_and_table_can_start_anew(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    anew = student_of(teacher, layer_init="random", table_init="random")[0].auto_model
    weights, theirs = anew.state_dict(), teacher[0].auto_model.state_dict()
    positions, layer = "embeddings.position_embeddings.weight", "encoder.layer.{}.output.dense.weight"
    assert torch.equal(weights[positions], theirs[positions])
    assert not torch.equal(weights[layer.format(0)], theirs[layer.format(3)])
    table, wanted = anew.get_input_embeddings(), teacher[0].auto_model.get_input_embeddings().weight
    ids = torch.arange(len(wanted))
    kept = student_of(teacher)[0].auto_model.get_input_embeddings()
    assert (kept(ids) - wanted).square().mean() < 0.9 * wanted.square().mean()
    assert (table(ids) - wanted).square().mean() > 0.99 * wanted.square().mean()


def test_a_narrower_student_keeps_the_width_of_its_attention_heads(teacher_folder: Path) -> None:
    config = student_of(load_model(str(teacher_folder)), hidden_size=16, token_dim=0)[0].auto_model.config
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (16, 2, 32)


def test_a_student_whose_width_no_head_divides_keeps_their_number(teacher_folder: Path) -> None:
    config = student_of(load_model(str(teacher_folder)), hidden_size=12, token_dim=0)[0].auto_model.config
    assert (config.hidden_size, config.num_attention_heads) == (12, 4)


def test_layers_that_start_at_random_have_as_many_heads_as_asked_for(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    narrow = student_of(teacher, hidden_size=24, attention_heads=3, token_dim=0)
    wide = student_of(teacher, attention_heads=2, layer_init="random")
    assert [each[0].auto_model.config.num_attention_heads for each in (narrow, wide)] == [3, 2]


def test_a_narrow_students_table_starts_at_the_teachers_too(teacher_folder: Path) -> None:
    teacher = load_model(str(teacher_folder))
    embedding = student_of(teacher, hidden_size=16, token_dim=8)[0].auto_model.get_input_embeddings()
    same_width = student_of(teacher, token_dim=8)[0].auto_model.get_input_embeddings()
    torch.testing.assert_close(embedding.table.weight, same_width.table.weight)
    projection = embedding.projection.weight
    torch.testing.assert_close(projection.T @ projection, torch.eye(8), atol=1e-5, rtol=0)


def test_the_table_is_as_narrow_as_asked_for(teacher_folder: Path, tokenizer: Tokenizer) -> None:
    embedding = student_of(load_model(str(teacher_folder)), token_dim=5)[0].auto_model.get_input_embeddings()
    assert tuple(embedding.table.weight.shape) == (tokenizer.get_vocab_size(), 5)


def test_a_source_that_is_too_small_is_named_instead_of_the_teacher(teacher_folder: Path) -> None:
    asked = settings(layers=5, source="small-model")
    with pytest.raises(InputError, match=r"student.layers is 5, but student.source \(small-model\) has only 4"):
        check_source(load_model(str(teacher_folder)), asked)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"layers": 5}, "student.layers is 5, but the teacher has only 4"),
        ({"token_dim": 33}, "student.token_dim is 33"),
        ({"hidden_size": 40}, "student.hidden_size is 40, but the teacher has only 32"),
        (
            {"hidden_size": 10},
            "student.hidden_size is 10; expected a multiple of 4, the teacher's attention heads, or of 8",
        ),
        ({"intermediate_size": 65}, "student.intermediate_size is 65, but the teacher has only 64"),
        ({"max_seq_length": 65}, "student.max_seq_length is 65, but the teacher has only 64"),
        ({"hidden_size": 16, "attention_heads": 3}, "student.attention_heads is 3; expected a divisor of 16"),
        ({"attention_heads": 2}, "student.attention_heads is 2; expected 4, since the layers are the teacher's"),
    ],
)
def test_a_student_larger_than_its_teacher_is_refused(
    teacher_folder: Path, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_source(load_model(str(teacher_folder)), settings(**sizes))


def test_positions_that_no_token_has_are_not_counted(tokenizer: Tokenizer, tmp_path: Path) -> None:
    teacher = teacher_like("roberta", tokenizer, tmp_path)
    with pytest.raises(InputError, match=r"student.max_seq_length is 63, but the teacher has only 62"):
        check_source(teacher, settings(max_seq_length=63))


def test_another_architecture_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="the teacher is a Linear; expected one of these architectures: bert"):
        check_source(SentenceTransformer(modules=[torch.nn.Linear(2, 2)], device="cpu"), settings())


def test_a_vocabulary_that_moves_the_padding_is_refused_where_positions_are_counted_from_it(
    tokenizer: Tokenizer, teacher_folder: Path, tmp_path: Path
) -> None:
    teacher = teacher_like("roberta", tokenizer, tmp_path)
    with pytest.raises(InputError, match=r"choose vocabulary.kind=teacher"):
        student_tokenizer(tokenizer, teacher, "tailored", 32)
    assert student_tokenizer(tokenizer, load_model(str(teacher_folder)), "tailored", 32).pad_token_id == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_trained_in_parts_of_like_length_gives_the_same_vectors_and_gradients(
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
