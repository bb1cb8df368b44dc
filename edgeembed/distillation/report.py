"""The result of a distillation."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeembed_runtime.report import Report

from edgeembed.students.card import stage_table

if TYPE_CHECKING:
    from edgeembed.augmentation import AugmentationSummary
    from edgeembed.corpus.parallel import LanguageCounts


@dataclass(frozen=True)
class DistillationReport(Report):
    """Result of a distillation. Jupyter displays it as tables, with a plot of the losses.

    Attributes:
        path: The student's folder.
        parameters: Number of the student's weights, embedding table included.
        sentences: Number of distinct sentences that it was distilled from; translations are not counted.
        languages: Counts of translations by language.
        vocabulary_size: Number of tokens of its vocabulary.
        dimension: Dimension of its embeddings.
        space: Name of the teacher's embedding space if the student learned the teacher's embeddings, so that the
            embeddings of both may be compared; None if it has a space of its own.
        explained_variance: Share of the teacher's variance in the dimensions of the head, 0 to 1; None without PCA.
        reused_sentences: Number of sentences whose teacher embeddings were found in the cache.
        augmentation: Counts of augmented sentences; None if the recipe augments nothing.
        steps: Number of training steps of each stage.
        losses: Mean loss of each stage.
        final_losses: Mean loss of the last steps of each stage: at least a tenth of all, or 50 if that is fewer.
        dev_spearman: Spearman correlation x100 on the development set after each stage; None without one.
        held_out_agreement: Share of a held-out sentence's ten nearest held-out ones by the teacher that are also among
            the student's ten, mean, x100; None without embeddings of the teacher, or fewer than twelve such sentences.
        whitening: Report of the whitening, the fields of a `PcaHeadReport`; None without whitening.
        seconds: Wall-clock time of each step.
        history: For each stage the logged steps, and the mean loss since the step before.
    """

    path: Path
    parameters: int
    sentences: int
    languages: tuple[LanguageCounts, ...]
    vocabulary_size: int
    dimension: int
    space: str | None
    explained_variance: float | None
    reused_sentences: int
    augmentation: AugmentationSummary | None
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    final_losses: tuple[float, ...]
    dev_spearman: tuple[float | None, ...]
    held_out_agreement: float | None
    whitening: dict[str, Any] | None
    seconds: dict[str, float]
    history: tuple[tuple[tuple[int, float], ...], ...]

    def __str__(self) -> str:
        """Return the folder, the student's size and the loss of each stage, a line each."""
        size = f"{self.parameters:,} parameters, {self.dimension} dimensions, {self.vocabulary_size:,} tokens"
        lines = [f"{self.path}: {size}, distilled from {self.sentences:,} sentences"]
        for number, (loss, score) in enumerate(zip(self.final_losses, self.dev_spearman, strict=True), start=1):
            dev = "" if score is None else f", Spearman {score:.1f} (x100) on the development set"
            lines.append(f"stage {number}: loss {loss:.4f} at the end{dev}")
        if self.held_out_agreement is not None:
            lines.append(f"held-out sentences: keeps {self.held_out_agreement:.0f} % of the teacher's ten nearest")
        if self.augmentation:
            lines.append(f"augmentation: {self.augmentation}")
        return "\n".join(lines)

    def _markdown(self) -> str:
        """Return a Markdown table of the student, and one of the stages."""
        student = {
            "student": self.path,
            "parameters": f"{self.parameters:,}",
            "dimensions": self.dimension,
            "space": self.space or "its own",
            "vocabulary": f"{self.vocabulary_size:,} tokens",
            "distilled from": f"{self.sentences:,} sentences",
            "time": f"{sum(self.seconds.values()):.0f} s",
        }
        rows = [f"| {name} | {value} |" for name, value in student.items()]
        stages = stage_table(self.steps, self.losses, self.final_losses, self.dev_spearman)
        return "\n".join(["| | |", "|---|---|", *rows, "", stages]) + "\n"

    def to_svg(self) -> str:
        """Return a plot of the loss over the steps of all stages, as SVG."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        start = 0
        for number, points in enumerate(self.history, start=1):
            axes.plot([start + step for step, _ in points], [loss for _, loss in points], label=f"stage {number}")
            start += points[-1][0] if points else 0
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        if len(self.history) > 1:
            axes.legend()
        file = io.StringIO()
        figure.savefig(file, format="svg")
        return file.getvalue()

    def _repr_markdown_(self) -> str:
        """Display tables and plot in Jupyter."""
        if not any(self.history):
            return self._markdown()
        image = base64.b64encode(self.to_svg().encode()).decode()
        return f"{self._markdown()}\n![loss](data:image/svg+xml;base64,{image})"
