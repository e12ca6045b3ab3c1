"""Signs that inputs are not what they were taken for; each is told as a warning."""

from collections.abc import Iterator

import numpy as np

from benchmark.metrics.kept_share import difference, mean
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.measure.near_copies import LEAST_PAIRS
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.order import is_constant
from benchmark.upgrade.read.request import KEEP, REEMBED

_DEEPEST = 10  # ranks that nDCG looks at
_FEW = 50  # random items from which on estimates are worth reading
_GONE = 0.5
"""Share of the relevant items from which on those without a new vector are warned of: most of what
judgements say is then unused, and the few items that are left of a query's are easier or harder to
rank than all."""
_COPIED = 0.05
"""Share of the gallery from which on copies are warned of."""
_EQUAL = 0.05
"""Share of the items from which on equal vectors by both models are warned of."""
_ROUNDED = 1e-3
"""Share of an item's largest number by which its two vectors may differ, by float16."""
_SCALE = 3.0
"""Times by which queries are longer or shorter than the gallery, from which on it is warned."""
_MEASURED = 1000  # vectors of either side whose lengths are looked at
_SIDES = {
    REEMBED: ("everything embedded again", "new gallery and queries"),
    KEEP: ("the old model", "old gallery and queries"),
}


def doubts(study: Study) -> list[str]:
    """Warnings, none where nothing is odd."""
    found = [line for check in (_constant, _equal, _own, _copies, _sample) for line in check(study)]
    # Scores of another scale are as low as by chance, for which no other reason is told.
    found += [*_scales(study)] or [*_scores(study)]
    return [f"Warning: {line}" for line in found]


def _constant(study: Study) -> Iterator[str]:
    """Vectors that are all the same, of which no order can be made."""
    inputs = study.inputs
    sides = [
        *((rows.name, vectors) for rows, vectors in inputs.looked),
        ("the queries", inputs.queries), ("the old queries", inputs.old_queries),
    ]  # fmt: skip
    for name, vectors in sides:
        if vectors is not None and len(vectors) > 1 and is_constant(vectors):
            yield f"all vectors of {name} are the same: nothing can be told from them"


def _equal(study: Study) -> Iterator[str]:
    """Items that have one vector by both models, which no two models give."""
    sample, of = study.first.sample, [rows.name for rows, _ in study.inputs.looked]
    old, new = sample.old, sample.new
    if old.shape != new.shape or len(of) != 2 or is_constant(old):
        return
    distance = np.abs(old - new).max(axis=1)
    share = float((distance <= _ROUNDED * np.abs(old).max(axis=1)).mean())
    if share > _EQUAL:
        which = "all" if share == 1 else f"{100 * share:.0f} % of the"
        yield (
            f"{which} items with vectors in both {of[0]} and {of[1]} have the same in both: are "
            "they of one model?"
        )


def _own(study: Study) -> Iterator[str]:
    """Queries that are items of the gallery, which find themselves, or that maps have seen."""
    inputs, sample = study.inputs, study.first.sample
    gone = inputs.request.gone
    if inputs.own is not None and not gone:
        n = int(np.isin(inputs.own, sample.rows[sample.fitted]).sum())
        if n:
            yield (
                f"{n} of {len(inputs.queries)} queries are items that maps are fitted on, as most "
                "items are queries: maps look better than on new queries; take fewer queries"
            )
        return
    if is_constant(inputs.queries):
        return
    items = {row.tobytes() for row in sample.new}
    n = sum(row.tobytes() in items for row in inputs.queries)
    if gone:  # the sample is of other texts
        if n > 1:
            yield (
                f"{n} of {len(inputs.queries)} queries are among the texts that maps are fitted "
                "on: maps look better on them than on others; fit on other texts"
            )
        return
    # A sample of a larger gallery has some of its items.
    expected = len(inputs.queries) * len(sample.rows) / inputs.gallery.rows
    if n > 1 and n >= expected / 2:
        yield (
            f"{n} of {len(inputs.queries)} queries are items of the gallery and find themselves: "
            "--queries-are-items leaves them out, if ids say which"
        )


def _copies(study: Study) -> Iterator[str]:
    """Items that are copies of others, of which the sample has too few pairs to allow for them."""
    inputs, old = study.inputs, study.first.sample.old
    if inputs.request.gone or inputs.gallery.complete or is_constant(old):
        return
    n = len(old)
    pairs = n - len({row.tobytes() for row in old})
    # Of a copy and its original a sample holds both by its share of the gallery.
    share = pairs / n * inputs.gallery.rows / n
    if pairs < LEAST_PAIRS and share > _COPIED:
        yield (
            f"some {100 * min(share, 1.0):.0f} % of the stored vectors look like copies of others, "
            f"and {pairs} pairs of them are too few to allow for it: what needs new vectors of "
            "items that have none is told too high; leave copies out, or embed more items"
        )


