"""Golden vectors: embeddings computed at export, compared with those of this machine."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edgeembed_runtime import Bundle, BundleError, Encoder, VerificationError
from edgeembed_runtime.verification import GoldenReport, Machine, compare_golden_vectors, verify
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Change = Callable[[dict[str, Any]], object]

_TEXTS = ["", "the cat", "read 12 files: line by line", "dog " * 99]
_MACHINE = {"processor": "Abacus 3", "architecture": "wood", "engine": "fingers 10"}


def _write(bundle: Path, rewrite_manifest: Callable[..., None], content: bytes) -> Path:
    (bundle / "golden.json").write_bytes(content)
    rewrite_manifest(bundle)
    return bundle


@pytest.fixture
def golden(encoder: Encoder) -> dict[str, Any]:
    """Return the content of a correct golden.json."""
    vectors = encoder.encode(_TEXTS, on_truncate="ignore", on_unknown="ignore")
    return {**_MACHINE, "texts": _TEXTS, "vectors": [[float(str(number)) for number in row] for row in vectors]}


@pytest.fixture
def write_golden(bundle_copy: Path, rewrite_manifest: Callable[..., None]) -> Callable[[object], Path]:
    """Return a function that writes a golden.json with some content into a bundle."""
    return lambda content: _write(bundle_copy, rewrite_manifest, json.dumps(content).encode())


def _report(bundle: Path) -> GoldenReport:
    report = compare_golden_vectors(Encoder.load(bundle))
    assert report is not None
    return report


def _error_message(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        compare_golden_vectors(Encoder.load(bundle))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _rotated(vector: list[float], cosine: float) -> list[float]:
    """Return a unit vector with a given cosine to another."""
    start = np.array(vector)
    orthogonal = np.roll(start, 1) - start * (np.roll(start, 1) @ start)
    rotated = cosine * start + math.sqrt(1 - cosine**2) * orthogonal / np.linalg.norm(orthogonal)
    return [float(number) for number in rotated]


def test_bundle_without_golden_vectors_passes(encoder: Encoder) -> None:
    assert compare_golden_vectors(encoder) is None
    assert verify(encoder.bundle).differences == ()


def test_identical_embeddings_have_cosine_1(write_golden: Callable[[object], Path], golden: dict[str, Any]) -> None:
    report = _report(write_golden(golden))
    assert report == GoldenReport(
        texts=4,
        min_cosine=1.0,
        mean_cosine=1.0,
        max_difference=0.0,
        min_cosine_text="",
        machine=Machine("Abacus 3", "wood", "fingers 10"),
    )


def test_report_contains_the_lowest_cosine_and_its_text(
    write_golden: Callable[[object], Path], golden: dict[str, Any]
) -> None:
    actual = golden["vectors"][1]
    golden["vectors"][1] = _rotated(actual, 0.8)
    report = _report(write_golden(golden))
    assert report.min_cosine_text == "the cat"
    assert report.min_cosine == pytest.approx(0.8, abs=1e-6)
    assert report.mean_cosine == pytest.approx(0.95, abs=1e-6)
    assert report.max_difference == pytest.approx(np.abs(np.subtract(golden["vectors"][1], actual)).max())


def test_built_in_encoder_matches_its_golden_vectors(shipped: Path) -> None:
    report = verify(Bundle.open(shipped))
    assert report.golden is not None
    assert report.differences == ()


def test_two_zero_vectors_have_cosine_1(
    write_golden: Callable[[object], Path], golden: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    golden["vectors"] = np.zeros((4, 8)).tolist()
    bundle = write_golden(golden)
    monkeypatch.setattr(Encoder, "encode", lambda *_, **__: np.zeros((4, 8), dtype=np.float32))
    assert _report(bundle).min_cosine == 1.0


@pytest.mark.parametrize(("cosine", "passes"), [(0.996, True), (0.994, False)])
def test_verification_fails_below_the_minimum_cosine_and_names_the_text(
    write_golden: Callable[[object], Path], golden: dict[str, Any], cosine: float, passes: bool
) -> None:
    golden["vectors"][3] = _rotated(golden["vectors"][3], cosine)
    report = verify(Bundle.open(write_golden(golden)))
    assert report.golden is not None
    assert (report.differences == ()) is passes
    if not passes:
        expected = r"'dog dog .*\.\.\.' has cosine 0\.994000 to the exporter's \(Abacus 3, wood, fingers 10\)"
        with pytest.raises(VerificationError, match=expected):
            report.raise_for_differences("bundle")


def test_verification_detects_a_changed_manifest(
    write_golden: Callable[[object], Path], golden: dict[str, Any]
) -> None:
    bundle = write_golden(golden)
    assert verify(Bundle.open(bundle)).differences == ()
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    manifest["prompts"], manifest["default_prompt_name"] = {"query": "open the socket "}, "query"
    (bundle / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "edgeembed.json was changed" in verify(Bundle.open(bundle)).differences[0]


def test_verification_fails_if_an_embedding_is_not_normalized(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Encoder, "encode", lambda *_, **__: np.full(8, 0.5, dtype=np.float32))
    assert "an embedding has norm 1.41421, expected 1" in verify(encoder.bundle).differences[0]


def test_verification_skips_golden_vectors_if_a_file_is_damaged(
    write_golden: Callable[[object], Path], golden: dict[str, Any]
) -> None:
    bundle = write_golden(golden)
    (bundle / "golden.json").write_text("{}", encoding="utf-8")
    report = verify(Bundle.open(bundle))
    assert "golden.json has 2 bytes" in report.differences[0]
    assert report.golden is None


def test_golden_vectors_do_not_change_the_fingerprint(
    write_golden: Callable[[object], Path], golden: dict[str, Any], encoder: Encoder
) -> None:
    bundle = Bundle.open(write_golden(golden), verify=True)
    assert bundle.has_file("golden.json")
    assert bundle.fingerprint == encoder.bundle.fingerprint


def test_golden_file_with_another_checksum_raises(
    write_golden: Callable[[object], Path], golden: dict[str, Any]
) -> None:
    bundle = write_golden(golden)
    content = (bundle / "golden.json").read_bytes()
    (bundle / "golden.json").write_bytes(content.replace(b"cat", b"dog"))
    encoder = Encoder.load(bundle)
    with pytest.raises(VerificationError, match=r"golden\.json has SHA-256"):
        compare_golden_vectors(encoder)


def _first_number(value: object) -> Change:
    return lambda golden: golden["vectors"][0].__setitem__(0, value)


_INVALID: list[tuple[Change, str]] = [
    *((lambda golden, name=name: golden.pop(name), f"has no '{name}'") for name in (*_MACHINE, "texts", "vectors")),
    (lambda golden: golden.update(processor=3), "'processor' is 3, expected a string"),
    (lambda golden: golden.update(processor="a\nb"), "printable"),
    (lambda golden: golden.update(engine="\x1b[31m"), "printable"),
    (lambda golden: golden.update(engine="x" * 300), "at most 200"),
    (lambda golden: golden.update(texts="the cat"), "expected a list of strings"),
    (lambda golden: golden.update(texts=[1, 2, 3, 4]), "expected a list of strings"),
    (lambda golden: golden.update(texts=[], vectors=[]), "expected 1 to 100 texts"),
    (lambda golden: golden.update(texts=["a"] * 101, vectors=[[0.0] * 8] * 101), "expected 1 to 100 texts"),
    (lambda golden: golden["texts"].__setitem__(0, "\ud800"), "a list of strings"),
    (lambda golden: golden.update(vectors=None), "expected 4 lists of 8 numbers"),
    (lambda golden: golden["vectors"].pop(), "expected 4 lists of 8 numbers"),
    (lambda golden: golden["vectors"][2].pop(), "expected 4 lists of 8 numbers"),
    (lambda golden: golden["vectors"].__setitem__(1, "12345678"), "expected 4 lists of 8 numbers"),
    (lambda golden: golden["vectors"].__setitem__(1, {"0": 1}), "expected 4 lists of 8 numbers"),
    *(
        (_first_number(value), "expected 4 lists of 8 numbers")
        for value in ("0.5", None, True, [0.5], math.nan, math.inf, -math.inf, 1e39, 10**400, 2, -1.5)
    ),
]


@pytest.mark.parametrize(("change", "message"), _INVALID)
def test_invalid_golden_file_raises_in_one_line(
    write_golden: Callable[[object], Path], golden: dict[str, Any], change: Change, message: str
) -> None:
    invalid = json.loads(json.dumps(golden))
    change(invalid)
    assert message in _error_message(write_golden(invalid))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a": 1' + b"0" * 5000 + b"}",
        b" " * ((4 << 20) + 1),
    ],
)
def test_golden_file_that_is_not_json_raises_in_one_line(
    bundle_copy: Path, rewrite_manifest: Callable[..., None], content: bytes
) -> None:
    assert "golden.json" in _error_message(_write(bundle_copy, rewrite_manifest, content))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_golden_file_is_compared_or_raises_in_one_line(
    bundle_copy: Path, rewrite_manifest: Callable[..., None], golden: dict[str, Any], data: st.DataObject
) -> None:
    content = json.dumps(golden).encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 20)))
    mutated = content[:start] + data.draw(st.binary(max_size=8)) + content[end:]
    encoder = Encoder.load(_write(bundle_copy, rewrite_manifest, mutated))
    message = None
    try:
        report = compare_golden_vectors(encoder)
        assert report is not None
        assert math.isfinite(report.min_cosine)
    except BundleError as error:
        message = str(error)
    assert message is None or len(message.splitlines()) == 1
