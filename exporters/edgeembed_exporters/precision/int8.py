"""Matrix products in int8, such that a vector depends neither on its batch nor on the processor.

onnxruntime's dynamic quantization gives a whole batch one scale, so a text's vector depends on its neighbours. Here it
is one of four ways for each product:

- Of a table's rows, which are stored in int8, the stored levels are multiplied (`looked_up`).
- After a layer normalisation, levels are fixed beforehand (`normalised`): few nodes, and nearest to the model.
- Of what an attention gives they are fixed too (`attended`): the product that makes its values centers and scales it.
- Elsewhere every token has a scale of its own (ZeroQuant, Yao et al. 2022, section 4.1; `by_token`), since a GELU's
  ranges differ from text to text too much for fixed ones.

With each, products of one level and one weight fit twice into 16 bits: processors with AVX2 but without VNNI add them
in pairs there, and with 8 bits each they would saturate. They multiply levels as they are stored, before the level of
zero is taken off.

With all-MiniLM-L6-v2 docs/results/export.md has the figures.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from edgeembed_exporters.editing import Editor
from edgeembed_exporters.precision.attended import centre_values, multiply_attended
from edgeembed_exporters.precision.attentions import join_attentions
from edgeembed_exporters.precision.by_token import multiply_by_token
from edgeembed_exporters.precision.calibration import measure_reaches
from edgeembed_exporters.precision.looked_up import multiply_looked_up, stored_rows
from edgeembed_exporters.precision.normalised import Normalisation, multiply_normalised, normalisation_of
from edgeembed_exporters.precision.products import Group, find_products, over_shared, split_gemms
from edgeembed_exporters.precision.residual import move_biases


def quantise_products(model: onnx.ModelProto, token_ids: Iterable[list[int]]) -> onnx.ModelProto:
    """Give the graph with every product with a constant matrix done in int8.

    Args:
        model: The graph, in float32.
        token_ids: Texts to calibrate on, one unpadded row of token ids each; a few dozen are enough.

    Returns:
        A new graph with the same inputs and outputs.
    """
    quantize = onnx.ModelProto()
    quantize.CopyFrom(model)
    split_gemms(quantize)
    editor = Editor(quantize)
    groups = find_products(editor)
    reaches = measure_reaches(quantize, [group.activation for group in groups], token_ids)
    reaches = over_shared(groups, reaches, np.maximum)
    norms = _normalisations(editor, groups)
    attended = centre_values(editor, groups, reaches)
    replacements: dict[str, list[onnx.NodeProto]] = {}
    for group in attended.groups:
        reach, norm, rows = reaches[group.activation], norms.get(group.activation), stored_rows(editor, group)
        if rows is not None:
            nodes = multiply_looked_up(editor, group, rows)
        elif group.activation in attended.steps:
            nodes = multiply_attended(editor, group, attended.steps[group.activation])
        elif norm is None:
            nodes = multiply_by_token(editor, group, reach)
        else:
            nodes = multiply_normalised(editor, group, norm, reach)
        replacements |= group.replacements(editor, nodes)
    editor.replace(replacements)
    move_biases(quantize)
    join_attentions(quantize)
    return quantize


def _normalisations(editor: Editor, groups: Sequence[Group]) -> dict[str, Normalisation]:
    """Give what normalises activations, by their names.

    Left out are those of layers that share weights after different normalisations: they would share them no longer.
    """
    found = {group.activation: normalisation_of(editor, group) for group in groups}
    kinds: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for group in groups:
        norm = found[group.activation]
        kinds.setdefault(group.weights, set()).add(norm.stored if norm else ())
    shared = {group.activation for group in groups if len(kinds[group.weights]) > 1}
    return {activation: norm for activation, norm in found.items() if norm and activation not in shared}