def _sample(study: Study) -> Iterator[str]:
    """A sample of few relevant items, or of little more than these."""
    inputs = study.inputs
    if inputs.request.gone or inputs.criterion != "qrels":
        return  # by class all items are relevant to some query, and no sample has most of them
    gallery, relevant = inputs.gallery, np.unique(inputs.qrels.rows)
    gone = len(np.setdiff1d(relevant, gallery.embedded))
    if gone > _GONE * len(relevant):
        yield (
            f"{gone:,} of {len(relevant):,} relevant items have no new vector and are left out: "
            "scores, and what an upgrade brings, are those of the others alone, and estimates "
            "of so few tend to be too high; embed all items that are relevant to a query, too"
        )
    plain = len(np.setdiff1d(gallery.embedded, relevant))
    if plain < _FEW and plain < gallery.rows - len(relevant):
        yield (
            f"only {plain} of the embedded items are relevant to no query: what the other items "
            "would do is told from these; embed some hundred random items, too"
        )


def _scales(study: Study) -> Iterator[str]:
    """Queries of another scale than the gallery, which l2 compares by lengths."""
    inputs = study.inputs
    if inputs.distance != "l2":
        return
    sides = (("old queries", inputs.old_queries, 0), ("queries", inputs.queries, -1))
    for name, queries, of in sides:
        if queries is None:
            continue
        rows, items = inputs.looked[of]
        its, stored = _median_length(queries), _median_length(items)
        if max(its, stored) > _SCALE * min(its, stored):
            yield f"{name} have length {its:.3g}, those in {rows.name} {stored:.3g}: another scale?"


def _median_length(vectors: Floats) -> float:
    some = vectors[:: max(1, len(vectors) // _MEASURED)]
    return float(np.median(np.linalg.norm(some.astype(np.float64), axis=1)))


def _scores(study: Study) -> Iterator[str]:
    """Scores of a random order, and of queries that fit the other model's gallery."""
    names = [name for name in (KEEP, REEMBED) if name in study.outcomes]
    scores = {n: o.scored[study.metric] for n, o in study.outcomes.items()}
    by_agreement = study.inputs.criterion == "agreement"
    if not by_agreement and "naive" in scores and len(names) > 1:
        gains = [difference(scores["naive"], scores[name], study.groups) for name in names]
        if all(gain.is_above(0.0) for gain in gains):
            yield (
                "queries of the new model find more in the old gallery than either model finds in "
                "its own: are the files of queries, or those of the gallery, swapped?"
            )
            return
    for name in names:
        chance = _chance(study, name)
        found = mean(scores[name], study.groups)
        if chance is not None and found.low is not None and found.low <= chance:
            if by_agreement:
                yield (
                    f"the old model shares {100 * found.known:.1f} % of the first "
                    f"{study.first.agreement_at} with the new one, not measurably more than by "
                    f"chance ({100 * chance:.1f}): is either model's gallery of the same model as "
                    "its queries, and do ids name the same items?"
                )
                return
            words, files = _SIDES[name]
            yield (
                f"{100 * found.known:.1f} with {words} is not measurably more than a random order "
                f"has ({100 * chance:.1f}): are {files} of one model, and the ids those of what is "
                "judged?"
            )


def _chance(study: Study, name: str) -> float | None:
    """The expected score of a random order; None of what is its own measure.

    Of average precision: Bestgen, "Exact Expected Average Precision of the Random Baseline",
    2015. Of nDCG with equal gains each rank has the share of relevant items.
    """
    n = study.n_gallery
    if study.inputs.criterion == "agreement":
        return None if name == REEMBED else min(1.0, study.first.nearest / n)
    relevant = np.diff(study.relevant.offset)[study.queries].astype(np.float64)
    if study.inputs.criterion == "labels":
        harmonic = (1 / np.arange(1, n + 1)).sum()
        rest = (relevant - 1) * (n - harmonic) / max(n - 1, 1)
        return float(((rest + harmonic) / n).mean())
    discounts = np.cumsum(1 / np.log2(np.arange(2, _DEEPEST + 2)))
    ideal = discounts[np.minimum(relevant, _DEEPEST).astype(int) - 1]
    return float((relevant / n * discounts[-1] / ideal).mean())
