"""A method's colour, the same on every page and plot, that all kinds of vision tell apart."""

from zlib import crc32

from benchmark.config import registry

# Okabe and Ito's palette without its yellow, too pale on white; indigo and brown in black's place.
PALETTE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#332288", "#5C3A00",
)  # fmt: skip
DARK = {"#0072B2": "#4AA8E0", "#332288": "#9D92E6", "#5C3A00": "#C79A5B"}
"""Substitutes for colours that a dark page swallows; ``leaderboard/assets/style.css`` has both."""
GREY = "#555555"
REST = "#b9bfc5"
"""Of methods that a plot does not highlight."""
DASHES: tuple[tuple[float, ...], ...] = (
    (), (4, 2), (1, 1.2), (6, 1.5, 1, 1.5), (2, 2), (6, 1.5, 1, 1.5, 1, 1.5), (8, 2), (1, 3),
)  # fmt: skip
"""Lines of methods that share a colour, in a figure's order: lengths in widths of the line."""
MOST = 8
"""At most so many methods are highlighted in a plot."""
# Most figures show these, so no two share a colour; every other method's follows from its name.
_FIRST = ("bct", "fct", "mixbct", "l2", "bt2", "fastfill", "procrustes", "contrast")
_LOWER = "lower bound"
"""Name of the old model on its own gallery in plots."""


def hue(method: str) -> int | None:
    """Place of a method's colour in the palette; None for controls, which are grey.

    Example:
        >>> hue("bct"), hue("bct:distill"), hue("independent")
        (0, 0, None)
    """
    base = method.partition(" (")[0].partition(":")[0]
    if base == _LOWER or registry.is_control(base):
        return None
    return _FIRST.index(base) if base in _FIRST else crc32(base.encode()) % len(PALETTE)


def colour(method: str) -> str:
    """A method's colour; its variants share it, controls are grey.

    Example:
        >>> colour("bct"), colour("bct:distill"), colour("independent")
        ('#0072B2', '#0072B2', '#555555')
    """
    place = hue(method)
    return GREY if place is None else PALETTE[place]
