"""The tables of a recipe: which text, vocabulary, student and head."""

from dataclasses import dataclass
from typing import Literal

from edgeembed.settings import require


@dataclass(frozen=True)
class CorpusSettings:
    """Which sentences are distilled from.

    Attributes:
        limit: Most sentences in all; `0` for no limit.
        limit_per_source: Most sentences of each file, so that a large one does not drown the others; `0` for none.
        min_characters: Shorter ones say too little to place.
        max_characters: Longer ones are passages, which cost much and teach a sentence encoder little.
        heldout: Most sentences set aside, to compare student and teacher on; a tenth of the corpus if that is fewer.
        licenses: Licenses of the text, which the bundle's card repeats.
    """

    limit: int = 0
    limit_per_source: int = 0
    min_characters: int = 10
    max_characters: int = 1000
    heldout: int = 1000
    licenses: tuple[str, ...] = ()

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
        intermediate_size: Width of their feed-forward parts, which hold two thirds of a BERT's layer; `0` for as many
            times the layers' width as the model has. Of narrower ones the neurons that matter most are kept.
        attention_heads: How many each layer has; `0` for as many as keep the model's width, or else its number. Layers
            that start at random may have fewer: each costs time, however narrow it is.
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
    intermediate_size: int = 0
    attention_heads: int = 0
    max_seq_length: int = 256
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuse impossible sizes."""
        for name in ("layers", "token_dim", "hidden_size", "intermediate_size", "attention_heads"):
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
