"""Random erasing beside its algorithm, written image by image."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.config.recipes import Augment
from benchmark.training.augment import augment, erase


def algorithm_1(image: np.ndarray, share: float, draws: np.ndarray) -> np.ndarray:
    """Zhong et al. (2020): area 2 to 40 %, height over width 0.3 to 1 / 0.3, a place inside."""
    height, width = image.shape[1:]
    chosen, area, ratio, down, across = (float(d) for d in draws)
    out = image.copy()
    if chosen < share:
        covered = (0.02 + (0.4 - 0.02) * area) * height * width
        slant = 0.3 + (1 / 0.3 - 0.3) * ratio
        tall = min(max(round(math.sqrt(covered * slant)), 1), height)
        wide = min(max(round(math.sqrt(covered / slant)), 1), width)
        top, left = int(down * (height - tall + 1)), int(across * (width - wide + 1))
        out[:, top : top + tall, left : left + wide] = 0
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 24), st.integers(3, 24), st.floats(0, 1))
def test_is_the_algorithm(seed, height, width, share):
    rng = torch.Generator().manual_seed(seed)
    images = torch.randn(6, 3, height, width, generator=rng)
    draws = torch.rand(5, 6, generator=rng)
    expected = [
        algorithm_1(image, share, draw)
        for image, draw in zip(images.numpy(), draws.T.double().numpy(), strict=True)
    ]
    # A side that lies between two pixels may be rounded otherwise in 32 bits.
    same = [
        np.array_equal(a, b)
        for a, b in zip(erase(images, share, draws).numpy(), expected, strict=True)
    ]
    assert sum(same) >= 5


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_images_and_nothing_else(share):
    images = torch.rand(4000, 1, 16, 8) + 0.5
    erased = erase(images, share, torch.rand(5, 4000, generator=torch.Generator().manual_seed(1)))
    gone = (erased == 0).flatten(1)
    assert gone.any(1).float().mean() == pytest.approx(share, abs=0.03)
    assert torch.equal(erased[erased != 0], images[erased != 0])
    if share:
        part = gone[gone.any(1)].float().mean(1)
        assert part.min() > 0 and part.max() <= 0.45 and 0.15 < part.mean() < 0.23


def test_other_changes_stay_as_they_are():
    """Its draws are a lot of their own."""
    images = torch.randn(64, 3, 16, 16)
    without, with_ = (
        augment(images, Augment(rotate=9, flip=True, erase=share), torch.Generator().manual_seed(2))
        for share in (0.0, 0.5)
    )
    kept = with_ != 0
    assert torch.equal(with_[kept], without[kept]) and not kept.all()
