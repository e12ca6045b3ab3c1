"""Declarations of result lists and of work at query time, held to what the adapter's parts do."""

import numpy as np
from numpy.typing import NDArray

from benchmark.config.declarations import MethodDeclaration
from benchmark.contract import RescoredList, TwoLists
from benchmark.contract.lists import ranks
from benchmark.errors import BenchError

_QUERIES, _ITEMS = 5, 40
Scores = NDArray[np.floating]


def check_lists(method: MethodDeclaration, has_joint_view: bool, merge: TwoLists | None) -> None:
    """Every check of this module, on made-up scores without ties.

    Raises:
        BenchError: Naming the first fault.
    """
    _check_declared(method, has_joint_view, merge)
    if merge is None:
        return
    rng = np.random.default_rng(0)
    both = rng.uniform(-1, 1, (2, _QUERIES, _ITEMS)).astype(np.float32)
    filled = rng.random(_ITEMS) < 0.5
    first, second = both.copy()
    first[:, filled], second[:, ~filled] = np.nan, np.nan
    for one, two in (both, (first, second if merge.searches else both[1])):
        _check_block(merge, one, two)
    if merge.searches and merge.places_by != "merge":
        _check_places(merge, first, second)
    if merge.fused_by != "merge":
        _check_fused(merge, *both)


def untrue(words: str) -> BenchError:
    """The error for a declared cost that is another."""
    return BenchError(f"declared cost that is not true: {words}")


def _check_declared(
    method: MethodDeclaration, has_joint_view: bool, merge: TwoLists | None
) -> None:
    if has_joint_view and not (method.runs_old_model and method.model_runs > 1):
        raise untrue(
            "a joint view needs queries by both models: declare runs_old_model and two model_runs"
        )
    if method.runs_old_model and not method.own_model and not has_joint_view:
        raise untrue("runs_old_model, and no joint view takes its queries")
    kept = 2 if merge is not None and merge.searches else 1
    if method.indexes != kept:
        raise untrue(f"{kept} of indexes kept, declared are {method.indexes}")
    embedded = 0 if merge is None else merge.new_embeddings
    if method.new_embeddings != embedded:
        raise untrue(f"{embedded} new embeddings a query, declared are {method.new_embeddings}")


def _check_block(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse a merge that gives no number, or one that depends on what stands beside it."""
    merged = merge.merge(first, second)
    if merged.shape != first.shape or not np.isfinite(merged).all():
        raise BenchError("merge: expected a finite number for each item in either list")
    order = np.random.default_rng(1).permutation(_ITEMS)
    if not np.array_equal(merge.merge(first[:, order], second[:, order]), merged[:, order]):
        raise BenchError("merge depends on the order of the items")
    for i in range(_QUERIES):
        if not np.array_equal(merge.merge(first[i : i + 1], second[i : i + 1])[0], merged[i]):
            raise BenchError("merge depends on the queries beside one")


def _check_places(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse items of one list alone that stand elsewhere than ``places_by`` says."""
    if merge.places_by == "score":
        left = first if merge.scale is None else merge.scale(first)
        expected = np.where(np.isnan(second), left, second)
    else:
        expected = -np.where(np.isnan(second), ranks(first), ranks(second))
    if not np.array_equal(ranks(merge.merge(first, second)), ranks(expected)):
        raise BenchError(
            f"merge does not place items by their {merge.places_by}, as places_by says: declare "
            "'merge'"
        )


def _check_fused(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse items of both lists that stand elsewhere than ``fused_by`` says."""
    expected = second
    if merge.fused_by == "mean":
        expected = second + (first if merge.scale is None else merge.scale(first))
    elif merge.fused_by == "ranks":
        expected = 1.0 / (merge.k + ranks(first)) + 1.0 / (merge.k + ranks(second))
    elif merge.fused_by == "window":
        expected = RescoredList(merge.window).merge(first, second)
    if not np.array_equal(ranks(merge.merge(first, second)), ranks(expected)):
        raise BenchError(
            f"merge does not place items of both lists by their {merge.fused_by}, as fused_by "
            "says: declare 'merge'"
        )
