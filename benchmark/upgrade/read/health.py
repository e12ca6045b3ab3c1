"""A look at stored vectors: number, lengths, doubles, scale, several models in one index.

Vectors are read once; what does not add up over rows is told of a random part of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmark.metrics.relevance import agreement
from benchmark.metrics.similarity import unit
from benchmark.ranking.arrays import Floats, Ints, Mask, Values
from benchmark.ranking.engine import LONGEST, SHORTEST
from benchmark.upgrade.formats.checks import several
from benchmark.upgrade.formats.joining import join
from benchmark.upgrade.formats.rows import BLOCK, Rows, gather
from benchmark.upgrade.read.gallery import about_mean
from benchmark.upgrade.read.inputs import Inputs
from benchmark.upgrade.read.mixture import Mixture, mixture

PART = 5_000
"""Random vectors of which structure is told."""
_HASHED = 2**24  # rows that are compared with each other, at most
_UNIT, _ALMOST = 1e-3, 0.05
"""Distance of a length from 1 that rounding, or float16 and int8, explain."""
_SAME = 0.99  # cosine of two vectors of one item by the same model, at least
_ROUNDED = 0.4
"""Cosine of two vectors of one item, each without its file's mean, that coarse rounding leaves.

More than two models of real texts have, less than one bit a number leaves.
"""
_QUERIES, _NEAREST = 200, 10


@dataclass(frozen=True)
class Remark:
    """A line about vectors."""

    of: str  # their name
    what: str  # a short name of the line, as JSON has it
    words: str  # for a person
    odd: bool = False  # something to look into
    value: float | None = None

    def __str__(self) -> str:
        """The line, marked where it is odd."""
        return f"{'LOOK' if self.odd else 'ok  '}  {self.words}"


@dataclass
class VectorTally:
    """Counts over all rows that were seen, and a random part of these."""

    dim: int
    rows: int = 0  # that were seen
    broken: int = 0  # rows with a number that is NaN or infinite
    zeros: int = 0  # rows of zeros alone
    extreme: int = 0  # rows whose squares float32 does not hold
    largest: float = 0.0  # absolute number
    shortest: float = np.inf  # length of a vector that is none of these
    longest: float = 0.0
    # vectors that are none of these, [k, dim]
    part: Floats = field(default_factory=lambda: np.empty((0, 1), np.float32))
    _keys: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    _hashes: list[Ints] = field(default_factory=list)
    _rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def add(self, vectors: Floats) -> None:
        """Count some rows, ``[k, dim]``."""
        self.rows += len(vectors)
        finite = np.isfinite(vectors).all(axis=1)
        self.broken += int((~finite).sum())
        vectors = vectors[finite]
        there = vectors.any(axis=1)
        self.zeros += int((~there).sum())
        vectors = vectors[there]
        good = _comparable(vectors)
        self.extreme += int((~good).sum())
        vectors = vectors[good]
        if not len(vectors):
            return
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
        self.shortest = min(self.shortest, float(lengths.min()))
        self.longest = max(self.longest, float(lengths.max()))
        self.largest = max(self.largest, float(np.abs(vectors).max()))
        if sum(map(len, self._hashes)) < _HASHED:
            self._hashes.append(_hashes(vectors))
        # The rows with the least random keys are a random part, whatever the blocks.
        keys = np.concatenate([self._keys, self._rng.random(len(vectors), np.float32)])
        order = np.argsort(keys)[:PART]
        before = len(self._keys)
        kept = np.empty((len(order), self.dim), np.float32)
        kept[order < before] = self.part[order[order < before]]
        kept[order >= before] = vectors[order[order >= before] - before]
        self.part, self._keys = kept, keys[order]

    @property
    def doubles(self) -> int:
        """Rows whose vector was there before, among the first 2^24."""
        if not self._hashes:
            return 0
        every = np.concatenate(self._hashes)
        return len(every) - len(np.unique(every))

    @property
    def lengths(self) -> Values:
        """Of the part, ``[k]``."""
        return np.asarray(np.linalg.norm(self.part.astype(np.float64), axis=1))


def look(source: Rows) -> VectorTally:
    """Read vectors once; numbers that are NaN or infinite are counted."""
    tally = VectorTally(source.dim)
    for vectors in source.vectors(BLOCK, finite=False):
        tally.add(vectors)
    return tally


def look_at(inputs: Inputs) -> list[Remark]:
    """Findings about a part of each of a report's files."""
    found = []
    for rows, vectors in inputs.looked:
        tally = VectorTally(vectors.shape[1])
        tally.add(vectors)
        found += examine(tally, rows.name, str(getattr(rows, "dtype", vectors.dtype)))
    return found


