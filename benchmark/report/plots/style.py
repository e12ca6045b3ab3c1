"""The looks of all plots: colours for all kinds of colour vision, headings, saving."""

import io
import re
import warnings
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any
from zlib import crc32

import matplotlib as mpl
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmark.config.files import write_whole
from benchmark.report.colours import DASHES, GREY, PALETTE, REST, colour

FORMATS = ("png", "svg")
MARKERS = "os^DvPX<>p"
BOUNDS = {"lower bound": "--", "upper bound": ":", "upper, all data": "-."}
INK, SHADE = "#222222", "#eef5fa"
_LONGEST_NAME = 200
"""Bytes; file systems take 255."""
_CYCLE = (
    "#4C72B0", "#DD8452", "#55A868", "#C44E52", "#8172B3", "#937860", "#DA8BC3", "#8C8C8C",
    "#CCB974", "#64B5CD",
)  # fmt: skip
_SMALL = 0.8  # of what seaborn draws in a notebook
_LARGE_FONT, _FONT = (1.1 * (_SMALL * points) for points in (12, 11))
# Seaborn's theme "paper" with "ticks" and larger fonts. It stands here because seaborn takes a
# second to import, with pandas and scipy.stats: too long for a page whose plots do without.
_THEME: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": ".15",
    "axes.labelsize": _LARGE_FONT,
    "axes.linewidth": _SMALL * 1.25,
    "axes.prop_cycle": cycler("color", _CYCLE),
    "axes.titlesize": _LARGE_FONT,
    "font.family": ["DejaVu Sans"],
    "font.size": _LARGE_FONT,
    "grid.color": ".8",
    "legend.fontsize": _FONT,
    "legend.title_fontsize": _LARGE_FONT,
    "lines.linewidth": _SMALL * 1.5,
    "lines.markersize": _SMALL * 6,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "patch.linewidth": _SMALL,
} | {
    f"{axis}tick.{key}": value
    for axis in "xy"
    for key, value in {
        "labelsize": _FONT, "major.size": _SMALL * 6, "major.width": _SMALL * 1.25,
        "minor.size": _SMALL * 4, "minor.width": _SMALL,
    }.items()
}  # fmt: skip
_RC: Any = {
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.bbox": "tight",  # text outside the axes is never cut
    "svg.hashsalt": "compatbench",  # the same drawing gives the same bytes
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name may have dollar signs
} | dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK)


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the project's style and without windows, whatever the user's own settings."""
    backend = mpl.get_backend(auto_select=False)
    with mpl.rc_context(), warnings.catch_warnings():
        # Names in scripts that the font lacks, or as long as the figure is wide.
        warnings.filterwarnings("ignore", "(Glyph .* missing|Tight layout not applied)")
        plt.switch_backend("agg")
        mpl.rcdefaults()
        mpl.rcParams.update(_THEME | _RC)
        try:
            yield
        finally:
            if backend is not None:
                plt.switch_backend(backend)


def looks(methods: Iterable[str], lit: Container[str] | None = None) -> dict[str, dict[str, Any]]:
    """Seaborn's ``palette``, ``markers``, ``dashes``; methods of one colour differ in the others.

    Methods are those of one figure, as named there; ``fct (16)`` has the colour of ``fct``. With
    ``lit`` those outside of it are pale.
    """
    found: dict[str, dict[str, Any]] = {"palette": {}, "markers": {}, "dashes": {}}
    for method in dict.fromkeys(methods):
        hue = colour(method)
        if lit is not None and hue != GREY and method not in lit:
            found["palette"][method], found["markers"][method] = REST, "o"
            found["dashes"][method] = ""
            continue
        used = list(found["palette"].values()).count(hue)
        found["palette"][method] = hue
        # 3 and the number of markers have no common divisor: all are used before one comes again.
        found["markers"][method] = MARKERS[((*PALETTE, GREY).index(hue) + 3 * used) % len(MARKERS)]
        found["dashes"][method] = DASHES[used % len(DASHES)] or ""
    return found


def heading(figure: Figure, title: str, below: str) -> None:
    """Write a title and lines below it above all that is drawn; saving makes room for them."""
    box = figure.get_tightbbox()  # in inches
    width, height = figure.get_size_inches()
    lines = wrap(below, int(13.5 * box.width))
    x, y = box.x0 / width, box.y1 / height
    figure.text(x, y + 0.12 / height, "\n".join(lines), va="bottom", fontsize=9.5, color=GREY)
    top = y + (0.2 + 0.16 * len(lines)) / height
    figure.text(x, top, title, va="bottom", fontsize=12.5, fontweight="bold")


Drawing = tuple[str, Callable[[], Figure | None]]
"""Name of a file without ending, and what draws the figure; None where that says nothing."""


def files(drawings: Iterable[Drawing], formats: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """``<name>.<format>`` and its content, in the project's style and without a date."""
    with styled():
        for name, draw in drawings:
            figure = draw()
            if figure is None:
                continue
            for form in formats:
                drawn = io.BytesIO()
                date = {"Date": None} if form == "svg" else None
                figure.savefig(drawn, format=form, metadata=date)
                yield f"{_file_name(name)}.{form}", drawn.getvalue()
            plt.close(figure)


def save(
    drawings: Iterable[Drawing], folder: Path, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write figures into a folder, which is made if missing; see :func:`files`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in files(drawings, formats):
        paths.append(folder / name)
        write_whole(paths[-1], content)
    return paths


def _file_name(name: str) -> str:
    """A file's name; what no file may have is changed, and a hash keeps it apart from others."""
    plain = re.sub(r"[/\\\0]", "-", name).encode()[:_LONGEST_NAME].decode(errors="ignore")
    return plain if plain == name else f"{plain}-{crc32(name.encode()):08x}"
