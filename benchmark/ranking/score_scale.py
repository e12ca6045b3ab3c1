"""Monotone maps of one list's scores onto another's scale, and which score reaches a given one."""

from typing import Any, NamedTuple, Self

import numpy as np

from benchmark.ranking.arrays import Floats, Values
from benchmark.ranking.kernels import bits_of, float_of, jit

_LARGEST = 0x7F7FFFFF  # bits of the largest float32
_SIGN = 1 << 31  # its sign's bit


class Scale(NamedTuple):
    """A nondecreasing map of scores: straight lines between even places, and on beyond the ends.

    ``values[k]`` is the image of ``low + k * step``; at least two, ascending, float64.
    """

    low: float
    step: float
    values: Values

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

    @property
    def slope(self) -> float | None:
        """Of a straight map; None where it bends."""
        rise = float(self.values[-1] - self.values[0])
        return rise / self.step if len(self.values) == 2 else None

    def __call__(self, scores: Any) -> Values:
        """The images of scores of any shape, float64: where the map is flat float32 would tie.

        Example:
            >>> Scale(0.0, 1.0, np.array([0.0, 2.0, 3.0]))([0.5, 1.5, 4.0, -1.0])
            array([ 1. ,  2.5,  5. , -2. ])
        """
        given = np.ascontiguousarray(scores, np.float32)
        out = np.empty(given.size)
        images(given.reshape(-1), given.size, self, np.empty(given.size, np.int32), out)
        return out.reshape(given.shape)

    def reaching(self, goals: Values) -> Floats:
        """The least float32 whose image is at least each goal, ``[n]``; infinite where none is.

        A score s then reaches it exactly where its image reaches the goal.
        """
        out = np.empty(len(goals), np.float32)
        _reaching(goals, self, out)
        return out


def rounded_up(values: Values) -> Floats:
    """The least float32 that is at least each value: a float32 reaches both alike."""
    out = values.astype(np.float32)
    return np.where(out < values, np.nextafter(out, np.float32(np.inf)), out)


@jit
def _place(score: Any, low: float, step: float) -> Any:
    return (np.float64(score) - low) / step


@jit
def _line(place: float, last: int) -> Any:
    return np.int32(min(max(np.floor(place), 0.0), np.float64(last)))


@jit
def _on_line(place: float, k: Any, values: Any, last: int) -> Any:
    begin, end = values[np.uint64(k)], values[np.uint64(k) + np.uint64(1)]
    image = begin + (place - k) * (end - begin)
    # Rounded, a line may end above the next one's start.
    return min(image, end) if k < last else image


@jit
def image(score: Any, scale: Any) -> Any:
    """The image of one score, float64."""
    place, last = _place(score, scale.low, scale.step), len(scale.values) - 2
    return _on_line(place, _line(place, last), scale.values, last)


@jit
def images(scores: Any, n: int, scale: Any, lines: Any, out: Any) -> None:
    """Write the images of ``n`` scores; ``lines`` (int32) is room for as many."""
    values, last = scale.values, len(scale.values) - 2
    for i in range(np.uint64(n)):  # in parts, of which the compiler makes vector instructions
        out[i] = _place(scores[i], scale.low, scale.step)
    for i in range(np.uint64(n)):
        lines[i] = _line(out[i], last)
    for i in range(np.uint64(n)):
        out[i] = _on_line(out[i], lines[i], values, last)


@jit
def key_float(key: int) -> Any:
    """The float32 of a place among all finite ones, ascending; ``-_LARGEST`` is the lowest."""
    return float_of(np.uint32(key if key >= 0 else _SIGN - key))


@jit
def float_key(score: Any) -> Any:
    """The place of a float32 among all finite ones; see ``key_float``."""
    bits = np.int64(bits_of(score))
    return bits if bits < _SIGN else _SIGN - bits


@jit
def _guess(goal: Any, scale: Any) -> Any:
    """A score whose image is about the goal, on the line that reaches it."""
    values = scale.values
    k: Any = min(max(np.searchsorted(values, goal), 1), len(values) - 1) - 1
    rise = values[k + 1] - values[k]
    place = k + ((goal - values[k]) / rise if rise > 0 else 0.0)
    score = scale.low + scale.step * place
    most = 3.4028234e38
    return np.float32(min(max(score, -most), most))


@jit
def _reaching(goals: Any, scale: Any, out: Any) -> None:
    for i in range(len(goals)):
        goal = goals[i]
        if not image(key_float(_LARGEST), scale) >= goal:
            out[i] = np.inf
            continue
        low, high = np.int64(-_LARGEST), np.int64(_LARGEST)
        middle, step = float_key(_guess(goal, scale)), np.int64(1)
        while low < high:  # ever longer steps from the guess, until it is passed; then halves
            if image(key_float(middle), scale) >= goal:
                high = middle
                middle = high - step
            else:
                low = middle + 1
                middle = low + step
            if middle < low or middle >= high or step > (high - low) // 2:
                middle = (low + high) >> 1
            step *= 2
        out[i] = key_float(low)