def examine(tally: VectorTally, name: str, stored: str = "float32") -> list[Remark]:
    """Findings about vectors that were looked at; ``stored`` is the type of their numbers."""
    shown = f"{several(tally.rows, 'vector')} of {tally.dim} numbers, {stored}"
    found = [Remark(name, "rows", shown, value=tally.rows)]
    for what, n, words in (
        ("broken", tally.broken, "with NaN or infinity"),
        ("zeros", tally.zeros, "of zeros alone, which no cosine compares"),
        (
            "extreme",
            tally.extreme,
            f"of a length below {SHORTEST:g} or above {LONGEST:g}, too extreme to be compared",
        ),
    ):
        if n:
            found.append(Remark(name, what, f"{several(n, 'vector')} {words}", odd=True, value=n))
    if not len(tally.part):
        return found
    found += [_lengths(tally, name), *_scale(tally, name, stored)]
    share = tally.doubles / max(1, tally.rows - tally.broken - tally.zeros - tally.extreme)
    if share:
        copies = "is a copy of another" if tally.doubles == 1 else "are copies of others"
        words = f"{several(tally.doubles, 'vector')} {copies}, {_percent(share)}"
        found.append(Remark(name, "doubles", words, share > 0.01, share))
    found += _structure(tally, name)
    return found


def examine_file(source: Rows) -> list[Remark]:
    """Findings about a file: its ids, which are read first as they may be refused, and its vectors.

    Then what a report tells of the file: what its format says, and what was chosen or left out.

    Raises:
        BenchError: As the report, if ids are none, or vectors cannot be read.
    """
    ids, name = source.ids, source.name
    words = "no ids: rows are known by number, from 0"
    if ids is not None:
        kind = "whole numbers" if ids.dtype.kind == "i" else "text"
        words = f"ids: {len(ids):,}, {kind}, each once"
    rows, *others = examine(look(source), name, str(source.dtype))
    told = [
        Remark(
            name, "told", line.removeprefix("Warning: ").removeprefix(f"{name}: "),
            line.startswith("Warning: "),
        )
        for line in source.told
    ]  # fmt: skip
    own = Remark(name, "own ids", words, value=0 if ids is None else len(ids))
    return [rows, own, *others, *told]


