"""Fused operators and their parts compute the same, and both are timed."""

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.export.fused_operators import Form, build, command, forms, run


@pytest.mark.parametrize("pair", forms().values(), ids=forms())
def test_a_fused_operator_gives_what_its_parts_give(pair: tuple[Form, Form]) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 384), dtype=np.float32)
    fused, parts = (run(build(form.chain, repeated=2))(x) for form in pair)
    assert np.abs(fused - x).max() > 0.1
    assert np.abs(fused - parts).max() < 1e-5


@pytest.mark.parametrize("pair", forms().values(), ids=forms())
def test_a_fused_operator_is_one_node_of_many(pair: tuple[Form, Form]) -> None:
    fused, parts = ([node.op_type for node in form.chain("x", "y")] for form in pair)
    alone = [kind for kind in fused if kind not in parts]  # what rounds to int8 stands before both
    assert len(alone) == 1 < len([kind for kind in parts if kind not in fused])


def test_both_forms_of_each_are_in_the_table() -> None:
    done = CliRunner().invoke(command, ["--runs", "1"], env={"COLUMNS": "120"})
    assert done.exit_code == 0
    for pair in forms().values():
        for form in pair:
            assert form.name in done.stdout
