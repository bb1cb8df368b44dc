"""scikit-learn: a transformer that turns texts into embeddings."""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.errors import InputError
from edgeembed_runtime.integrations._loading import requires, shared_encoder

with requires("scikit-learn", "sklearn"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted


class EdgeEmbedVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transform texts into embeddings, as features of a scikit-learn pipeline.

    Pickling stores the bundle's name or path, and its fingerprint: another encoder at that path is rejected.

    Args:
        bundle: The name of a built-in encoder or the path of a bundle, as for `Encoder`.
        threads: The number of threads that encode many texts, as for `Encoder`.
        truncate_dim: The number of leading dimensions to keep; None keeps all.
        prompt_name: The name of the bundle's prompt to put before each text; None uses the bundle's default prompt.

    Attributes:
        encoder_: The encoder, after `fit`.
    """

    def __init__(
        self,
        bundle: str | os.PathLike[str] | None = None,
        *,
        threads: int | None = 1,
        truncate_dim: int | None = None,
        prompt_name: str | None = None,
    ) -> None:
        self.bundle = bundle
        self.threads = threads
        self.truncate_dim = truncate_dim
        self.prompt_name = prompt_name

    def fit(self, X: Any, y: Any = None) -> "EdgeEmbedVectorizer":  # noqa: ARG002, N803 - scikit-learn's names
        """Load the encoder. Nothing is learned from the texts.

        Args:
            X: The texts, which are checked only.
            y: Ignored.

        Returns:
            The transformer itself.

        Raises:
            InputError: If there is no such bundle, or `X` is not a one-dimensional list of str.
        """
        _check_one_dimension(X)
        self.encoder_ = shared_encoder(self.bundle, self.threads)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803 - scikit-learn's name
        """Return the embeddings of texts.

        Args:
            X: A list, array or pandas Series of str.

        Returns:
            (texts, dimension) float32, L2-normalized.

        Raises:
            InputError: If `X` is not a one-dimensional list of str.
        """
        check_is_fitted(self)
        _check_one_dimension(X)
        embeddings: npt.NDArray[np.float32] = self.encoder_.encode(
            X, prompt_name=self.prompt_name, truncate_dim=self.truncate_dim
        )
        return embeddings

    @property
    def _n_features_out(self) -> int:
        return self.truncate_dim or self.encoder_.dimension

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: the input is a list of texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters, and the fingerprint of the bundle instead of the encoder."""
        state: dict[str, Any] = super().__getstate__()
        if "encoder_" in state:
            state = {**state, "fingerprint": state["encoder_"].bundle.fingerprint}
            del state["encoder_"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load the encoder again.

        Raises:
            InputError: If there is no such bundle any more, or it has another fingerprint.
        """
        fingerprint = state.get("fingerprint")
        super().__setstate__({name: value for name, value in state.items() if name != "fingerprint"})
        if fingerprint is not None:
            self.encoder_ = shared_encoder(self.bundle, self.threads, fingerprint=fingerprint)


def _check_one_dimension(texts: Any) -> None:
    # A pandas DataFrame iterates over the names of its columns, which would be embedded instead of the texts.
    if isinstance(texts, str) or getattr(texts, "ndim", 1) != 1:
        raise InputError(
            f"X is {type(texts).__name__}, expected a list of str; "
            'select one column with ColumnTransformer([("text", EdgeEmbedVectorizer(), "column")])'
        )
