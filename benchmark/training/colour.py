"""Random changes of the colours of a batch, and blur.

Source: Chen et al., SimCLR (2020), appendix A; saturation and hue as torchvision's ``ColorJitter``
has them, but always in this order. All images are ``[n, c, h, w]`` in [-1, 1].
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmark.config.recipes import Augment

LUMINANCE = (0.299, 0.587, 0.114)  # ITU-R BT.601, of red, green and blue
SIGMA = (0.1 / 224, 2.0 / 224)  # of the blur, against the image's side


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
