"""Callbacks of the Hugging Face trainer: progress, and what happens at the last step."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from edgeembed.progress import Advance


class StepCallback(TrainerCallback):  # type: ignore[misc]  # transformers carries no types
    """Report the trainer's steps.

    Args:
        advance: Called with the number of steps done so far: first with those of an earlier run, usually none.
    """

    def __init__(self, advance: Advance) -> None:
        self.advance = advance

    def on_train_begin(self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: Any) -> None:
        """Report the number of steps that an earlier run has done."""
        self.advance(state.global_step)

    def on_step_end(self, _args: TrainingArguments, state: TrainerState, _control: TrainerControl, **_: Any) -> None:
        """Report the number of steps."""
        self.advance(state.global_step)


class LastStepCallback(TrainerCallback):  # type: ignore[misc]  # as above
    """Log, evaluate and save at the last step too, as at every full interval.

    transformers 4 does not evaluate there, and so would keep the best checkpoint before it.

    Args:
        evaluates: Whether there is anything to evaluate on.
    """

    def __init__(self, *, evaluates: bool) -> None:
        self.evaluates = evaluates

    def on_step_end(self, _args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Request all three if training ends with this step: by number, or because another callback stops it."""
        if state.global_step >= state.max_steps or control.should_training_stop:
            control.should_log = control.should_save = True
            control.should_evaluate = self.evaluates
