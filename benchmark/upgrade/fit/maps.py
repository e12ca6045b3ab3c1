"""Maps between both models' vectors: the methods that need nothing but pairs, fitted and timed."""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from benchmark.config import registry
from benchmark.contract.bases import FeatureTransformation
from benchmark.contract.conversion import Conversion
from benchmark.errors import BenchError, PassedOverWarning, RefusedError, nearest
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.read.request import Tell

QUICK = ("procrustes", "procrustes:query", "linear", "linear:query", "low-rank", "low-rank:query")
"""Those in closed form."""
_TIMED = 4096  # rows that are converted to take the time


@dataclass(frozen=True)
class FittedMap:
    """A map that has been fitted on the pairs."""

    label: str  # the method's, ``linear`` or ``linear:query``
    direction: Literal["gallery", "query"]  # what it changes: stored vectors or queries
    conversion: Conversion  # as it is saved, and applied
    fit_s: float
    rows_per_s: float  # vectors that this machine brings to the other space in a second

    @property
    def to_new(self) -> bool:
        """True where it brings stored vectors to the space of new ones, whose queries are as is."""
        return self.direction == "gallery" and "query_view" not in self.conversion.parts


def map_labels() -> list[str]:
    """Labels of all maps that need pairs alone, controls aside.

    Of each method one map of stored vectors and one of queries: itself, or its first such variant.
    """
    labels = []
    for name, file in registry.method_files().items():
        try:
            cls = registry.method_class(name)
        except BenchError as error:
            warnings.warn(PassedOverWarning(f"passed over method {name}: {error}"), stacklevel=2)
            continue
        if file.control or file.variant_of or not issubclass(cls, FeatureTransformation):
            continue
        found = [x for x in (name, *(f"{name}:{v}" for v in file.variants)) if _needs_pairs(x)]
        first = {direction_of(label): label for label in reversed(found)}
        labels += [label for label in found if label in first.values()]
    return labels


def chosen_maps(words: str | Iterable[str]) -> list[str]:
    """Labels of maps by name; ``all`` and ``quick`` are sets of them.

    Raises:
        BenchError: If one is unknown, or needs more than pairs of vectors.
    """
    names = words.split(",") if isinstance(words, str) else words
    labels: list[str] = []
    for name in (name.strip() for name in names):
        if not name:
            raise BenchError(f"maps: expected quick, all or names with commas, got {words!r:.60}")
        if name in ("all", "quick"):
            labels += map_labels() if name == "all" else QUICK
            continue
        registry.method_file(name)
        is_map = issubclass(registry.method_class(name.partition(":")[0]), FeatureTransformation)
        if not is_map:
            raise BenchError(f"maps: {name} is no map of vectors{nearest('', map_labels())}")
        if not _needs_pairs(name):
            known = nearest(name, map_labels())
            raise BenchError(f"maps: {name} needs more than pairs of vectors{known}")
        labels.append(name)
    return list(dict.fromkeys(labels))


def fit(
    label: str, old: Floats, new: Floats, distance: str, seed: int,
    progress: Callable[[float], None] = lambda share: None, **parameters: Any,
) -> FittedMap:  # fmt: skip
    """Fit a map on pairs ``[n, d_old]`` and ``[n, d_new]``.

    Dot products are kept by what keeps vectors as they are, lengths among it: as for distances.
    """
    distance = "l2" if distance == "dot" else distance
    started = time.perf_counter()
    method = registry.method(label, parameters)
    conversion: Conversion = method.fit(old, new, distance=distance, seed=seed, progress=progress)
    fit_s, direction = time.perf_counter() - started, direction_of(label)
    some = old if direction == "gallery" else new
    some = some[np.arange(_TIMED) % len(some)]
    call = conversion.convert if direction == "gallery" else conversion.view
    call(some[:512])
    started = time.perf_counter()
    call(some)
    return FittedMap(
        label, direction, conversion, fit_s, _TIMED / max(time.perf_counter() - started, 1e-9)
    )


class FitTimes:
    """About how long trained maps still take, each of which is fitted several times.

    Example:
        >>> times = FitTimes(["linear", "fct", "fastfill"], 2)
        >>> times.left("fct", 0.25, 60.0)
        '6 %, about 15.0 min left'
        >>> times.add("fct", 240.0)
        >>> times.add("fastfill", 120.0)
        >>> times.left("fct", 0.5, 120.0)
        '67 %, about 4.0 min left'
    """

    def __init__(self, labels: Iterable[str], times: int = 1) -> None:
        self._labels = [label for label in labels if label not in QUICK]
        self._times, self._took = times, dict[str, list[float]]()

    def add(self, label: str, seconds: float) -> None:
        """Note a fit that is done."""
        if label in self._labels:
            self._took.setdefault(label, []).append(seconds)

    def drop(self, label: str) -> None:
        """Count on no more fits of a map, as it refuses these vectors."""
        self._labels = [each for each in self._labels if each != label]

    def left(self, label: str, share: float, seconds: float) -> str:
        """The share of all fits that is done, and the rest, when so much of one is, above 0.

        A map takes as long as before, one that was not fitted yet as long as the others.
        """
        each = {name: sum(took) / len(took) for name, took in self._took.items()}
        each[label] = seconds / share
        usual = sum(each.values()) / len(each)
        whole = self._times * sum(each.get(name, usual) for name in {*self._labels, label})
        done = sum(map(sum, self._took.values())) + seconds
        of = done / whole if whole else 0.0
        return f"{100 * min(of, 1.0):.0f} %, about {max(whole - done, 0.0) / 60:.1f} min left"


def fit_all(
    labels: Iterable[str], old: Floats, new: Floats, distance: str, seed: int, tell: Tell,
    times: FitTimes | None = None, **parameters: Any,
) -> tuple[list[FittedMap], dict[str, str]]:  # fmt: skip
    """As :func:`fit`, one after the other; label -> reason of those that refuse these vectors.

    ``times`` are those of all fits, where there are others before or after these.
    """
    fits, refused, labels = [], dict[str, str](), list(labels)
    times = times or FitTimes(labels)
    for k, label in enumerate(labels):
        said, started = f"fitting {label}, {k + 1} of {len(labels)}", time.monotonic()
        tell(said)

        def progress(
            share: float, label: str = label, said: str = said, started: float = started
        ) -> None:
            if share:
                tell(f"{said}: {times.left(label, share, time.monotonic() - started)}")

        try:
            fits.append(fit(label, old, new, distance, seed, progress, **parameters))
            times.add(label, time.monotonic() - started)
        except RefusedError as error:
            refused[label] = str(error).removeprefix(f"{label.partition(':')[0]}: ")
            times.drop(label)
    return fits, refused


def _needs_pairs(label: str) -> bool:
    method = registry.method(label)
    return method.needs == ("independent",) and len(method.uses) == 1


def direction_of(label: str) -> Literal["gallery", "query"]:
    """The side that the map of a label changes: stored vectors or queries."""
    return "query" if registry.method(label).changes == ("queries",) else "gallery"