def compare(old: Rows, new: Rows) -> Iterator[Remark]:
    """Findings about vectors of the same items in two files: by one model, or by two."""
    joined, name = join(new, old), f"{new.name} beside {old.name}"
    some = np.sort(np.random.default_rng(0).permutation(len(joined.left))[:PART])
    left, right = (
        gather(side, rows[some], finite=False)
        for side, rows in ((new, joined.left), (old, joined.right))
    )
    whole = _comparable(left) & _comparable(right)
    left, right = left[whole], right[whole]
    yield Remark(name, "partners", str(joined), value=len(joined.left))
    if len(left) < 2:
        words = f"{len(left):,} of the items can be compared on both sides: too few"
        yield Remark(name, "agreement", words, odd=True)
        return
    if left.shape == right.shape:
        cosine = (unit(left, "cosine") * unit(right, "cosine")).sum(axis=1)
        share = float((cosine >= _SAME).mean())
        if share > 0.05:
            words = (
                f"{_percent(share)} of the vectors in {old.name} are those that {new.name} has for "
                "the same items: the rest is of another model or version"
            )
            alike = f"{new.name} and {old.name} have the same vectors: they are of one model"
            yield Remark(name, "fresh", alike if share > 0.99 else words, share <= 0.99, share)
            return
        # Where all vectors share a direction, any two are alike: what is told apart is the rest.
        a, b = (about_mean(unit(side, "cosine")) for side in (left, right))
        moved = _moved(a, b) * len(joined.left) / max(1, len(some))
        if moved > 0.5:
            yield Remark(
                name, "ids", f"{new.name} has vectors of {old.name}, but under other ids: do the "
                "ids name the same items?", True, min(1.0, moved),
            )  # fmt: skip
            return
        if np.median((a * b).sum(axis=1)) > _ROUNDED:  # no two models put an item in one place
            agree = nearest_agreement(left, right)
            yield Remark(
                name, "lost", f"{old.name} has the model of {new.name}, rounded: a cosine of "
                f"{np.median(cosine):.3f} to fresh vectors, {_percent(agree)} of the ten nearest",
                agree < 0.8, agree,
            )  # fmt: skip
            return
    agree = nearest_agreement(left, right)
    far = agree < 0.05
    yield Remark(
        name, "agreement", f"the two models share {_percent(agree)} of the ten nearest among "
        f"{len(left):,} items" + (": do the ids name the same items?" if far else ""), far, agree,
    )  # fmt: skip


def nearest_agreement(left: Floats, right: Floats) -> float:
    """Share of the ten nearest that items have in common by both sides, ``[n, d]`` each."""
    sides = (unit(side, "cosine") for side in (left, right))
    a, b = (_nearest(side, side[:_QUERIES], "dot") for side in sides)
    return _overlap(a, b)


def _moved(left: Floats, right: Floats) -> float:
    """Share of the rows that the other side has in another place; 0 where they are few."""
    found = 0
    for first in range(0, len(left), 1000):
        scores = left[first : first + 1000] @ right.T
        rows = np.arange(len(scores))
        scores[rows, first + rows] = -1.0
        found += int((scores.max(axis=1) >= _SAME).sum())
    return found / len(left) if found > 2 else 0.0


def _lengths(tally: VectorTally, name: str) -> Remark:
    lengths, off = tally.lengths, max(abs(tally.shortest - 1), abs(tally.longest - 1))
    if off <= _UNIT:
        return Remark(name, "lengths", "all of length 1: cosine, dot and l2 order alike")
    spread = float(lengths.std() / lengths.mean())
    words = f"lengths {tally.shortest:.3g} to {tally.longest:.3g}"
    if off <= _ALMOST:
        return Remark(name, "lengths", f"{words}, almost 1: rounded, or stored in fewer bits")
    if spread < 5 * _UNIT:
        return Remark(
            name, "lengths", f"{words}, all about the same: cosine, dot and l2 order alike"
        )
    if groups := _two_groups(lengths):
        return Remark(name, "lengths", f"{words}, in two groups: {groups}", odd=True, value=spread)
    return Remark(
        name, "lengths", f"{words}, not of one length: cosine, dot and l2 differ", value=spread
    )


def _two_groups(lengths: Values) -> str:
    """Two heaps of lengths, in words, where a gap lies between them; nothing for one heap.

    By the split with the least spread within both sides (Otsu, 1979).
    """
    ordered = np.sort(np.log(lengths))
    n = len(ordered)
    if n < 50:
        return ""
    k = np.arange(1, n)
    total, squares = np.cumsum(ordered), np.cumsum(ordered**2)
    left = squares[:-1] - total[:-1] ** 2 / k
    right = squares[-1] - squares[:-1] - (total[-1] - total[:-1]) ** 2 / (n - k)
    within = left + right
    at = int(np.argmin(within))
    whole = squares[-1] - total[-1] ** 2 / n
    few = min(at + 1, n - at - 1)
    # A single normal heap, split in its middle, keeps 1 - 2 / pi = 0.36 of its spread.
    if within[at] > 0.1 * whole or few < 0.01 * n:
        return ""
    return ", ".join(
        f"{_percent(len(part) / n)} around {np.exp(np.median(part)):.3g}"
        for part in (ordered[: at + 1], ordered[at + 1 :])
    )


