"""The recipes of CMOW."""

import pytest

from edgeembed.recipe.loading import load_recipe
from edgeembed.students.matrix_student import MatrixStudent


@pytest.mark.parametrize(
    ("recipe", "overrides", "parameters"),
    [  # tables 12 and 13: the linear probe's total less its classifier
        ("cmow", [], 23_932_386 - 3_138),
        ("cbow", [], 23_932_386 - 3_138),  # the paper's 47,861,634 - 3,138 are twice as many
        ("cmow-hybrid-unidirectional", [], 24_420_802 - 3_202),
        ("cmow-hybrid", [], 36_640_802 - 14_402),
        ("cmow-general", [], 36_640_802 - 14_402),
        ("cmow-general", ["student.shape.bidirectional=false"], 24_420_802 - 3_202),
    ],
)
def test_recipes_have_embedding_tables_of_the_papers_size_and_random_vectors(
    recipe: str, overrides: list[str], parameters: int
) -> None:
    loaded = load_recipe(recipe, overrides)
    assert isinstance(loaded.student.shape, MatrixStudent)
    config = loaded.student.shape.config(loaded.head.dim if loaded.head.kind == "linear" else 0)
    assert config.rank == 0
    assert 30_522 * config.width == parameters
    assert loaded.student.table_init == "random"
