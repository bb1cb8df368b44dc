"""Remake the numbers of a page: run the stages of its pipeline that are stale.

    make reproduce WHAT=simtde
    make reproduce WHAT=simtde SCALE=small

The small scale runs the whole pipeline in minutes, on made-up text, with the sizes in small.yaml, in build/small; its
numbers mean nothing. `make reproduce WHAT=simtde STATUS=1` runs nothing and says what is stale, and why. Further
arguments go to `dvc repro`: a stage of the pipeline by name, or `--dry`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import yaml

from experiments.parameters import merge

ROOT = Path(__file__).parents[1]
PIPELINES = ROOT / "experiments"
# What other pipelines use runs when they do; `install` changes the encoders in the package.
_NO_PAGE = ("install", "sample", "sources", "teachers")


def pipelines() -> list[str]:
    """Return the names of the pipelines."""
    return sorted(file.parent.name for file in PIPELINES.glob("*/dvc.yaml"))


def write_small(folder: Path) -> None:
    """Write the pipelines into a folder with the parameters of the small scale."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_merged(PIPELINES / "shared.yaml", PIPELINES / "small.yaml", folder / "shared.yaml")
    for name in pipelines():
        (folder / name).mkdir(exist_ok=True)
        shutil.copyfile(PIPELINES / name / "dvc.yaml", folder / name / "dvc.yaml")
        _write_merged(PIPELINES / name / "params.yaml", PIPELINES / name / "small.yaml", folder / name / "params.yaml")


def _write_merged(base: Path, changes: Path, out: Path) -> None:
    both = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in (base, changes) if file.is_file()]
    # JSON is YAML in which every text is quoted: "1e-3" stays a text for each reader.
    out.write_text(json.dumps(merge(*both), indent=1), encoding="utf-8")


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True})
@click.argument("what", type=click.Choice([*pipelines(), "all"]))
@click.argument("stages", nargs=-1, type=click.UNPROCESSED)
@click.option("--scale", default="full", type=click.Choice(["full", "small"]))
@click.option("--status", is_flag=True, help="Say what is stale, and run nothing.")
@click.option("--dvc", default="dvc", help="The program dvc.")
def main(what: str, stages: tuple[str, ...], scale: str, status: bool, dvc: str) -> None:
    """Run it."""
    folder = PIPELINES if scale == "full" else ROOT / "build/small"
    if scale == "small":
        write_small(folder)
    chosen = [name for name in pipelines() if name not in _NO_PAGE] if what == "all" else [what]
    files = [f"{folder.relative_to(ROOT)}/{name}/dvc.yaml" for name in chosen]
    # The stages run this Python and the sources of this checkout.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    pythonpath = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": pythonpath, "DVC_NO_ANALYTICS": "1"}
    if status:
        _run([dvc, "repro", "--quiet", f"{folder.relative_to(ROOT)}/sources/dvc.yaml"], environment)
        _run([dvc, "status", *files], environment)
        return
    targets = [f"{files[0]}:{each}" if not each.startswith("-") else each for each in stages]
    named = any(not each.startswith("-") for each in stages)
    _run([dvc, "repro", *([] if named else files), *targets], environment)


def _run(command: list[str], environment: dict[str, str]) -> None:
    status = subprocess.run(command, env=environment, cwd=ROOT, check=False)  # noqa: S603  # our own command
    if status.returncode:
        raise SystemExit(status.returncode)


if __name__ == "__main__":
    main()
