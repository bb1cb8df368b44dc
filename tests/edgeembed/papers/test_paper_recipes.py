"""Each recipe of the papers, on a tiny random teacher."""

import re
from pathlib import Path

import pytest

from edgeembed.corpus.parallel import ParallelText
from edgeembed.distillation import pipeline
from edgeembed.recipe.loading import load_recipe, recipes
from edgeembed.recipe.stages import StageSettings
from edgeembed.validation import validate

from ..tiny_recipes import (  # noqa: TID252
    BERT_BASE,
    BERT_TINY,
    MINILM,
    TINYBERT,
    check_trains,
    weights_of,
)


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


ROOT = Path(__file__).parents[3]
QUICK = (
    "lmx-kd",
    "projection-128",
    "whitening-128",
    "hpd-128-no-augmentation",
    "simtde-small-hidden-states",
    "xayn-semantic-teacher",
    "xayn-relevance-teacher",
)


@pytest.mark.parametrize(
    ("name", "changes", "source", "millions"),
    [
        pytest.param("simtde-base", [], BERT_BASE, 34.1, id="SimTDE-384-L3(768)"),
        pytest.param("simtde-base", ["student.layers=0"], BERT_BASE, 97.9, id="- encoding layer reduction"),
        pytest.param("simtde-small", [], MINILM, 9.5, id="SimTDE-128-L3(384)"),
        pytest.param("simtde-small-hidden-states", [], MINILM, 9.5, id="+ hidden states distillation"),
        pytest.param("simtde-small-random-table", [], MINILM, 9.5, id="random table"),
        pytest.param("simtde-small-random-table-no-token-loss", [], MINILM, 9.5, id="- token embedding loss"),
        pytest.param("lrn-kd", [], BERT_BASE, 38.4, id="LRN-KD-768-L2(768)"),
        pytest.param("lmx-kd", ["student.hidden_size=384"], BERT_BASE, 33.4, id="LMX-KD-384-L12(384)"),
        pytest.param("simtde-64-L2(128)", [], BERT_TINY, 2.4, id="SimTDE-64-L2(128)"),
        pytest.param("simtde-32-L2(128)", [], BERT_TINY, 1.4, id="SimTDE-32-L2(128)"),
        pytest.param("hpd-128", [], MINILM, 23, id="HPD-MiniLM-128"),
        pytest.param("hpd-128", [], TINYBERT, 14, id="HPD-TinyBERT-128"),
        pytest.param("distilcse", [], MINILM, 14, id="DistilCSE, TinyBERT's shape"),
        pytest.param(
            "distilcse",
            ["student.hidden_size=0", "student.layers=0"],
            BERT_BASE,
            110,
            id="DistilCSE, BERT-base's shape",
        ),
    ],
)
def test_students_are_of_the_size_of_the_papers_tables(
    name: str, changes: list[str], source: dict[str, int], millions: float
) -> None:
    # The papers' figures have two or three digits, and may count a pooler, which no student needs.
    assert weights_of(load_recipe(name, changes), source) / 1e6 == pytest.approx(millions, rel=0.04)


NAMES = [each.name for each in recipes() if each.plugin]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES]
)
def test_every_recipe_trains_a_student_that_encodes(
    name: str,
    teacher_folder: Path,
    sentences: list[str],
    pairs: Path,
    dev: Path,
    parallel: ParallelText,
    tmp_path: Path,
) -> None:
    check_trains(name, teacher_folder, sentences, pairs, dev, parallel, tmp_path)


def test_each_paper_has_recipes_under_its_own_name() -> None:
    assert {each.plugin for each in recipes()} >= {"simtde", "hpd", "distilcse", "xayn", "cmow"}
    assert all(each.description and each.teacher for each in recipes())


@pytest.mark.parametrize(
    ("loss", "expected"),
    [("mae", True), ("prototype_mse", True), ("kl", False), ("similarity_mae", False), ("masked_lm", False)],
)
def test_only_losses_on_the_embeddings_themselves_teach_the_space(loss: str, expected: bool) -> None:
    assert validate(StageSettings, {"losses": {loss: 1.0}}).teaches_space is expected


@pytest.mark.parametrize("paper", ["simtde", "hpd", "distilcse", "xayn", "cmow"])
def test_the_readme_has_the_claims_and_verdicts_of_the_results_page(paper: str) -> None:
    def rows(file: Path) -> list[list[str]]:
        claims = file.read_text(encoding="utf-8").partition("## What the paper claims")[2].partition("\n## ")[0]
        lines = [line for line in claims.splitlines() if line.startswith("|")][2:]
        return [[re.sub(r"\]\([^)]*\)", "]", cell) for cell in line.strip("| ").split(" | ")[:2]] for line in lines]

    readme = rows(ROOT / "edgeembed" / "papers" / paper / "README.md")
    assert readme == rows(ROOT / "docs" / "results" / f"{paper}.md")
    assert readme


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("simtde-base", True),
        ("distilcse", False),
        ("hpd-128", False),
        ("hpd-384-whitening-128", False),
        ("simtde-small-pair-cosine", False),
    ],
)
def test_recipes_teach_the_space_if_they_have_no_head(recipe: str, expected: bool) -> None:
    settings = load_recipe(recipe)
    no_head = settings.head.kind == "none" and not settings.head.whiten_dim
    assert (settings.stages[-1].teaches_space and no_head) is expected
