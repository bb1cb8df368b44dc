from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError

from edgeembed.recipe import load_recipe, recipe_names
from edgeembed.stage_settings import StageSettings


def recipe_file(folder: Path, text: str) -> str:
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_of_ours_loads(name: str) -> None:
    assert load_recipe(name).name == name


def test_defaults_fill_in_what_a_file_leaves_out(tmp_path: Path) -> None:
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
        ('name = "x"\n[student]\nlayers = "two"', "student.layers is 'two'; expected a whole number"),
        ('name = "x"\n[student]\nlayers = true', "student.layers is True; expected a whole number"),
        ('name = "x"\n[student]\nlayers = -1', "student.layers is -1; expected 0 or more"),
        ('name = "x"\n[student]\ndropout = 1', "student.dropout is 1.0"),
        ('name = "x"\n[head]\nkind = "svd"', "head.kind is 'svd'; expected one of: pca, linear, none, teacher_pca"),
        ('name = "x"\n[head]\ndim = -1', "head.dim is -1"),
        ('name = "x"\n[vocabulary]\nsize = 3', "vocabulary.size is 3"),
        ('name = "x"\n[corpus]\nmax_characters = 5', "corpus.max_characters is 5; expected at least"),
        ('name = "x"\n[vocabulary]\nkind = "file"', "vocabulary.file is ''; expected a tokenizer.json or a model"),
        ('name = "x"\n[vocabulary]\nfile = "t.json"', "expected none, unless vocabulary.kind is 'file'"),
        ('name = "x"\n[parallel]\nsmoothing = 1.5', "parallel.smoothing is 1.5; expected 0 to 1"),
        ('name = "x"\n[parallel]\nlimit = -1', "parallel.limit is -1"),
        ('name = "x"\n[[stages]]\nmargin = 0', "stages.margin is 0.0; expected more than 0"),
        (
            'name = "x"\n[[stages]]\nobjectives = {triplet = 1, mse = 1}',
            "expected triplet in a stage of its own, since it reads labelled pairs",
        ),
        (
            'name = "x"\n[[stages]]\nobjectives = {gold_similarity = 1, mse = 1}',
            "expected gold_similarity in a stage of its own, since it reads scored pairs",
        ),
        ('name = "x"\nstages = []', "expected at least one stage"),
        ('name = "x"\nstages = 3', "stages is 3; expected a list"),
        ('name = "x"\n[[stages]]\nepochs = 0', "stages.epochs is 0.0"),
        ('name = "x"\n[[stages]]\nobjectives = {cosin = 1.0}', "did you mean cosine?"),
        ('name = "x"\n[[stages]]\nobjectives = {cosine = "a"}', "expected a number"),
        ('name = "x"\n[[stages]]\nobjectives = {cosine = -1}', "expected a weight above 0"),
        (
            'name = "x"\n[[stages]]\nobjectives = {contrastive = 1, mse = 1}',
            "stages.objectives is ['contrastive', 'mse']; expected contrastive in a stage of its own",
        ),
        (
            'name = "x"\n[student]\nhidden_size = 16\n[[stages]]\nobjectives = {token_embedding = 1}',
            "student.hidden_size is 16; expected 0 with the objective token_embedding",
        ),
        (
            'name = "x"\n[[stages]]\nobjectives = {hidden_states = 1}',
            "vocabulary.kind is 'trimmed'; expected teacher, and no student.source, with objectives on layers",
        ),
        ("based_on = 3", "based_on is 3; expected the name of a recipe"),
        ('based_on = "nope"', "no recipe called nope"),
        ('description = "no name"', "expected a name for the recipe"),
        ("name = ", "is not TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe(recipe_file(tmp_path, text))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_recipe_says_only_what_it_changes_of_the_one_that_it_is_based_on(tmp_path: Path) -> None:
    text = """
    based_on = "compact"
    name = "mine"
    [student]
    layers = 1
    [[stages]]
    objectives = {cosine = 1.0}
    """
    mine, compact = load_recipe(recipe_file(tmp_path, text), ["head.dim=64"]), load_recipe("compact")
    assert (mine.name, mine.student.layers, mine.head.dim) == ("mine", 1, 64)
    assert (mine.student.token_dim, mine.vocabulary) == (compact.student.token_dim, compact.vocabulary)
    assert mine.stages == (StageSettings(),)


def test_recipes_that_are_based_on_each_other_are_refused(tmp_path: Path) -> None:
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
        ("stages.objectives.cosin=2", "stages.objectives has no setting called cosin; did you mean cosine?"),
    ],
)
def test_an_unknown_setting_gets_a_suggestion(override: str, suggestion: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe("compact", [override])
    assert str(raised.value).endswith(suggestion)


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_printed_as_toml_is_read_back_as_the_same_recipe(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name)
    assert load_recipe(recipe_file(tmp_path, recipe.to_toml())) == recipe


def test_text_in_a_recipe_that_toml_has_to_escape_survives(tmp_path: Path) -> None:
    recipe = load_recipe(recipe_file(tmp_path, r'name = "a \"b\" \\ \n é"'))
    assert load_recipe(recipe_file(tmp_path, recipe.to_toml())) == recipe


def test_every_recipe_of_ours_names_its_system() -> None:
    systems = {load_recipe(name).system for name in recipe_names()}
    assert systems == {"edgeembed", "SimTDE", "HPD", "DistilCSE", "Xayn", "CMOW"}


def test_a_recipe_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_bytes(b"name = \xff")
    with pytest.raises(InputError, match="not UTF-8"):
        load_recipe(str(tmp_path / "r.toml"))


@pytest.mark.parametrize("override", ["student.layers", "=2", "stages.7.epochs=1", "name.x=1"])
def test_a_wrong_override_is_refused(override: str) -> None:
    with pytest.raises(InputError):
        load_recipe("compact", [override])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("compact", {}, "compact learns from text; expected --corpus with it, or --parallel"),
        ("xayn-semantic", {"corpus": ["a.txt"]}, "xayn-semantic learns from translations; expected --parallel"),
        ("xayn-semantic-teacher", {}, "learns from scored pairs; expected --scored FILE.tsv"),
        ("xayn-relevance-teacher", {}, "learns from labelled pairs; expected --pairs FILE.tsv"),
        (
            "compact",
            {"corpus": ["a.txt"], "scored": ["s.tsv"]},
            "--scored s.tsv is given, but the recipe compact has no",
        ),
        (
            "simcse",
            {"pairs": ["p.tsv"], "parallel": ["en-de.tsv"]},
            "has no stage that learns from a teacher's vectors",
        ),
        ("simtde-small-hidden-states", {"parallel": ["en-de.tsv"]}, "the objective hidden_states compares tokens"),
    ],
)
def test_a_recipe_is_refused_what_it_cannot_learn_from(name: str, given: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError) as raised:
        load_recipe(name).check_given(**given)
    assert message in str(raised.value)


def test_labelled_pairs_alone_are_enough_for_a_recipe_that_learns_from_nothing_else() -> None:
    load_recipe("simcse").check_given(pairs=["p.tsv"])
    load_recipe("compact").check_given(parallel=["en-de.tsv"])
