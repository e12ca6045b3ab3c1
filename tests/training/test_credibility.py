"""Credible old features against a loop over classes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmark.training.credibility import CredibleMask, near_own_class
from benchmark.training.prototypes import class_means


def naive(features, labels, drop, directions):
    f = np.asarray(features, np.float64)
    if directions:
        f = np.array([row / math.sqrt((row**2).sum()) for row in f])
    lengths = np.sqrt((f**2).sum(axis=0))
    f = f / np.where(lengths > 0, lengths, 1)
    keep = np.ones(len(f), bool)
    for c in set(labels.tolist()):
        rows = [i for i in range(len(f)) if labels[i] == c]
        centre = sum(f[i] for i in rows) / len(rows)
        far = sorted(rows, key=lambda i: (-math.dist(f[i], centre), -i))
        count = int(drop * len(rows) + 1e-9)
        if count:  # rounding decides between two that are equally far, as both of a pair are
            last, kept = (math.dist(f[i], centre) for i in far[count - 1 : count + 1])
            assume(last - kept > 1e-12)
        for i in far[:count]:
            keep[i] = False
    return keep


@given(
    n=st.integers(1, 60),
    classes=st.integers(1, 6),
    drop=st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.9, 0.99]),
    directions=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_is_the_loop(n, classes, drop, directions, seed):
    rng = np.random.default_rng(seed)
    # Dimensions of very different scale: without the common scale the first would rule.
    features = (rng.standard_normal((n, 4)) * [1000, 1, 1, 0.01]).astype(np.float32)
    labels = rng.integers(0, classes, n)
    got = near_own_class(torch.from_numpy(features), torch.from_numpy(labels), drop, directions)
    assert got.tolist() == naive(features, labels, drop, directions).tolist()


def test_each_dimension_counts_alike():
    """The outlier of the small dimension goes, not the one that only has large numbers."""
    features = torch.tensor([[100.0, 0.0], [101, 0], [99, 0], [104, 0], [100, 1.0]])
    keep = near_own_class(features, torch.zeros(5, dtype=torch.long), 0.2, directions=False)
    assert keep.tolist() == [True, True, True, True, False]


def test_lengths_do_not_count():
    """One long vector that points where its class does, one short one that points elsewhere."""
    features = torch.tensor([[1.0, 0.1], [1, 0], [90, 5], [1, 0.05], [0.6, 0.5]])
    labels = torch.zeros(5, dtype=torch.long)
    assert near_own_class(features, labels, 0.2).tolist() == [True] * 4 + [False]
    text = near_own_class(features, labels, 0.2, directions=False)
    assert text.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(("n", "kept"), [(1, 1), (9, 9), (10, 9), (19, 18), (20, 18), (30, 27)])
def test_floor_of_the_share(n, kept):
    features = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
    assert near_own_class(features, torch.zeros(n, dtype=torch.long), 0.1).sum() == kept


def test_ties_go_to_the_earlier_row():
    features = torch.tensor([[1.0, 0.0], [-1, 0], [0, 1], [0, -1]]).repeat(5, 1)
    keep = near_own_class(features, torch.zeros(20, dtype=torch.long), 0.25)
    assert keep.tolist() == [True] * 15 + [False] * 5


def test_a_class_without_images_and_a_dimension_of_zeros():
    features = torch.tensor([[1.0, 0], [2, 0], [9, 0], [1, 0]])
    keep = near_own_class(features, torch.tensor([0, 0, 0, 3]), 0.4, directions=False)
    assert keep.tolist() == [True, True, False, True]


@pytest.mark.parametrize("drop", [-0.1, 1.0, 2.0])
def test_a_share_out_of_range(drop):
    with pytest.raises(ValueError, match="drop"):
        near_own_class(torch.zeros(3, 2), torch.zeros(3, dtype=torch.long), drop)


def test_the_mask_goes_with_the_checkpoint():
    state = CredibleMask(torch.randn(20, 3), torch.zeros(20, dtype=torch.long), 0.1)
    assert state.state_dict()["keep"].sum() == 18
    assert not list(state.parameters())


def test_class_means():
    features = torch.tensor([[1.0, 2], [3, 4], [10, 0]])
    got = class_means(features, torch.tensor([0, 0, 2]), 4)
    assert got.tolist() == [[2, 3], [0, 0], [10, 0], [0, 0]]
