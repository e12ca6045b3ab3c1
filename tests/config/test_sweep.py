"""Sweeps: which settings a field's values make."""

import pytest

from benchmark.config.sweep import Axis, parse_axes, points
from benchmark.errors import BenchError


def test_parse_axes() -> None:
    assert parse_axes(["old.head=softmax,arcface", "l2.weight=1,1e-3"]) == (
        Axis("old.head", ("softmax", "arcface")),
        Axis("l2.weight", (1, 1e-3)),
    )


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["l2.weight"], "key=value"),
        (["l2.weight=1"], "several different"),
        (["l2.weight=1,1"], "several different"),
        (["l2.weight=1,2", "l2.weight=3,4"], "given twice"),
        (["old.dim+new.dim=1,2", "new.dim=3,4"], "given twice"),
        (["l2.drop=[0],[1]"], "numbers or names"),
    ],
)
def test_refused(texts, said) -> None:
    with pytest.raises(BenchError, match=said):
        parse_axes(texts)


def test_points_are_every_combination() -> None:
    axes = parse_axes(["a.b=1,2", "c.d=x,y"])
    assert list(points(axes, {"e.f": 0})) == [
        {"e.f": 0, "a.b": 1, "c.d": "x"},
        {"e.f": 0, "a.b": 1, "c.d": "y"},
        {"e.f": 0, "a.b": 2, "c.d": "x"},
        {"e.f": 0, "a.b": 2, "c.d": "y"},
    ]
    assert list(points((), {"e.f": 0})) == [{"e.f": 0}]
    with pytest.raises(BenchError, match="also given by --set"):
        list(points(axes, {"a.b": 1}))


def test_fields_that_move_together() -> None:
    axes = parse_axes(["old.dim+new.dim=8,16"])
    assert list(points(axes, {})) == [{"old.dim": v, "new.dim": v} for v in (8, 16)]
    with pytest.raises(BenchError, match=r"new\.dim: also given by --set"):
        list(points(axes, {"new.dim": 1}))
