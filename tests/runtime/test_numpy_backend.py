"""The NumPy backend: embeddings match a slow, simple reference for any number of tokens and any magnitude."""

import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from edgeembed_runtime import BundleError, Encoder
from edgeembed_runtime.backends.numpy import NumpyBackend
from edgeembed_runtime.cmow.packing import byte_values, max_level, pack_codes
from edgeembed_runtime.cmow.safetensors import pack_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

Make = Callable[..., Path]
Tensors = dict[str, npt.NDArray[Any]]

_VOCABULARY, _SIDE, _WIDTH, _RANK, _DIMENSION = 50, 4, 8, 4, 5
_ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "cbow": ("cbow",),
    "forward": ("cmow.forward",),
    "backward": ("cmow.backward",),
    "cmow": ("cmow.forward", "cmow.backward"),
    "one-way hybrid": ("cmow.forward", "cbow"),
    "hybrid": ("cmow.forward", "cmow.backward", "cbow"),
}
_STORAGE_FORMATS = (
    "F32",
    "F16",
    "I8",
    "2 bits",
    "4 bits",
    "factors F32",
    "factors F16",
    "factors I8",
    "factors 2 bits",
)
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 100, 512)


def _tables(names: Sequence[str], storage: str = "F32", seed: int = 0, noise: float = 0.05) -> Tensors:
    """Return embedding tables in a storage format; matrices are near the identity."""
    random = np.random.default_rng(seed)
    tensors: Tensors = {}
    for name in names:
        is_cbow = name == "cbow"
        width = _WIDTH if is_cbow else _SIDE**2
        rows = random.standard_normal((_VOCABULARY, _RANK if "factors" in storage else width))
        slot = "factors" if "factors" in storage else "weight"
        if "factors" in storage:
            basis = random.standard_normal((_RANK, width)) * (1 if is_cbow else noise)
            tensors[f"{name}.basis"] = basis.astype(np.float16 if "F16" in storage else np.float32)
        elif not is_cbow:
            rows *= noise
        tensors[f"{name}.bias"] = (np.zeros(width) if is_cbow else np.eye(_SIDE).ravel()).astype(np.float32)
        if "bits" in storage:
            bits = int(storage.split()[-2])
            scale = np.abs(rows).mean(axis=1)
            codes = np.rint(rows / scale[:, None] + max_level(bits)).clip(0, 2 * max_level(bits))
            tensors[f"{name}.scale"] = scale.astype(np.float32)
            tensors[f"{name}.{slot}"] = pack_codes(codes.astype(np.uint8), bits)
        elif "I8" in storage:
            scale = np.abs(rows).max(axis=1) / 127
            tensors[f"{name}.scale"] = scale.astype(np.float32)
            tensors[f"{name}.{slot}"] = np.rint(rows / scale[:, None]).astype(np.int8)
        else:
            tensors[f"{name}.{slot}"] = rows.astype(np.float16 if "F16" in storage else np.float32)
    return tensors


def _head(width: int, seed: int = 1) -> Tensors:
    random = np.random.default_rng(seed)
    return {
        "head.weight": random.standard_normal((_DIMENSION, width)).astype(np.float32),
        "head.bias": random.standard_normal(_DIMENSION).astype(np.float32),
    }


def _width(names: Sequence[str]) -> int:
    return sum(_WIDTH if name == "cbow" else _SIDE**2 for name in names)


def _metadata(tensors: Tensors, pooling: str = "sum") -> dict[str, str]:
    has_cbow = any(name.startswith("cbow") for name in tensors)
    architecture = "hybrid" if has_cbow else "cmow"
    if not any(name.startswith("cmow") for name in tensors):
        architecture = "cbow"
    metadata = {"format": "edgeembed-matrix", "format_version": "1", "architecture": architecture}
    if bits := _table_bits(tensors):
        metadata["table_bits"] = str(bits)
    return {**metadata, "cbow_pooling": pooling} if has_cbow else metadata


def _table_bits(tensors: Tensors) -> int:
    """Return the bits per value of packed tables, 0 if none is packed."""
    for name, tensor in tensors.items():
        if tensor.dtype == np.uint8:
            table, slot = name.rsplit(".", 1)
            width = _WIDTH if table == "cbow" else _SIDE**2
            return 8 * int(tensor.shape[1]) // (_RANK if slot == "factors" else width)
    return 0


