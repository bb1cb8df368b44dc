"""Rankers and the roles that bundles were exported for."""

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from edgeembed_runtime import BundleError, Encoder, RelevanceRanker, RoleWarning, SemanticRanker
from edgeembed_runtime.cli.main import main

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory, make_bundle: Make) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("roles")
    roles = {"semantic": ["semantic"], "relevance": ["relevance"], "both": ["semantic", "relevance"]}
    return {name: make_bundle(folder / name, name=name, role=made[0], roles=made) for name, made in roles.items()}


@pytest.mark.parametrize(
    ("role", "ranker"),
    [("semantic", "semantic"), ("relevance", "relevance"), ("both", "semantic"), ("both", "relevance")],
)
def test_ranker_with_a_bundle_of_its_role_does_not_warn(bundles: dict[str, Path], role: str, ranker: str) -> None:
    encoder = Encoder.load(bundles[role])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RelevanceRanker(encoder) if ranker == "relevance" else SemanticRanker(encoder, ":memory:")


def test_ranker_with_a_bundle_of_another_role_warns_and_works(bundles: dict[str, Path]) -> None:
    expected = (
        "semantic was exported for the role semantic, but this ranker's role is relevance; export .* --role relevance"
    )
    with pytest.warns(RoleWarning, match=expected) as warned:
        ranker = RelevanceRanker(Encoder.load(bundles["semantic"]))
    assert [warning.filename for warning in warned] == [__file__]
    assert "\n" not in str(warned[0].message)
    assert ranker.rank("the cat", ["read", "the cat"])[0].id == 1
    with pytest.warns(RoleWarning, match="exported for the role relevance, but this ranker's role is semantic"):
        SemanticRanker(Encoder.load(bundles["relevance"]), ":memory:")


def test_bundle_with_both_roles_works_with_both_rankers(bundle_path: Path) -> None:
    encoder = Encoder.load(bundle_path)
    assert encoder.bundle.roles == ("semantic", "relevance")
    RelevanceRanker(encoder)
    SemanticRanker(encoder, ":memory:")


def test_bundle_whose_role_is_not_in_its_roles_is_rejected(tmp_path: Path, make_bundle: Make) -> None:
    with pytest.raises(BundleError, match="'role' is \"semantic\", expected one of the names in 'roles'"):
        Encoder.load(make_bundle(tmp_path / "b", roles=["relevance"]))


def test_command_line_prints_the_role_warning_in_one_line(
    bundles: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rank", "the cat", "--text", "the cat", "--bundle", str(bundles["semantic"])]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("edgeembed-runtime: warning: semantic was exported for the role semantic")


def test_info_prints_all_roles(bundles: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(bundles["both"])]) == 0
    assert "semantic, relevance" in capsys.readouterr().out
