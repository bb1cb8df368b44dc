"""`edgeembed recipes`: list the recipes, or print one."""

import itertools
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from edgeembed.recipe.loading import RecipeSummary


@click.command()
@click.argument("name", metavar="[NAME|FILE.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes, edgeembed's own first, or print one as TOML with every setting spelled out.

    The TOML of one recipe can be saved, changed, and used: edgeembed distill --recipe FILE.toml
    """
    from edgeembed.recipe.loading import load_recipe, recipes

    if name is not None:
        recipe = load_recipe(name)
        click.echo(json.dumps(recipe.to_dict(), indent=2) if as_json else recipe.to_toml(), nl=as_json)
    elif as_json:
        click.echo(json.dumps([asdict(each) for each in recipes()], indent=2))
    else:
        click.echo(_listing(recipes()), nl=False)


def _listing(summaries: "Sequence[RecipeSummary]") -> str:
    """Return the recipes grouped by plugin. Names are not cut, however narrow the terminal."""
    formatter = click.HelpFormatter(width=max(shutil.get_terminal_size().columns, 40))
    for plugin, group in itertools.groupby(summaries, key=lambda each: each.plugin):
        with formatter.section(plugin or "edgeembed"):
            formatter.write_dl([(each.name, each.description) for each in group])
    return formatter.getvalue().lstrip("\n")
