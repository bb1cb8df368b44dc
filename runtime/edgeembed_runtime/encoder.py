"""Text to vectors."""

import dataclasses
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy as np
import numpy.typing as npt

from edgeembed_runtime._compat import NoModelCard, mteb_model_meta
from edgeembed_runtime._threads import available_cores
from edgeembed_runtime._validation import validate_texts
from edgeembed_runtime._warnings import caller_stacklevel
from edgeembed_runtime.builtin_models import find_bundle
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.errors import InputError, TruncationWarning
from edgeembed_runtime.pipeline import Pipeline
from edgeembed_runtime.prompts import prompt_for
from edgeembed_runtime.quantization import PRECISIONS, Precision, quantize
from edgeembed_runtime.similarity import as_tensor, cosine_similarity, pairwise_cosine_similarity, truncate
from edgeembed_runtime.tokenizer import TextInfo

if TYPE_CHECKING:
    from typing_extensions import Unpack

OnTruncate = Literal["warn", "error", "ignore"]

_ON_TRUNCATE: tuple[OnTruncate, ...] = ("warn", "error", "ignore")


class EncodeOptions(TypedDict, total=False):
    """What may be given beside the texts; `Encoder.encode` explains each."""

    batch_size: int
    normalize_embeddings: bool
    truncate_dim: int | None
    precision: Precision | None
    prompt_name: str | None
    prompt: str | None
    on_truncate: OnTruncate
    show_progress_bar: bool | None
    convert_to_numpy: bool
    convert_to_tensor: bool
    prompt_type: str | None
    task_metadata: object
    hf_split: str | None
    hf_subset: str | None


