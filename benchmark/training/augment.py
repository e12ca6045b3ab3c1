"""Augmentation of whole batches: for each image an affine map, changes of its colours, and blur.

Colours: Chen et al., SimCLR (2020), appendix A; saturation and hue as torchvision's ``ColorJitter``
has them, but always in this order. All images are ``[n, c, h, w]`` in [-1, 1].
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.config.recipes import Augment

_ADDED = {"aspect", "saturation", "hue", "jitter", "grey", "blur"}
"""Fields whose draws are a second lot, so that without them all results stay as they were."""
LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601, of red, green and blue
SIGMA = (0.1 / 224, 2.0 / 224)  # of the blur, against the image's side


def augment(images: Tensor, changes: Augment, rng: torch.Generator) -> Tensor:
    """Change each image of a batch ``[n, c, h, w]`` in [-1, 1] at random.

    What enters at the border repeats the border. The draws of ``rng`` are on the CPU, so that
    every device sees the same ones. Contrast and brightness may leave the range, unless any of
    ``aspect``, ``saturation``, ``hue``, ``jitter``, ``grey`` and ``blur`` is on.
    """
    # All numbers are drawn whatever is switched on: turning one off leaves the others as they are.
    draws = torch.rand(7, len(images), generator=rng).to(images.device) * 2.0 - 1.0
    more = None
    if _ADDED & changes.model_dump(exclude_defaults=True).keys():
        more = torch.rand(7, len(images), generator=rng).to(images.device)
    if changes.rotate or changes.scale or changes.shift or changes.crop:
        images = _affine(images, changes, draws, None if more is None else more[0])
    if changes.flip:
        images = torch.where(draws[6, :, None, None, None] > 0, images.flip(3), images)
    before = images
    if changes.contrast or changes.brightness:
        gain = 1.0 + changes.contrast * draws[4]
        offset = 2.0 * changes.brightness * draws[5]
        images = images * gain[:, None, None, None] + offset[:, None, None, None]
    if more is not None:
        images = change_colour(before, images, changes, more[1:])
    if changes.erase:  # a third lot
        images = erase(images, changes.erase, torch.rand(5, len(images), generator=rng))
    return images


def erase(images: Tensor, share: float, draws: Tensor) -> Tensor:
    """Make a rectangle of a ``share`` of the images grey.

    Of the image's area it covers 2 to 40 %, its height is 0.3 to 3.3 times its width, and it lies
    inside; a side that would be longer than the image's is cut to it, where the source draws anew.
    ``draws`` are five numbers in [0, 1) for each image, ``[5, n]``.

    Source:
        Zhong et al., Random Erasing Data Augmentation (2020), algorithm 1, with the numbers of the
        code of Luo et al., Bag of Tricks (2019), which fills with the mean colour.
    """
    height, width = images.shape[2:]
    chosen, area, ratio, down, across = draws.to(images.device)
    area = (0.02 + 0.38 * area) * height * width
    ratio = 0.3 + (1 / 0.3 - 0.3) * ratio
    tall = (area * ratio).sqrt().round().clamp(1, height)
    wide = (area / ratio).sqrt().round().clamp(1, width)
    top = (down * (height - tall + 1)).floor()
    left = (across * (width - wide + 1)).floor()
    y = torch.arange(height, device=images.device)[None]
    x = torch.arange(width, device=images.device)[None]
    rows = (y >= top[:, None]) & (y < (top + tall)[:, None])
    columns = (x >= left[:, None]) & (x < (left + wide)[:, None])
    inside = rows[:, None, :, None] & columns[:, None, None] & (chosen < share)[:, None, None, None]
    return images.masked_fill(inside, 0.0).contiguous(memory_format=torch.channels_last)


def _affine(images: Tensor, changes: Augment, draws: Tensor, ratio: Tensor | None) -> Tensor:
    angle = math.radians(changes.rotate) * draws[0]
    size = torch.exp(math.log1p(changes.scale) * draws[1])
    # Coordinates run from -1 to 1, so a shift by a fraction of the side is twice that.
    shift = 2.0 * changes.shift * draws[2:4]
    stretch = torch.ones_like(size)
    if changes.crop:  # the same draws say how large the crop is, and where
        side = (changes.crop + (1.0 - changes.crop) * (draws[1] + 1.0) / 2.0).sqrt()
        if ratio is not None:
            # Width over side; of a large crop it is held where the longer side is the image's.
            stretch = changes.aspect ** (ratio - 0.5)
            stretch = torch.minimum(torch.maximum(stretch, side), 1.0 / side)
        sides = torch.stack([side * stretch, side / stretch])
        size, shift = size / side, shift + (1.0 - sides) * draws[2:4]
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    across, down = stretch, 1.0 / stretch
    rows = torch.stack(
        [cos * across, -sin * across, shift[0], sin * down, cos * down, shift[1]], dim=1
    ).view(-1, 2, 3)
    grid = affine_grid(rows, *images.shape[2:])
    moved = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return moved.contiguous(memory_format=torch.channels_last)


def affine_grid(rows: Tensor, height: int, width: int) -> Tensor:
    """Map the centres of pixels by ``rows [n, 2, 3]``: ``[n, h, w, 2]``, x before y, in [-1, 1].

    The values of torch's own but for rounding, whose products of many small matrices take four
    times as long.
    """
    across, down = (
        torch.linspace(-1.0, 1.0, side, device=rows.device) * (side - 1) / side
        for side in (width, height)
    )
    y, x = torch.meshgrid(down, across, indexing="ij")
    grid = rows[:, :, 0, None, None] * x
    grid += rows[:, :, 1, None, None] * y
    grid += rows[:, :, 2, None, None]
    return grid.permute(0, 2, 3, 1)


def change_colour(before: Tensor, after: Tensor, changes: Augment, draws: Tensor) -> Tensor:
    """Change the rest of an image's colours, and blur it; what leaves the range is held at it.

    ``after`` is ``before`` with new contrast and brightness, and holds for the ``jitter`` share of
    the images. ``draws`` are six numbers in [0, 1) for each image, ``[6, n]``. Saturation, hue and
    grey are of images with three channels.
    """
    rgb = after.shape[1] == 3
    if changes.saturation and rgb:
        factor = (1.0 + changes.saturation * (2.0 * draws[0] - 1.0)).clamp_min(0.0)
        after = torch.lerp(luminance(after), after, factor[:, None, None, None])
    after = after.clamp(-1.0, 1.0)
    if changes.hue and rgb:
        after = turn_hue(after, changes.hue * (2.0 * draws[1] - 1.0))
    images = torch.where(_chosen(draws[2], changes.jitter), after, before)
    if changes.grey and rgb:
        images = torch.where(_chosen(draws[3], changes.grey), luminance(images), images)
    if changes.blur:
        low, high = (share * images.shape[-1] for share in SIGMA)
        blurred = gaussian_blur(images, low + (high - low) * draws[5])
        images = torch.where(_chosen(draws[4], changes.blur), blurred, images)
    # Rounding of sums may leave the range by a last bit.
    return images.clamp(-1.0, 1.0).contiguous(memory_format=torch.channels_last)


def _chosen(draws: Tensor, share: float) -> Tensor:
    return (draws < share)[:, None, None, None]


def luminance(images: Tensor) -> Tensor:
    """Lightness of each pixel, ``[n, 1, h, w]``, of colour images."""
    red, green, blue = (weight * images[:, i] for i, weight in enumerate(LUMINANCE))
    return (red + green + blue)[:, None]


def turn_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue of each image by its fraction of the circle, ``[n]``.

    Hue, chroma and value are those of HSV; a channel falls below the value by the chroma times
    a hat function of its distance from the hue, in sixths of the circle.
    """
    red, green, blue = images.unbind(1)
    value, chroma = images.amax(1), images.amax(1) - images.amin(1)
    some = chroma.clamp_min(1e-12)  # a grey pixel has no hue, and stays as it is
    hue = torch.where(
        value == red, (green - blue) / some,
        torch.where(value == green, 2.0 + (blue - red) / some, 4.0 + (red - green) / some),
    )  # fmt: skip
    place = [(hue + 6.0 * turn[:, None, None] + start) % 6.0 for start in (5.0, 3.0, 1.0)]
    below = [chroma * torch.minimum(k, 4.0 - k).clamp(0.0, 1.0) for k in place]
    return value[:, None] - torch.stack(below, dim=1)


def gaussian_blur(images: Tensor, sigma: Tensor) -> Tensor:
    """Blur each image by a Gaussian of its own, ``sigma`` ``[n]`` in pixels; the border repeats.

    The window is a tenth of the side, as SimCLR's.
    """
    radius = max(1, images.shape[-1] // 20)
    steps = torch.arange(-radius, radius + 1, device=images.device)
    weights = torch.exp(-0.5 * (steps / sigma[:, None]).square())
    weights = weights / weights.sum(1, keepdim=True)
    for axis, border in ((2, (0, 0, radius, radius)), (3, (radius, radius, 0, 0))):
        padded, length = F.pad(images, border, mode="replicate"), images.shape[axis]
        images = torch.zeros_like(images)
        # Sums of shifted images, not a convolution: autocast would round that to 16 bits.
        for i, weight in enumerate(weights.unbind(1)):
            images.addcmul_(weight[:, None, None, None], padded.narrow(axis, i, length))
    return images
