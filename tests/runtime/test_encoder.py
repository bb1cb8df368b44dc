"""Encoder: shapes, batch invariance, options and errors."""

import copy
import inspect
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import BundleError, Encoder, InputError, RelevanceRanker, TruncationWarning, UnknownTextWarning
from edgeembed_runtime.encode_options import EncodeOptions
from hypothesis import given, settings
from hypothesis import strategies as st

Make = Callable[..., Path]

_LONG = "cat " * 100


def test_one_text_returns_a_vector_and_many_return_a_matrix(encoder: Encoder) -> None:
    assert encoder.encode("the cat").shape == (8,)
    assert encoder.encode(["the cat"]).shape == (1, 8)
    assert encoder.encode(("the cat", "a dog")).shape == (2, 8)
    assert encoder.encode(np.array(["the cat", "a dog"])).shape == (2, 8)
    assert encoder.encode(text for text in ("the cat", "a dog")).shape == (2, 8)
    assert encoder.encode([]).shape == (0, 8)
    assert encoder.encode([]).dtype == encoder.encode("the cat").dtype == np.float32


def test_encoder_has_the_sizes_of_its_bundle(encoder: Encoder) -> None:
    assert (encoder.dimension, encoder.max_seq_length, encoder.bundle.name) == (8, 32, "tiny")


@pytest.mark.parametrize("text", ["", " ", "\0", "the cat", "中文", "\U0001f600", "[CLS] [PAD]"])
def test_every_text_has_a_normalized_and_reproducible_embedding(encoder: Encoder, text: str) -> None:
    vector = encoder.encode(text, on_unknown="ignore")
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(vector, encoder.encode([text, "dog"], on_unknown="ignore")[0])


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), min_size=1, max_size=6))
def test_embedding_is_batch_invariant(encoder: Encoder, texts: list[str]) -> None:
    together = encoder.encode([*texts, _LONG], on_truncate="ignore", on_unknown="ignore")[:-1]
    alone = np.stack([encoder.encode(text, on_truncate="ignore", on_unknown="ignore") for text in texts])
    assert np.array_equal(together, alone)
    assert np.isfinite(together).all()


def test_embedding_equals_the_graph_computed_by_hand(encoder: Encoder, bundle_path: Path) -> None:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(bundle_path / "onnx" / "model.onnx")).graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    projected = weights["table"][[2, 10, 8, 3]].mean(axis=0) @ weights["head"]  # [CLS] the cat [SEP]
    assert np.allclose(encoder.encode("The cat"), projected / np.linalg.norm(projected), atol=1e-6)


def test_truncated_embedding_is_normalized_again_if_requested(encoder: Encoder) -> None:
    whole = encoder.encode(["the cat", "a dog"])
    cut = encoder.encode(["the cat", "a dog"], truncate_dim=3)
    assert np.allclose(cut, whole[:, :3] / np.linalg.norm(whole[:, :3], axis=1, keepdims=True))
    raw = encoder.encode("the cat", truncate_dim=3, normalize_embeddings=False)
    assert np.array_equal(raw, whole[0, :3])
    assert encoder.encode([], truncate_dim=3).shape == (0, 3)


@pytest.mark.parametrize("dimension", [0, -1, 9, 2.5, True, "3"])
def test_invalid_truncate_dim_raises(encoder: Encoder, dimension: int) -> None:
    with pytest.raises(InputError, match="expected an integer from 1 to 8"):
        encoder.encode("the cat", truncate_dim=dimension)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["the cat", None], "text 1 is NoneType"),
        (["the cat", b"dog"], "text 1 is bytes"),
        ([3], "text 0 is int"),
        (None, "the texts are NoneType"),
        (b"the cat", "the texts are bytes"),
        ({"the cat"}, "the texts are set"),
        ({"the cat": 1}, "the texts are dict"),
        (["the cat", "a\udc80"], r"text 1 contains a lone surrogate \(U\+DC80 at character 1\)"),
    ],
)
def test_non_text_raises_with_its_position_and_type(encoder: Encoder, texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoder.encode(texts)


def test_invalid_options_raise(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="precision is 'int4', expected one of float32, int8"):
        encoder.encode("a", precision="int4")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="on_truncate is 'cut', expected one of warn, error, ignore"):
        encoder.encode("a", on_truncate="cut")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="batch_size is 0"):
        encoder.encode("a", batch_size=0)
    with pytest.raises(InputError, match="prompt_name is 'query', expected None"):
        encoder.encode("a", prompt_name="query")


