"""Features of frozen backbones in place of images: stored once, mapped into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Ints

Block = tuple[str, int]
"""Key of a backbone's features (``ModelSpec.features_key``), and how many numbers they have."""


@dataclass(frozen=True)
class StoredViews:
    """Features of some images by one backbone, each of several views in an array of its own."""

    key: str  # of the backbone
    # one array a view, [m, d] float16 or float32; the first is of images as they are
    views: tuple[NDArray[np.floating], ...]
    rows: tuple[Ints, ...]  # for each view the place of each image in its array, [n]

    @property
    def width(self) -> int:
        """Numbers of an image."""
        return int(self.views[0].shape[1])

    def at(self, images: Ints, view: Ints) -> NDArray[np.float32]:
        """Features of images, each in a view, ``[k, d]``."""
        out = np.empty((len(images), self.width), np.float32)
        for number, (features, rows) in enumerate(zip(self.views, self.rows, strict=True)):
            places = np.flatnonzero(view == number)
            if len(places):
                out[places] = _as_float32(features[rows[images[places]]])
        return out


@dataclass(frozen=True)
class Features:
    """Random access to features of images by one or more backbones, ``[n, d, 1, 1]`` float32."""

    parts: tuple[StoredViews, ...]  # of each backbone; their numbers stand one after the other
    images: Ints  # which of the images, [n]
    view: Ints  # that each is seen in, [n]

    @classmethod
    def of(cls, parts: Sequence[StoredViews]) -> Features:
        """All images as they are."""
        rows = np.arange(len(parts[0].rows[0]))
        return cls(tuple(parts), rows, np.zeros_like(rows))

    @property
    def shape(self) -> tuple[int, ...]:
        """``(n, d, 1, 1)``."""
        return (len(self.images), sum(width for _, width in self.blocks), 1, 1)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Key and width of each part."""
        return tuple((part.key, part.width) for part in self.parts)

    @property
    def n_views(self) -> int:
        """Views of each image."""
        return min(len(part.views) for part in self.parts)

    def __getitem__(self, rows: Ints) -> NDArray[np.float32]:
        rows = np.asarray(rows, np.int64)
        found = [part.at(self.images[rows], self.view[rows]) for part in self.parts]
        joined = found[0] if len(found) == 1 else np.concatenate(found, axis=1)
        return joined[:, :, None, None]

    def take_rows(self, rows: Ints) -> Features:
        """Some of them, still in their files."""
        return replace(self, images=self.images[rows], view=self.view[rows])

    def seen_in(self, view: Ints) -> Features:
        """The same images in other views, ``[n]``."""
        return replace(self, view=np.asarray(view, np.int64))


def _as_float32(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """The same numbers; torch converts float16 several times as fast as NumPy."""
    import torch

    found: NDArray[np.float32] = torch.from_numpy(np.ascontiguousarray(values)).float().numpy()
    return found
