"""Build a student from a recipe: vocabulary, first module, pooling, head."""

from collections import Counter
from collections.abc import Sequence

import torch
from edgeembed_exporters.reduction.pca_head import Projection, as_dense
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from tokenizers import Tokenizer
from torch import nn

from edgeembed.models import copy_tokenizer, load_tokenizer
from edgeembed.recipe.schema import Recipe
from edgeembed.students.base import StudentContext
from edgeembed.students.initialization import student_tokenizer, with_padding_of
from edgeembed.students.transformer import FactorizedEmbedding
from edgeembed.vocabulary import source_token_ids, train_wordpiece, trim_wordpiece

_MAX_COUNTED_SENTENCES = 100_000  # token frequencies only weight a factorization; a sample is exact enough


def check_student(
    recipe: Recipe, teacher_dim: int, source: SentenceTransformer, teacher: SentenceTransformer | None = None
) -> None:
    """Check, before any work, that a recipe's student can be built and can learn from its teacher.

    Args:
        recipe: The recipe.
        teacher_dim: Dimension of the teacher's embeddings.
        source: The model that the student is initialized from, usually the teacher.
        teacher: The teacher; None if it is not loaded.

    Raises:
        InputError: If the student is larger than its source, or its embedding dimension does not fit the teacher's.
    """
    head = recipe.head
    width = recipe.student.shape.width(recipe.student, source, _head_dim(recipe))
    for name, model in (("the teacher", teacher), ("student.source", source)):
        if model is not None and not hasattr(model[0], "auto_model"):
            raise InputError(f"{name} starts with a {type(model[0]).__name__}; expected a transformer encoder")
    dimension = head.dim if head.kind in {"pca", "linear"} else width
    if head.whiten_dim > dimension:
        raise InputError(
            f"head.whiten_dim is {head.whiten_dim}, but the student's embeddings have {dimension} dimensions; choose "
            f"{dimension} or less"
        )
    if not recipe.uses_teacher_embeddings:
        return
    if head.kind not in {"none", "mlp"} and head.dim > teacher_dim:
        raise InputError(
            f"head.dim is {head.dim}, but the teacher's embeddings have {teacher_dim} dimensions; choose {teacher_dim} "
            "or less"
        )
    if head.kind == "teacher_pca" and head.dim != width:
        raise InputError(
            f"head.dim is {head.dim}, but the student is {width} wide; expected {width} with head.kind=teacher_pca: as "
            "many principal components of the teacher's embeddings as the student has dimensions"
        )
    taught = [stage for stage in recipe.stages if stage.uses_teacher_embeddings]
    learns_mapping = head.kind in {"none", "mlp"} and all(stage.project_to_teacher for stage in taught)
    if head.kind not in {"linear", "teacher_pca"} and width != teacher_dim and not learns_mapping:
        raise InputError(
            f"the student is {width} wide and the teacher's embeddings have {teacher_dim} dimensions; expected "
            "head.kind=linear, teacher_pca with head.dim as wide as the student, or stages with "
            "project_to_teacher=true, which learn a mapping between the two"
        )


def build_vocabulary(recipe: Recipe, source: SentenceTransformer, sentences: Sequence[str]) -> Tokenizer:
    """Return the student's vocabulary: trained, trimmed, read from a file, or the source's own.

    If the source numbers positions from its padding token's id (RoBERTa), the student's padding token has this id, too.

    Args:
        recipe: The recipe; `vocabulary.kind` decides.
        source: The model that the student is initialized from.
        sentences: The training text.

    Raises:
        InputError: If the source's tokenizer cannot be trimmed, the text is too small for the vocabulary size, or the
            file cannot be read or has no padding token.
    """
    settings = recipe.vocabulary
    if settings.kind == "teacher":
        return copy_tokenizer(source)
    if settings.kind == "trimmed":
        tokenizer = trim_wordpiece(copy_tokenizer(source), sentences, settings.size)
    elif settings.kind == "file":
        tokenizer = _from_file(settings.file)
    else:
        tokenizer = train_wordpiece(sentences, settings.size, lowercase=settings.lowercase)
    return with_padding_of(source, tokenizer, settings.kind)


def _from_file(name: str) -> Tokenizer:
    try:
        tokenizer = load_tokenizer(name)
    except InputError as error:
        raise InputError(f"vocabulary.file cannot be read: {error}, or a tokenizer.json") from error
    count, last = tokenizer.get_vocab_size(), max(tokenizer.get_vocab().values(), default=-1)
    if count != last + 1:  # each id is a row of the embedding table
        raise InputError(f"{name} has {count:,} tokens, but ids up to {last:,}; expected ids without gaps")
    return tokenizer


