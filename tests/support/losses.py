"""Parts of the papers' losses in float64, a classifier, and a model to learn from."""

import numpy as np
import torch
from torch import nn

from benchmark.models.heads import Head
from benchmark.models.module import Portable

# The new data's classes, and those of a kept old classifier: some in common, no ids in a row,
# and the common ones in other rows.
CLASSES = [4, 7, 9, 20, 55]
OLD_CLASSES = [3, 7, 20, 41]


def new_head(dim=6):
    """The new classifier of a test."""
    return Head("arcface", dim, CLASSES, 16.0, 0.2)


def double(x):
    """A tensor as a float64 array."""
    return x.detach().double().numpy()


def unit(x):
    """Rows of length one."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def log_softmax(x):
    """Logarithms of the shares of one row."""
    return x - np.logaddexp.reduce(x)


def slope(function, array, step=1e-5):
    """Central differences of a function of a float64 array."""
    out = np.empty_like(array)
    for place in np.ndindex(*array.shape):
        kept, values = array[place], []
        for sign in (1, -1):
            array[place] = kept + sign * step
            values.append(function(array))
        array[place] = kept
        out[place] = (values[0] - values[1]) / (2 * step)
    return out


def cross_entropy(logits, labels):
    """Mean over the rows."""
    logs = logits - np.logaddexp.reduce(logits, axis=1)[:, None]
    return -np.mean(logs[np.arange(len(labels)), labels])


def arcface(head, features, labels):
    """The mean loss of an arcface head, with acos."""
    weight = double(head.weight)
    total = 0.0
    for x, y in zip(features, labels, strict=True):
        cosine = weight @ x / np.linalg.norm(weight, axis=1) / np.linalg.norm(x)
        theta = np.arccos(np.clip(cosine[y], -1, 1)) + head.margin
        if theta < np.pi:
            cosine[y] = np.cos(theta)
        else:
            cosine[y] -= head.margin * np.sin(head.margin)
        logits = head.scale * cosine
        total += np.logaddexp.reduce(logits) - logits[y]
    return total / len(features)


class Teacher(Portable):
    """Image -> the mean of its pixels times a fixed direction, plus another."""

    def __init__(self, dim):
        super().__init__()
        rng = torch.Generator().manual_seed(1)
        self.weight = nn.Parameter(torch.randn(2, dim, generator=rng))

    def forward(self, images):
        mean = images.mean(dim=(1, 2, 3))[:, None]
        return mean * self.weight[0] + self.weight[1]
