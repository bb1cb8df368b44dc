"""The evaluation task `paraphrases`."""

from pathlib import Path
from typing import Annotated

from edgeembed.evaluation import TASKS, EvaluationTask, Score, SentenceEncoder, SentencePairs, Setting, read_sts
from edgeembed.evaluation.intervals import scaled, share_interval


@TASKS.register("paraphrases")
class Paraphrases(EvaluationTask):
    """Whether a threshold on the cosine similarity tells paraphrases."""

    metavar = "FILE"
    help = "As --sts FILE, with scores 0 and 1: accuracy of a threshold on the similarity."

    def __init__(
        self, *sources: str, percent: Annotated[int, Setting("Similarity of paraphrases, x100.", minimum=0)] = 70
    ) -> None:
        self.check_settings(percent=percent)
        self.threshold = percent / 100
        self.sets = [read_sts(Path(each)) for each in self.check_sources(sources)]

    def score(self, encoder: SentenceEncoder, data: SentencePairs) -> list[Score]:
        """Score an encoder on one file."""
        from edgeembed.evaluation.tasks.sts import pairwise_cosine

        similar = pairwise_cosine(encoder.encode(data.first), encoder.encode(data.second)) > self.threshold
        correct, count = int((similar == (data.scores > 0.5)).sum()), len(data.scores)
        interval = scaled(share_interval(correct, count))
        return [Score(data.name, "accuracy x100", 100 * correct / count, count, interval=interval)]
