"""An encoder, and a classifier on top of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_folder
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import nn

from edgeembed.models import load_model
from edgeembed.settings import build
from edgeembed.tasks.classifiers import build_classifier
from edgeembed.tasks.settings import TASK_FILE, TASK_FOLDER, TaskSettings

_CLASSIFIER_FILE = "classifier.safetensors"


class TaskModel(nn.Module):
    """A classifier of texts, or of pairs of texts.

    Args:
        encoder: What makes vectors of texts.
        settings: How the classifier is made.
        names: What each class is called.
        is_pairs: Whether it reads pairs of texts.
    """

    def __init__(
        self, encoder: SentenceTransformer, settings: TaskSettings, names: Sequence[str], *, is_pairs: bool
    ) -> None:
        super().__init__()
        self.encoder, self.settings, self.names, self.is_pairs = encoder, settings, tuple(names), is_pairs
        self.compares = is_pairs and settings.encoding == "diffcat"
        self.classifier = build_classifier(settings.classifier, encoder, 3 if self.compares else 1, len(names))
        for weight in encoder.parameters():
            weight.requires_grad_(settings.trains_encoder)

    def read(self, first: Sequence[str], second: Sequence[str]) -> list[dict[str, torch.Tensor]]:
        """Tokenize texts: one batch, or two where two texts are encoded each by itself."""
        if not self.is_pairs:
            return [self.encoder.preprocess(list(first))]
        if self.compares:
            return [self.encoder.preprocess(list(first)), self.encoder.preprocess(list(second))]
        encoded: Any = self.encoder.tokenizer(
            list(first),
            list(second),
            padding=True,
            truncation=True,
            max_length=self.encoder.max_seq_length,
            return_tensors="pt",
        )
        return [{name: encoded[name] for name in ("input_ids", "attention_mask")}]

    def forward(self, texts: list[dict[str, torch.Tensor]]) -> torch.Tensor:
        """Give logits, float32 (batch, classes), of what `read` gave."""
        features = [self.classifier.features(self.encoder, each) for each in texts]  # type: ignore[operator]
        logits: torch.Tensor = self.classifier(diff_cat(*features) if self.compares else features[0])
        return logits

    def save(self, out: Path, *, force: bool = False) -> None:
        """Write it into a folder.

        Raises:
            InputError: If `out` exists and `force` is not set, or cannot be written.
        """
        with atomic_folder(out, force=force, kind=TASK_FOLDER) as folder:
            self.encoder.save(str(folder / "encoder"), create_model_card=False)
            save_file(self.classifier.state_dict(), folder / _CLASSIFIER_FILE)
            told = {"settings": asdict(self.settings), "names": list(self.names), "is_pairs": self.is_pairs}
            TASK_FOLDER.write_manifest(folder, told)  # last: it lists all that is in the folder

    @classmethod
    def load(cls, folder: Path) -> TaskModel:
        """Read what `save` wrote.

        Raises:
            InputError: If the folder holds no such model.
        """
        try:
            told = json.loads((folder / TASK_FILE).read_text(encoding="utf-8"))
            settings, names = build(TaskSettings, told["settings"]), tuple(map(str, told["names"]))
            weights = load_file(folder / _CLASSIFIER_FILE)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{folder} holds no classifier ({error}); expected what `edgeembed finetune` wrote"
            ) from error
        model = cls(load_model(str(folder / "encoder")), settings, names, is_pairs=bool(told["is_pairs"]))
        model.classifier.load_state_dict(weights)
        return model.eval()


def diff_cat(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Put two texts' features and their absolute difference side by side (section 2.3: DiffCat).

    Args:
        first: Features of one text, (batch, channels, ...).
        second: Those of the other.
    """
    return torch.cat([first, (first - second).abs(), second], dim=1)
