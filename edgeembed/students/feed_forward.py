"""Feed-forward layers of fewer neurons, which give what the whole ones gave as nearly as they can."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

_SENTENCES = 512  # some ten thousand tokens, for a thousand neurons or two
_RIDGE = 1e-3  # of the neurons' mean variance: what few tokens say is not followed to the letter


@dataclass(frozen=True)
class FeedForward:
    """Where a layer keeps its two linear maps.

    Attributes:
        widen: Path of the one to the neurons, within the layer.
        narrow: Path of the one from them.
    """

    widen: str
    narrow: str


class _Moments:
    """Mean and covariance of a layer's neurons, over the tokens that pass."""

    def __init__(self, narrow: nn.Linear) -> None:
        size = narrow.in_features
        self.count, self.total, self.products = 0, torch.zeros(size).double(), torch.zeros(size, size).double()
        self.hook = narrow.register_forward_pre_hook(lambda _, inputs: self._add(inputs[0]))

    def _add(self, neurons: torch.Tensor) -> None:
        rows = neurons.detach().flatten(0, -2).double().cpu()
        self.count += len(rows)
        self.total += rows.sum(dim=0)
        self.products += rows.T @ rows

    def mean_and_covariance(self) -> tuple[torch.Tensor, torch.Tensor]:
        mean = self.total / self.count
        return mean, self.products / self.count - mean.outer(mean)


def take_neurons(
    source: SentenceTransformer,
    theirs: Sequence[nn.Module],
    ours: Sequence[nn.Module],
    paths: FeedForward,
    sentences: Sequence[str],
) -> None:
    """Copy layers into others that have fewer neurons.

    Kept are, one after the other, the neurons that tell most of what the output varies by and those before them do not
    tell (orthogonal matching pursuit). What they tell of the others is added to them, by least squares over the tokens
    of some sentences, so that the output is as near to the whole layer's as a linear map of the kept ones can be.

    Args:
        source: The model that the layers are part of.
        theirs: The layers to copy.
        ours: As many, with as many neurons or fewer, and all else of the same size.
        paths: Where the layers keep their feed-forward maps.
        sentences: Text for the model to read; some of it is.

    Raises:
        ValueError: If there is none.
    """
    if not sentences:
        raise ValueError("there is no text to tell which neurons matter")
    narrows: list[nn.Linear] = [attrgetter(paths.narrow)(layer) for layer in theirs]
    moments = [_Moments(narrow) for narrow in narrows]
    # One by one, since padding has neurons too.
    source.encode(list(sentences[:: max(1, len(sentences) // _SENTENCES)]), batch_size=1, show_progress_bar=False)
    for layer, other, seen in zip(ours, theirs, moments, strict=True):
        seen.hook.remove()
        _fill(layer, other, paths, *seen.mean_and_covariance())


def _fill(ours: nn.Module, theirs: nn.Module, paths: FeedForward, mean: torch.Tensor, covariance: torch.Tensor) -> None:
    state = theirs.state_dict()
    weight, bias = (state[f"{paths.narrow}.{name}"].double() for name in ("weight", "bias"))
    covariance.diagonal().add_(_RIDGE * covariance.diagonal().mean())
    kept = _telling(weight, covariance, attrgetter(paths.narrow)(ours).in_features)
    narrowed = torch.linalg.solve(covariance[kept][:, kept], covariance[kept] @ weight.T).T
    state[f"{paths.narrow}.weight"] = narrowed.float()
    state[f"{paths.narrow}.bias"] = (bias + weight @ mean - narrowed @ mean[kept]).float()
    for name in ("weight", "bias"):
        state[f"{paths.widen}.{name}"] = state[f"{paths.widen}.{name}"][kept]
    ours.load_state_dict(state)


def _telling(weight: torch.Tensor, covariance: torch.Tensor, count: int) -> torch.Tensor:
    """Choose the neurons that tell most of the output; float64 (width, neurons), (neurons, neurons) -> (count,)."""
    unknown = covariance.clone()
    output = weight @ unknown
    chosen = torch.zeros(len(covariance), dtype=torch.bool)
    for _ in range(count):
        gains = output.square().sum(dim=0) / unknown.diagonal()
        best = int(gains.masked_fill(chosen, -1).argmax())
        told = unknown[best] / unknown[best, best]
        chosen[best] = True
        output -= output[:, best].outer(told)
        unknown -= unknown[:, best].outer(told)
    return chosen.nonzero()[:, 0]