def _load(tensors: Tensors, dimension: int, pooling: str = "sum") -> NumpyBackend:
    return NumpyBackend(pack_tensors(tensors, _metadata(tensors, pooling)), dimension, "model")


def _row(tensors: Tensors, name: str, token: int) -> npt.NDArray[np.float64]:
    """Return the row of a token in float64."""
    slot = "weight" if f"{name}.weight" in tensors else "factors"
    stored = tensors[f"{name}.{slot}"][token]
    if stored.dtype == np.uint8:
        stored = byte_values(_table_bits(tensors))[stored].reshape(-1)
    vector: npt.NDArray[np.float64] = stored.astype(np.float64)
    if f"{name}.scale" in tensors:
        vector = vector * float(tensors[f"{name}.scale"][token])
    if slot == "factors":
        vector = vector @ tensors[f"{name}.basis"].astype(np.float64)
    return vector + tensors[f"{name}.bias"].astype(np.float64) if f"{name}.bias" in tensors else vector


def _reference(tensors: Tensors, ids: Sequence[int], pooling: str = "sum") -> npt.NDArray[np.float64]:
    """Return the embedding by definition: token by token, in float64."""
    present = {name.rpartition(".")[0] for name in tensors}
    parts = []
    for name, order in (("cmow.forward", ids), ("cmow.backward", ids[::-1])):
        if name in present:
            product = np.eye(_SIDE)
            for token in order:
                product = product @ _row(tensors, name, token).reshape(_SIDE, _SIDE)
            parts.append(product.ravel())
    if "cbow" in present:
        total = np.zeros(_WIDTH)
        for token in ids:
            total += _row(tensors, "cbow", token)
        parts.append(total / len(ids) if ids and pooling == "mean" else total)
    vector: npt.NDArray[np.float64] = np.concatenate(parts)
    if "head" in present:
        weight = tensors["head.weight"].astype(np.float64)
        if "head.scale" in tensors:
            weight = weight * tensors["head.scale"][:, None]
        vector = weight @ vector + tensors["head.bias"]
    length = math.sqrt(float(vector @ vector))
    return vector / length if length else vector


def _random_ids(length: int, seed: int = 2) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, _VOCABULARY, length)]


@pytest.mark.parametrize("storage", _STORAGE_FORMATS)
@pytest.mark.parametrize("architecture", _ARCHITECTURES)
def test_embeddings_match_the_reference(architecture: str, storage: str) -> None:
    names = _ARCHITECTURES[architecture]
    tensors = _tables(names, storage)
    with_head = {**tensors, **_head(_width(names))}
    for pooling in ("sum", "mean") if "cbow" in names else ("sum",):
        plain = _load(tensors, _width(names), pooling)
        projected = _load(with_head, _DIMENSION, pooling)
        for length in _LENGTHS:
            ids = _random_ids(length)
            vector = plain.run(ids)
            assert vector.dtype == np.float32
            assert np.abs(vector - _reference(tensors, ids, pooling)).max() < 1e-5
            assert np.abs(projected.run(ids) - _reference(with_head, ids, pooling)).max() < 1e-5


