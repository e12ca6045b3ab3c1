"""Colours and blur: against colorsys, torchvision and scipy, and shares over many images."""

import colorsys

import numpy as np
import pytest
import torch
from scipy import ndimage
from torchvision.transforms.v2 import functional as reference

from benchmark.config.recipes import PHOTOGRAPHS, Augment
from benchmark.training.augment import augment, gaussian_blur, turn_hue
from benchmark.training.side_simclr import without_geometry


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def changes_drawn(n, seed=0):
    """The second draws of an image: ratio, saturation, hue, jitter, grey, blur, sigma."""
    rng = stream(seed)
    torch.rand(7, n, generator=rng)
    return torch.rand(7, n, generator=rng)


@pytest.fixture(scope="module")
def images():
    return (torch.rand(6, 3, 20, 20, generator=stream(3)) * 2 - 1).contiguous(
        memory_format=torch.channels_last
    )


def as_share(images):
    return (images + 1) / 2


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_saturation(images, strength):
    """As torchvision's, whose weights of the channels have four digits; never negative."""
    drawn = changes_drawn(6)[1]
    got = augment(images, Augment(saturation=strength), stream())
    for i, x in enumerate(images):
        factor = max(0.0, 1 + strength * (2 * drawn[i].item() - 1))
        wanted = reference.adjust_saturation(as_share(x), factor)
        torch.testing.assert_close(as_share(got[i]), wanted, atol=1e-3, rtol=0)


def test_hue(images):
    drawn = changes_drawn(6)[2]
    got = as_share(augment(images, Augment(hue=0.3), stream()))
    for i, x in enumerate(as_share(images)):
        turn = 0.3 * (2 * drawn[i].item() - 1)
        for place in [(0, 0), (3, 7), (19, 4)]:
            hue, saturation, value = colorsys.rgb_to_hsv(*x[:, *place].tolist())
            wanted = colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)
            assert got[i, :, *place].tolist() == pytest.approx(wanted, abs=1e-5)
        torch.testing.assert_close(got[i], reference.adjust_hue(x, turn), atol=1e-4, rtol=0)


def test_half_a_turn_makes_red_cyan_and_leaves_grey():
    pixels = torch.tensor([[1.0, -1, -1], [0.2, 0.2, 0.2], [-1, -1, 1], [-1, -1, -1]])
    turned = turn_hue(pixels[:, :, None, None], torch.full((4,), 0.5))[:, :, 0, 0]
    wanted = torch.tensor([[-1.0, 1, 1], [0.2, 0.2, 0.2], [1, 1, -1], [-1, -1, -1]])
    torch.testing.assert_close(turned, wanted)


def test_grey_keeps_the_luminance(images):
    got = augment(images, Augment(grey=1.0), stream())
    assert torch.equal(got[:, 0], got[:, 1]) and torch.equal(got[:, 0], got[:, 2])
    wanted = 0.299 * images[:, 0] + 0.587 * images[:, 1] + 0.114 * images[:, 2]
    torch.testing.assert_close(got[:, 0], wanted)


def test_blur():
    """Sigma of 0.1 to 2 pixels where a side has 224, here of an image of 60."""
    large = torch.rand(4, 3, 60, 60, generator=stream(1)) * 2 - 1
    drawn = changes_drawn(4)[6]
    got = augment(large, Augment(blur=1.0), stream()).numpy()
    for i, x in enumerate(large.numpy()):
        sigma = (0.1 + 1.9 * drawn[i].item()) * 60 / 224
        wanted = ndimage.gaussian_filter(x, (0, sigma, sigma), mode="nearest", radius=(0, 3, 3))
        np.testing.assert_allclose(got[i], wanted, atol=1e-5)
    some = augment(large, Augment(blur=0.5), stream()).numpy()
    chosen = (changes_drawn(4)[5] < 0.5).numpy()
    assert 0 < chosen.sum() < 4
    np.testing.assert_array_equal(some, np.where(chosen[:, None, None, None], got, large.numpy()))
    wide = gaussian_blur(large, torch.full((4,), 1.0))
    assert (wide.var((1, 2, 3)) < 0.5 * large.var((1, 2, 3))).all()
    torch.testing.assert_close(wide.mean((1, 2, 3)), large.mean((1, 2, 3)), atol=0.02, rtol=0)


@pytest.mark.parametrize(
    ("how", "share"),
    [(Augment(jitter=0.8, contrast=0.5, brightness=0.3), 0.8), (Augment(grey=0.2), 0.2),
     (Augment(jitter=0.3, hue=0.4, saturation=0.5), 0.3)],
)  # fmt: skip
def test_share_of_the_images(how, share):
    """The others are as they were, to the bit."""
    many = torch.rand(2000, 3, 4, 4, generator=stream(5)) * 2 - 1
    made = augment(many, how, stream(1))
    same = (made == many).flatten(1).all(1)
    assert 1 - same.double().mean().item() == pytest.approx(share, abs=0.03)


def test_jitter_of_all_is_the_contrast_and_brightness_of_before_within_the_range(images):
    light = {"contrast": 0.5, "brightness": 0.3}
    got = augment(images, Augment(**light, blur=1e-9), stream())
    assert torch.equal(got, augment(images, Augment(**light), stream()).clamp(-1, 1))
    assert (augment(images, Augment(**light), stream()).abs() > 1).any()


def test_one_channel_has_no_colour(images):
    one = images[:, :1]
    how = Augment(saturation=0.8, hue=0.2, grey=1.0)
    assert torch.equal(augment(one, how, stream()), one)
    light = {"contrast": 0.2, "jitter": 0.5}
    plain = augment(one, Augment(**light), stream())
    assert torch.equal(augment(one, Augment(**light, hue=0.5, grey=0.5), stream()), plain)


@pytest.mark.parametrize("channels", [1, 3])
def test_photographs(images, channels):
    before = images[:, :channels].contiguous(memory_format=torch.channels_last)
    kept = before.clone()
    made = augment(before, PHOTOGRAPHS, stream(3))
    assert torch.equal(before, kept) and made.shape == before.shape
    assert made.dtype == torch.float32 and made.abs().max() <= 1
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(made, augment(before, PHOTOGRAPHS, stream(3)))
    assert len({x.numpy().tobytes() for x in made}) == 6


def test_local_crops_keep_their_place():
    every = Augment(
        rotate=1, scale=1, shift=1, crop=0.5, aspect=2, contrast=1, brightness=1, flip=True,
        saturation=1, hue=0.1, jitter=0.5, grey=0.1, blur=0.1, erase=0.5,
    )  # fmt: skip
    plain = Augment().model_dump()
    changed = {k for k, v in without_geometry(every).model_dump().items() if v != plain[k]}
    assert changed == {
        "contrast", "brightness", "flip", "saturation", "hue", "jitter", "grey", "blur"
    }  # fmt: skip
    assert all(every.model_dump()[k] != v for k, v in plain.items()), "a field is not tried"
