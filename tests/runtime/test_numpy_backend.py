"""Matrix students in NumPy: the vectors of a slow and obvious reference, at any length and of any size."""

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
from edgeembed_runtime.cmow.safetensors import pack_tensors
from hypothesis import given, settings
from hypothesis import strategies as st

Make = Callable[..., Path]
Tensors = dict[str, npt.NDArray[Any]]

_VOCABULARY, _SIDE, _WIDTH, _RANK, _DIMENSION = 50, 4, 6, 3, 5
_STUDENTS: dict[str, tuple[str, ...]] = {
    "cbow": ("cbow",),
    "forward": ("cmow.forward",),
    "backward": ("cmow.backward",),
    "cmow": ("cmow.forward", "cmow.backward"),
    "one-way hybrid": ("cmow.forward", "cbow"),
    "hybrid": ("cmow.forward", "cmow.backward", "cbow"),
}
_KINDS = ("F32", "F16", "I8", "factors F32", "factors F16", "factors I8")
_LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 100, 512)


def tables(names: Sequence[str], kind: str = "F32", seed: int = 0, noise: float = 0.05) -> Tensors:
    """Give tables in one of the kinds of storage; matrices are near the identity."""
    random = np.random.default_rng(seed)
    tensors: Tensors = {}
    for name in names:
        is_cbow = name == "cbow"
        width = _WIDTH if is_cbow else _SIDE**2
        rows = random.standard_normal((_VOCABULARY, _RANK if "factors" in kind else width))
        slot = "factors" if "factors" in kind else "weight"
        if "factors" in kind:
            basis = random.standard_normal((_RANK, width)) * (1 if is_cbow else noise)
            tensors[f"{name}.basis"] = basis.astype(np.float16 if "F16" in kind else np.float32)
        elif not is_cbow:
            rows *= noise
        tensors[f"{name}.bias"] = (np.zeros(width) if is_cbow else np.eye(_SIDE).ravel()).astype(np.float32)
        if "I8" in kind:
            scale = np.abs(rows).max(axis=1) / 127
            tensors[f"{name}.scale"] = scale.astype(np.float32)
            tensors[f"{name}.{slot}"] = np.rint(rows / scale[:, None]).astype(np.int8)
        else:
            tensors[f"{name}.{slot}"] = rows.astype(np.float16 if "F16" in kind else np.float32)
    return tensors


def head(width: int, seed: int = 1) -> Tensors:
    random = np.random.default_rng(seed)
    return {
        "head.weight": random.standard_normal((_DIMENSION, width)).astype(np.float32),
        "head.bias": random.standard_normal(_DIMENSION).astype(np.float32),
    }


def width_of(names: Sequence[str]) -> int:
    return sum(_WIDTH if name == "cbow" else _SIDE**2 for name in names)


def described(tensors: Tensors, pooling: str = "sum") -> dict[str, str]:
    has_cbow = any(name.startswith("cbow") for name in tensors)
    architecture = "hybrid" if has_cbow else "cmow"
    if not any(name.startswith("cmow") for name in tensors):
        architecture = "cbow"
    found = {"format": "edgeembed-matrix", "format_version": "1", "architecture": architecture}
    return {**found, "cbow_pooling": pooling} if has_cbow else found


def load(tensors: Tensors, dimension: int, pooling: str = "sum") -> NumpyBackend:
    return NumpyBackend(pack_tensors(tensors, described(tensors, pooling)), dimension, "model")


def row(tensors: Tensors, name: str, token: int) -> npt.NDArray[np.float64]:
    """One token's row, in float64."""
    slot = "weight" if f"{name}.weight" in tensors else "factors"
    found: npt.NDArray[np.float64] = tensors[f"{name}.{slot}"][token].astype(np.float64)
    if f"{name}.scale" in tensors:
        found = found * float(tensors[f"{name}.scale"][token])
    if slot == "factors":
        found = found @ tensors[f"{name}.basis"].astype(np.float64)
    return found + tensors[f"{name}.bias"].astype(np.float64) if f"{name}.bias" in tensors else found


