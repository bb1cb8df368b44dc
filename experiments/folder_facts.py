"""Write what models' folders record of themselves as JSON: their size, and what making them measured.

    python -m experiments.folder_facts FOLDER... --out facts.json

A bundle has its parity with its model, a student the counts of its text, without any of its sentences, and the steps
and seconds of its training, a teacher with a PCA the share of the variance that its components explain, and a
pretrained encoder its loss.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

MANIFESTS = ("edgeembed.json", "edgeembed_student.json", "edgeembed_pca.json", "edgeembed_pretrained.json")
FACTS = (
    "precision",
    "num_parameters",
    "parameters",
    "sentences",
    "languages",
    "augmentation",
    "steps",
    "seconds",
    "loss",
    "explained_variance",
)


def folder_facts(folder: Path) -> dict[str, Any]:
    """Return a model's name, the size of all its files in bytes, and the facts of its manifest.

    Raises:
        click.ClickException: If the folder has no manifest of a model.
    """
    file = next((folder / name for name in MANIFESTS if (folder / name).is_file()), None)
    if file is None:
        expected = ", ".join(MANIFESTS)
        raise click.ClickException(f"{folder} has none of {expected}; pass the folder of a bundle, student or teacher")
    manifest = json.loads(file.read_text(encoding="utf-8"))
    recorded = {**manifest, **manifest.get("report", {})}
    facts: dict[str, Any] = {"name": folder.name}
    facts["size_bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    facts |= {name: recorded[name] for name in FACTS if recorded.get(name) not in (None, [])}
    for method in facts.get("augmentation", {}).get("methods", []):
        del method["samples"]  # sentences of the text, which may not be published
    if parity := manifest.get("parity"):
        facts["parity"] = {name: parity[name] for name in ("sentences", "min_cosine", "mean_cosine")}
    return facts


@click.command(help=__doc__)
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="JSON file to write.")
def main(folders: Sequence[Path], out: Path) -> None:
    """Write the facts of each folder."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([folder_facts(folder) for folder in folders], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
