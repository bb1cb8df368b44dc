"""The kind of student `spread_layers`."""

from typing import ClassVar, Literal

from edgeembed.architectures import encoder_layers
from edgeembed.students.base import STUDENTS, StudentContext
from edgeembed.students.kinds.transformer import Transformer
from edgeembed.students.transformer import CompactTransformer


@STUDENTS.register("spread_layers")
class SpreadLayers(Transformer):
    """A transformer that starts from layers at even distances in the source, as DistilBERT (Sanh et al. 2019).

    Attributes:
        keep: Which of the source's end layers is always among them.
    """

    outputs_tokens: ClassVar[bool] = True

    keep: Literal["first", "last"] = "last"

    def build(self, context: StudentContext) -> CompactTransformer:
        """Return the encoder, initialized from the source."""
        module = super().build(context)
        layers, source = encoder_layers(module.auto_model), encoder_layers(context.source[0].auto_model)
        for number, layer in enumerate(layers):
            place = number if self.keep == "first" else number + 1
            chosen = place * len(source) // len(layers) - (self.keep == "last")
            layer.load_state_dict(source[chosen].state_dict())
        return module