def reference(tensors: Tensors, ids: Sequence[int], pooling: str = "sum") -> npt.NDArray[np.float64]:
    """The definition, token by token, in float64."""
    held = {name.rpartition(".")[0] for name in tensors}
    parts = []
    for name, order in (("cmow.forward", ids), ("cmow.backward", ids[::-1])):
        if name in held:
            product = np.eye(_SIDE)
            for token in order:
                product = product @ row(tensors, name, token).reshape(_SIDE, _SIDE)
            parts.append(product.ravel())
    if "cbow" in held:
        total = np.zeros(_WIDTH)
        for token in ids:
            total += row(tensors, "cbow", token)
        parts.append(total / len(ids) if ids and pooling == "mean" else total)
    vector: npt.NDArray[np.float64] = np.concatenate(parts)
    if "head" in held:
        weight = tensors["head.weight"].astype(np.float64)
        if "head.scale" in tensors:
            weight = weight * tensors["head.scale"][:, None]
        vector = weight @ vector + tensors["head.bias"]
    length = math.sqrt(float(vector @ vector))
    return vector / length if length else vector


def some_ids(length: int, seed: int = 2) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(0, _VOCABULARY, length)]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("student", _STUDENTS)
def test_vectors_are_those_of_the_definition(student: str, kind: str) -> None:
    names = _STUDENTS[student]
    tensors = tables(names, kind)
    with_head = {**tensors, **head(width_of(names))}
    for pooling in ("sum", "mean") if "cbow" in names else ("sum",):
        plain = load(tensors, width_of(names), pooling)
        projected = load(with_head, _DIMENSION, pooling)
        for length in _LENGTHS:
            ids = some_ids(length)
            vector = plain.embed(ids)
            assert vector.dtype == np.float32
            assert np.abs(vector - reference(tensors, ids, pooling)).max() < 1e-5
            assert np.abs(projected.embed(ids) - reference(with_head, ids, pooling)).max() < 1e-5


