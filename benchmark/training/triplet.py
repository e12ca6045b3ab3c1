"""The batch-hard triplet loss of re-identification, and the batches that it needs."""

from collections import Counter

import torch
from torch import Tensor

from benchmark.errors import BenchError

MARGIN = 0.3
"""Luo et al., Bag of Tricks (2019), section 3; Hermans et al. tried 0.1 to 1."""


def batch_hard(features: Tensor, labels: Tensor, margin: float = MARGIN) -> Tensor:
    """Mean of ``max(0, margin + farthest positive - nearest negative)``.

    Features ``[n, d]`` are not normalised, distances are Euclidean (Hermans et al., In Defense of
    the Triplet Loss, 2017, eq. 5). The mean is over all items.

    Raises:
        BenchError: If an item has no positive or no negative, as it would have no loss.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [1.5], [3.0]])
        >>> round(batch_hard(x, torch.tensor([0, 0, 1, 1])).item(), 6)
        0.525
    """
    same = labels[:, None] == labels[None]
    if (same.sum(1) < 2).any() or same.all():
        found = Counter(labels.tolist())
        raise BenchError(
            "triplet: expected two images or more of each of two classes or more on a device, got "
            f"{', '.join(f'{n} of class {c}' for c, n in found.most_common()[-5:]) or 'none'}; "
            "raise recipe.batch_size or per_class, or take fewer devices"
        )
    squared = (features[:, None] - features[None]).square().sum(2)
    # The root of zero, an item's distance to itself, has no gradient.
    distance = squared.clamp_min(1e-12).sqrt()
    positive = distance.masked_fill(~same, -torch.inf).amax(1)
    negative = distance.masked_fill(same, torch.inf).amin(1)
    return torch.relu(margin + positive - negative).mean()


def balanced(labels: Tensor, batch: int, per_class: int, rng: torch.Generator) -> Tensor:
    """Rows of an epoch in batches of a few classes, ``per_class`` images of each.

    A class's images are shuffled and dealt in hands; one that has fewer repeats some. Classes
    are drawn without replacement until fewer are left than a batch takes, then all are dealt anew,
    for as many rows as there are labels or more (Hermans et al., section 2: P classes, K images).
    A BenchError if the batch cannot be divided so, or there are too few classes.
    """
    classes, counts = torch.unique(labels, return_counts=True)
    n_classes = batch // per_class
    if batch % per_class or not 2 <= n_classes <= len(classes):
        raise BenchError(
            f"recipe.batch_size: expected a multiple of {per_class} up to "
            f"{per_class * len(classes)}, {per_class} images (per_class) of each of 2 to "
            f"{len(classes)} classes, got batches of {batch} images"
        )
    members = torch.split(torch.argsort(labels, stable=True), counts.tolist())
    rows: list[Tensor] = []
    while len(rows) * batch < len(labels):
        hands = [_hands(each, per_class, rng) for each in members]
        while len(hands) >= n_classes:
            drawn = torch.randperm(len(hands), generator=rng)[:n_classes].tolist()
            rows.append(torch.cat([hands[place].pop() for place in drawn]))
            hands = [hand for hand in hands if hand]
    return torch.cat(rows)


def _hands(members: Tensor, per_class: int, rng: torch.Generator) -> list[Tensor]:
    """A class's images, shuffled, so many at a time; the last few that fill no hand are left."""
    order = members[torch.randperm(len(members), generator=rng)]
    if len(order) < per_class:
        order = order.repeat(-(-per_class // len(order)))[:per_class]
    whole = len(order) // per_class * per_class
    return list(torch.split(order[:whole], per_class))
