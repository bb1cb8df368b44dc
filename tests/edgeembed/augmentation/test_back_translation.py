import json
import shutil
from pathlib import Path

import pytest
from edgeembed_runtime.errors import InputError
from tokenizers import Tokenizer

from edgeembed.augmentation import back_translation
from edgeembed.augmentation.back_translation import BackTranslation


@pytest.fixture(autouse=True)
def _cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_translation, "default_device", lambda: "cpu")


def test_every_sentence_has_one_deterministic_back_translation(
    translators: tuple[str, str], sentences: list[str]
) -> None:
    given = sorted(sentences[:40], key=len)
    made = BackTranslation(*translators).vary(given)
    assert [len(variants) for variants in made] == [1] * 40
    assert len({variants[0].text for variants in made}) > 1
    assert all(variants[0].substituted is None for variants in made)
    assert BackTranslation(*translators).vary(given) == made


def test_a_sentence_longer_than_the_model_limit_is_truncated(
    translators: tuple[str, str],
) -> None:
    ((variant,),) = BackTranslation(*translators).vary(["the small cat " * 100])
    assert isinstance(variant.text, str)


def test_the_key_depends_on_the_models_and_their_order(translators: tuple[str, str]) -> None:
    there, back = translators
    assert BackTranslation(there, back).key == BackTranslation(there, back).key != BackTranslation(back, there).key


def test_a_model_of_another_kind_is_an_error(translators: tuple[str, str], teacher_folder: Path) -> None:
    with pytest.raises(InputError, match="does not load as a translation model") as raised:
        BackTranslation(translators[0], str(teacher_folder)).vary(["the small cat"])
    assert "\n" not in str(raised.value)


def test_a_model_without_a_tokenizer_is_an_error(translators: tuple[str, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(translators[0], tmp_path / "copy"))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(InputError, match="does not load as a translation model") as raised:
        BackTranslation(str(folder), translators[1]).vary(["the small cat"])
    assert "\n" not in str(raised.value)


def test_a_multilingual_model_is_an_error(translators: tuple[str, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(translators[0], tmp_path / "copy"))
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokenizer_class": "NllbTokenizerFast"}))
    with pytest.raises(InputError, match="translates between many languages"):
        BackTranslation(str(folder), translators[1]).vary(["the small cat"])


def test_a_tokenizer_of_another_model_is_an_error(translators: tuple[str, str], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(translators[0], tmp_path / "copy"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["elephant"])
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(InputError, match="expected the model's own tokenizer"):
        BackTranslation(str(folder), translators[1]).vary(["the small elephant"])


def test_a_missing_model_is_an_error(translators: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="no model called nowhere"):
        BackTranslation("nowhere", translators[1])
