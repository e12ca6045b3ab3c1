"""Augmentation: each change by the amount that was drawn, and nothing else."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from benchmark.config.recipes import Augment
from benchmark.training.augment import augment

SIZE = 33


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(n, seed=0):
    """The seven numbers of each image, in [-1, 1]: angle, size, x, y, gain, offset, mirror."""
    return (torch.rand(7, n, generator=stream(seed)) * 2 - 1).double().numpy()


@pytest.fixture(scope="module")
def smooth():
    """A smooth, lopsided image whose border is flat."""
    y, x = np.mgrid[:SIZE, :SIZE] - SIZE // 2
    image = np.exp(-((x - 4) ** 2 + (y + 2) ** 2) / 18) - 0.6 * np.exp(
        -((x + 5) ** 2 / 30 + (y - 4) ** 2 / 12)
    )
    return torch.from_numpy(image.astype(np.float32))[None, None]


@pytest.fixture(scope="module")
def noise():
    return torch.randn(5, 3, 16, 16, generator=stream(9)).contiguous(
        memory_format=torch.channels_last
    )


def test_all_zero_is_the_identity(noise):
    assert torch.equal(augment(noise, Augment(), stream()), noise)


EVERY = Augment(rotate=20, scale=0.3, shift=0.2, contrast=0.3, brightness=0.2, flip=True)


@pytest.mark.parametrize(
    "how",
    [EVERY, Augment(rotate=5), Augment(scale=0.2), Augment(shift=0.1), Augment(contrast=0.5),
     Augment(brightness=0.5), Augment(flip=True)],
)  # fmt: skip
def test_shape_type_layout_and_input(noise, how):
    before = noise.clone()
    out = augment(noise, how, stream())
    assert out.shape == noise.shape and out.dtype == torch.float32
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(noise, before)
    assert not torch.equal(out, noise)


def test_same_stream_same_images(noise):
    assert torch.equal(augment(noise, EVERY, stream(3)), augment(noise, EVERY, stream(3)))
    assert not torch.equal(augment(noise, EVERY, stream(3)), augment(noise, EVERY, stream(4)))


def test_the_global_stream_is_left_alone(noise):
    before = torch.get_rng_state()
    augment(noise, EVERY, stream())
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_number_of_draws_whatever_is_on(noise):
    places = []
    for how in (Augment(), EVERY, Augment(contrast=0.1, crop=0.3)):
        rng = stream()
        augment(noise, how, rng)
        places.append(torch.rand(1, generator=rng).item())
    assert len(set(places)) == 1


def seeds_of_sign(row):
    """A seed for each sign of a draw."""
    found = {}
    for seed in range(40):
        value = drawn(1, seed)[row, 0]
        if abs(value) > 0.3:
            found.setdefault(value > 0, seed)
    return list(found.values())


@pytest.mark.parametrize("seed", seeds_of_sign(0))
def test_rotation(smooth, seed):
    """A positive draw samples the image at positions turned from x to y (downwards)."""
    degrees = 30.0 * drawn(1, seed)[0, 0]
    got = augment(smooth, Augment(rotate=30.0), stream(seed))[0, 0].double().numpy()
    angle, centre = math.radians(degrees), np.array([SIZE // 2, SIZE // 2])
    # scipy's matrix takes output (row, column) to input (row, column).
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    wanted = ndimage.affine_transform(
        smooth[0, 0].double().numpy(), turn, centre - turn @ centre, order=1, mode="nearest"
    )
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    scipys = ndimage.rotate(
        smooth[0, 0].double().numpy(), degrees, reshape=False, order=1, mode="nearest"
    )
    np.testing.assert_allclose(got, scipys, atol=1e-4)
    assert abs(got - smooth[0, 0].numpy()).max() > 0.05


@pytest.mark.parametrize("seed", seeds_of_sign(1))
def test_scale(smooth, seed):
    """Sizes lie between 1 / (1 + s) and 1 + s; a positive draw makes things larger."""
    size = 1.5 ** drawn(1, seed)[1, 0]
    got = augment(smooth, Augment(scale=0.5), stream(seed))[0, 0].double().numpy()
    centre = np.full(2, SIZE // 2)
    wanted = ndimage.affine_transform(
        smooth[0, 0].double().numpy(), np.eye(2) / size, centre - centre / size,
        order=1, mode="nearest",
    )  # fmt: skip
    np.testing.assert_allclose(got, wanted, atol=1e-4)
    bright = [(x > 0.3).sum() for x in (got, smooth[0, 0].numpy())]
    assert (bright[0] > bright[1]) == (size > 1)


def test_shift_by_whole_pixels(monkeypatch):
    """A shift of 0.25 of the side, drawn in full, moves 16 pixels by 4; the border repeats."""
    image = torch.randn(1, 2, 16, 16, generator=stream())
    full = torch.full((7, 1), 0.5)
    full[2], full[3] = 1.0, 0.0  # x to +1, y to -1 of the largest
    monkeypatch.setattr(torch, "rand", lambda *_, generator: full)
    got = augment(image, Augment(shift=0.25), stream())
    rows = np.clip(np.arange(16) - 4, 0, 15)
    columns = np.clip(np.arange(16) + 4, 0, 15)
    torch.testing.assert_close(got, image[:, :, rows][:, :, :, columns], atol=1e-5, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_shift_by_what_was_drawn(smooth, seed):
    x, y = 0.1 * SIZE * drawn(1, seed)[2:4, 0]
    got = augment(smooth, Augment(shift=0.1), stream(seed))[0, 0].double().numpy()
    wanted = ndimage.shift(smooth[0, 0].double().numpy(), (-y, -x), order=1, mode="nearest")
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_contrast_and_brightness(noise):
    draws = drawn(5)
    got = augment(noise, Augment(contrast=0.4, brightness=0.3), stream()).double().numpy()
    gain = (1 + 0.4 * draws[4])[:, None, None, None]
    # The range of an image, -1 to 1, is 2 wide.
    offset = (2 * 0.3 * draws[5])[:, None, None, None]
    np.testing.assert_allclose(got, noise.double().numpy() * gain + offset, atol=1e-5)


def test_flip(noise):
    got = augment(noise, Augment(flip=True), stream(1))
    mirrored = drawn(5, 1)[6] > 0
    assert 0 < mirrored.sum() < 5
    for i, turned in enumerate(mirrored):
        assert torch.equal(got[i], noise[i].flip(2) if turned else noise[i])


def test_each_image_gets_its_own(smooth):
    out = augment(smooth.repeat(8, 1, 1, 1), EVERY, stream())
    assert len({x.numpy().tobytes() for x in out}) == 8


def test_a_crop_shows_a_part_enlarged():
    """Of an image whose value is the column, a crop has a narrower range, inside the image."""
    ramp = torch.linspace(-1, 1, 33)[None, None, None].expand(64, 1, 33, 33).contiguous()
    made = augment(ramp, Augment(crop=0.25), torch.Generator().manual_seed(0))
    low, high = made.amin((1, 2, 3)), made.amax((1, 2, 3))
    width = (high - low) / 2
    assert (width > 0.45).all() and (width < 1.01).all() and width.min() < 0.6 < 0.9 < width.max()
    assert (low >= -1).all() and (high <= 1).all()
    inside = (low > -0.98) & (high < 0.98)
    assert inside.float().mean() > 0.5, "crops lie anywhere, not at a border"
    assert made.std(2).max() < 1e-5, "nothing is turned"
    whole = augment(ramp, Augment(crop=1.0), torch.Generator().manual_seed(0))
    assert torch.allclose(whole, ramp, atol=1e-5)


def of_before(images, changes, draws, dtype):
    """The formula as it was before a crop had sides of its own and colours changed.

    Args:
        images: Those to change.
        changes: What is done to them.
        draws: The seven numbers of each.
        dtype: In which the places are computed that pixels are taken from.
    """
    angle = math.radians(changes.rotate) * draws[0]
    size = torch.exp(math.log1p(changes.scale) * draws[1])
    shift = 2.0 * changes.shift * draws[2:4]
    if changes.crop:
        side = (changes.crop + (1.0 - changes.crop) * (draws[1] + 1.0) / 2.0).sqrt()
        size, shift = size / side, shift + (1.0 - side) * draws[2:4]
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    rows = torch.stack([cos, -sin, shift[0], sin, cos, shift[1]], dim=1).view(-1, 2, 3)
    shape = list(images.shape)
    grid = torch.nn.functional.affine_grid(rows.to(dtype), shape, align_corners=False)
    images = torch.nn.functional.grid_sample(
        images, grid.float(), padding_mode="border", align_corners=False
    )
    if changes.flip:
        images = torch.where(draws[6, :, None, None, None] > 0, images.flip(3), images)
    gain, offset = 1.0 + changes.contrast * draws[4], 2.0 * changes.brightness * draws[5]
    return images * gain[:, None, None, None] + offset[:, None, None, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "how",
    [EVERY, Augment(crop=0.1, flip=True), Augment(rotate=9, scale=0.2, crop=0.4, shift=0.1),
     Augment(rotate=15, scale=0.3, shift=0.1, contrast=0.4, brightness=0.2)],
)  # fmt: skip
def test_results_are_those_of_before(noise, how, dtype):
    """Training gives what it gave before fields were added, to rounding.

    torch takes the places of the pixels from a product of matrices, which libraries sum in orders
    of their own, with fused or separate roundings, and from processor to processor otherwise; ours
    are sums in one order. So places are a few last bits apart, 1e-6 of a side of 16 pixels; next
    to each other these differ by up to 6. In 64 bits the places are of yet other roundings.
    """
    draws = torch.rand(7, 5, generator=stream(2)) * 2.0 - 1.0
    got, wanted = augment(noise, how, stream(2)), of_before(noise, how, draws, dtype)
    torch.testing.assert_close(got, wanted, atol=1e-4, rtol=0)
    moved = augment(noise, how.model_copy(update={"crop": 0.12, "shift": 0.01}), stream(2))
    assert (moved - wanted).abs().max() > 0.01, "what the tolerance would not hide"


def test_sides_of_a_crop():
    """Of coordinates as an image: the area is as without, the ratio up to the largest, inside."""
    n, size, lowest, aspect = 500, 64, 0.2, 3.0
    place = (torch.arange(size) + 0.5) / size * 2 - 1
    image = torch.stack([place.expand(size, size), place[:, None].expand(size, size)])
    images = image.expand(n, -1, -1, -1)
    made = augment(images, Augment(crop=lowest, aspect=aspect), stream())
    middle, edge = size // 2, size - 1
    wide = (made[:, 0, middle, -1] - made[:, 0, middle, 0]) / 2 * size / edge
    high = (made[:, 1, -1, middle] - made[:, 1, 0, middle]) / 2 * size / edge
    # Half a pixel at the border of the image repeats it.
    assert wide.max() < 1.02 and high.max() < 1.02 and made.abs().max() <= 1
    ratio = wide / high
    assert 2.5 < ratio.max() < 3.1 and 2.5 < (1 / ratio).max() < 3.1
    square = augment(images, Augment(crop=lowest), stream())
    side = (square[:, 0, middle, -1] - square[:, 0, middle, 0]) / 2 * size / edge
    torch.testing.assert_close(wide * high, side.square(), atol=0.03, rtol=0)


@pytest.mark.parametrize(
    "how", [Augment(jitter=0.5), Augment(aspect=2), Augment(grey=0.1), Augment(blur=0.1)]
)
def test_new_fields_draw_after_the_old_ones(noise, how):
    """The mirror is drawn as without them."""
    inside = noise.clamp(-1, 1)
    mirrored = how.model_copy(update={"flip": True, "grey": 0, "blur": 0})
    got = augment(inside, mirrored, stream())
    assert torch.equal(got, augment(inside, Augment(flip=True), stream()))
    rng = stream()
    augment(noise, how, rng)
    places = torch.rand(15, 5, generator=stream())
    assert torch.equal(torch.rand(5, generator=rng), places[14])
