"""Text to vectors."""

import os
import warnings
from collections.abc import Collection, Iterable
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from edgeembed_runtime.backends import load_backend
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import BundleError, InputError, TruncationWarning
from edgeembed_runtime.progress import counted
from edgeembed_runtime.shipped import shipped_bundle
from edgeembed_runtime.texts import as_texts
from edgeembed_runtime.tokenization import Tokenizer, Tokens
from edgeembed_runtime.vectors import as_tensor, cosines, shortened

OnTruncate = Literal["warn", "error", "ignore"]

# In the order in which sentence-transformers looks for them.
_QUERY_PROMPTS = ("query",)
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class EncodeOptions(TypedDict, total=False):
    """What may be given beside the texts; `Encoder.encode` explains each."""

    batch_size: int
    normalize_embeddings: bool
    truncate_dim: int | None
    precision: str | None
    prompt_name: str | None
    prompt: str | None
    on_truncate: OnTruncate
    show_progress_bar: bool | None
    convert_to_numpy: bool
    convert_to_tensor: bool


class Encoder:
    """Gives a text's vector. Threads may share one.

    Args:
        bundle: The bundle to load; None, the default, stands for the encoder that ships inside the wheel.

    Attributes:
        similarity_fn_name: How vectors are compared, as sentence-transformers calls it.
        model_card_data: Takes the scores that sentence-transformers' evaluators report, and drops them.

    Raises:
        BundleError: If the bundle cannot be loaded, or this build carries no encoder.

    Example:
        >>> encoder = Encoder()
        >>> encoder.encode("How do I read a file line by line?").shape == (encoder.dimension,)
        True
    """

    similarity_fn_name = "cosine"

    def __init__(self, bundle: Bundle | None = None) -> None:
        self._bundle = Bundle.open(shipped_bundle()) if bundle is None else bundle
        self._bundle.check_sizes()
        self._tokenizer = Tokenizer(self._bundle.path / "tokenizer.json", self._bundle.max_seq_length)
        self._backend = load_backend(self._bundle)
        self.model_card_data = _NoModelCard()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False) -> "Encoder":
        """Give the encoder in a bundle.

        Args:
            path: The bundle's folder.
            verify: Whether to compare every file with its checksum first. Sizes are compared in any case.

        Raises:
            BundleError: If the folder is no whole bundle that this version can load.
            VerificationError: If `verify` is set and a file is not the one that was exported.
        """
        return cls(Bundle.open(path, verify=verify))

    @property
    def bundle(self) -> Bundle:
        """The bundle that was loaded."""
        return self._bundle

    @property
    def dimension(self) -> int:
        """The length of a vector, before `truncate_dim`."""
        return self._bundle.dimension

    @property
    def max_seq_length(self) -> int:
        """The most tokens of a text that are read, special ones included."""
        return self._bundle.max_seq_length

    def encode(  # noqa: PLR0913 - the names are those of sentence-transformers
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int = 32,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: str | None = "float32",
        prompt_name: str | None = None,
        prompt: str | None = None,
        on_truncate: OnTruncate = "warn",
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,  # noqa: ARG002 - sentence-transformers' evaluators pass it
        convert_to_tensor: bool = False,
    ) -> npt.NDArray[np.float32]:
        """Give the vector of a text, or of each of many.

        Args:
            texts: One text, or many. The empty text is one.
            batch_size: Is checked, and changes nothing: texts are run one by one, unpadded, so that a text's
                vector never depends on its neighbours.
            normalize_embeddings: Whether vectors that `truncate_dim` cuts get unit length again; whole ones
                have it.
            truncate_dim: Keep only that many leading numbers of a vector; None, the default, keeps all.
            precision: "float32", of which None is another name; no other is supported.
            prompt_name: Which of the bundle's prompts to put before each text; None is the bundle's default.
            prompt: What to put before each text instead.
            on_truncate: What becomes of texts of more than `max_seq_length` tokens, whose ends are not read:
                "warn" once a call, refuse with an "error", or "ignore" it.
            show_progress_bar: Whether to count on stderr, if it is a terminal, once two seconds have passed.
            convert_to_numpy: Changes nothing: vectors are arrays unless tensors are asked for.
            convert_to_tensor: Whether to give a torch tensor; the caller must have imported torch.

        Returns:
            float32, (dimension,) for one text, (texts, dimension) for many.

        Raises:
            InputError: If a text is no valid text, or an option has no such value.
            BundleError: If the model cannot run, or gives a vector that is not finite.

        Warns:
            TruncationWarning: If a text is longer than the limit and `on_truncate` is "warn".
        """
        _check_choice("precision", precision or "float32", ("float32",))
        _check_choice("on_truncate", on_truncate, ("warn", "error", "ignore"))
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}, expected at least 1")
        rows = [texts] if isinstance(texts, str) else as_texts(texts)
        prefix = self._prefix(prompt_name, prompt)
        vectors = self._vectors([prefix + row for row in rows], on_truncate, show_progress=bool(show_progress_bar))
        if truncate_dim is not None:
            vectors = shortened(vectors, truncate_dim, normalise=normalize_embeddings)
        result = vectors[0] if isinstance(texts, str) else vectors
        return as_tensor(result) if convert_to_tensor else result

    def encode_query(self, texts: str | Iterable[str], **options: Unpack[EncodeOptions]) -> npt.NDArray[np.float32]:
        """Give the vectors of queries: as `encode`, with the prompt "query" if the bundle has it."""
        return self.encode(texts, **self._with_prompt(options, _QUERY_PROMPTS))

    def encode_document(self, texts: str | Iterable[str], **options: Unpack[EncodeOptions]) -> npt.NDArray[np.float32]:
        """Give the vectors of documents: as `encode`, with the prompt "document", "passage" or "corpus"."""
        return self.encode(texts, **self._with_prompt(options, _DOCUMENT_PROMPTS))

    def similarity(self, a: Any, b: Any) -> npt.NDArray[np.float32]:
        """Give the cosine of each vector with each other.

        Args:
            a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
            b: (m, dimension) or (dimension,), likewise.

        Returns:
            (n, m) float32; a tensor if `a` is one.

        Raises:
            InputError: If these are no vectors of one dimension.
        """
        matrix: npt.NDArray[np.float32] = cosines(a, b)
        return matrix

    def _vectors(self, texts: list[str], on_truncate: OnTruncate, *, show_progress: bool) -> npt.NDArray[np.float32]:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        truncated = 0
        for i, text in enumerate(counted(texts, "texts") if show_progress else texts):
            tokens = self._tokens(text, i, refuse_long=on_truncate == "error")
            vectors[i] = self._backend.embed(tokens.ids)
            truncated += tokens.truncated
        if truncated and on_truncate == "warn":
            message = f"{truncated} of {len(texts)} texts: only the first {self.max_seq_length} tokens were read"
            warnings.warn(message, TruncationWarning, stacklevel=3)
        self._check_finite(vectors)
        return vectors

    def _tokens(self, text: str, position: int, *, refuse_long: bool) -> Tokens:
        try:
            tokens = self._tokenizer.tokenize(text)
        except InputError as error:
            raise InputError(f"text {position} {error}") from error
        if refuse_long and tokens.truncated:
            raise InputError(
                f"text {position} is too long, expected at most {self.max_seq_length} tokens; "
                "split it, or pass on_truncate='ignore'"
            )
        return tokens

    def _check_finite(self, vectors: npt.NDArray[np.float32]) -> None:
        if not np.isfinite(vectors).all():
            position = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise BundleError(f"{self._bundle.path} gives no finite vector for text {position}; export it again")

    def _prefix(self, prompt_name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            if prompt_name is not None:
                raise InputError("both prompt and prompt_name were given, expected one of them")
            return prompt
        name = self._bundle.default_prompt_name if prompt_name is None else prompt_name
        if name is None:
            return ""
        _check_choice("prompt_name", name, self._bundle.prompts)
        return self._bundle.prompts[name]

    def _with_prompt(self, options: EncodeOptions, names: tuple[str, ...]) -> EncodeOptions:
        if options.get("prompt") is not None or options.get("prompt_name") is not None:
            return options
        name = next((name for name in names if name in self._bundle.prompts), None)
        return {**options, "prompt_name": name}


class _NoModelCard:
    """Where sentence-transformers' evaluators leave their scores: a bundle's card is written at export."""

    def set_evaluation_metrics(self, *args: object) -> None:
        """Drop the scores."""


def _check_choice(name: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        expected = f"one of {', '.join(choices)}" if choices else "None, for this bundle has none"
        raise InputError(f"{name} is {value!r}, expected {expected}")
