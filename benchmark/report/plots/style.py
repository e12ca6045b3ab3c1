"""How every plot looks: colours that all kinds of colour vision tell apart, sizes, saving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
# Okabe and Ito's palette without its yellow, which is too pale for points on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
CROSS, SELF = "#0072B2", "#E69F00"
INK, FAINT, SHADE = "#222222", "#6b6b6b", "#eef5fa"
WIDTH = 7.6
_DPI = 150

_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 11,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # The same drawing gives the same bytes.
    "svg.hashsalt": "compatbench",
    "svg.fonttype": "path",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style, whatever the user's own settings."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure that no window system knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=_DPI)
    FigureCanvasAgg(made)
    return made


def looks(methods: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each method; both differ between neighbours. ``independent`` is grey."""
    rivals = [method for method in methods if method != "independent"]
    found = {
        method: (PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)])
        for i, method in enumerate(rivals)
    }
    if len(rivals) < len(methods):
        found["independent"] = (FAINT, MARKERS[len(rivals) % len(MARKERS)])
    return found


def margins(axes: Axes, left: float, right: float, bottom: float, top: float) -> None:
    """Place axes by the inches around them, so that text has the same room in every figure."""
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("axes: expected axes of a figure")
    width, height = figure.get_size_inches()
    axes.set_position(
        (left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height)
    )


def heading(made: Figure, title: str, below: str) -> None:
    """Title and a line below it, at the left edge; what is too long ends in dots."""
    from textwrap import shorten

    height = made.get_size_inches()[1]
    made.text(0.02, 1 - 0.12 / height, shorten(title, 80, placeholder=" ..."), va="top",
              fontweight="bold", fontsize=12.5)  # fmt: skip
    made.text(0.02, 1 - 0.38 / height, shorten(below, 100, placeholder=" ..."), va="top",
              fontsize=10, color=FAINT)  # fmt: skip


def name_uprights(axes: Axes, bounds: Sequence[tuple[float, str]]) -> None:
    """Name upright lines above the axes, leaning inwards, one above the other where they meet."""
    left, right = axes.get_xlim()
    levels: list[list[tuple[float, float]]] = []
    for value, words in sorted(bounds):
        inwards = value > (left + right) / 2
        text = axes.annotate(
            words, (value, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 4), va="bottom",
            textcoords="offset points", ha="right" if inwards else "left", fontsize=9.5,
        )  # fmt: skip
        extent = text.get_window_extent()
        span = (extent.x0 - 6, extent.x1 + 6)
        free = [all(span[1] < a or b < span[0] for a, b in level) for level in levels]
        level = free.index(True) if True in free else len(levels)
        levels += [[]] if level == len(levels) else []
        levels[level].append(span)
        text.set_position((0, 4 + 13 * level))


def save(made: Figure, folder: Path, name: str, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write a figure; no date goes into it."""
    paths = []
    for form in formats:
        path = folder / f"{name}.{form}"
        made.savefig(path, format=form, metadata={"Date": None} if form == "svg" else None)
        paths.append(path)
    return paths