@pytest.mark.parametrize("kind", _KINDS[3:])
def test_large_tables_of_low_rank_stay_as_they_are(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = _STUDENTS["hybrid"]
    tensors = tables(names, kind)
    small = load(tensors, width_of(names))
    monkeypatch.setattr("edgeembed_runtime.backends.numpy._MAX_DENSE_BYTES", 2 * 4 * _VOCABULARY * _SIDE**2 - 1)
    large = load(tensors, width_of(names))
    for length in _LENGTHS:
        ids = some_ids(length)
        assert np.abs(large.embed(ids) - reference(tensors, ids)).max() < 1e-5
        assert np.abs(large.embed(ids) - small.embed(ids)).max() < 1e-6


@settings(max_examples=200, deadline=None)
@given(
    ids=st.lists(st.integers(0, _VOCABULARY - 1), max_size=80),
    student=st.sampled_from(sorted(_STUDENTS)),
    kind=st.sampled_from(_KINDS),
    seed=st.integers(0, 3),
)
def test_vectors_are_those_of_the_definition_for_any_tokens(ids: list[int], student: str, kind: str, seed: int) -> None:
    names = _STUDENTS[student]
    tensors = {**tables(names, kind, seed), **head(width_of(names), seed)}
    assert np.abs(load(tensors, _DIMENSION).embed(ids) - reference(tensors, ids)).max() < 1e-5


def test_a_head_may_be_of_int8_or_float16_and_without_a_bias() -> None:
    names = _STUDENTS["hybrid"]
    weight = head(width_of(names))["head.weight"]
    scale = (np.abs(weight).max(axis=1) / 127).astype(np.float32)
    codes = np.rint(weight / scale[:, None]).astype(np.int8)
    zeros = {"head.bias": np.zeros(_DIMENSION, dtype=np.float16)}
    for stored in ({"head.weight": codes, "head.scale": scale}, {"head.weight": weight.astype(np.float16)}):
        tensors = {**tables(names), **stored, **zeros}
        vector = load(tensors, _DIMENSION).embed(some_ids(9))
        assert np.abs(vector - reference(tensors, some_ids(9))).max() < 1e-5
        del tensors["head.bias"]
        assert np.array_equal(vector, load(tensors, _DIMENSION).embed(some_ids(9)))


def test_order_matters_to_cmow_and_not_to_cbow() -> None:
    for name, matters in (("cmow.forward", True), ("cmow.backward", True), ("cbow", False)):
        backend = load(tables([name]), width_of([name]))
        difference = np.abs(backend.embed([1, 2, 3, 4]) - backend.embed([1, 3, 2, 4])).max()
        assert (difference > 1e-3) == matters


def test_backward_is_forward_of_the_reversed_text() -> None:
    tensors = tables(["cmow.forward"])
    turned = {name.replace("forward", "backward"): tensor for name, tensor in tensors.items()}
    ids = some_ids(21)
    assert np.array_equal(load(turned, 16).embed(ids), load(tensors, 16).embed(ids[::-1]))


def test_no_tokens_give_the_identity_and_zeros() -> None:
    identity = np.eye(_SIDE).ravel() / 2
    assert np.allclose(load(tables(["cmow.forward"]), 16).embed([]), identity)
    assert np.allclose(load(tables(_STUDENTS["one-way hybrid"]), 22).embed([]), [*identity, *np.zeros(_WIDTH)])
    for pooling in ("sum", "mean"):
        assert np.array_equal(load(tables(["cbow"]), _WIDTH, pooling).embed([]), np.zeros(_WIDTH, dtype=np.float32))


def scaled(factor: float, names: Sequence[str] = ("cmow.forward", "cmow.backward"), seed: int = 0) -> Tensors:
    """Give tables whose matrices are a factor times something near the identity."""
    return {name: tensor * np.float32(factor) for name, tensor in tables(names, seed=seed).items()}


@pytest.mark.parametrize("length", [60, 2_000, 4_099])
@pytest.mark.parametrize("factor", [1e-20, 1e-3, 0.5, 1, 2, 1e3, 1e18])
def test_products_that_float32_cannot_hold_have_the_direction_they_should(factor: float, length: int) -> None:
    ids = some_ids(length)
    vector = load(scaled(factor, ["cmow.forward"]), 16).embed(ids)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    product = np.eye(_SIDE)
    tensors = tables(["cmow.forward"])
    for token in ids:  # the factor has no part in the direction
        product = product @ row(tensors, "cmow.forward", token).reshape(_SIDE, _SIDE)
        product /= np.linalg.norm(product)
    assert np.abs(vector - product.ravel()).max() < 1e-4


def test_growth_that_later_tokens_take_back_is_not_lost() -> None:
    random = np.random.default_rng(0)
    rows = np.stack([(np.eye(_SIDE) + 0.05 * random.standard_normal((_SIDE, _SIDE))).ravel() for _ in range(3)])
    rows *= np.array([[2.0**20], [2.0**-20], [1]])
    tensors = {"cmow.forward.weight": rows.astype(np.float32), "cbow.weight": np.ones((3, 2), dtype=np.float32)}
    ids = [0] * 40 + [1] * 40  # 2**800, and back to 1
    expected = reference({**tensors, "cbow.weight": np.ones((3, _WIDTH), dtype=np.float32)}, ids)
    vector = load(tensors, 18).embed(ids)
    assert vector[:16] @ expected[:16] / np.linalg.norm(vector[:16]) / np.linalg.norm(expected[:16]) > 1 - 1e-8
    assert np.linalg.norm(vector[:16]) / vector[16] == pytest.approx(np.linalg.norm(expected[:16]) / expected[16])


def test_parts_of_unlike_size_keep_their_proportion() -> None:
    names = ("cmow.forward", "cmow.backward", "cbow")
    ids = some_ids(300)

    def vector(forward: float, backward: float, with_head: bool) -> npt.NDArray[np.float32]:
        tensors = {
            **scaled(forward, ["cmow.forward"]),
            **scaled(backward, ["cmow.backward"], seed=1),
            **tables(["cbow"]),
            **(head(width_of(names)) if with_head else {}),
        }
        return load(tensors, _DIMENSION if with_head else width_of(names)).embed(ids)

    huge_forward = vector(4, 2, with_head=False)
    assert np.linalg.norm(huge_forward[:16]) == pytest.approx(1)
    assert not huge_forward[16:].any()
    vanished = vector(0.1, 0.1, with_head=False)
    assert not vanished[:32].any()
    assert np.linalg.norm(vanished[32:]) == pytest.approx(1)
    # Beside a product of 10**-300, a head sees the sum and its bias alone; beside one of 10**180, that alone.
    tensors = {**tables(["cbow"]), **head(width_of(names))}
    total = np.sum([row(tensors, "cbow", token) for token in ids], axis=0)
    seen = tensors["head.weight"][:, 32:] @ total + tensors["head.bias"]
    assert np.allclose(vector(0.1, 0.1, with_head=True), seen / np.linalg.norm(seen), atol=1e-5)
    seen = tensors["head.weight"][:, :16] @ huge_forward[:16]
    assert np.allclose(vector(4, 2, with_head=True), seen / np.linalg.norm(seen), atol=1e-5)


def test_parts_that_all_vanish_alike_keep_their_direction() -> None:
    ids = some_ids(256)
    vector = load(scaled(2**-8), 32).embed(ids)
    assert np.allclose(vector, reference(tables(("cmow.forward", "cmow.backward")), ids), atol=1e-5)


def test_a_product_of_zeros_is_zero() -> None:
    zeros = {"cmow.forward.weight": np.zeros((3, 16), dtype=np.float32)}
    assert not load(zeros, 16).embed([0, 1, 2] * 50).any()


def test_tokens_without_a_row_are_named() -> None:
    backend = load(tables(["cbow"]), _WIDTH)
    for token in (-1, _VOCABULARY, 2**70):
        with pytest.raises(BundleError, match=f"model has no row for token {token}, expected 0 to 49"):
            backend.embed([1, token])


def test_threads_that_share_a_backend_give_the_serial_vectors() -> None:
    names = _STUDENTS["hybrid"]
    backend = load({**tables(names), **head(width_of(names))}, _DIMENSION)
    texts = [some_ids(length, length) for length in range(200)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(backend.embed, texts))
    assert all(np.array_equal(a, backend.embed(ids)) for a, ids in zip(together, texts, strict=True))


def test_tables_stay_in_the_bytes_that_were_given() -> None:
    for kind, slot in (("I8", "weight"), ("F16", "weight"), ("factors I8", "factors")):
        tensors = tables(["cbow"], kind)
        content = pack_tensors(tensors, described(tensors))
        codes = NumpyBackend(content, _WIDTH, "model")._cbow.codes  # type: ignore[union-attr]
        assert codes.dtype == tensors[f"cbow.{slot}"].dtype
        assert np.shares_memory(codes, np.frombuffer(content, dtype=np.uint8))


def changed(**tensors: npt.NDArray[Any] | None) -> Tensors:
    """Give a hybrid's tensors with some of them replaced or, where None is given, left out."""
    names = _STUDENTS["hybrid"]
    found = {**tables(names), **head(width_of(names)), **{n.replace("__", "."): t for n, t in tensors.items()}}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def zeros(*shape: int, dtype: Any = np.float32) -> npt.NDArray[Any]:
    return np.zeros(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (changed(other=zeros(1)), "has the unknown tensor 'other'"),
        (changed(cbow__scale=zeros(50)), "has the unknown tensor 'cbow.scale'"),
        (changed(cbow__basis=zeros(3, 6)), "has the unknown tensor 'cbow.basis'"),
        (changed(head__weight=None), "has the unknown tensor 'head.bias'"),
        (changed(cbow__weight=zeros(50, 6, dtype=np.int8)), "has no tensor 'cbow.scale'"),
        (changed(cbow__weight=None, cbow__factors=zeros(50, 2)), "has no tensor 'cbow.basis'"),
        (changed(cbow__weight=zeros(50)), r"'cbow.weight' has shape \(50,\), expected \(any, any\)"),
        (changed(cbow__weight=zeros(0, 6)), r"'cbow.weight' has shape \(0, 6\)"),
        (changed(cbow__bias=zeros(7)), r"'cbow.bias' has shape \(7,\), expected \(6\)"),
        (changed(cbow__bias=zeros(6, dtype=np.int8)), "'cbow.bias' is int8, expected float32 or float16"),
        (changed(cbow__weight=zeros(49, 6)), "tables of different vocabulary sizes"),
        (changed(cmow__forward__weight=zeros(50, 15), cmow__forward__bias=None), r"matrices of \[15, 16\]"),
        (changed(cmow__forward__weight=zeros(50, 9), cmow__forward__bias=None), r"matrices of \[9, 16\]"),
        (changed(cbow__weight=zeros(50, 2**16 + 1), cbow__bias=None), "rows of width 65537, expected at most 65536"),
        (changed(head__weight=zeros(5, 37)), "a head of input dimension 37, expected 38"),
        (changed(head__weight=zeros(4, 38), head__bias=None), "returns embeddings of dimension 4, expected 5"),
        (changed(head__weight=None, head__bias=None), "returns embeddings of dimension 38, expected 5"),
        (changed(head__bias=zeros(4)), r"'head.bias' has shape \(4,\), expected \(5\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_tensors_that_do_not_fit_are_named(tensors: Tensors, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        load(tensors, _DIMENSION)
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
def test_settings_that_are_not_known_are_named(change: dict[str, str], message: str) -> None:
    tensors = changed()
    with pytest.raises(BundleError, match=message):
        NumpyBackend(pack_tensors(tensors, {**described(tensors), **change}), _DIMENSION, "model")


def test_a_file_without_tables_is_refused() -> None:
    described_as = {"format": "edgeembed-matrix", "format_version": "1", "architecture": "cmow"}
    with pytest.raises(BundleError, match="does not contain the tables"):
        NumpyBackend(pack_tensors({}, described_as), _DIMENSION, "model")


@settings(max_examples=200, deadline=None)
@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_mutated_file_is_refused_or_gives_vectors(changes: list[tuple[float, int]]) -> None:
    tensors = changed()
    content = bytearray(pack_tensors(tensors, described(tensors)))
    header = 8 + int.from_bytes(content[:8], "little")
    for place, byte in changes:
        content[int(place * (header - 1))] = byte
    try:
        vector = NumpyBackend(bytes(content), _DIMENSION, "model").embed(some_ids(9))
    except BundleError:
        return
    assert vector.shape == (_DIMENSION,)


@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38, 1e-45])
def test_weights_of_any_value_give_no_warning(value: float) -> None:
    tensors = {name: np.full_like(tensor, value) for name, tensor in changed().items()}
    assert load(tensors, _DIMENSION).embed(some_ids(40)).shape == (_DIMENSION,)


def test_an_encoder_names_a_text_without_a_finite_vector(tmp_path: Path, make_numpy_bundle: Make) -> None:
    broken = {"cbow.weight": np.full((200, 8), math.nan, dtype=np.float32)}
    encoder = Encoder.load(make_numpy_bundle(tmp_path / "b", model=pack_tensors(broken, described(broken))))
    with pytest.raises(BundleError, match="not finite or not normalized"):
        encoder.encode(["the cat"])


_TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def numpy_encoder(tmp_path_factory: pytest.TempPathFactory, make_numpy_bundle: Make) -> Encoder:
    return Encoder.load(make_numpy_bundle(tmp_path_factory.mktemp("numpy") / "tiny"))


@settings(max_examples=100, deadline=None)
@given(texts=_TEXTS)
def test_a_vector_does_not_depend_on_its_batch(numpy_encoder: Encoder, texts: list[str]) -> None:
    together = numpy_encoder.encode([*texts, "cat " * 100], on_truncate="ignore")[:-1]
    alone = np.stack([numpy_encoder.encode(text, on_truncate="ignore") for text in texts])
    assert np.array_equal(together, alone)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_an_encoder_tells_word_order(numpy_encoder: Encoder) -> None:
    assert float(numpy_encoder.similarity(*numpy_encoder.encode(["cat read dog", "dog read cat"]))[0, 0]) < 0.999


def test_a_model_for_another_dimension_names_the_file(tmp_path: Path, make_numpy_bundle: Make) -> None:
    path = make_numpy_bundle(tmp_path / "b", dimension=7)
    with pytest.raises(BundleError, match=r"model\.safetensors returns embeddings of dimension 8, expected 7"):
        Encoder.load(path)


def test_a_numpy_bundle_needs_no_onnxruntime(tmp_path: Path, make_numpy_bundle: Make) -> None:
    path = make_numpy_bundle(tmp_path / "b")
    script = (
        "import sys\n"
        "sys.modules['onnxruntime'] = None\n"
        "from edgeembed_runtime import Encoder, RelevanceRanker\n"
        f"encoder = Encoder.load({str(path)!r}, verify=True)\n"
        "hits = RelevanceRanker(encoder).rank('the cat', ['a dog', 'the cat'])\n"
        "print(hits[0].document)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "the cat\n"), done.stderr


def test_the_example_of_the_layouts_page_is_a_student() -> None:
    page = Path(__file__).parents[2] / "docs" / "tensor-file.md"
    if not page.is_file():
        pytest.skip("the page is not here, only the wheel")
    example = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102 - our own page
    vector = NumpyBackend(names["content"], 6, "model").embed([1, 2, 999])
    assert np.linalg.norm(vector) == pytest.approx(1)
