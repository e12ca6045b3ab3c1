"""Monotone maps of one list's scores onto another's scale, and which score reaches a given one."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from benchmark.ranking.arrays import Floats
from benchmark.ranking.kernels import jit

Images = NDArray[np.float64]
_LARGEST = 0x7F7FFFFF  # bits of the largest float32


class Scale(NamedTuple):
    """A nondecreasing map of scores: straight lines between even places, and on beyond the ends.

    ``values[k]`` is the image of ``low + k * step``; at least two, ascending, float64.
    """

    low: float
    step: float
    values: NDArray[np.float64]

    @classmethod
    def checked(cls, low: float, step: float, values: Any) -> Self:
        """Build one; a ValueError says why the numbers are none."""
        images = np.ascontiguousarray(values, np.float64)
        if images.ndim != 1 or len(images) < 2:
            raise ValueError(f"values: expected at least two, got {images.shape}")
        if not (np.isfinite(images).all() and (np.diff(images) >= 0).all()):
            raise ValueError("values: expected finite numbers that ascend")
        if not (np.isfinite([low, step]).all() and step > 0):
            raise ValueError(f"low, step: expected finite numbers and a step above 0, got {step}")
        return cls(float(low), float(step), images)

    def __call__(self, scores: Any) -> Images:
        """The images of scores of any shape, float64: where the map is flat float32 would tie.

        Example:
            >>> Scale(0.0, 1.0, np.array([0.0, 2.0, 3.0]))([0.5, 1.5, 4.0, -1.0])
            array([ 1. ,  2.5,  5. , -2. ])
        """
        given = np.ascontiguousarray(scores, np.float32)
        out = np.empty(given.size)
        _images(given.reshape(-1), self, out)
        return out.reshape(given.shape)

    def reaching(self, goals: Images) -> Floats:
        """The least float32 whose image is at least each goal, ``[n]``; infinite where none is.

        A score s then reaches it exactly where its image reaches the goal.
        """
        out = np.empty(len(goals), np.float32)
        _reaching(goals, self, out)
        return out


def rounded_up(values: Images) -> Floats:
    """The least float32 that is at least each value: a float32 reaches both alike."""
    out = values.astype(np.float32)
    return np.where(out < values, np.nextafter(out, np.float32(np.inf)), out)


@jit
def _image(score: Any, scale: Any) -> Any:
    values = scale.values
    last = len(values) - 2
    place = (np.float64(score) - scale.low) / scale.step
    k: Any = min(max(np.int64(np.floor(min(max(place, -1.0), np.float64(last + 1)))), 0), last)
    image = values[k] + (place - k) * (values[k + 1] - values[k])
    # Rounded, a line may end above the next one's start.
    return min(image, values[k + 1]) if k < last else image


@jit
def _images(scores: Any, scale: Any, out: Any) -> None:
    for i in range(len(scores)):
        out[i] = _image(scores[i], scale)


@jit
def _number(key: int, room: Any) -> Any:
    """The float32 of a place among all finite ones, ascending: minus the largest is ``-_LARGEST``.

    ``room`` is an int32 array ``[1]``.
    """
    room[0] = key if key >= 0 else np.int64(-key) - np.int64(2147483648)
    return room.view(np.float32)[0]


@jit
def _reaching(goals: Any, scale: Any, out: Any) -> None:
    room = np.empty(1, np.int32)
    for i in range(len(goals)):
        low, high = -_LARGEST, _LARGEST
        if not _image(_number(high, room), scale) >= goals[i]:
            out[i] = np.inf
            continue
        while low < high:
            middle = (low + high) >> 1
            if _image(_number(middle, room), scale) >= goals[i]:
                high = middle
            else:
                low = middle + 1
        out[i] = _number(low, room)
