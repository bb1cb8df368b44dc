"""The agreement between a bundle and the model that it was exported from, as its manifest states it.

`manifest` imports this module when it is first needed: an encoder does without it, and starts faster.
"""

from dataclasses import dataclass

from edgeembed_runtime.storage.json_fields import JsonFields


@dataclass(frozen=True)
class WorstSentence:
    """One of the sentences with the lowest cosines between the exported model and the bundle.

    Attributes:
        text: The sentence.
        cosine: The cosine between its embedding by the exported model and by the bundle.
    """

    text: str
    cosine: float


@dataclass(frozen=True)
class Parity:
    """The agreement between a bundle's embeddings and those of the model it was exported from.

    Attributes:
        sentences: The number of sentences compared.
        min_cosine: The lowest cosine of a sentence's two embeddings.
        mean_cosine: The mean cosine.
        worst_sentences: The sentences with the lowest cosines, in ascending order.
        p01_cosine: The first percentile of the cosines; None if it was not measured.
        spearman: Spearman's rank correlation between the two models' cosines of all pairs of sentences; None if
            there were too few sentences.
        top_10_overlap: The mean share of a sentence's ten nearest neighbors that both models agree on; None if
            there were too few sentences.
    """

    sentences: int
    min_cosine: float
    mean_cosine: float
    worst_sentences: tuple[WorstSentence, ...]
    p01_cosine: float | None
    spearman: float | None
    top_10_overlap: float | None


@dataclass(frozen=True)
class WorstPrediction:
    """One of the texts whose probabilities differ most between the exported classifier and the bundle.

    Attributes:
        text: The text; of a pair, both texts with a tab between them.
        probability_difference: The largest absolute difference of a label's probability.
    """

    text: str
    probability_difference: float


@dataclass(frozen=True)
class ClassifierParity:
    """The agreement between a bundle's predictions and those of the classifier it was exported from.

    Attributes:
        sentences: The number of texts, or pairs of texts, compared.
        label_agreement: The share of the texts for which both predict the same label.
        max_probability_difference: The largest absolute difference of a label's probability.
        mean_probability_difference: The mean over the texts of their largest difference.
        worst_sentences: The texts with the largest differences, in descending order.
    """

    sentences: int
    label_agreement: float
    max_probability_difference: float
    mean_probability_difference: float
    worst_sentences: tuple[WorstPrediction, ...]


def parse_parity(fields: JsonFields) -> Parity:
    """Return the parity in the manifest of an encoder.

    Raises:
        InputError: Or the error class of `fields`, if a field is missing or invalid.
    """
    worst = fields.children("worst_sentences")
    return Parity(
        sentences=fields.integer("sentences"),
        min_cosine=fields.number("min_cosine"),
        mean_cosine=fields.number("mean_cosine"),
        worst_sentences=tuple(WorstSentence(item.string("text"), item.number("cosine")) for item in worst),
        p01_cosine=fields.nullable_number("p01_cosine"),
        spearman=fields.nullable_number("spearman"),
        top_10_overlap=fields.nullable_number("top_10_overlap"),
    )


def parse_classifier_parity(fields: JsonFields) -> ClassifierParity:
    """Return the parity in the manifest of a classifier.

    Raises:
        InputError: Or the error class of `fields`, if a field is missing or invalid.
    """
    worst = fields.children("worst_sentences")
    return ClassifierParity(
        sentences=fields.integer("sentences"),
        label_agreement=fields.number("label_agreement"),
        max_probability_difference=fields.number("max_probability_difference"),
        mean_probability_difference=fields.number("mean_probability_difference"),
        worst_sentences=tuple(
            WorstPrediction(item.string("text"), item.number("probability_difference")) for item in worst
        ),
    )
