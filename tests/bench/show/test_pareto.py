import pytest
from edgeembed_bench.show.plots.pareto import pareto_front, stairs

Points = list[tuple[float, float]]


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ([(1, 50)], [(1, 50)]),
        ([(2, 60), (1, 50)], [(1, 50), (2, 60)]),
        ([(1, 60), (2, 50)], [(1, 60)]),
        ([(1, 50), (2, 70), (3, 60), (4, 80)], [(1, 50), (2, 70), (4, 80)]),
        # As good for more, and no better for as much.
        ([(1, 50), (2, 50)], [(1, 50)]),
        ([(1, 50), (1, 60)], [(1, 60)]),
        ([(1, 50), (1, 50)], [(1, 50)]),
        ([], []),
    ],
)
def test_the_front_holds_what_no_other_beats(points: Points, front: Points) -> None:
    assert pareto_front(points) == front
    assert pareto_front(points[::-1]) == front


def test_the_line_along_a_front_keeps_a_quality_until_the_next_is_paid_for() -> None:
    assert stairs([(1, 50), (2, 60), (4, 70)]) == [(1, 50), (2, 50), (2, 60), (4, 60), (4, 70)]
    assert stairs([(1, 50)]) == [(1, 50)]