def target_token_embeddings(recipe: Recipe, source: SentenceTransformer, tokenizer: Tokenizer) -> torch.Tensor:
    """Return the target embedding of each token of a student, derived from the source's embedding table.

    Args:
        recipe: The recipe.
        source: The model that the student is initialized from.
        tokenizer: The student's vocabulary.

    Returns:
        float32 (vocabulary, hidden size of the source); (vocabulary, 0) if the recipe uses no token targets.

    Raises:
        InputError: If one of the two tokenizers is not WordPiece, so that tokens cannot be mapped.
    """
    table = _token_embeddings(source)
    if recipe.vocabulary.kind == "teacher":
        return table
    if not recipe.uses_token_targets:
        return table.new_empty(tokenizer.get_vocab_size(), 0)
    return torch.stack([table[ids].mean(dim=0) for ids in source_token_ids(tokenizer, copy_tokenizer(source))])


@torch.no_grad()
def _token_embeddings(model: SentenceTransformer) -> torch.Tensor:
    """Return the embedding of each token of a model, float32 (vocabulary, hidden size), on the CPU."""
    embedding = model[0].auto_model.get_input_embeddings()
    if isinstance(embedding, FactorizedEmbedding):
        table: torch.Tensor = embedding.projection(embedding.table.weight)
    else:
        table = embedding.weight
    return table.detach().float().cpu()


def build_student(
    recipe: Recipe,
    source: SentenceTransformer,
    tokenizer: Tokenizer,
    targets: torch.Tensor,
    projection: Projection | None,
    sentences: Sequence[str],
) -> SentenceTransformer:
    """Build and initialize a student on the CPU.

    Args:
        recipe: The recipe.
        source: The model that the student is initialized from.
        tokenizer: The student's vocabulary.
        targets: Target token embeddings, from `target_token_embeddings`.
        projection: Principal components of the teacher's embeddings, for recipes with `head.kind = "pca"`.
        sentences: The training text, which token frequencies are counted on.
    """
    settings, head = recipe.student, recipe.head
    # The square root keeps a few hundred frequent tokens from dominating the factorization.
    weights = (_token_counts(tokenizer, sentences, len(targets)) + 1).sqrt()
    wrapped = student_tokenizer(tokenizer, source, recipe.vocabulary.kind, settings.max_seq_length)
    context = StudentContext(settings, source, wrapped, targets, weights, sentences, _head_dim(recipe))
    first = settings.shape.build(context)
    if not settings.shape.outputs_tokens:
        return _as_model([first, Normalize()] if head.normalize else [first])
    width = int(first.get_embedding_dimension())
    parts: list[nn.Module] = [Pooling(width, pooling_mode=settings.pooling)]
    if head.kind == "pca" and projection is not None:
        parts.append(as_dense(projection))
    elif head.kind == "linear":
        parts.append(Dense(width, head.dim, activation_function=nn.Identity()))
    elif head.kind == "mlp":
        parts.append(_mlp(source, width))
    modules: list[nn.Module] = [first]
    for part in parts:
        modules += [part, Normalize()] if head.normalize else [part]
    return _as_model(modules)


def _head_dim(recipe: Recipe) -> int:
    """Return the dimension of a linear head; 0 for none."""
    return recipe.head.dim if recipe.head.kind == "linear" else 0


def _mlp(source: SentenceTransformer, width: int) -> Dense:
    """Return SimCSE's layer after the pooling, a linear layer and a tanh, with the source's weights if it has one."""
    mlp = Dense(width, width, activation_function=nn.Tanh())
    for module in source:
        is_mlp = isinstance(module, Dense) and isinstance(module.activation_function, nn.Tanh)
        if is_mlp and (module.in_features, module.out_features) == (width, width):
            mlp.load_state_dict(module.state_dict())
    return mlp


def _as_model(modules: list[nn.Module]) -> SentenceTransformer:
    # The trainer of sentence-transformers 6 loads its own checkpoints of our modules only with trust.
    return SentenceTransformer(modules=modules, device="cpu", trust_remote_code=True)


def _token_counts(tokenizer: Tokenizer, sentences: Sequence[str], size: int) -> torch.Tensor:
    step = max(1, len(sentences) // _MAX_COUNTED_SENTENCES)
    counts: Counter[int] = Counter()
    for encoding in tokenizer.encode_batch_fast(list(sentences[::step])):
        counts.update(encoding.ids)
    return torch.tensor([counts[token] for token in range(size)], dtype=torch.float32)
