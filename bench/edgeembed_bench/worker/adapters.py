"""Adapters that load a subject within the worker process, one for each kind of subject."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from edgeembed_bench.worker.loaded_subject import LoadedSubject, make_tokenizer


def load(adapter: str, argument: str, threads: int, *, trust: bool = False) -> LoadedSubject:
    """Load a subject.

    Args:
        adapter: Name of the adapter, as in `edgeembed_bench.subjects`.
        argument: Argument of the adapter, such as a folder.
        threads: Threads that the subject may use.
        trust: Whether sentence-transformers may import the classes that the model folder names.
    """
    return _ADAPTERS[adapter](argument, threads, **({"trust_remote_code": True} if trust else {}))


def load_bundle(path: str, threads: int) -> LoadedSubject:
    """Load a bundle of edgeembed_runtime; the default built-in one if the path is empty.

    A built-in bundle is loaded by its name, as applications do, so that its checksums are not compared.
    """
    import functools

    from edgeembed_runtime import Bundle, Encoder
    from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names

    names = {os.path.realpath(str(builtin_bundle(name))): name for name in builtin_names()}
    name = names.get(os.path.realpath(path)) if path else None
    bundle = Bundle.open(path) if path and name is None else None
    if bundle is not None and bundle.is_classifier:
        return _load_classifier(bundle, threads)
    encoder = Encoder(bundle or name, threads=threads)
    # Truncates without a warning, like the other encoders; otherwise the warning would be timed.
    encode = functools.partial(encoder.encode, on_truncate="ignore", on_unknown="ignore")
    loaded = LoadedSubject(encode, ["edgeembed-runtime"], functools.partial(_inspect_bundle, encoder))
    loaded.max_tokens = encoder.max_seq_length
    loaded.encode_query = functools.partial(encoder.encode_query, on_truncate="ignore", on_unknown="ignore")
    loaded.encode_document = functools.partial(encoder.encode_document, on_truncate="ignore", on_unknown="ignore")
    return loaded


def _load_classifier(bundle: Any, threads: int) -> LoadedSubject:
    """Load a classifier, whose probabilities take the place of embeddings. One of pairs reads each text twice."""
    import functools

    from edgeembed_runtime import Classifier

    classifier = Classifier(bundle, threads=threads)

    def predict(texts: Any) -> Any:
        if classifier.is_pairs:
            texts = (texts, texts) if isinstance(texts, str) else [(text, text) for text in texts]
        return classifier.predict_proba(texts, on_truncate="ignore", on_unknown="ignore")

    inspect = None if classifier.is_pairs else functools.partial(_inspect_bundle, classifier)
    loaded = LoadedSubject(predict, ["edgeembed-runtime"], inspect)
    loaded.max_tokens = classifier.max_seq_length
    return loaded


def _inspect_bundle(encoder: Any, loaded: LoadedSubject) -> None:
    content = encoder.bundle.read("tokenizer.json")
    loaded.use_tokenizer(content)
    truncating = make_tokenizer(content)
    truncating.enable_truncation(encoder.max_seq_length)
    engine, output = _engine(encoder), "logits" if encoder.bundle.is_classifier else "sentence_embedding"
    if encoder.bundle.backend == "numpy":
        loaded.tokenize = lambda text: [truncating.encode(each).ids for each in _as_list(text)]
        loaded.run = lambda rows: [engine.run(row) for row in rows]
    else:
        loaded.tokenize = lambda text: [_graph_inputs(truncating.encode(each).ids) for each in _as_list(text)]
        loaded.run = lambda rows: [engine.run([output], row)[0][0] for row in rows]  # as the encoder does


def _engine(encoder: Any) -> Any:
    """Return the session, or the NumPy backend, that an encoder itself runs.

    The difference between two sessions of the same model can exceed the overhead to be measured.
    """
    backend = encoder._pipeline._backend
    return backend._session if encoder.bundle.backend == "onnx" else backend


def _load_nothing(_argument: str, _threads: int) -> LoadedSubject:
    """Load nothing: the process only imports its modules."""
    return LoadedSubject(lambda _text: None, [])


def _load_sentence_transformer(path: str, threads: int, **options: Any) -> LoadedSubject:
    import functools

    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(path, device="cpu", **options)
    # Only students made by edgeembed are trusted.
    packages = ["sentence-transformers", *(["edgeembed"] if options.get("trust_remote_code") else [])]
    loaded = LoadedSubject(
        _without_progress(model.encode), packages, functools.partial(_inspect_sentence_transformer, model)
    )
    loaded.encode_query = _without_progress(model.encode_query)
    loaded.encode_document = _without_progress(model.encode_document)
    loaded.max_tokens = model.max_seq_length if isinstance(model.max_seq_length, int) else None
    return loaded


def _inspect_sentence_transformer(model: Any, loaded: LoadedSubject) -> None:
    import torch

    tokenize = getattr(model, "preprocess", None) or model.tokenize  # renamed in sentence-transformers 6

    def run(features: Any) -> Any:
        with torch.inference_mode():
            return model(dict(features))["sentence_embedding"].numpy()  # dict(): the model writes into its input

    loaded.tokenize, loaded.run = (lambda text: tokenize(_as_list(text))), run
    tokenizer = model.tokenizer
    if hasattr(tokenizer, "to_str"):  # static models have a tokenizer of the tokenizers library
        loaded.use_tokenizer(tokenizer.to_str().encode())
    else:
        loaded.count = lambda text: len(tokenizer(text, truncation=False, verbose=False)["input_ids"])
        loaded.vocabulary_size = len(tokenizer)
    sizes = [weight.numel() for weight in model.parameters()]
    if sizes:  # the ONNX backend has none
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        tables = {each.weight: None for each in model.modules() if isinstance(each, kinds)}
        loaded.parameters = sum(sizes), sum(table.numel() for table in tables)


def _load_sentence_transformer_onnx(path: str, threads: int, **options: Any) -> LoadedSubject:
    """Load a model in sentence-transformers with its ONNX backend, which needs optimum."""
    import onnxruntime

    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    session = {"provider": "CPUExecutionProvider", "session_options": session_options}
    loaded = _load_sentence_transformer(path, threads, backend="onnx", model_kwargs=session, **options)
    loaded.packages.append("optimum-onnx")
    return loaded


def _load_model2vec(path: str, _threads: int) -> LoadedSubject:
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(path)

    def inspect(loaded: LoadedSubject) -> None:
        loaded.count = lambda text: len(model.tokenizer.encode(text, add_special_tokens=False).ids)
        loaded.tokenize = lambda text: model.tokenize(_as_list(text))
        loaded.vocabulary_size = model.tokenizer.get_vocab_size()
        loaded.parameters = int(model.embedding.size), int(model.embedding.size)

    return LoadedSubject(model.encode, ["model2vec"], inspect)


def _load_fastembed(path: str, threads: int) -> LoadedSubject:
    """Load a model of fastembed by its name, or the folder of a bundle."""
    from fastembed import TextEmbedding

    options = _fastembed_folder(path) if os.path.isdir(path) else {"model_name": path}  # noqa: PTH112 - pathlib is not imported yet
    model = TextEmbedding(threads=threads, **options)

    def encode(text: Any) -> Any:
        vectors = list(model.embed(_as_list(text)))
        return vectors[0] if isinstance(text, str) else vectors

    return LoadedSubject(
        encode, ["fastembed"], lambda loaded: loaded.use_tokenizer(model.model.tokenizer.to_str().encode())
    )


def _fastembed_folder(path: str) -> dict[str, Any]:
    import json
    from pathlib import Path

    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    manifest = json.loads(Path(path, "edgeembed.json").read_text(encoding="utf-8"))
    TextEmbedding.add_custom_model(
        model=path,
        pooling=PoolingType.DISABLED,
        normalization=False,
        sources=ModelSource(hf=path),
        dim=manifest["dimension"],
        model_file=manifest["model_file"],
        output_name="sentence_embedding",
    )
    return {"model_name": path, "specific_model_path": path}


def _load_onnx(path: str, threads: int) -> LoadedSubject:
    """Load model.onnx and tokenizer.json of a folder with only onnxruntime and tokenizers.

    If the graph returns only token embeddings, their mean is the embedding of the text.
    """
    from pathlib import Path

    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    names = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
    graphs = [file for file in (Path(path, name) for name in names) if file.is_file()]
    if not graphs:
        raise SystemExit(f"{path} contains no model.onnx; expected one in it or in its folder onnx")
    session = onnxruntime.InferenceSession(graphs[0], options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(path, "tokenizer.json")))
    tokenizer.no_padding()
    inputs = {each.name for each in session.get_inputs()}
    outputs = [each.name for each in session.get_outputs()]
    is_pooled = "sentence_embedding" in outputs

    def tokenize(text: Any) -> Any:
        return [_graph_inputs(tokenizer.encode(each).ids, inputs) for each in _as_list(text)]

    def run(rows: Any) -> Any:
        arrays = [session.run(["sentence_embedding"] if is_pooled else outputs[:1], row)[0][0] for row in rows]
        return arrays if is_pooled else [vectors.mean(axis=0) for vectors in arrays]

    def encode(text: Any) -> Any:
        vectors = run(tokenize(text))
        return vectors[0] if isinstance(text, str) else vectors

    def inspect(loaded: LoadedSubject) -> None:
        loaded.tokenize, loaded.run = tokenize, run
        loaded.use_tokenizer(tokenizer.to_str().encode())

    return LoadedSubject(encode, ["numpy", "onnxruntime", "tokenizers"], inspect)


def _load_function(path: str, _threads: int) -> LoadedSubject:
    """Load `module:function`, which takes a list of texts and returns one embedding per text."""
    module, _, function = path.partition(":")
    embed = getattr(importlib.import_module(module), function)

    def encode(text: Any) -> Any:
        vectors = embed(_as_list(text))
        if not hasattr(vectors, "__getitem__") or len(vectors) != len(_as_list(text)):
            raise SystemExit(f"{path} returned {str(vectors)[:60]!r}; expected one vector per text")
        return vectors[0] if isinstance(text, str) else vectors

    def inspect(loaded: LoadedSubject) -> None:
        file = getattr(sys.modules[module], "__file__", None) or ""
        # Only a module in site-packages has a distribution; the search is slow, since it reads all of them.
        loaded.packages = [_distribution(module) if "-packages" in file else ""]

    return LoadedSubject(encode, [], inspect)


_ADAPTERS = {
    "nothing": _load_nothing,
    "bundle": load_bundle,
    "sentence-transformer": _load_sentence_transformer,
    "sentence-transformer-onnx": _load_sentence_transformer_onnx,
    "model2vec": _load_model2vec,
    "fastembed": _load_fastembed,
    "onnx": _load_onnx,
    "function": _load_function,
}


def _as_list(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else text


def _without_progress(encode: Any) -> Any:
    return lambda text: encode(text, show_progress_bar=False)


def _graph_inputs(ids: list[int], inputs: Any = ("input_ids", "attention_mask")) -> dict[str, Any]:
    import numpy as np

    row = np.array([ids], dtype=np.int64)
    arrays = {"input_ids": row, "attention_mask": np.ones_like(row)}
    return arrays | {"token_type_ids": np.zeros_like(row)} if "token_type_ids" in inputs else arrays


def _distribution(module: str) -> str:
    from importlib.metadata import packages_distributions

    return next(iter(packages_distributions().get(module.partition(".")[0], [])), "")
