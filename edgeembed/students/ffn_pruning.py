"""Prune feed-forward networks: keep the neurons that explain most of the output and refit the output layer."""

from collections.abc import Sequence
from operator import attrgetter

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from edgeembed.architectures import FeedForwardPaths

_CALIBRATION_SENTENCES = 512  # about ten thousand tokens, for one or two thousand neurons
_RIDGE = 1e-3  # relative to the mean variance of a neuron; keeps the fit stable with so few tokens


class _NeuronStatistics:
    """Mean and covariance of a layer's FFN neurons, accumulated by a forward hook."""

    def __init__(self, down: nn.Linear) -> None:
        size = down.in_features
        self.count, self.total, self.products = 0, torch.zeros(size).double(), torch.zeros(size, size).double()
        self.hook = down.register_forward_pre_hook(lambda _, inputs: self._add(inputs[0]))

    def _add(self, activations: torch.Tensor) -> None:
        rows = activations.detach().flatten(0, -2).double().cpu()
        self.count += len(rows)
        self.total += rows.sum(dim=0)
        self.products += rows.T @ rows

    def mean_and_covariance(self) -> tuple[torch.Tensor, torch.Tensor]:
        mean = self.total / self.count
        return mean, self.products / self.count - mean.outer(mean)


def copy_pruned_layers(
    source: SentenceTransformer,
    source_layers: Sequence[nn.Module],
    student_layers: Sequence[nn.Module],
    paths: FeedForwardPaths,
    sentences: Sequence[str],
) -> None:
    """Copy layers into layers with fewer FFN neurons.

    Neurons are selected greedily by the variance of the output that they explain beyond those selected before
    (orthogonal matching pursuit). The output layer is then refitted by least squares over the tokens of a sample of
    sentences, so that the kept neurons also carry what the dropped ones contributed.

    Args:
        source: The model that contains `source_layers`.
        source_layers: The layers to copy.
        student_layers: As many layers, of the same sizes except for fewer FFN neurons.
        paths: Where a layer keeps its FFN.
        sentences: Text to calibrate on; a sample of 512 is used.

    Raises:
        ValueError: If there are no sentences.
    """
    if not sentences:
        raise ValueError("no sentences to calibrate the pruning on; expected at least one")
    down_layers: list[nn.Linear] = [attrgetter(paths.down)(layer) for layer in source_layers]
    statistics = [_NeuronStatistics(down) for down in down_layers]
    sample = list(sentences[:: max(1, len(sentences) // _CALIBRATION_SENTENCES)])
    source.encode(sample, batch_size=1, show_progress_bar=False)  # one by one, so that padding is not counted
    for student_layer, source_layer, measured in zip(student_layers, source_layers, statistics, strict=True):
        measured.hook.remove()
        _copy_pruned(source_layer, student_layer, paths, *measured.mean_and_covariance())


def _copy_pruned(
    source: nn.Module, student: nn.Module, paths: FeedForwardPaths, mean: torch.Tensor, covariance: torch.Tensor
) -> None:
    state = source.state_dict()
    weight, bias = (state[f"{paths.down}.{name}"].double() for name in ("weight", "bias"))
    covariance.diagonal().add_(_RIDGE * covariance.diagonal().mean())
    kept = _select_neurons(weight, covariance, attrgetter(paths.down)(student).in_features)
    refitted = torch.linalg.solve(covariance[kept][:, kept], covariance[kept] @ weight.T).T
    state[f"{paths.down}.weight"] = refitted.float()
    state[f"{paths.down}.bias"] = (bias + weight @ mean - refitted @ mean[kept]).float()
    for name in ("weight", "bias"):
        state[f"{paths.up}.{name}"] = state[f"{paths.up}.{name}"][kept]
    student.load_state_dict(state)


def _select_neurons(weight: torch.Tensor, covariance: torch.Tensor, count: int) -> torch.Tensor:
    """Select neurons greedily by the residual output variance that each explains (orthogonal matching pursuit).

    Args:
        weight: Output layer, float64 (width, neurons).
        covariance: Covariance of the neurons, float64 (neurons, neurons).
        count: Number of neurons to select.

    Returns:
        Indices in ascending order, int64 (count,).
    """
    residual = covariance.clone()
    output = weight @ residual
    selected = torch.zeros(len(covariance), dtype=torch.bool)
    for _ in range(count):
        gains = output.square().sum(dim=0) / residual.diagonal()
        best = int(gains.masked_fill(selected, -1).argmax())
        explained = residual[best] / residual[best, best]
        selected[best] = True
        output -= output[:, best].outer(explained)
        residual -= residual[:, best].outer(explained)
    return selected.nonzero()[:, 0]
