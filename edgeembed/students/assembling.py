"""A student assembled from a recipe: vocabulary, first module, pooling, head."""

from collections import Counter
from collections.abc import Sequence

import torch
from edgeembed_exporters.tailoring.head import dense_of
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer
from torch import nn

from edgeembed.models import load_tokenizer, tokenizer_of
from edgeembed.projection import Projection
from edgeembed.recipe import Recipe
from edgeembed.students.building import build_student, check_source, student_tokenizer
from edgeembed.students.matrices import build_matrix_student, matrix_shape
from edgeembed.vocabulary import source_rows, train_vocabulary, trim_vocabulary

_COUNTED_SENTENCES = 100_000  # a sample: token frequencies only weight a factorization, and need no exact counts


def check_student(recipe: Recipe, teacher: SentenceTransformer, source: SentenceTransformer) -> None:
    """Refuse a student that cannot be made, or cannot learn from its teacher, before any work is done.

    Args:
        recipe: What the student is to be.
        teacher: Its teacher.
        source: The model that it starts from.

    Raises:
        InputError: If it is larger than its source, or its vectors' dimensions do not fit the teacher's.
    """
    head, width = recipe.head, int(teacher.get_embedding_dimension())
    if recipe.student.architecture == "transformer":
        check_source(source, recipe.student)
        ours = recipe.student.hidden_size or int(source[0].auto_model.config.hidden_size)
    else:
        ours = matrix_shape(recipe).width
    dimension = head.dim if head.kind in {"pca", "linear"} else ours
    if head.whiten_dim > dimension:
        raise InputError(
            f"head.whiten_dim is {head.whiten_dim}, but the student's vectors have {dimension} dimensions; choose "
            f"{dimension} or less"
        )
    if not recipe.needs_teacher:
        return
    if head.kind != "none" and head.dim > width:
        raise InputError(
            f"head.dim is {head.dim}, but the teacher's vectors have {width} dimensions; choose {width} or less"
        )
    if head.kind == "teacher_pca" and head.dim != ours:
        raise InputError(
            f"head.dim is {head.dim}, but the student is {ours} wide; expected as many principal components of the "
            "teacher's vectors, with head.kind=teacher_pca"
        )
    bridged = all(stage.learned_matrix or not stage.reads_vectors for stage in recipe.stages) and head.kind == "none"
    if head.kind not in {"linear", "teacher_pca"} and ours != width and not bridged:
        raise InputError(
            f"the student is {ours} wide and the teacher's vectors have {width} dimensions; expected head.kind=linear, "
            "teacher_pca with head.dim as wide as the student, or stages with learned_matrix=true, which learn to map "
            "one to the other"
        )


def student_vocabulary(recipe: Recipe, source: SentenceTransformer, sentences: Sequence[str]) -> Tokenizer:
    """Give the vocabulary that a recipe asks for.

    Args:
        recipe: What the student is to be.
        source: The model that it starts from.
        sentences: The text that the student learns from.

    Raises:
        InputError: If a vocabulary cannot be trimmed from the source's tokenizer, trained on so little text, or read.
    """
    settings = recipe.vocabulary
    if settings.kind == "file":
        return _from_file(settings.file)
    if settings.kind == "tailored":
        return train_vocabulary(sentences, settings.size, lowercase=settings.lowercase)
    tokenizer = tokenizer_of(source)
    return trim_vocabulary(tokenizer, sentences, settings.size) if settings.kind == "trimmed" else tokenizer


def _from_file(name: str) -> Tokenizer:
    try:
        tokenizer = load_tokenizer(name)
    except InputError as error:
        raise InputError(f"vocabulary.file cannot be read: {error}, or a tokenizer.json") from error
    count, last = tokenizer.get_vocab_size(), max(tokenizer.get_vocab().values(), default=-1)
    if count != last + 1:  # a row of the token table stands for each number
        raise InputError(f"{name} has {count:,} tokens, and ids up to {last:,}; expected ids without gaps")
    return tokenizer


def token_targets(recipe: Recipe, source: SentenceTransformer, tokenizer: Tokenizer) -> torch.Tensor:
    """Give the wanted embedding of each of a student's tokens, float32 (vocabulary, hidden size of the source).

    Args:
        recipe: What the student is to be.
        source: The model that it starts from.
        tokenizer: The student's vocabulary.

    Returns:
        The embeddings; of no width where nothing in the recipe wants any.

    Raises:
        InputError: If the source's tokenizer cannot cut the tokens of another into its own.
    """
    table: torch.Tensor = source[0].auto_model.get_input_embeddings().weight.detach().float().cpu()
    if recipe.vocabulary.kind == "teacher":
        return table
    if not recipe.needs_token_targets:
        return table.new_empty(tokenizer.get_vocab_size(), 0)
    return torch.stack([table[ids].mean(dim=0) for ids in source_rows(tokenizer, tokenizer_of(source))])


def assemble_student(  # the parts of a student
    recipe: Recipe,
    source: SentenceTransformer,
    tokenizer: Tokenizer,
    targets: torch.Tensor,
    projection: Projection | None,
    sentences: Sequence[str],
) -> SentenceTransformer:
    """Put a student together, on the CPU.

    Args:
        recipe: What it is to be.
        source: The model that it starts from.
        tokenizer: Its vocabulary.
        targets: What `token_targets` gave.
        projection: The teacher's principal components, where the recipe has a head of them.
        sentences: The corpus, for how often a token is used.
    """
    settings, head = recipe.student, recipe.head
    # The square root keeps a few hundred frequent words from claiming the whole table.
    weights = (_token_counts(tokenizer, sentences, len(targets)) + 1).sqrt()
    ours = student_tokenizer(tokenizer, source, recipe.vocabulary.kind, settings.max_seq_length)
    if settings.architecture != "transformer":
        first: nn.Module = build_matrix_student(recipe, ours, targets, weights)
        return _as_model([first, Normalize()] if head.normalize else [first])
    transformer = build_student(
        source.cpu(),
        ours,
        targets,
        weights,
        settings,
        sentences,
    )
    width = transformer.get_embedding_dimension()
    parts: list[nn.Module] = [Pooling(width, pooling_mode="mean")]
    if head.kind == "pca" and projection is not None:
        parts.append(dense_of(projection))
    elif head.kind == "linear":
        parts.append(Dense(width, head.dim, activation_function=nn.Identity()))
    modules: list[nn.Module] = [transformer]
    for part in parts:
        modules += [part, Normalize()] if head.normalize else [part]
    return _as_model(modules)


def _as_model(modules: list[nn.Module]) -> SentenceTransformer:
    # Trusted, so that the trainer of sentence-transformers 6 may load the checkpoints that it wrote of our modules.
    return SentenceTransformer(modules=modules, device="cpu", trust_remote_code=True)


def _token_counts(tokenizer: Tokenizer, sentences: Sequence[str], size: int) -> torch.Tensor:
    step = max(1, len(sentences) // _COUNTED_SENTENCES)
    counts: Counter[int] = Counter()
    for encoding in tokenizer.encode_batch_fast(list(sentences[::step])):
        counts.update(encoding.ids)
    return torch.tensor([counts[token] for token in range(size)], dtype=torch.float32)