def test_encode_accepts_the_keywords_of_sentence_transformers(encoder: Encoder) -> None:
    expected = encoder.encode(["the cat"])
    options: dict[str, Any] = {
        "prompt_name": None,
        "prompt": None,
        "batch_size": 8,
        "show_progress_bar": False,
        "output_value": "sentence_embedding",
        "precision": "float32",
        "convert_to_numpy": True,
        "convert_to_tensor": False,
        "device": "cpu",
        "normalize_embeddings": True,
        "truncate_dim": None,
    }
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        assert np.array_equal(encode(sentences=["the cat"], **options), expected)
        assert np.array_equal(encode(["the cat"], output_value=None, device=None), expected)
        with pytest.raises(InputError, match="device is 'cuda', expected None or 'cpu'"):
            encode(["the cat"], device="cuda")
        with pytest.raises(InputError, match="output_value is 'token_embeddings', expected 'sentence_embedding'"):
            encode(["the cat"], output_value="token_embeddings")  # type: ignore[arg-type]


def test_encode_options_are_the_keywords_of_encode() -> None:
    parameters = set(inspect.signature(Encoder.encode).parameters)
    assert parameters - {"self", "sentences", "prompt_type", "return_info"} == set(EncodeOptions.__annotations__)


def test_from_pretrained_loads_a_folder_or_a_built_in_encoder(bundle_path: Path, shipped: Path) -> None:
    encoder = Encoder.from_pretrained(bundle_path, verify=True)
    assert encoder.get_sentence_embedding_dimension() == encoder.dimension == 8
    assert Encoder.from_pretrained(str(bundle_path)).dimension == 8
    assert Encoder.from_pretrained("mini", verify=True).bundle.path == shipped


def test_hub_id_raises_with_the_command_that_downloads_it() -> None:
    for load in (Encoder, Encoder.from_pretrained):
        with pytest.raises(InputError, match=r"hf download acme/small --local-dir FOLDER$"):
            load("acme/small")


def test_long_texts_cause_one_warning_per_call(encoder: Encoder) -> None:
    with pytest.warns(TruncationWarning, match="2 of 3 texts: only the first 32 tokens") as caught:
        encoder.encode([_LONG, "the cat", _LONG])
    assert len(caught) == 1


