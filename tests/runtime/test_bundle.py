"""Opening and verifying bundles: intact, damaged and malicious ones."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime import Bundle, BundleError, Encoder, InputError, VerificationError
from edgeembed_runtime.parity import Parity
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Make = Callable[..., Path]


def _edit(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((bundle / "edgeembed.json").read_text(encoding="utf-8"))
    change(manifest)
    (bundle / "edgeembed.json").write_text(json.dumps(manifest), encoding="utf-8")


def _error_message(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        _ = Bundle.open(bundle).parity
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_bundle_has_the_fields_of_its_manifest(bundle_path: Path) -> None:
    bundle = Bundle.open(str(bundle_path), verify=True)
    assert (bundle.path, bundle.name, bundle.dimension, bundle.max_seq_length) == (bundle_path, "tiny", 8, 32)
    assert bundle.parity.worst_sentences[0].text == "the cat"
    assert {file.name for file in bundle.files} == {"README.md", "onnx/model.onnx", "tokenizer.json"}
    assert bundle.size_bytes == sum((bundle_path / file.name).stat().st_size for file in bundle.files)


def test_unknown_manifest_field_is_ignored(bundle_copy: Path) -> None:
    _edit(bundle_copy, lambda m: m.update(golden_vectors="golden.json"))
    assert Bundle.open(bundle_copy).name == "tiny"


def test_optional_measurements_are_read_and_may_be_null(bundle_path: Path, bundle_copy: Path) -> None:
    unmeasured = Bundle.open(bundle_path)
    assert isinstance(unmeasured.parity, Parity)
    assert (unmeasured.latency, unmeasured.parity.p01_cosine, unmeasured.parity.top_10_overlap) == (None, None, None)
    measured = {"p01_cosine": 0.9991, "spearman": 0.998, "top_10_overlap": None}
    _edit(bundle_copy, lambda m: m["parity"].update(measured) or m.update(latency={"median_ms": 0.3}))
    bundle = Bundle.open(bundle_copy)
    assert isinstance(bundle.parity, Parity)
    assert bundle.latency == {"median_ms": 0.3}
    assert (bundle.parity.p01_cosine, bundle.parity.spearman) == (0.9991, 0.998)
    assert bundle.parity.top_10_overlap is None


@pytest.mark.parametrize("value", [0, -0.3, 1.01, "0.4", math.nan, True, [0.4]])
def test_invalid_near_cosine_raises(bundle_copy: Path, value: object) -> None:
    assert Bundle.open(bundle_copy).near_cosine is None
    _edit(bundle_copy, lambda m: m.update(near_cosine=0.35))
    assert Bundle.open(bundle_copy).near_cosine == 0.35
    _edit(bundle_copy, lambda m: m.update(near_cosine=value))
    assert "'near_cosine'" in _error_message(bundle_copy)


def test_a_bundle_states_its_embedding_space_or_none(bundle_copy: Path) -> None:
    _edit(bundle_copy, lambda m: m.update(space="bert-8-0123456789abcdef"))
    assert Bundle.open(bundle_copy).space == "bert-8-0123456789abcdef"
    _edit(bundle_copy, lambda m: m.pop("space"))  # as in bundles of older versions
    assert Bundle.open(bundle_copy).space is None


@pytest.mark.parametrize("value", ["", 7, ["bert-8"]])
def test_an_invalid_space_raises(bundle_copy: Path, value: object) -> None:
    _edit(bundle_copy, lambda m: m.update(space=value))
    assert "'space'" in _error_message(bundle_copy)


@pytest.mark.parametrize("value", ["0.9", math.inf, [0.9]])
def test_optional_measurements_are_validated(bundle_copy: Path, value: object) -> None:
    _edit(bundle_copy, lambda m: m["parity"].update(spearman=value))
    assert "'spearman'" in _error_message(bundle_copy)


def test_read_of_an_unlisted_file_raises(bundle_path: Path) -> None:
    with pytest.raises(BundleError, match=r"lists no file 'onnx/other\.onnx'"):
        Bundle.open(bundle_path).read("onnx/other.onnx")


def test_missing_folder_raises(tmp_path: Path) -> None:
    assert "is not a folder" in _error_message(tmp_path / "absent")


def test_folder_without_manifest_raises(tmp_path: Path) -> None:
    assert "has no edgeembed.json" in _error_message(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}"])
def test_manifest_that_is_not_json_raises(bundle_copy: Path, content: bytes) -> None:
    (bundle_copy / "edgeembed.json").write_bytes(content)
    assert "edgeembed.json" in _error_message(bundle_copy)


@pytest.mark.parametrize("content", [b"[]", b"null", b'"text"', b"3"])
def test_manifest_that_is_not_an_object_raises(bundle_copy: Path, content: bytes) -> None:
    (bundle_copy / "edgeembed.json").write_bytes(content)
    assert "expected a JSON object" in _error_message(bundle_copy)


@pytest.mark.parametrize(("version", "remedy"), [(1, "export the bundle again"), (3, "upgrade edgeembed-runtime")])
def test_other_schema_version_raises_with_a_remedy(bundle_copy: Path, version: int, remedy: str) -> None:
    _edit(bundle_copy, lambda m: m.update(schema_version=version))
    assert f"has schema version {version}, expected 2; {remedy}" in _error_message(bundle_copy)


def test_missing_field_raises_with_its_name(bundle_path: Path, bundle_copy: Path) -> None:
    whole = json.loads((bundle_path / "edgeembed.json").read_text(encoding="utf-8"))
    for name in whole:
        remaining = {key: value for key, value in whole.items() if key != name}
        (bundle_copy / "edgeembed.json").write_text(json.dumps(remaining), encoding="utf-8")
        assert f"has no '{name}'" in _error_message(bundle_copy)


_WRONG: dict[str, list[object]] = {
    "schema_version": ["1", 1.0, True, None],
    "dimension": [0, -1, "8", 8.5, True, None],
    "max_seq_length": [0, None],
    "role": ["other", 3],
    "roles": [[], ["other"], [[]], "semantic", None],
    "precision": [8, None],
    "prompts": [[], {"query": 3}, None],
    "default_prompt_name": ["absent", 3],
    "model_file": ["onnx/other.onnx", None],
    "licenses": ["CC0", [1]],
    "recipe": ["compact", []],
    "parity": [None, []],
    "files": [{}, [], ["a"], None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in _WRONG.items() for value in values])
def test_field_of_the_wrong_type_raises_with_its_name(bundle_copy: Path, name: str, value: object) -> None:
    _edit(bundle_copy, lambda m: m.update({name: value}))
    assert f"'{name}'" in _error_message(bundle_copy)


def test_parity_that_is_not_finite_raises(bundle_copy: Path) -> None:
    _edit(bundle_copy, lambda m: m["parity"].update(min_cosine=math.nan))
    assert "'min_cosine' is NaN" in _error_message(bundle_copy)


@pytest.mark.parametrize(
    "name",
    [
        *("../secret", "/etc/hostname", "onnx/../../secret", "a/./b", "", ".", "..", "a//b", "a/"),
        *("C:\\secret", "..\\secret", "C:secret", "nul\0"),
    ],
)
def test_file_name_outside_the_folder_raises(bundle_copy: Path, name: str) -> None:
    (bundle_copy.parent / "secret").write_text("x", encoding="utf-8")
    _edit(bundle_copy, lambda m: m["files"][0].update(name=name))
    assert "stays inside the folder" in _error_message(bundle_copy)


def test_file_listed_twice_raises(bundle_copy: Path) -> None:
    _edit(bundle_copy, lambda m: m["files"].append(m["files"][0]))
    assert "each name once" in _error_message(bundle_copy)


@pytest.mark.parametrize("digest", ["", "0" * 63, "G" * 64, "A" * 64])
def test_invalid_checksum_raises(bundle_copy: Path, digest: str) -> None:
    _edit(bundle_copy, lambda m: m["files"][0].update(sha256=digest))
    assert "64 hexadecimal digits" in _error_message(bundle_copy)


def test_missing_file_raises_with_its_name(bundle_copy: Path) -> None:
    (bundle_copy / "tokenizer.json").unlink()
    assert "tokenizer.json is missing" in _error_message(bundle_copy)


def test_truncated_model_raises_at_load_without_being_read(bundle_copy: Path) -> None:
    model = bundle_copy / "onnx" / "model.onnx"
    model.write_bytes(model.read_bytes()[:100])
    with pytest.raises(BundleError, match=r"model\.onnx has 100 bytes, expected \d+"):
        Encoder.load(bundle_copy)
    with pytest.raises(VerificationError, match=r"model\.onnx has 100 bytes, expected \d+"):
        Bundle.open(bundle_copy).verify()


def test_changed_byte_is_detected_only_by_verification(bundle_copy: Path) -> None:
    (bundle_copy / "README.md").write_text("# tiny\n", encoding="utf-8")
    assert Encoder.load(bundle_copy).dimension == 8
    with pytest.raises(VerificationError, match=r"README\.md has SHA-256 [0-9a-f]{64}, expected"):
        Encoder.load(bundle_copy, verify=True)


def test_changed_manifest_is_detected_if_it_has_a_checksum_file(bundle_copy: Path) -> None:
    manifest = bundle_copy / "edgeembed.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    Bundle.open(bundle_copy, verify=True)  # a checksum file is optional
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    (bundle_copy / "edgeembed.json.sha256").write_text(f"{digest}  edgeembed.json\n", encoding="utf-8")
    Bundle.open(bundle_copy, verify=True)
    manifest.write_bytes(manifest.read_bytes()[:-1] + b"\n")
    with pytest.raises(VerificationError, match=r"edgeembed\.json has SHA-256 [0-9a-f]{64}, which is not the one in"):
        Bundle.open(bundle_copy, verify=True)


@pytest.mark.parametrize("content", [b"", b"\xff", b"0" * 1000])
def test_invalid_manifest_checksum_file_is_detected(bundle_copy: Path, content: bytes) -> None:
    (bundle_copy / "edgeembed.json.sha256").write_bytes(content)
    assert Bundle.open(bundle_copy).differences()[0].startswith("edgeembed.json has SHA-256 ")


def test_verification_lists_every_changed_or_missing_file(bundle_copy: Path) -> None:
    bundle = Bundle.open(bundle_copy)
    (bundle_copy / "README.md").unlink()
    (bundle_copy / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(VerificationError, match=r"README\.md is missing; tokenizer\.json has 2 bytes"):
        bundle.verify()


@pytest.mark.parametrize("content", [b"", b"garbage" * 50])
def test_invalid_model_file_raises_in_one_line(bundle_copy: Path, rewrite_manifest: Make, content: bytes) -> None:
    (bundle_copy / "onnx" / "model.onnx").write_bytes(content)
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match="is not a model: ") as caught:
        Encoder.load(bundle_copy, verify=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff"])
def test_invalid_tokenizer_file_raises_in_one_line(bundle_copy: Path, rewrite_manifest: Make, content: bytes) -> None:
    (bundle_copy / "tokenizer.json").write_bytes(content)
    rewrite_manifest(bundle_copy)
    with pytest.raises(BundleError, match="is not a tokenizer: ") as caught:
        Encoder.load(bundle_copy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dimension": 9}, r"expected \(batch, 9\)"),
        ({"backend": "abacus"}, "needs the backend 'abacus'"),
        ({"max_seq_length": 2}, "adds 2 special tokens"),
    ],
)
def test_manifest_that_contradicts_the_model_raises_at_load(
    bundle_copy: Path, fields: dict[str, object], message: str
) -> None:
    _edit(bundle_copy, lambda m: m.update(fields))
    with pytest.raises(BundleError, match=message):
        Encoder.load(bundle_copy)


def test_fingerprint_depends_on_the_embeddings_but_not_on_the_card(tmp_path: Path, make_bundle: Make) -> None:
    first = Bundle.open(make_bundle(tmp_path / "first")).fingerprint
    assert Bundle.open(make_bundle(tmp_path / "copy", name="renamed", quality={"sts": 80})).fingerprint == first
    assert Bundle.open(make_bundle(tmp_path / "weights", seed=1)).fingerprint != first
    assert Bundle.open(make_bundle(tmp_path / "prompt", prompts={"query": "q: "})).fingerprint != first
    assert Bundle.open(make_bundle(tmp_path / "limit", max_seq_length=16)).fingerprint != first


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_manifest_opens_or_raises_in_one_line(
    bundle_path: Path, bundle_copy: Path, data: st.DataObject
) -> None:
    content = (bundle_path / "edgeembed.json").read_bytes()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 20)))
    mutated = content[:start] + data.draw(st.binary(max_size=8)) + content[end:]
    (bundle_copy / "edgeembed.json").write_bytes(mutated)
    message = None
    try:
        Bundle.open(bundle_copy)
    except InputError as error:
        message = str(error)
    assert message is None or len(message.splitlines()) == 1


def test_a_bundle_of_a_precision_that_this_version_does_not_know_is_read(bundle_copy: Path) -> None:
    _edit(bundle_copy, lambda m: m.update(precision="fp24"))
    assert Bundle.open(bundle_copy).precision == "fp24"
