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

_OWN_SYSTEM = "edgeembed"


@click.command()
@click.argument("name", metavar="[NAME|FILE.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes that come with edgeembed, or print one as TOML with every setting spelled out.

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
    """Return the recipes grouped by system, edgeembed's own first. Names are not cut, however narrow the terminal."""
    formatter = click.HelpFormatter(width=max(shutil.get_terminal_size().columns, 40))
    ordered = sorted(summaries, key=lambda each: (each.system != _OWN_SYSTEM, each.system.lower(), each.name))
    for system, group in itertools.groupby(ordered, key=lambda each: each.system):
        with formatter.section(system):
            formatter.write_dl([(each.name, each.description) for each in group])
    return formatter.getvalue().lstrip("\n")
