"""The encoder: texts in, embeddings out.

Modules that an embedding does not need are imported where they are used, so that an encoder starts fast.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

from edgeembed_runtime._compat import NoModelCard, mteb_model_meta
from edgeembed_runtime._validation import validate_texts, validate_threads
from edgeembed_runtime.builtin_models import builtin_names, open_bundle
from edgeembed_runtime.bundle import Bundle
from edgeembed_runtime.encode_options import (
    EncodeOptions,
    OutputValue,
    TextAction,
    TextPolicy,
    prompt_for,
    validate_encode_options,
)
from edgeembed_runtime.pipeline import Outputs, Pipeline
from edgeembed_runtime.tokenization.tokenizer import TextInfo, Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from edgeembed_runtime.quantization import Precision


class Encoder:
    """Encode texts as embeddings. Threads may share an encoder, and it keeps working in a forked process.

    Args:
        bundle: The name of an encoder in the wheel, "mini", "nano" or "micro"; or the path of a bundle's folder; or an
            opened `Bundle`. None, the default, is "mini". A name has precedence: a folder called "mini" is "./mini".
            The checksums of the encoders in the wheel are not compared here; `edgeembed-runtime verify` compares them.
        threads: The number of threads that encode many texts; None uses all cores that the process may use. The
            default is 1, because with ONNX Runtime each further thread loads another copy of the model, about 20 MB,
            which stays in memory. Further threads start from 64 texts on. A single text always runs on one thread,
            which is fastest.

    Attributes:
        similarity_fn_name: The similarity function, as sentence-transformers names it.
        model_card_data: Accepts the scores that sentence-transformers' evaluators report, and discards them.

    Raises:
        InputError: If `threads` is below 1, or `bundle` is neither a built-in name nor a folder.
        BundleError: If the bundle cannot be loaded, or this build contains no encoder.
        VerificationError: If the model or the tokenizer does not match its checksum.

    Examples:
        >>> encoder = Encoder()
        >>> encoder.encode("How do I read a file line by line?").shape == (encoder.dimension,)
        True
    """

    similarity_fn_name = "cosine"

    def __init__(self, bundle: Bundle | str | os.PathLike[str] | None = None, *, threads: int | None = 1) -> None:
        validate_threads(threads)
        self._bundle, self._is_builtin = open_bundle(bundle, is_classifier=False)
        self._threads = threads
        self._pipeline = Pipeline(self._bundle, trusted=self._is_builtin)
        default = self._bundle.default_prompt_name
        self._default_prefix = "" if default is None else self._bundle.prompts[default]
        self.model_card_data = NoModelCard()

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: the receiving process loads the bundle again."""
        bundle: Bundle | str = self._bundle.folder.name if self._is_builtin else self._bundle
        return functools.partial(Encoder, threads=self._threads), (bundle,)

    def __repr__(self) -> str:
        """Return the encoder's name, dimension and folder."""
        return f"<Encoder {self._bundle.name!r}, {self.dimension} dimensions, from {str(self._bundle.path)!r}>"

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False, threads: int | None = 1) -> Encoder:
        """Load the encoder in a bundle's folder; unlike `Encoder(path)`, "mini" is the folder of that name.

        Args:
            path: The bundle's folder.
            verify: Whether to compare every file with its checksum. The sizes of all files, and the checksums of the
                model and the tokenizer, are always compared.
            threads: As for `Encoder`.

        Returns:
            The encoder.

        Raises:
            InputError: If `threads` is below 1.
            BundleError: If the folder is not a complete bundle of this schema version.
            VerificationError: If a file does not match its checksum.
        """
        return cls(Bundle.open(path, verify=verify), threads=threads)

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | os.PathLike[str], *, verify: bool = False, threads: int | None = 1
    ) -> Encoder:
        """Load an encoder by the name of a built-in one or by the path of a bundle's folder. Nothing is downloaded.

        Args:
            name_or_path: "mini", "nano", "micro", or a folder, for example one downloaded with `hf download`.
            verify: As for `load`; it applies to a folder.
            threads: As for `Encoder`.

        Returns:
            The encoder.

        Raises:
            InputError: If there is no such encoder or folder; for a hub id, the message explains how to download it.
            BundleError: As for `load`.
            VerificationError: As for `load`.
        """
        if verify and not (isinstance(name_or_path, str) and name_or_path in builtin_names()):
            return cls.load(name_or_path, verify=True, threads=threads)
        return cls(name_or_path, threads=threads)

    @property
    def bundle(self) -> Bundle:
        """The bundle that was loaded."""
        return self._bundle

    @property
    def dimension(self) -> int:
        """The dimension of an embedding, before `truncate_dim`."""
        return self._bundle.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return the dimension of an embedding, before `truncate_dim`."""
        return self._bundle.dimension

    @property
    def max_seq_length(self) -> int:
        """The maximum number of tokens read from a text, including special tokens."""
        return self._bundle.max_seq_length

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the bundle."""
        return self._pipeline.tokenizer

    @property
    def document_prompt(self) -> str:
        """The text that `encode_document` puts before each document; empty if the bundle has none."""
        return self._prefix(None, None, "document")

    @property
    def mteb_model_meta(self) -> Any:
        """The name and revision under which mteb stores scores; None if mteb is not loaded."""
        return mteb_model_meta(self._bundle)

    @overload
    def encode(
        self,
        sentences: str | Iterable[Any],
        *,
        return_info: Literal[False] = ...,
        prompt_type: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> npt.NDArray[Any]: ...

    @overload
    def encode(
        self,
        sentences: str,
        *,
        return_info: Literal[True],
        prompt_type: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> tuple[npt.NDArray[Any], TextInfo]: ...

    @overload
    def encode(
        self,
        sentences: Iterable[Any],
        *,
        return_info: Literal[True],
        prompt_type: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> tuple[npt.NDArray[Any], list[TextInfo]]: ...

    @overload
    def encode(
        self,
        sentences: str | Iterable[Any],
        *,
        return_info: bool,
        prompt_type: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> Any: ...

    def encode(  # noqa: PLR0913 - the parameters of sentence-transformers and mteb
        self,
        sentences: str | Iterable[Any],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: OutputValue | None = "sentence_embedding",
        precision: Precision | None = "float32",
        convert_to_numpy: bool = True,  # noqa: ARG002 - for compatibility, as are the last three
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
        on_truncate: TextAction = "warn",
        on_unknown: TextAction = "warn",
        return_info: bool = False,
        prompt_type: str | None = None,
        task_metadata: object = None,  # noqa: ARG002
        hf_split: str | None = None,  # noqa: ARG002
        hf_subset: str | None = None,  # noqa: ARG002
    ) -> Any:
        """Return the embedding of a text, or of each of many texts.

        Many texts are distributed over `threads`, the longest first. Each one runs alone, without padding, so that
        its embedding never depends on the other texts.

        Args:
            sentences: A text, or many; or mteb's batches of texts. An empty text is valid.
            prompt_name: The name of the bundle's prompt to put before each text; None uses the bundle's default prompt.
            prompt: A prompt to put before each text, instead of one of the bundle's.
            batch_size: At least 1. It has no effect, because texts run one by one.
            show_progress_bar: Whether to show a counter after two seconds, if stderr is a terminal.
            output_value: "sentence_embedding", or None, which means the same.
            precision: "float32", or None, which means the same; "int8" or "uint8", one byte per component; "binary" or
                "ubinary", one bit per component. See `edgeembed_runtime.quantization.quantize`; unlike in
                sentence-transformers, no texts are needed to calibrate a range.
            convert_to_numpy: Has no effect: the result is an array unless `convert_to_tensor` is set.
            convert_to_tensor: Whether to return a torch tensor; the caller must have imported torch.
            device: "cpu", or None, which means the same.
            normalize_embeddings: Whether to normalize embeddings again after `truncate_dim`. Embeddings that are not
                truncated are always normalized.
            truncate_dim: The number of leading components to keep; None, the default, keeps all.
            on_truncate: What to do if texts have more than `max_seq_length` tokens, so that their ends are not read:
                "warn" issues one warning per call, "error" raises InputError, and "ignore" does neither.
            on_unknown: What to do if the vocabulary knows almost none of the words of texts, which are in another
                language for example; likewise. `TextInfo.known_share` says how many it knows.
            return_info: Whether to return the tokenization results of each text too.
            prompt_type: "query" or "document", as mteb passes it. The bundle's prompt for this type is put before each
                text, if the bundle has one.
            task_metadata: Passed by mteb; has no effect.
            hf_split: Passed by mteb; has no effect.
            hf_subset: Passed by mteb; has no effect.

        Returns:
            (dimension,) for one text, (texts, dimension) for many, in the requested precision. With `return_info`,
            a tuple of that and a `TextInfo`, or a list of them.

        Raises:
            InputError: If a text is not valid Unicode, or an argument has an unsupported value.
            BundleError: If the model cannot run, or returns an embedding that is not finite.

        Warns:
            TruncationWarning: If a text is too long and `on_truncate` is "warn".
            UnknownTextWarning: If the vocabulary knows almost no word of a text and `on_unknown` is "warn".
        """
        precision = precision or "float32"
        validate_encode_options(precision, batch_size, device, output_value)
        policy = TextPolicy(on_truncate, on_unknown)
        prefix = self._prefix(prompt, prompt_name, prompt_type)
        texts = [sentences] if isinstance(sentences, str) else validate_texts(sentences)
        result: npt.NDArray[Any]
        if isinstance(sentences, str):
            result, truncated, unknown = self._pipeline.run_one(sentences, policy, prompt=prefix)
            policy.warn(1, truncated, unknown, self.max_seq_length)
        else:
            result = self._encode_texts(texts, prefix, policy, show_progress=bool(show_progress_bar)).values
        if truncate_dim is not None:
            from edgeembed_runtime.similarity import truncate

            result = truncate(result, truncate_dim, renormalize=normalize_embeddings)
        if precision != "float32":
            from edgeembed_runtime.quantization import quantize

            result = quantize(result, precision)
        if convert_to_tensor:
            from edgeembed_runtime.similarity import as_tensor

            result = as_tensor(result)
        if not return_info:
            return result
        infos = [self._pipeline.describe(text, prefix) for text in texts]
        return result, infos[0] if isinstance(sentences, str) else infos

    def encode_query(self, sentences: str | Iterable[Any], **options: Unpack[EncodeOptions]) -> npt.NDArray[Any]:
        """Return the embeddings of queries, with the prompt "query" if the bundle has it.

        Args:
            sentences: As for `encode`.
            options: The other arguments of `encode`, except `prompt_type` and `return_info`.

        Returns:
            As for `encode`.
        """
        return self.encode(sentences, prompt_type="query", **options)

    def encode_document(self, sentences: str | Iterable[Any], **options: Unpack[EncodeOptions]) -> npt.NDArray[Any]:
        """Return the embeddings of documents, with the prompt "document", "passage" or "corpus".

        Args:
            sentences: As for `encode`.
            options: The other arguments of `encode`, except `prompt_type` and `return_info`.

        Returns:
            As for `encode`.
        """
        return self.encode(sentences, prompt_type="document", **options)

    def similarity(self, a: Any, b: Any, *, precision: Precision | None = None) -> Any:
        """Return the cosine similarity of each embedding in `a` with each embedding in `b`.

        Args:
            a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
            b: (m, dimension) or (dimension,), likewise.
            precision: The precision of the embeddings; required for 8-bit ones, whose dtype does not determine it.

        Returns:
            (n, m) float32; a tensor if `a` is one.

        Raises:
            InputError: If the embeddings are not finite, or differ in dimension.
        """
        from edgeembed_runtime.similarity import cosine_similarity

        return cosine_similarity(a, b, precision)

    def similarity_pairwise(self, a: Any, b: Any, *, precision: Precision | None = None) -> Any:
        """Return the cosine similarity of each embedding in `a` with the embedding in the same row of `b`.

        Args:
            a: (n, dimension) or (dimension,), an array, or a torch tensor on the CPU.
            b: Likewise, with as many rows.
            precision: As for `similarity`.

        Returns:
            (n,) float32; a tensor if `a` is one.

        Raises:
            InputError: If the embeddings are not finite, or differ in number or dimension.
        """
        from edgeembed_runtime.similarity import pairwise_cosine_similarity

        return pairwise_cosine_similarity(a, b, precision)

    def _encode_texts(self, texts: list[str], prefix: str, policy: TextPolicy, *, show_progress: bool) -> Outputs:
        """Return the embeddings of many texts, and emit the warnings of the policy."""
        outputs = self._pipeline.run(texts, policy, prompt=prefix, threads=self._threads, show_progress=show_progress)
        policy.warn(len(texts), *outputs.counts(), self.max_seq_length)
        return outputs

    def _prefix(self, prompt: str | None, prompt_name: str | None, prompt_type: str | None) -> str:
        prompts = self._bundle.prompts
        chosen = prompt_for(prompts, prompt=prompt, prompt_name=prompt_name, prompt_type=prompt_type)
        return self._default_prefix if chosen is None else chosen