@pytest.mark.parametrize("storage", _STORAGE_FORMATS[5:])
def test_large_low_rank_tables_are_not_multiplied_out(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = _ARCHITECTURES["hybrid"]
    tensors = _tables(names, storage)
    small = _load(tensors, _width(names))
    monkeypatch.setattr("edgeembed_runtime.backends.numpy._MAX_DENSE_BYTES", 2 * 4 * _VOCABULARY * _SIDE**2 - 1)
    large = _load(tensors, _width(names))
    for length in _LENGTHS:
        ids = _random_ids(length)
        assert np.abs(large.run(ids) - _reference(tensors, ids)).max() < 1e-5
        assert np.abs(large.run(ids) - small.run(ids)).max() < 1e-6


@settings(max_examples=200, deadline=None)
@given(
    ids=st.lists(st.integers(0, _VOCABULARY - 1), max_size=80),
    architecture=st.sampled_from(sorted(_ARCHITECTURES)),
    storage=st.sampled_from(_STORAGE_FORMATS),
    seed=st.integers(0, 3),
)
def test_embeddings_match_the_reference_for_any_tokens(
    ids: list[int], architecture: str, storage: str, seed: int
) -> None:
    names = _ARCHITECTURES[architecture]
    tensors = {**_tables(names, storage, seed), **_head(_width(names), seed)}
    assert np.abs(_load(tensors, _DIMENSION).run(ids) - _reference(tensors, ids)).max() < 1e-5


def test_head_may_be_int8_or_float16_and_lack_a_bias() -> None:
    names = _ARCHITECTURES["hybrid"]
    weight = _head(_width(names))["head.weight"]
    scale = (np.abs(weight).max(axis=1) / 127).astype(np.float32)
    codes = np.rint(weight / scale[:, None]).astype(np.int8)
    zero_bias = {"head.bias": np.zeros(_DIMENSION, dtype=np.float16)}
    for stored in ({"head.weight": codes, "head.scale": scale}, {"head.weight": weight.astype(np.float16)}):
        tensors = {**_tables(names), **stored, **zero_bias}
        vector = _load(tensors, _DIMENSION).run(_random_ids(9))
        assert np.abs(vector - _reference(tensors, _random_ids(9))).max() < 1e-5
        del tensors["head.bias"]
        assert np.array_equal(vector, _load(tensors, _DIMENSION).run(_random_ids(9)))


def test_word_order_changes_cmow_but_not_cbow() -> None:
    for name, matters in (("cmow.forward", True), ("cmow.backward", True), ("cbow", False)):
        backend = _load(_tables([name]), _width([name]))
        difference = np.abs(backend.run([1, 2, 3, 4]) - backend.run([1, 3, 2, 4])).max()
        assert (difference > 1e-3) == matters


def test_backward_equals_forward_of_the_reversed_text() -> None:
    tensors = _tables(["cmow.forward"])
    reversed_tensors = {name.replace("forward", "backward"): tensor for name, tensor in tensors.items()}
    ids = _random_ids(21)
    assert np.array_equal(_load(reversed_tensors, 16).run(ids), _load(tensors, 16).run(ids[::-1]))


def test_no_tokens_return_the_identity_and_zeros() -> None:
    identity = np.eye(_SIDE).ravel() / 2
    assert np.allclose(_load(_tables(["cmow.forward"]), 16).run([]), identity)
    assert np.allclose(_load(_tables(_ARCHITECTURES["one-way hybrid"]), 24).run([]), [*identity, *np.zeros(_WIDTH)])
    for pooling in ("sum", "mean"):
        assert np.array_equal(_load(_tables(["cbow"]), _WIDTH, pooling).run([]), np.zeros(_WIDTH, dtype=np.float32))


def _scaled_tables(factor: float, names: Sequence[str] = ("cmow.forward", "cmow.backward"), seed: int = 0) -> Tensors:
    """Return tables whose matrices are a factor times a matrix near the identity."""
    return {name: tensor * np.float32(factor) for name, tensor in _tables(names, seed=seed).items()}


@pytest.mark.parametrize("length", [60, 2_000, 4_099])
@pytest.mark.parametrize("factor", [1e-20, 1e-3, 0.5, 1, 2, 1e3, 1e18])
def test_products_outside_the_range_of_float32_have_the_right_direction(factor: float, length: int) -> None:
    ids = _random_ids(length)
    vector = _load(_scaled_tables(factor, ["cmow.forward"]), 16).run(ids)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    product = np.eye(_SIDE)
    tensors = _tables(["cmow.forward"])
    for token in ids:  # the factor does not change the direction
        product = product @ _row(tensors, "cmow.forward", token).reshape(_SIDE, _SIDE)
        product /= np.linalg.norm(product)
    assert np.abs(vector - product.ravel()).max() < 1e-4


def test_growth_that_later_tokens_undo_keeps_its_precision() -> None:
    random = np.random.default_rng(0)
    rows = np.stack([(np.eye(_SIDE) + 0.05 * random.standard_normal((_SIDE, _SIDE))).ravel() for _ in range(3)])
    rows *= np.array([[2.0**20], [2.0**-20], [1]])
    tensors = {"cmow.forward.weight": rows.astype(np.float32), "cbow.weight": np.ones((3, 2), dtype=np.float32)}
    ids = [0] * 40 + [1] * 40  # 2**800, and back to 1
    expected = _reference({**tensors, "cbow.weight": np.ones((3, _WIDTH), dtype=np.float32)}, ids)
    vector = _load(tensors, 18).run(ids)
    assert vector[:16] @ expected[:16] / np.linalg.norm(vector[:16]) / np.linalg.norm(expected[:16]) > 1 - 1e-8
    assert np.linalg.norm(vector[:16]) / vector[16] == pytest.approx(np.linalg.norm(expected[:16]) / expected[16])


def test_parts_of_different_magnitude_keep_their_proportion() -> None:
    names = ("cmow.forward", "cmow.backward", "cbow")
    ids = _random_ids(300)

    def vector(forward: float, backward: float, with_head: bool) -> npt.NDArray[np.float32]:
        tensors = {
            **_scaled_tables(forward, ["cmow.forward"]),
            **_scaled_tables(backward, ["cmow.backward"], seed=1),
            **_tables(["cbow"]),
            **(_head(_width(names)) if with_head else {}),
        }
        return _load(tensors, _DIMENSION if with_head else _width(names)).run(ids)

    large_forward = vector(4, 2, with_head=False)
    assert np.linalg.norm(large_forward[:16]) == pytest.approx(1)
    assert not large_forward[16:].any()
    shrunk = vector(0.1, 0.1, with_head=False)
    assert not shrunk[:32].any()
    assert np.linalg.norm(shrunk[32:]) == pytest.approx(1)
    # With a product of 10**-300, only the sum and the bias remain; with one of 10**180, only that product.
    tensors = {**_tables(["cbow"]), **_head(_width(names))}
    total = np.sum([_row(tensors, "cbow", token) for token in ids], axis=0)
    expected = tensors["head.weight"][:, 32:] @ total + tensors["head.bias"]
    assert np.allclose(vector(0.1, 0.1, with_head=True), expected / np.linalg.norm(expected), atol=1e-5)
    expected = tensors["head.weight"][:, :16] @ large_forward[:16]
    assert np.allclose(vector(4, 2, with_head=True), expected / np.linalg.norm(expected), atol=1e-5)


def test_parts_that_shrink_equally_keep_their_direction() -> None:
    ids = _random_ids(256)
    vector = _load(_scaled_tables(2**-8), 32).run(ids)
    assert np.allclose(vector, _reference(_tables(("cmow.forward", "cmow.backward")), ids), atol=1e-5)


def test_product_of_zero_matrices_is_zero() -> None:
    tensors = {"cmow.forward.weight": np.zeros((3, 16), dtype=np.float32)}
    assert not _load(tensors, 16).run([0, 1, 2] * 50).any()


def test_token_outside_the_vocabulary_raises_with_its_id() -> None:
    backend = _load(_tables(["cbow"]), _WIDTH)
    for token in (-1, _VOCABULARY, 2**70):
        with pytest.raises(BundleError, match=f"model has no row for token {token}, expected 0 to 49"):
            backend.run([1, token])


def test_threads_that_share_a_backend_get_the_serial_embeddings() -> None:
    names = _ARCHITECTURES["hybrid"]
    backend = _load({**_tables(names), **_head(_width(names))}, _DIMENSION)
    texts = [_random_ids(length, length) for length in range(200)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(backend.run, texts))
    assert all(np.array_equal(a, backend.run(ids)) for a, ids in zip(together, texts, strict=True))


def test_tables_are_views_of_the_file_content() -> None:
    for storage, slot in (("I8", "weight"), ("F16", "weight"), ("factors I8", "factors")):
        tensors = _tables(["cbow"], storage)
        content = pack_tensors(tensors, _metadata(tensors))
        codes = NumpyBackend(content, _WIDTH, "model")._cbow.codes  # type: ignore[union-attr]
        assert codes.dtype == tensors[f"cbow.{slot}"].dtype
        assert np.shares_memory(codes, np.frombuffer(content, dtype=np.uint8))


def _hybrid_tensors(**tensors: npt.NDArray[Any] | None) -> Tensors:
    """Return the tensors of a hybrid model, with some of them replaced, or left out if None."""
    names = _ARCHITECTURES["hybrid"]
    tensors_by_name = {
        **_tables(names),
        **_head(_width(names)),
        **{n.replace("__", "."): t for n, t in tensors.items()},
    }
    return {name: tensor for name, tensor in tensors_by_name.items() if tensor is not None}


def _zeros(*shape: int, dtype: Any = np.float32) -> npt.NDArray[Any]:
    return np.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (_hybrid_tensors(other=_zeros(1)), "has the unknown tensor 'other'"),
        (_hybrid_tensors(cbow__scale=_zeros(50)), "has the unknown tensor 'cbow.scale'"),
        (_hybrid_tensors(cbow__basis=_zeros(4, 8)), "has the unknown tensor 'cbow.basis'"),
        (_hybrid_tensors(head__weight=None), "has the unknown tensor 'head.bias'"),
        (_hybrid_tensors(cbow__weight=_zeros(50, 8, dtype=np.int8)), "has no tensor 'cbow.scale'"),
        (_hybrid_tensors(cbow__weight=None, cbow__factors=_zeros(50, 2)), "has no tensor 'cbow.basis'"),
        (_hybrid_tensors(cbow__weight=_zeros(50)), r"'cbow.weight' has shape \(50,\), expected \(any, any\)"),
        (_hybrid_tensors(cbow__weight=_zeros(0, 8)), r"'cbow.weight' has shape \(0, 8\)"),
        (_hybrid_tensors(cbow__bias=_zeros(7)), r"'cbow.bias' has shape \(7,\), expected \(8\)"),
        (_hybrid_tensors(cbow__bias=_zeros(8, dtype=np.int8)), "'cbow.bias' is int8, expected float32 or float16"),
        (_hybrid_tensors(cbow__weight=_zeros(49, 8)), "tables of different vocabulary sizes"),
        (_hybrid_tensors(cmow__forward__weight=_zeros(50, 15), cmow__forward__bias=None), r"matrices of \[15, 16\]"),
        (_hybrid_tensors(cmow__forward__weight=_zeros(50, 9), cmow__forward__bias=None), r"matrices of \[9, 16\]"),
        (
            _hybrid_tensors(cbow__weight=_zeros(50, 2**16 + 1), cbow__bias=None),
            "rows of width 65537, expected at most 65536",
        ),
        (_hybrid_tensors(head__weight=_zeros(5, 39)), "a head of input dimension 39, expected 40"),
        (_hybrid_tensors(head__weight=_zeros(4, 40), head__bias=None), "returns embeddings of dimension 4, expected 5"),
        (_hybrid_tensors(head__weight=None, head__bias=None), "returns embeddings of dimension 40, expected 5"),
        (_hybrid_tensors(head__bias=_zeros(4)), r"'head.bias' has shape \(4,\), expected \(5\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_inconsistent_tensors_raise_with_their_names(tensors: Tensors, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        _load(tensors, _DIMENSION)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "pt"}, "its format is not 'edgeembed-matrix'"),
        ({"format_version": "2"}, "format version '2', expected '1'; upgrade"),
        ({"architecture": "cmow"}, "is 'cmow' but does not contain the tables of that architecture"),
        ({"architecture": "elmo"}, "'architecture' is 'elmo', expected one of cmow, cbow, hybrid"),
        ({"cbow_pooling": "max"}, "'cbow_pooling' is 'max', expected one of sum, mean"),
    ],
)
def test_unknown_metadata_values_raise(change: dict[str, str], message: str) -> None:
    tensors = _hybrid_tensors()
    with pytest.raises(BundleError, match=message):
        NumpyBackend(pack_tensors(tensors, {**_metadata(tensors), **change}), _DIMENSION, "model")


