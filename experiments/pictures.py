"""Pictures of docs/pictures: quality against size and against latency, from the report of docs/results/bench.md.

python -m experiments.pictures
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import click
from edgeembed_bench import BenchmarkReport, read_report
from edgeembed_bench.render.svg import DARK, LIGHT, color, log_limits, marker, set_log_scale, write
from edgeembed_bench.render.tables import digits
from edgeembed_bench.render.tradeoff import Point, quality_limits
from edgeembed_bench.sizes import measure_size
from edgeembed_bench.subjects import Subject
from edgeembed_runtime.builtin_models import builtin_bundle, builtin_names
from edgeembed_runtime.manifest import MANIFEST
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from matplotlib.transforms import Bbox

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "docs/results/bench.json"
PICTURES = ROOT / "docs/pictures"
# The tasks of the report as the manifests of the encoders in the wheel name them.
_TASKS = ("STS-B (Spearman x100)", "SICK-R (Spearman x100)", "scifact (nDCG@10 x100)")
PEERS = ("teacher", "teacher int8", "model2vec")
_PEER, _OURS = 0, 1  # positions of color and marker
_INCHES = (7.2, 4.0)
_METADATA = ("Creator", "Date", "Format", "Type")  # left out, so that the file does not change


@dataclass(frozen=True)
class Picture:
    """A picture of quality against a cost.

    Attributes:
        name: Name of its file, without the ending.
        title: Its title.
        axis: What the costs are.
        unit: Unit of the costs.
        points: The encoders.
    """

    name: str
    title: str
    axis: str
    unit: str
    points: tuple[Point, ...]

    @property
    def description(self) -> str:
        """All values of the picture as text, for those who cannot see it."""
        values = "; ".join(
            f"{each.name}: {digits(each.cost)} {self.unit}, {each.quality:.1f} %"
            for each in sorted(self.points, key=lambda each: each.cost)
        )
        return f"{self.axis.capitalize()}, and mean of STS-B, SICK-R and SciFact in % of the teacher's: {values}."


def build_pictures(report: BenchmarkReport) -> list[Picture]:
    """Return the pictures of a report: quality against size, and against latency.

    The encoders in the wheel have the size of their files and the scores of their manifests, so that the first picture
    is right before the report is measured again.

    Args:
        report: The report. Subjects without a score on every task are left out.
    """
    scored = [(subject, quality) for subject in report if (quality := report.quality_percent(subject.name)) is not None]
    sizes = [
        Point(_PEER, subject.name, subject.size.size_bytes / 1e6, quality)
        for subject, quality in scored
        if subject.name in PEERS and subject.size.size_bytes
    ]
    latencies = [
        Point(_PEER if subject.name in PEERS else _OURS, subject.name, subject.latency.median, quality)
        for subject, quality in scored
    ]
    shipped = [_shipped(name) for name in builtin_names()]
    return [
        Picture("quality-size", "Quality against size", "size on disk", "MB", (*shipped, *sizes)),
        Picture("latency-quality", "Quality against latency", "median latency of a sentence", "ms", tuple(latencies)),
    ]


def draw_picture(picture: Picture) -> str:
    """Draw a picture as SVG, which follows the reader's light or dark color scheme.

    Args:
        picture: The picture.

    Returns:
        The file's content; the same for the same picture and version of matplotlib.
    """
    output = io.StringIO()
    with style.context(["default", LIGHT.style]):
        figure = Figure(figsize=_INCHES, layout="constrained")
        _paint(figure.subplots(), picture)
        figure.savefig(output, format="svg", facecolor=LIGHT.card, metadata=dict.fromkeys(_METADATA))
    head, tag, rest = output.getvalue().partition("<svg ")
    attributes, bracket, content = rest.partition(">")
    accessible = f"<title>{escape(picture.title)}</title>\n <desc>{escape(picture.description)}</desc>"
    return f'{head}{tag}role="img" {attributes}{bracket}\n {accessible}\n <style>{_dark_rules()}</style>{content}'


def _paint(axes: Axes, picture: Picture) -> None:
    set_log_scale(axes, "x", log_limits([point.cost for point in picture.points], room=1.7))
    low, high = quality_limits([point.quality for point in picture.points])
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MultipleLocator(5))
    axes.set_xlabel(f"{picture.axis} in {picture.unit} (logarithmic axis)")
    quality = "quality in % of the teacher's: STS-B, SICK-R and SciFact"
    axes.set_title(f"{quality} (axis from {low:g} to {high:g})", pad=14, fontsize=11)
    below: list[Bbox] = []
    for point in sorted(picture.points, key=lambda point: point.cost):
        shape, hue = marker(point.position), color(point.position)
        axes.plot(point.cost, point.quality, shape, color=hue, markersize=10, clip_on=False, zorder=3)
        label = write(
            axes,
            point.name,
            (point.cost, point.quality),
            xytext=(0, -12),
            textcoords="offset points",
            ha="center",
            va="top",
            weight="bold" if point.position == _OURS else "normal",
        )
        if any(label.get_window_extent().overlaps(other) for other in below):
            label.set(position=(0, 10), va="bottom")
        else:
            below.append(label.get_window_extent())


def _dark_rules() -> str:
    """Return CSS that replaces each light color by the dark one; viewers that ignore it show the light picture."""
    light, dark = ((each.card, each.ink, each.muted, each.grid, *each.series[:2]) for each in (LIGHT, DARK))
    rules = "".join(
        f'[style*="{kind}: {old}"]{{{kind}:{new}!important}}'
        for old, new in zip(light, dark, strict=True)
        for kind in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme:dark){{{rules}}}"


def _shipped(name: str) -> Point:
    folder = Path(str(builtin_bundle(name)))
    scores = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["quality"]["scores"]
    own, teacher = (sum(scores[task][role] for task in _TASKS) for role in ("student", "teacher"))
    size_bytes = measure_size(Subject(name, "bundle", str(folder))).size_bytes
    return Point(_OURS, name, (size_bytes or 0) / 1e6, 100 * own / teacher)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=PICTURES, help="Folder of the SVG files.")
def command(out: Path) -> None:
    """Draw the pictures of docs/results/bench.json."""
    out.mkdir(parents=True, exist_ok=True)
    for picture in build_pictures(read_report(REPORT)):
        file = out / f"{picture.name}.svg"
        file.write_text(draw_picture(picture), encoding="utf-8")
        click.echo(file)


if __name__ == "__main__":
    command()
