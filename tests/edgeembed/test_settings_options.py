"""Options of a command, made from a settings class."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import click
import pytest
from click.testing import CliRunner
from edgeembed_exporters.settings import Settings, Unchecked, spelled
from edgeembed_runtime import InputError
from pydantic import Field

from edgeembed import ExportSettings
from edgeembed.cli.export import command as export_command
from edgeembed.cli.options import settings_options
from edgeembed.export_settings import ExportKeywords


class Brewing(Settings):
    """Settings of every type that an option may have."""

    heat_celsius: float = Field(default=90.0, gt=0, le=100, description="How hot the water is; see `cup_kind`.")
    cup_kind: Literal["glass", "mug"] | None = Field(default=None, description="Kind of cup.")
    spoons: int | None = Field(default=None, description="Spoons of tea.")
    with_milk: bool = Field(default=False, description="Add milk.")
    guests: Sequence[str] = Field(default=(), description="Names.")
    notes: Mapping[str, str] = Field(default_factory=dict, description="Notes by guest.")
    water: Annotated[Any, Unchecked("a file", "FILE", is_repeatable=True)] = Field(default=None, description="Water.")

    @classmethod
    def default_text(cls, name: str) -> str | None:
        return "as many as `guests`" if name == "spoons" else super().default_text(name)


@click.command()
@click.argument("pot")
@settings_options(Brewing)
@click.option("--json", "as_json", is_flag=True)
def brew(pot: str, as_json: bool, keywords: dict[str, Any]) -> None:
    """Brew tea."""
    settings = Brewing(**keywords)
    click.echo(
        json.dumps(
            [pot, as_json, sorted(keywords), settings.heat_celsius, [str(each) for each in settings.water or ()]]
        )
    )
    if settings.heat_celsius < 10:
        raise InputError(f"{spelled('heat_celsius')} is too low")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(brew, arguments)


def test_the_command_gets_what_the_user_gave_and_defaults_come_from_the_class() -> None:
    assert json.loads(run("pot").output) == ["pot", False, [], 90.0, []]
    typed = ("--heat-celsius", "80", "--with-milk", "--cup-kind", "mug", "--water", "a.txt", "--water", "b.txt")
    names = ["cup_kind", "heat_celsius", "water", "with_milk"]
    assert json.loads(run("pot", *typed, "--json").output) == ["pot", True, names, 80.0, ["a.txt", "b.txt"]]
    notes = ("--guests", "Ann", "--guests", "Ben", "--notes", "Ann=no sugar, 1=1", "--spoons", "0")
    assert json.loads(run("pot", *notes).output)[2] == ["guests", "notes", "spoons"]


def test_the_help_states_what_the_class_declares() -> None:
    text = " ".join(run("--help").output.split())
    assert "--heat-celsius FLOAT How hot the water is; see --cup-kind. [default: 90.0]" in text
    assert "--cup-kind [glass|mug] Kind of cup." in text
    assert "--spoons INTEGER Spoons of tea. [default: as many as --guests]" in text
    assert "--with-milk Add milk." in text
    assert "--notes NAME=TEXT Notes by guest. Repeatable." in text
    assert "--water FILE Water. Repeatable." in text
    assert text.index("--heat-celsius") < text.index("--cup-kind") < text.index("--water") < text.index("--json")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--heat-celsius", "101"), "--heat-celsius is 101.0; expected a number above 0 and at most 100"),
        (("--heat-celsius", "5"), "--heat-celsius is too low"),
        (("--notes", "Ann"), "--notes is Ann; expected NAME=TEXT, such as query='query: '"),
    ],
)
def test_messages_name_the_option(given: tuple[str, str], message: str) -> None:
    assert str(run("pot", *given).exception) == message
    assert spelled("heat_celsius") == "heat_celsius"


def test_each_setting_of_an_export_is_an_option_and_a_keyword() -> None:
    options = {each.name: each.opts for each in export_command.params if isinstance(each, click.Option)}
    assert set(options) - set(ExportSettings.model_fields) == {"out", "force", "as_json"}
    assert all(options[name] == [f"--{name.replace('_', '-')}"] for name in ExportSettings.model_fields)
    declared = get_type_hints(ExportSettings)
    assert get_type_hints(ExportKeywords) == {name: declared[name] for name in ExportSettings.model_fields}
    assert all(ExportSettings.help(name).endswith(".") for name in ExportSettings.model_fields)


def test_settings_and_keywords_are_merged(tmp_path: Path) -> None:
    import edgeembed

    settings = ExportSettings(dim=8, fit=["a text", "another text"])
    with pytest.raises(InputError, match="fit is given without dim; expected dim with"):
        edgeembed.export("no-such-model", tmp_path / "b", settings, dim=None)
    with pytest.raises(InputError, match=r"settings is \{'dim': 8\}; expected an ExportSettings"):
        edgeembed.export("no-such-model", tmp_path / "b", {"dim": 8})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
