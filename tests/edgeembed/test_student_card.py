"""The model card and provenance in a student's folder."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from edgeembed.cli.distill import command
from edgeembed.distillation import distill, pipeline
from edgeembed.models import load_model
from edgeembed.recipe.loading import load_recipe


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "default_device", lambda: "cpu")


SMALL = [
    "vocabulary.kind=teacher",
    "student.layers=1",
    "student.token_dim=8",
    "student.max_seq_length=32",
    "head.dim=6",
    "stages.epochs=1",
    "stages.batch_size=32",
]


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[str]) -> Path:
    file = tmp_path / "letters.txt"
    file.write_text("\n".join(sentences) + "\n")
    return file


def run_distill(corpus: Path, teacher: Path, out: Path, *more: object) -> Result:
    settings = [word for setting in SMALL for word in ("--set", setting)]
    words = ["--corpus", corpus, "--teacher", teacher, "--out", out, *settings, *more]
    return CliRunner().invoke(command, [str(word) for word in words])


def test_the_card_states_the_provenance_and_no_file_contains_local_paths(
    corpus: Path, teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "student"
    words = ["edgeembed", "distill", "--corpus", str(corpus), f"--out={out}", "--set", f'teacher="{teacher_folder}"']
    monkeypatch.setattr("sys.argv", words)
    dev = tmp_path / "dev.tsv"
    rows = [f"{sentences[row]}\t{sentences[row + 1]}\t{row % 6}" for row in range(30)]
    dev.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    done = run_distill(corpus, teacher_folder, out, "--dev", dev, "--set", 'corpus.licenses=["CC0-1.0"]', "--json")
    assert done.exception is None, done.exception
    report = json.loads(done.stdout)
    card = (out / "README.md").read_text(encoding="utf-8")
    front_matter = yaml.safe_load(card.split("---\n")[1])
    assert front_matter["base_model"] == "model"
    assert front_matter["license"] == "unknown"
    assert (front_matter["library_name"], front_matter["pipeline_tag"]) == (
        "sentence-transformers",
        "sentence-similarity",
    )
    assert front_matter["datasets"] == ["letters"]
    assert "sentence-transformers" in front_matter["tags"]
    assert f"| 1 | {report['steps'][0]} | {report['losses'][0]:.4f} | {report['final_losses'][0]:.4f} |" in card
    assert f"{report['dev_spearman'][0]:.1f}" in card
    for stated in ("letters.txt", "270 sentences", "CC0-1.0", "Seed: 0", "SentenceTransformer(", "edgeembed export"):
        assert stated in card
    named = [
        file.relative_to(out)
        for file in out.rglob("*")
        if file.is_file()
        and any(str(folder).encode() in file.read_bytes() for folder in (tmp_path, teacher_folder.parent))
    ]
    assert not named


def test_license_and_language_are_taken_from_the_teachers_card(
    corpus: Path, teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "student"
    recipe = load_recipe("compact", [f'teacher="{teacher_folder}"', "corpus.heldout=0", *SMALL])
    (teacher_folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n")
    try:
        distill(recipe, sentences, out)
    finally:
        (teacher_folder / "README.md").unlink()
    front_matter = yaml.safe_load((out / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert (front_matter["license"], front_matter["language"]) == ("apache-2.0", ["en"])


def test_the_losses_and_scores_of_stages_are_printed(corpus: Path, teacher_folder: Path, tmp_path: Path) -> None:
    done = run_distill(corpus, teacher_folder, tmp_path / "student")
    assert done.exception is None, done.exception
    assert "stage 1: loss 0." in done.stdout.replace("loss 1.", "loss 0.")


def test_a_small_corpus_distills_with_the_recipes_settings(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    few = tmp_path / "few.txt"
    few.write_text("\n".join(sentences[:40]) + "\n")
    done = run_distill(few, teacher_folder, tmp_path / "student")
    assert done.exception is None, done.exception
    assert "distilled from 36 sentences" in done.stdout


def test_resume_reports_that_there_is_nothing_to_resume(corpus: Path, teacher_folder: Path, tmp_path: Path) -> None:
    done = run_distill(corpus, teacher_folder, tmp_path / "student", "--resume")
    assert done.exception is None, done.exception
    (line,) = [line for line in done.stderr.splitlines() if "--resume" in line]
    assert "holds no checkpoint of this run" in line
    assert "starts from the beginning" in line


@pytest.mark.parametrize("step", [0, 1])
def test_an_interrupted_run_points_to_resume_if_anything_was_kept(
    step: int, corpus: Path, teacher_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    place = ("load_model", "train_stage")[step]
    monkeypatch.setattr(pipeline, place, interrupted)
    done = run_distill(corpus, teacher_folder, tmp_path / "student")
    assert done.exit_code != 0
    hints = [line for line in done.stderr.splitlines() if "--resume continues" in line]
    assert len(hints) == step
    assert all("student.cache keeps teacher embeddings" in hint for hint in hints)


def test_a_saved_student_loads(teacher_folder: Path, sentences: list[str], tmp_path: Path) -> None:
    recipe = load_recipe("compact", [f'teacher="{teacher_folder}"', "corpus.heldout=0", *SMALL])
    report = distill(recipe.replace(name="mine"), sentences, tmp_path / "student")
    assert load_model(str(tmp_path / "student")).encode("a cat").shape == (report.dimension,)