def test_on_truncate_error_raises_and_ignore_does_not_warn(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="text 1 is too long, expected at most 32 tokens"):
        encoder.encode(["the cat", _LONG], on_truncate="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.encode([_LONG], on_truncate="ignore").shape == (1, 8)


def test_unknown_texts_cause_one_warning_per_call(encoder: Encoder) -> None:
    with pytest.warns(UnknownTextWarning, match="2 of 3 texts: the vocabulary knows almost none") as caught:
        encoder.encode(["中文", "the cat 中", "☃ привет"])
    assert [warning.filename for warning in caught] == [__file__]


def test_long_unknown_texts_cause_both_warnings(encoder: Encoder) -> None:
    with pytest.warns() as caught:
        encoder.encode("中" * 100)
    assert [warning.category for warning in caught] == [TruncationWarning, UnknownTextWarning]


def test_on_unknown_error_raises_and_ignore_does_not_warn(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="text 1: the vocabulary knows almost none of its words, expected a text in"):
        encoder.encode(["the cat", "中文"], on_unknown="error")
    assert encoder.encode(["中文"], on_unknown="ignore").shape == (1, 8)
    with pytest.raises(InputError, match="on_unknown is 'raise', expected one of warn, error, ignore"):
        encoder.encode("a", on_unknown="raise")  # type: ignore[call-overload]


def test_words_of_a_prompt_do_not_make_a_text_known(tmp_path: Path, make_bundle: Make) -> None:
    encoder = Encoder.load(make_bundle(tmp_path / "b", prompts={"query": "read the file: "}))
    with pytest.warns(UnknownTextWarning):
        _, info = encoder.encode("中文", prompt_name="query", return_info=True)
    assert (info.tokens, info.known_share) == (8, 0)


def test_known_share_counts_words_and_parts_of_words(encoder: Encoder) -> None:
    _, infos = encoder.encode(["the cats 中!", "", "☃ 中"], on_unknown="ignore", return_info=True)
    assert [info.known_share for info in infos] == [0.75, 1, 0]


def test_return_info_returns_tokens_truncation_and_unknown_pieces(encoder: Encoder) -> None:
    vector, info = encoder.encode("The cat 中 reads ☃!", return_info=True)
    assert vector.shape == (8,)
    assert (info.tokens, info.truncated, info.unknown) == (9, False, ("中", "☃"))
    vectors, infos = encoder.encode(["the cat", _LONG], return_info=True, on_truncate="ignore")
    assert vectors.shape == (2, 8)
    assert [(info.tokens, info.truncated, info.unknown) for info in infos] == [(4, False, ()), (32, True, ())]
    assert encoder.encode([], return_info=True)[1] == []


def test_prompts_come_from_the_bundle(tmp_path: Path, make_bundle: Make) -> None:
    prompts = {"query": "read ", "passage": "file ", "other": "open "}
    encoder = Encoder.load(make_bundle(tmp_path / "b", prompts=prompts, default_prompt_name="other"))
    plain = Encoder.load(make_bundle(tmp_path / "plain"))
    assert np.array_equal(encoder.encode_query("cat"), plain.encode("read cat"))
    assert np.array_equal(encoder.encode_document("cat"), plain.encode("file cat"))
    assert np.array_equal(encoder.encode("cat"), plain.encode("open cat"))
    assert np.array_equal(encoder.encode("cat", prompt_name="query"), plain.encode("read cat"))
    assert np.array_equal(encoder.encode_query("cat", prompt_name="other"), plain.encode("open cat"))
    assert np.array_equal(encoder.encode_query("cat", prompt=""), plain.encode("cat"))
    with pytest.raises(InputError, match="expected one of query, passage, other"):
        encoder.encode("cat", prompt_name="title")
    with pytest.raises(InputError, match="both prompt and prompt_name"):
        encoder.encode("cat", prompt_name="query", prompt="x")


def test_prompt_type_of_mteb_selects_the_prompt(tmp_path: Path, make_bundle: Make) -> None:
    encoder = Encoder.load(make_bundle(tmp_path / "b", prompts={"query": "read ", "corpus": "file "}))
    plain = Encoder.load(make_bundle(tmp_path / "plain"))
    assert np.array_equal(encoder.encode("cat", prompt_type="query"), plain.encode("read cat"))
    assert np.array_equal(encoder.encode("cat", prompt_type="document"), plain.encode("file cat"))
    assert np.array_equal(plain.encode("cat", prompt_type="document"), plain.encode("cat"))
    with pytest.raises(InputError, match="prompt_type is 'title', expected 'query' or 'document'"):
        encoder.encode("cat", prompt_type="title")


def test_batches_of_mteb_are_one_list_of_texts(encoder: Encoder) -> None:
    batches = [{"text": ["the cat", "a dog"], "id": [1, 2]}, {"text": ["read"]}]
    assert np.array_equal(encoder.encode(batches), encoder.encode(["the cat", "a dog", "read"]))
    with pytest.raises(InputError, match="text 0 is dict"):
        encoder.encode([{"title": ["the cat"]}])


def test_without_prompts_queries_and_documents_are_plain_texts(encoder: Encoder) -> None:
    assert np.array_equal(encoder.encode_query("cat"), encoder.encode("cat"))
    assert np.array_equal(encoder.encode_document(["cat"])[0], encoder.encode("cat"))


def test_similarity_is_the_cosine_of_all_pairs(encoder: Encoder) -> None:
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[4.0, 3.0], [-3.0, -4.0], [3.0, 4.0]])
    matrix = encoder.similarity(a, b)
    assert matrix.dtype == np.float32
    assert np.allclose(matrix, np.array([[0.96, -1, 1], [0, 0, 0]]))
    assert encoder.similarity(a[0], b[0]).shape == (1, 1)
    assert encoder.similarity([[1, 2]], [1, 2])[0, 0] == pytest.approx(1)


def test_similarity_of_other_shapes_raises(encoder: Encoder) -> None:
    with pytest.raises(InputError, match="a has 2 dimensions and b has 3"):
        encoder.similarity(np.ones(2), np.ones(3))
    with pytest.raises(InputError, match="a has shape"):
        encoder.similarity(np.ones((1, 2, 3)), np.ones(3))
    with pytest.raises(InputError, match="b is not an array of vectors"):
        encoder.similarity(np.ones(2), ["x", "y"])


def test_convert_to_tensor_needs_torch_imported_by_the_caller(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(InputError, match="torch is not loaded"):
        encoder.encode("cat", convert_to_tensor=True)


def test_threads_that_share_an_encoder_get_the_serial_embeddings(encoder: Encoder) -> None:
    texts = [f"cat {i} dog {i * 7}" for i in range(50)]
    serial = encoder.encode(texts)
    parallel: dict[int, npt.NDArray[np.float32]] = {}

    def work(number: int) -> None:
        parallel[number] = encoder.encode(texts)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parallel) == 8
    assert all(np.array_equal(serial, vectors) for vectors in parallel.values())