def _scale(tally: VectorTally, name: str, stored: str) -> Iterator[Remark]:
    """The scale of whole numbers, and how many are cut off at its ends."""
    if stored != "int8":
        return
    clipped = float((np.abs(tally.part) >= 127).mean())
    words = f"int8 from {-tally.largest:.0f} to {tally.largest:.0f}"
    cut_off = clipped > max(0.005, 2 / tally.dim)  # one number of each is, if each has its scale
    if cut_off:
        words += f", {_percent(clipped)} of the numbers at an end: the scale cuts them off"
    elif tally.largest < 64:
        words += ": less than half of the range is used"
    else:
        words += ": the scale fits"
    yield Remark(name, "scale", words, cut_off or tally.largest < 64, clipped)


def _structure(tally: VectorTally, name: str) -> Iterator[Remark]:
    """One model or several, anisotropy, and what the way of comparing changes."""
    x = unit(tally.part, "cosine")
    found = mixture(x)
    yield Remark(name, "models", f"{_mixed(found)}", found.odd, found.share)
    n = len(x)
    if n < 2:  # one vector has no other to differ from
        return
    mean = x.mean(axis=0)
    cosine = (n * float(mean @ mean) - 1) / (n - 1)
    spread = np.linalg.eigvalsh(np.cov(x.T)) if x.shape[1] > 1 else np.ones(1)
    used = float(spread.sum() ** 2 / max(float((spread**2).sum()), 1e-300))
    words = f"two random vectors have a cosine of {cosine:.2f}; {used:.0f} of {tally.dim} "
    yield Remark(
        name, "anisotropy", f"{words}directions carry the differences", cosine > 0.8, cosine
    )
    if abs(tally.shortest - tally.longest) > _UNIT * tally.longest:
        ways = {way: _nearest(tally.part, tally.part[:_QUERIES], way) for way in ("dot", "l2")}
        plain = _nearest(x, x[:_QUERIES], "dot")
        for way, rows in ways.items():
            share = _overlap(plain, rows)
            yield Remark(
                name, way, f"by {way} {_percent(share)} of the ten nearest are those by cosine",
                share < 0.9, share,
            )  # fmt: skip


def _mixed(found: Mixture) -> str:
    if found.share is None:
        return f"too few to tell whether they are of one model ({found.why})"
    if found.odd:
        return (
            f"about {_percent(found.share)} are of another model or version, or show other "
            "things: what varies among them has nothing in common with what varies among the others"
        )
    return "no second model is found: what varies is the same everywhere"


def _nearest(items: Floats, queries: Floats, way: str) -> Ints:
    """Rows of the ten nearest items of the first items, themselves aside, ``[q, 10]``."""
    scores = queries @ items.T
    if way == "l2":
        scores = 2 * scores - (items**2).sum(axis=1)
    scores[np.arange(len(queries)), np.arange(len(queries))] = -np.inf
    k = min(_NEAREST, scores.shape[1] - 1)
    return np.asarray(np.argpartition(-scores, k - 1, axis=1)[:, :k] if k > 0 else scores[:, :0])


def _overlap(left: Ints, right: Ints) -> float:
    k = left.shape[1]
    return float(agreement(left, right, k).mean()) if k else 0.0


def _hashes(vectors: Floats) -> Ints:
    """A number for each row that equal rows share, and others hardly ever."""
    return np.array([hash(row.tobytes()) for row in vectors + np.float32(0)], np.int64)  # -0 is 0


def _comparable(vectors: Floats) -> Mask:
    """Rows of finite numbers whose squares float32 holds, or of zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.asarray((lengths == 0) | ((lengths >= SHORTEST) & (lengths <= LONGEST)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else f"{100 * share:.2g} %"
