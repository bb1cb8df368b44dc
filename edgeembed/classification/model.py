"""A text classifier: an encoder and a classification head."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from accelerate.utils import send_to_device
from edgeembed_runtime.errors import InputError
from edgeembed_runtime.storage.atomic import atomic_folder
from edgeembed_runtime.storage.folder_kind import FolderKind
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import nn

from edgeembed.classification.heads import EmbeddingHead, HeadKind, TokenizedTexts, build_head
from edgeembed.models import load_model

Encoding = Literal["joint", "diffcat"]

CLASSIFIER_FILE = "edgeembed_classifier.json"
CLASSIFIER_FOLDER = FolderKind(CLASSIFIER_FILE, ("head", "labels"), is_model=True)
_ENCODER_FOLDER = "encoder"
_WEIGHTS_FILE = "classifier.safetensors"


class TextClassifier(nn.Module):
    """An encoder and a classification head for texts or pairs of texts.

    Args:
        encoder: A sentence-transformers model.
        labels: The name of each class.
        head: The kind of head; see `heads.build_head`.
        encoding: For pairs: "joint" encodes the two texts as one sequence with a separator, as BERT does; "diffcat"
            encodes them separately, which cannot be exported.
        is_pairs: Whether the inputs are pairs of texts.
        is_scored: Whether the classes are binned scores.

    Raises:
        InputError: If the encoder does not produce what the head reads.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        labels: Sequence[str],
        *,
        head: HeadKind = "mlp",
        encoding: Encoding = "joint",
        is_pairs: bool = False,
        is_scored: bool = False,
    ) -> None:
        super().__init__()
        self.labels, self.kind, self.encoding = tuple(labels), head, encoding
        self.is_pairs, self.is_scored = is_pairs, is_scored
        self.encoder = encoder
        if is_pairs and encoding == "joint" and not callable(encoder.tokenizer):
            raise InputError(
                "the encoder's tokenizer cannot read two texts as one sequence; expected an encoder of transformers, "
                "or the encoding diffcat (--encoding diffcat), which encodes the two texts of a pair separately"
            )
        self.head = build_head(head, encoder, 3 if self.uses_diffcat else 1, len(self.labels))

    @property
    def uses_diffcat(self) -> bool:
        """Whether the two texts of a pair are encoded separately."""
        return self.is_pairs and self.encoding == "diffcat"

    def tokenize(self, first: Sequence[str], second: Sequence[str] = ()) -> list[TokenizedTexts]:
        """Return the model's inputs: one batch, or two for pairs with diffcat.

        Args:
            first: The texts, or the first text of each pair.
            second: The second text of each pair; ignored unless the classifier reads pairs.
        """
        if not self.is_pairs:
            return [self.encoder.preprocess(list(first))]
        if self.uses_diffcat:
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

    def forward(self, batches: list[TokenizedTexts]) -> torch.Tensor:
        """Return the logits of what `tokenize` returned, float32 (batch, classes)."""
        logits: torch.Tensor = self.head(self.encoder, batches)
        return logits

    @torch.no_grad()
    def predict_proba(self, texts: Sequence[str | tuple[str, str]], *, batch_size: int = 64) -> npt.NDArray[np.float32]:
        """Return the probability of each label: the softmax of the logits.

        Args:
            texts: Texts, or pairs of texts if the classifier reads pairs.
            batch_size: The number of texts that run together.

        Returns:
            float32 (texts, labels), in the order of `labels`.
        """
        self.eval()
        device = next(self.parameters()).device
        probabilities = [np.empty((0, len(self.labels)), np.float32)]
        for start in range(0, len(texts), batch_size):
            rows: Sequence[Any] = texts[start : start + batch_size]
            first, second = zip(*rows, strict=True) if self.is_pairs else (rows, ())
            batches = send_to_device(self.tokenize(first, second), device)
            probabilities.append(self(batches).double().softmax(dim=1).float().cpu().numpy())
        return np.concatenate(probabilities)

    def embedding_head(self) -> nn.Module:
        """Return the head as a function of sentence embeddings, (batch, dimension) -> (batch, classes), for an export.

        Raises:
            InputError: If the head does not read one sentence embedding per input, so that it cannot be exported.
        """
        if not isinstance(self.head, EmbeddingHead):
            raise InputError(
                f"the classifier's head is {self.kind}, which cannot be exported; train it with --classifier mlp or "
                "linear"
            )
        if self.uses_diffcat:
            raise InputError(
                "the classifier encodes the two texts of a pair separately (diffcat), which cannot be exported; train "
                "it with --encoding joint"
            )
        return self.head.layers

    def save(
        self, out: Path, *, details: Mapping[str, Any] | None = None, card: str | None = None, force: bool = False
    ) -> None:
        """Write the classifier to a folder, which `load` and `edgeembed export` read.

        Args:
            out: The folder.
            details: Further JSON fields for its manifest, such as the metrics.
            card: The model card, written as README.md.
            force: Whether to replace an existing classifier.

        Raises:
            InputError: If `out` exists and `force` is not set, or it cannot be written.
        """
        fields = {
            **(details or {}),
            "head": self.kind,
            "encoding": self.encoding,
            "labels": list(self.labels),
            "is_pairs": self.is_pairs,
            "is_scored": self.is_scored,
        }
        with atomic_folder(out, force=force, kind=CLASSIFIER_FOLDER) as folder:
            self.encoder.save(str(folder / _ENCODER_FOLDER), create_model_card=False)
            save_file(self.head.state_dict(), folder / _WEIGHTS_FILE)
            if card is not None:
                (folder / "README.md").write_text(card, encoding="utf-8")
            CLASSIFIER_FOLDER.write_manifest(folder, fields)  # last, because it lists all other files

    @classmethod
    def load(cls, folder: Path) -> TextClassifier:
        """Load what `save` wrote, in evaluation mode on the CPU.

        Raises:
            InputError: If the folder does not hold a classifier.
        """
        fields = read_classifier_manifest(folder)
        encoder = load_model(str(folder / _ENCODER_FOLDER))
        names = ("labels", "head", "encoding", "is_pairs", "is_scored")
        model = cls(encoder, **{name: fields[name] for name in names})
        try:
            model.head.load_state_dict(load_file(folder / _WEIGHTS_FILE))
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{folder / _WEIGHTS_FILE} does not fit the classifier ({reason}); train it again with `edgeembed "
                "finetune`"
            ) from error
        return model.eval()


def is_classifier_folder(folder: Path) -> bool:
    """Return whether a folder was written by `edgeembed finetune`."""
    return (folder / CLASSIFIER_FILE).is_file()


def read_classifier_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a classifier's folder.

    Raises:
        InputError: If it is missing or has a missing or invalid field.
    """
    try:
        fields: dict[str, Any] = json.loads((folder / CLASSIFIER_FILE).read_text(encoding="utf-8"))
        is_valid = (
            fields["head"] in get_args(HeadKind)
            and fields["encoding"] in get_args(Encoding)
            and all(isinstance(label, str) for label in fields["labels"])
            and all(isinstance(fields[name], bool) for name in ("is_pairs", "is_scored"))
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} holds no classifier ({error}); expected a folder that `edgeembed finetune` wrote"
        ) from error
    if not is_valid:
        raise InputError(f"{folder / CLASSIFIER_FILE} has an invalid field; train it again with `edgeembed finetune`")
    return fields