def test_encoder_can_be_pickled_and_copied(encoder: Encoder, shipped: Path) -> None:
    for original in (encoder, Encoder()):
        for again in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):  # noqa: S301 - our own
            assert np.array_equal(again.encode("the cat"), original.encode("the cat"))


def test_embedding_that_is_not_finite_raises(bundle_copy: Path, rewrite_manifest: Make) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(model))
    head = next(tensor for tensor in graph.graph.initializer if tensor.name == "head")
    head.CopyFrom(numpy_helper.from_array(np.full((16, 8), np.nan, dtype=np.float32), "head"))
    onnx.save(graph, str(model))
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match="returns an embedding for text 0 that is not finite or not normalized"):
        Encoder.load(bundle_copy).encode(["cat"])


def test_embedding_that_is_not_normalized_raises(bundle_copy: Path, rewrite_manifest: Make) -> None:
    import onnx

    path = bundle_copy / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    model.graph.node[-1].CopyFrom(onnx.helper.make_node("Identity", ["projected"], ["sentence_embedding"]))
    onnx.save(model, str(path))
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match="returns an embedding for text 0 that is not finite or not normalized"):
        Encoder.load(bundle_copy).encode(["cat cat cat"])


def test_invalid_bundle_or_argument_raises(encoder: Encoder) -> None:
    with pytest.raises(BundleError, match=r"bundle/ is not a folder; expected a bundle"):
        Encoder("bundle/")
    with pytest.raises(InputError, match="the texts are not a list"):
        encoder.encode(np.array("the cat"))
    with pytest.raises(InputError, match="batch_size is None"):
        encoder.encode("a", batch_size=None)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="prompt is int, expected str"):
        encoder.encode("a", prompt=5)  # type: ignore[call-overload]
    with pytest.raises(InputError, match=r"prompt_name is \[\], expected None"):
        encoder.encode("a", prompt_name=[])  # type: ignore[call-overload]
    with pytest.raises(InputError, match="precision is 'int4', expected one of"):
        encoder.similarity([[1, 2]], [[1, 2]], precision="int4")  # type: ignore[arg-type]


def test_warning_points_to_the_line_of_the_caller(encoder: Encoder) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.encode(_LONG)
        encoder.encode_query([_LONG])
        RelevanceRanker(encoder).rank("cat", [_LONG])
    assert [warning.filename for warning in caught] == [__file__] * 3


def test_similarity_of_vectors_of_any_norm_is_finite(encoder: Encoder) -> None:
    vectors = np.array([[3, 4], [4, 3]])
    for scale in (1e-30, 1, 1e30):
        assert encoder.similarity(vectors * scale, vectors * scale)[0] == pytest.approx([1, 0.96])


def test_path_of_another_type_raises_bundle_error() -> None:
    with pytest.raises(BundleError, match="5 is int, expected the path of a bundle's folder"):
        Encoder.load(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("location", ["weights.bin", "../weights.bin", "/etc/hostname"])
def test_weights_in_another_file_raise(bundle_copy: Path, rewrite_manifest: Make, location: str) -> None:
    import onnx

    path = bundle_copy / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    table = next(tensor for tensor in model.graph.initializer if tensor.name == "table")
    (bundle_copy / "onnx" / "weights.bin").write_bytes(table.raw_data)
    (bundle_copy / "weights.bin").write_bytes(table.raw_data)
    table.ClearField("raw_data")
    table.data_location = onnx.TensorProto.EXTERNAL
    table.external_data.add(key="location", value=location)
    path.write_bytes(model.SerializeToString())
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match=r"is not a model: .*External data"):
        Encoder.load(bundle_copy)


def test_tokenizer_of_another_model_raises_when_run(bundle_copy: Path, rewrite_manifest: Make) -> None:
    tokenizer = bundle_copy / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text("utf-8").replace('"cat": 8', '"cat": 5000'), encoding="utf-8")
    tokenizer.write_text(tokenizer.read_text("utf-8").replace('"cat":8', '"cat":5000'), encoding="utf-8")
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match=r"model\.onnx cannot run: ") as caught:
        Encoder.load(bundle_copy).encode("cat")
    assert "\n" not in str(caught.value)
