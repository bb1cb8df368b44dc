"""Write a multilingual teacher with random weights in the shape of XLM-R base.

Run with `python -m experiments.teachers.random_teacher`. Its size, its latency and the effect of trimming its
vocabulary equal those of a trained model; its embeddings mean nothing.
"""

import gzip
import lzma
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
from edgeembed_runtime.errors import EdgeEmbedError
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path
from edgeembed_runtime.storage.folder_kind import FolderKind
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

# In the order of their ids in XLM-R.
_SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
RANDOM_MODEL_FOLDER = FolderKind("edgeembed_random.json", ("made_by",))
"""Kind of folder that holds a sentence-transformers model with random weights."""


@dataclass(frozen=True)
class Shape:
    """Architecture of an encoder; the defaults are those of XLM-R base.

    Attributes:
        layers: Number of layers.
        width: Hidden size.
        heads: Attention heads of a layer.
        inner: Intermediate size of the feed-forward network.
        tokens: Maximum number of tokens of a text.
    """

    layers: int = 12
    width: int = 768
    heads: int = 12
    inner: int = 3072
    tokens: int = 512


def train_tokenizer(lines: Iterable[str], size: int) -> Tokenizer:
    """Train a Unigram tokenizer with the normalization and the special tokens of XLM-R.

    Args:
        lines: Training text.
        size: Maximum vocabulary size, special tokens included.
    """
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = list(_SPECIAL.values())
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=special, unk_token=_SPECIAL["unk_token"], show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    first, last = _SPECIAL["bos_token"], _SPECIAL["eos_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, special.index(first)), (last, special.index(last))],
    )
    return tokenizer


def write_random_teacher(out: Path, tokenizer: Tokenizer, shape: Shape, *, force: bool = False) -> None:
    """Write a sentence-transformers folder: transformer, mean pooling, normalization. The weights are always the same.

    Args:
        out: The folder.
        tokenizer: A tokenizer of `train_tokenizer`.
        shape: The architecture.
        force: Whether to replace an existing model.

    Raises:
        InputError: If `out` exists, or cannot be written.
    """
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    library: Any = transformers
    torch.manual_seed(0)
    config = library.XLMRobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=shape.tokens + 2,  # padding has the second position, texts begin at the third
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    )
    fast = library.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=shape.tokens, **_SPECIAL)
    with atomic_folder(out, force=force, kind=RANDOM_MODEL_FOLDER) as folder, tempfile.TemporaryDirectory() as encoder:
        library.XLMRobertaModel(config).save_pretrained(encoder)
        fast.save_pretrained(encoder)
        modules = [Transformer(encoder), Pooling(shape.width, "mean"), Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        RANDOM_MODEL_FOLDER.write_manifest(folder, {"made_by": "experiments.teachers.random_teacher"})


def read_lines(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of text files (plain, .gz or .xz) without the empty ones."""
    openers: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open}
    for file in files:
        with openers.get(file.suffix, open)(file, "rt", encoding="utf-8") as opened:
            yield from (line.strip() for line in opened if line.strip())


@click.command()
@click.option(
    "--text",
    "texts",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Training text of the tokenizer, one text per line; plain, .gz or .xz. Repeatable.",
)
@click.option(
    "--tokens", default=250_000, show_default=True, type=click.IntRange(min=100), help="Maximum vocabulary size."
)
@click.option(
    "--tokenizer",
    "trained",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A tokenizer.json that this command wrote before; saves minutes of training.",
)
@click.option("--layers", default=Shape.layers, show_default=True, type=click.IntRange(1), help="Number of layers.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the model.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
def command(  # one parameter an option
    texts: tuple[Path, ...], tokens: int, trained: Path | None, layers: int, out: Path, force: bool
) -> None:
    """Write a model of 768 dimensions with random weights."""
    if bool(texts) == bool(trained):
        raise click.UsageError("expected either --text to train a tokenizer, or a trained --tokenizer")
    try:
        check_output_path(out, force=force, kind=RANDOM_MODEL_FOLDER)
        tokenizer = Tokenizer.from_file(str(trained)) if trained else train_tokenizer(read_lines(texts), tokens)
        write_random_teacher(out, tokenizer, Shape(layers=layers), force=force)
    except EdgeEmbedError as error:
        raise click.UsageError(str(error)) from error


if __name__ == "__main__":
    command()
