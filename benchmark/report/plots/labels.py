"""Direct labels that cover neither points nor each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import RendererAgg

_DISTANCES = (9.0, 16.0, 26.0, 40.0, 58.0)
_ANGLES = (0, 180, 90, 270, 45, 315, 135, 225)
_PAD = 3.0


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """Common area."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    def outside(self, room: Box) -> float:
        """Area beyond a room."""
        return (self.right - self.left) * (self.top - self.bottom) - self.overlap(room)


@dataclass(frozen=True)
class Label:
    """A text that belongs to a point.

    Attributes:
        x: Point, in data coordinates.
        y: Point, in data coordinates.
    """

    x: float
    y: float
    text: str
    colour: str


def place(axes: Axes, labels: Sequence[Label], taken: Sequence[Box]) -> list[Box]:
    """Write labels beside their points, where they cover least; far ones get a thin line.

    Args:
        axes: Limits are final.
        labels: The first has the first choice.
        taken: Pixels that no label should cover: points, error bars, other text.

    Returns:
        Where the labels stand.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = axes.get_figure(root=True)
    if figure is None or not isinstance(figure.canvas, FigureCanvasAgg):
        raise ValueError("axes: expected axes of a figure with an Agg canvas")
    renderer: RendererAgg = figure.canvas.get_renderer()  # type: ignore[no-untyped-call]
    room = Box(*axes.get_window_extent(renderer).extents)
    scale = figure.dpi / 72
    used = list(taken)
    placed = []
    for label in labels:
        text = axes.text(label.x, label.y, label.text, fontweight="bold", va="bottom", zorder=6)
        text.set_color(label.colour)
        size = text.get_window_extent(renderer)
        x, y = (float(v) for v in axes.transData.transform((label.x, label.y)))
        spots = _spots((x, y), size.width, size.height, scale)
        far, box = min(
            ((_cost(box, used, room) + distance, distance, box) for distance, box in spots),
            key=lambda found: found[0],
        )[1:]
        corner = axes.transData.inverted().transform((box.left, box.bottom))
        text.set_position((float(corner[0]), float(corner[1])))
        if far > _DISTANCES[1] * scale:
            _lead(axes, (x, y), box, label.colour)
        used.append(box)
        placed.append(box)
    return placed


def _spots(
    point: tuple[float, float], width: float, height: float, scale: float
) -> Iterator[tuple[float, Box]]:
    for distance in (d * scale for d in _DISTANCES):
        for angle in _ANGLES:
            dx, dy = math.cos(math.radians(angle)), math.sin(math.radians(angle))
            # The label's nearest side, not its middle, is this far from the point.
            cx = point[0] + dx * (distance + width / 2)
            cy = point[1] + dy * (distance + height / 2)
            yield (
                distance,
                Box(cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2),
            )


def _cost(box: Box, used: Sequence[Box], room: Box) -> float:
    """Covered area; leaving the room costs more than covering something."""
    padded = Box(box.left - _PAD, box.bottom - _PAD, box.right + _PAD, box.top + _PAD)
    return sum(padded.overlap(other) for other in used) + 10 * padded.outside(room)


def _lead(axes: Axes, point: tuple[float, float], box: Box, colour: str) -> None:
    """A thin line from the label's nearest edge to its point."""
    x = min(max(point[0], box.left), box.right)
    y = min(max(point[1], box.bottom), box.top)
    ends = axes.transData.inverted().transform([point, (x, y)])
    axes.plot(ends[:, 0], ends[:, 1], color=colour, linewidth=0.7, zorder=2)
