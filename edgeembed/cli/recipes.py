"""`edgeembed recipes`: what there is to distil by."""

import json

import click


@click.command()
@click.argument("name", metavar="[NAME|FILE.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(name: str | None, as_json: bool) -> None:
    """List the recipes that come with edgeembed, or show one with every setting spelled out."""
    from edgeembed.recipe import load_recipe, recipe_names

    if name is not None:
        click.echo(json.dumps(load_recipe(name).to_dict(), indent=2))
        return
    recipes = [load_recipe(each) for each in recipe_names()]
    if as_json:
        listed = [{"name": each.name, "description": each.description, "teacher": each.teacher} for each in recipes]
        click.echo(json.dumps(listed, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for title in ("recipe", "what it makes", "teacher"):
        table.add_column(title, overflow="fold")
    for each in recipes:
        table.add_row(each.name, each.description, each.teacher)
    Console().print(table)