def test_file_without_tables_raises() -> None:
    metadata = {"format": "edgeembed-matrix", "format_version": "1", "architecture": "cmow"}
    with pytest.raises(BundleError, match="does not contain the tables"):
        NumpyBackend(pack_tensors({}, metadata), _DIMENSION, "model")


@settings(max_examples=200, deadline=None)
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_mutated_file_raises_or_returns_embeddings(changes: list[tuple[float, int]]) -> None:
    tensors = _hybrid_tensors()
    content = bytearray(pack_tensors(tensors, _metadata(tensors)))
    header = 8 + int.from_bytes(content[:8], "little")
    for place, byte in changes:
        content[int(place * (header - 1))] = byte
    try:
        vector = NumpyBackend(bytes(content), _DIMENSION, "model").run(_random_ids(9))
    except BundleError:
        return
    assert vector.shape == (_DIMENSION,)


@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38, 1e-45])
def test_weights_of_any_value_cause_no_warning(value: float) -> None:
    tensors = {name: np.full_like(tensor, value) for name, tensor in _hybrid_tensors().items()}
    assert _load(tensors, _DIMENSION).run(_random_ids(40)).shape == (_DIMENSION,)


def test_encoder_raises_if_an_embedding_is_not_finite(tmp_path: Path, make_numpy_bundle: Make) -> None:
    broken = {"cbow.weight": np.full((200, 8), math.nan, dtype=np.float32)}
    encoder = Encoder.load(make_numpy_bundle(tmp_path / "b", model=pack_tensors(broken, _metadata(broken))))
    with pytest.raises(BundleError, match="not finite or not normalized"):
        encoder.encode(["the cat"])


_TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def numpy_encoder(tmp_path_factory: pytest.TempPathFactory, make_numpy_bundle: Make) -> Encoder:
    return Encoder.load(make_numpy_bundle(tmp_path_factory.mktemp("numpy") / "tiny"))


@settings(max_examples=100, deadline=None)
@given(texts=_TEXTS)
def test_embedding_is_batch_invariant(numpy_encoder: Encoder, texts: list[str]) -> None:
    together = numpy_encoder.encode([*texts, "cat " * 100], on_truncate="ignore", on_unknown="ignore")[:-1]
    alone = np.stack([numpy_encoder.encode(text, on_truncate="ignore", on_unknown="ignore") for text in texts])
    assert np.array_equal(together, alone)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_encoder_distinguishes_word_order(numpy_encoder: Encoder) -> None:
    assert float(numpy_encoder.similarity(*numpy_encoder.encode(["cat read dog", "dog read cat"]))[0, 0]) < 0.999


def test_model_of_another_dimension_raises_with_the_file_name(tmp_path: Path, make_numpy_bundle: Make) -> None:
    path = make_numpy_bundle(tmp_path / "b", dimension=7)
    with pytest.raises(BundleError, match=r"model\.safetensors returns embeddings of dimension 8, expected 7"):
        Encoder.load(path)