class Encoder:
    """Gives a text's vector. Threads may share one, and a forked process may go on using it.

    Args:
        bundle: The name of an encoder that ships inside the wheel, "mini" or "nano", whose checksums are not compared
            (`edgeembed-runtime verify` does); or the path of a bundle's folder; or an opened `Bundle`. None, the
            default, is "mini". A name comes first: a folder called "mini" is "./mini".
        threads: On how many threads many texts are encoded; None, the default, stands for as many as the process
            has cores. One text is always encoded on one, which is the fastest. For ONNX Runtime each thread loads
            a model of its own, from 64 texts on, and the encoder keeps it.

    Attributes:
        similarity_fn_name: How vectors are compared, as sentence-transformers calls it.
        model_card_data: Takes the scores that sentence-transformers' evaluators report, and drops them.

    Raises:
        InputError: If `threads` is below 1, or there is neither an encoder of this name in the wheel nor such a folder.
        BundleError: If the bundle cannot be loaded, or this build carries no encoder.
        VerificationError: If the model or the tokenizer is not the one that was exported.

    Example:
        >>> encoder = Encoder()
        >>> encoder.encode("How do I read a file line by line?").shape == (encoder.dimension,)
        True
    """

    similarity_fn_name = "cosine"

    def __init__(self, bundle: Bundle | str | os.PathLike[str] | None = None, *, threads: int | None = None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is {threads!r}, expected an integer of at least 1, or None for all cores")
        self._is_shipped = False
        if isinstance(bundle, Bundle):
            self._bundle = bundle
        elif bundle is None or isinstance(bundle, str):
            folder, self._is_shipped = find_bundle(bundle)
            self._bundle = Bundle.open(folder)
        elif isinstance(bundle, os.PathLike):
            self._bundle = Bundle.open(bundle)
        else:
            raise InputError(
                f"the bundle is {type(bundle).__name__}, expected the name of an encoder in the wheel, the path of a "
                "bundle, or a Bundle"
            )
        self._bundle.check_sizes()
        self._threads = threads
        self._pipeline = Pipeline(self._bundle, trusted=self._is_shipped)
        default = self._bundle.default_prompt_name
        self._default_prefix = "" if default is None else self._bundle.prompts[default]
        self.model_card_data = NoModelCard()

    def __reduce__(self) -> tuple[Any, ...]:
        """Let processes pass an encoder on: it is loaded anew where it arrives."""
        bundle: Bundle | str = self._bundle.path.name if self._is_shipped else self._bundle
        if isinstance(bundle, Bundle) and isinstance(bundle.path, Path):
            bundle = dataclasses.replace(bundle, path=bundle.path.absolute())
        return _load_again, (bundle, self._threads)

    def __repr__(self) -> str:
        """Give its name and where it is from."""
        return f"<Encoder {self._bundle.name!r}, {self.dimension} numbers a vector, from {str(self._bundle.path)!r}>"

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False, threads: int | None = None) -> "Encoder":
        """Load the encoder in a bundle's folder, whatever its name; `Encoder(path)` does the same.

        Args:
            path: The bundle's folder.
            verify: Whether to compare every file with its checksum first. The sizes of all, and the checksums of
                the model and the tokenizer, are compared in any case.
            threads: As for `Encoder`.

        Raises:
            InputError: If `threads` is below 1.
            BundleError: If the folder is no whole bundle that this version can load.
            VerificationError: If a file is not the one that was exported.
        """
        return cls(Bundle.open(path, verify=verify), threads=threads)

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

    @property
    def mteb_model_meta(self) -> Any:
        """The name and revision under which mteb files the scores; None where mteb is not loaded."""
        return mteb_model_meta(self._bundle)

    @overload
    def encode(
        self, texts: str | Iterable[Any], *, return_info: Literal[False] = ..., **options: "Unpack[EncodeOptions]"
    ) -> npt.NDArray[Any]: ...

    @overload
    def encode(
        self, texts: str, *, return_info: Literal[True], **options: "Unpack[EncodeOptions]"
    ) -> tuple[npt.NDArray[Any], TextInfo]: ...

    @overload
    def encode(
        self, texts: Iterable[Any], *, return_info: Literal[True], **options: "Unpack[EncodeOptions]"
    ) -> tuple[npt.NDArray[Any], list[TextInfo]]: ...

    @overload
    def encode(self, texts: str | Iterable[Any], *, return_info: bool, **options: "Unpack[EncodeOptions]") -> Any: ...

    def encode(  # noqa: PLR0913 - the names are those of sentence-transformers and mteb
        self,
        texts: str | Iterable[Any],
        *,
        batch_size: int = 32,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        precision: Precision | None = "float32",
        prompt_name: str | None = None,
        prompt: str | None = None,
        on_truncate: OnTruncate = "warn",
        show_progress_bar: bool | None = None,
        return_info: bool = False,
        convert_to_numpy: bool = True,  # noqa: ARG002 - sentence-transformers' evaluators pass it
        convert_to_tensor: bool = False,
        prompt_type: str | None = None,
        task_metadata: object = None,  # noqa: ARG002 - mteb passes this and the two that follow
        hf_split: str | None = None,  # noqa: ARG002
        hf_subset: str | None = None,  # noqa: ARG002
    ) -> Any:
        """Give the vector of a text, or of each of many.

        Many texts are shared out over `threads`, the longest first. Each is run by itself, unpadded, so that its
        vector never depends on its neighbours.

        Args:
            texts: One text, or many; or mteb's batches of texts. The empty text is one.
            batch_size: Is checked, and changes nothing.
            normalize_embeddings: Whether vectors that `truncate_dim` cuts get unit length again; whole ones
                have it.
            truncate_dim: Keep only that many leading numbers of a vector; None, the default, keeps all.
            precision: "float32", of which None is another name, or fewer bytes: "int8" or "uint8", a byte a number,
                or "binary" or "ubinary", a bit a number. `edgeembed_runtime.quantization.quantize` says how; other
                than in sentence-transformers, it needs no texts to fit a range to.
            prompt_name: Which of the bundle's prompts to put before each text; None is the bundle's default.
            prompt: What to put before each text instead.
            on_truncate: What becomes of texts of more than `max_seq_length` tokens, whose ends are not read:
                "warn" once a call, refuse with an "error", or "ignore" it.
            show_progress_bar: Whether to count on stderr, if it is a terminal, once two seconds have passed.
            return_info: Whether to say, too, what became of each text.
            convert_to_numpy: Changes nothing: vectors are arrays unless tensors are asked for.
            convert_to_tensor: Whether to give a torch tensor; the caller must have imported torch.
            prompt_type: "query" or "document", as mteb says it: use the bundle's prompt for these, if it has one.
            task_metadata: What mteb is measuring; changes nothing.
            hf_split: Likewise.
            hf_subset: Likewise.

        Returns:
            (dimension,) for one text, (texts, dimension) for many, in the precision asked for. With `return_info`
            that and a `TextInfo`, or a list of them.

        Raises:
            InputError: If a text is no valid text, or an option has no such value.
            BundleError: If the model cannot run, or gives a vector that is not finite.

        Warns:
            TruncationWarning: If a text is longer than the limit and `on_truncate` is "warn".
        """
        precision = precision or "float32"
        if precision not in PRECISIONS or on_truncate not in _ON_TRUNCATE or not _is_count(batch_size):
            raise _refused(precision, on_truncate, batch_size)
        is_plain = prompt is None and prompt_name is None and prompt_type is None
        prefix = self._default_prefix if is_plain else self._prefix(prompt, prompt_name, prompt_type)
        refuse_long = on_truncate == "error"
        rows = [texts] if isinstance(texts, str) else validate_texts(texts)
        if prefix:
            rows = [prefix + row for row in rows]
        truncated: int
        if isinstance(texts, str):
            result, truncated = self._pipeline.run_one(rows[0], refuse_long=refuse_long)
        else:
            result, truncated = self._pipeline.run(
                rows,
                threads=self._threads or available_cores(),
                refuse_long=refuse_long,
                show_progress=bool(show_progress_bar),
            )
        if truncated and on_truncate == "warn":
            message = f"{truncated:d} of {len(rows)} texts: only the first {self.max_seq_length} tokens were read"
            warnings.warn(message, TruncationWarning, stacklevel=caller_stacklevel())
        if truncate_dim is not None:
            result = truncate(result, truncate_dim, renormalize=normalize_embeddings)
        if precision != "float32":
            result = quantize(result, precision)
        if convert_to_tensor:
            result = as_tensor(result)
        if not return_info:
            return result
        infos = [self._pipeline.describe(row) for row in rows]
        return result, infos[0] if isinstance(texts, str) else infos

    def encode_query(self, texts: str | Iterable[Any], **options: "Unpack[EncodeOptions]") -> npt.NDArray[Any]:
        """Give the vectors of queries: as `encode`, with the prompt "query" if the bundle has it."""
        return self.encode(texts, **_typed("query", options))

    def encode_document(self, texts: str | Iterable[Any], **options: "Unpack[EncodeOptions]") -> npt.NDArray[Any]:
        """Give the vectors of documents: as `encode`, with the prompt "document", "passage" or "corpus"."""
        return self.encode(texts, **_typed("document", options))

    def similarity(self, a: Any, b: Any, *, precision: Precision | None = None) -> Any:
        """Give the cosine of each vector with each other.

        Args:
            a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
            b: (m, dimension) or (dimension,), likewise.
            precision: In which precision they were encoded; vectors of bytes do not show it, and need it.

        Returns:
            (n, m) float32; a tensor if `a` is one.

        Raises:
            InputError: If these are no vectors of one dimension, or not finite.
        """
        return cosine_similarity(a, b, precision)

    def similarity_pairwise(self, a: Any, b: Any, *, precision: Precision | None = None) -> Any:
        """Give the cosine of each vector with the one in its place.

        Args:
            a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
            b: Likewise.
            precision: As for `similarity`.

        Returns:
            (n,) float32; a tensor if `a` is one.

        Raises:
            InputError: If these are not as many vectors, of one dimension, or not finite.
        """
        return pairwise_cosine_similarity(a, b, precision)

    def _prefix(self, prompt: str | None, prompt_name: str | None, prompt_type: str | None) -> str:
        prompts = self._bundle.prompts
        chosen = prompt_for(prompts, prompt=prompt, prompt_name=prompt_name, prompt_type=prompt_type)
        return self._default_prefix if chosen is None else chosen


def _load_again(bundle: Bundle | str, threads: int | None) -> Encoder:
    return Encoder(bundle, threads=threads)


def _typed(prompt_type: str, options: EncodeOptions) -> EncodeOptions:
    return {**options, "prompt_type": prompt_type}


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and int(value) >= 1


def _refused(precision: str, on_truncate: str, batch_size: object) -> InputError:
    if precision not in PRECISIONS:
        return InputError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}")
    if on_truncate not in _ON_TRUNCATE:
        return InputError(f"on_truncate is {on_truncate!r}, expected one of {', '.join(_ON_TRUNCATE)}")
    return InputError(f"batch_size is {batch_size!r}, expected an integer of at least 1")
