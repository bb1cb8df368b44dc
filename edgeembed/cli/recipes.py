"""`edgeembed recipes`: list the recipes, or print one."""

import itertools
import json
import shutil
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from edgeembed.recipe import Recipe

_OURS = "edgeembed"


@click.command()
@click.argument("name", metavar="[NAME|FILE.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes that come with edgeembed, or print one as TOML with every setting spelled out.

    The TOML of one recipe can be saved, changed, and used: edgeembed distill --recipe FILE.toml
    """
    from edgeembed.recipe import load_recipe, recipe_names

    if name is not None:
        recipe = load_recipe(name)
        click.echo(json.dumps(recipe.to_dict(), indent=2) if as_json else recipe.to_toml(), nl=as_json)
        return
    recipes = [load_recipe(each) for each in recipe_names()]
    if as_json:
        keys = ("name", "system", "description", "teacher")
        click.echo(json.dumps([{key: getattr(each, key) for key in keys} for each in recipes], indent=2))
    else:
        click.echo(_listing(recipes), nl=False)


def _listing(recipes: "list[Recipe]") -> str:
    """Return the recipes grouped by system, ours first; names are never cut, however narrow the terminal."""
    formatter = click.HelpFormatter(width=max(shutil.get_terminal_size().columns, 40))
    ordered = sorted(recipes, key=lambda each: (each.system != _OURS, each.system.lower(), each.name))
    for system, group in itertools.groupby(ordered, key=lambda each: each.system):
        with formatter.section(system):
            formatter.write_dl([(each.name, each.description) for each in group])
    return formatter.getvalue().lstrip("\n")