def test_numpy_bundle_does_not_need_onnxruntime(tmp_path: Path, make_numpy_bundle: Make) -> None:
    path = make_numpy_bundle(tmp_path / "b")
    script = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "from edgeembed_runtime import Encoder, RelevanceRanker\n"
        f"encoder = Encoder.load({str(path)!r}, verify=True)\n"
        "hits = RelevanceRanker(encoder).rank('the cat', ['a dog', 'the cat'])\n"
        "print(hits[0].text)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the cat\n"), done.stderr


def test_example_of_the_tensor_file_page_loads() -> None:
    page = Path(__file__).parents[2] / "docs" / "tensor-file.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of the wheel")
    example = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 - our own page
    vector = NumpyBackend(names["content"], 6, "model").run([1, 2, 999])
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_codes_of_a_byte_start_at_the_lowest_bits() -> None:
    codes = np.array([[1, 0, 3, 2, 0, 0, 0, 3]], dtype=np.uint8)
    packed = pack_codes(codes, 2)
    assert packed.tolist() == [[0b10_11_00_01, 0b11_00_00_00]]
    assert byte_values(2)[packed].ravel().tolist() == [-0.5, -1.5, 1.5, 0.5, -1.5, -1.5, -1.5, 1.5]
    assert byte_values(4)[0xF0].tolist() == [-7.5, 7.5]


@pytest.mark.parametrize(
    ("bits", "message"),
    [(None, "is uint8, expected float32 or float16 or int8"), ("3", "'table_bits' is '3', expected one of 2, 4")],
)
def test_packed_table_without_its_bits_is_an_error(bits: str | None, message: str) -> None:
    tensors = _tables(["cbow"], "2 bits")
    metadata = _metadata(tensors)
    del metadata["table_bits"]
    content = pack_tensors(tensors, metadata if bits is None else {**metadata, "table_bits": bits})
    with pytest.raises(BundleError, match=message):
        NumpyBackend(content, _WIDTH, "model")


def test_head_is_not_packed() -> None:
    tensors = {**_tables(["cbow"], "2 bits"), "head.weight": np.zeros((_DIMENSION, 2), dtype=np.uint8)}
    with pytest.raises(BundleError, match=r"'head.weight' is uint8"):
        _load(tensors, _DIMENSION)
