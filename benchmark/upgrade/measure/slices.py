"""Scores by slices of the queries, tenants or languages for instance: gains and losses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmark.metrics.estimate import Estimate
from benchmark.metrics.kept_share import Scored, contrast, difference, mean
from benchmark.metrics.statistics import surely
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.measure.study import Study
from benchmark.upgrade.read.request import KEEP, REEMBED

LEVEL = 0.05
"""Of the tests by which a slice surely loses, all of them together."""


@dataclass(frozen=True)
class Slice:
    """Scores of the queries of a slice."""

    name: str  # as the file has it
    queries: int  # how many of the judged ones are in it
    old: Estimate | None  # by the old model; None where nobody has its queries
    new: Estimate  # with everything embedded again
    chosen: Estimate  # by the recommended strategy
    gain: Estimate  # of that one over the old model; without old queries over re-embedding
    loses: bool  # surely, by one-sided tests with Holm's correction for all slices


@dataclass(frozen=True)
class Slices:
    """All slices: sure losses, others with an interval, then the rest; least gains first."""

    strategy: str  # the one that ``chosen`` is of
    slices: list[Slice]  # of at least one judged query each
    unknown: int  # lines of the file that name nothing here
    # lines that name a query and an item, and are taken for the query; where items have
    # ids, as row numbers say nothing
    both: int


def slices(study: Study, strategy: str | None) -> Slices:
    """Scores of a strategy by slice; of re-embedding where none, or the old model, is advised."""
    name = REEMBED if strategy in (None, KEEP) else strategy
    against = KEEP if KEEP in study.outcomes else REEMBED
    members, unknown, both = _members(study)
    found, tests = [], dict[str, float]()
    for label, rows in members.items():
        some = None if study.groups is None else study.groups[rows]
        scored: Mapping[str, Scored] = {
            each: study.outcomes[each].scored[study.metric].of_queries(rows)
            for each in {name, against, KEEP, REEMBED} & study.outcomes.keys()
        }
        tests[label] = contrast(scored[against], scored[name], some).p_above(0.0)
        found.append(Slice(
            label, len(rows), mean(scored[KEEP], some) if KEEP in scored else None,
            mean(scored[REEMBED], some), mean(scored[name], some),
            Estimate(0.0) if name == against else difference(scored[name], scored[against], some),
            loses=False,
        ))  # fmt: skip
    sure = surely(tests, LEVEL)
    lost = [replace(each, loses=each.name in sure) for each in found]
    lost.sort(key=lambda each: (not each.loses, each.gain.low is None, each.gain.known))
    return Slices(name, lost, unknown, both)


def _members(study: Study) -> tuple[dict[str, Ints], int, int]:
    """Name -> places of the judged queries in a slice: by their own id, or a relevant item's.

    Ids that are of queries and of items are queries'; row numbers are those of items where the file
    has more of them than there are queries. With the numbers of lines that name nothing, and that
    name a query and an item.
    """
    inputs, relevant = study.inputs, study.relevant
    at = {int(q): k for k, q in enumerate(study.queries)}
    place = {str(each): at.get(q) for q, each in enumerate(inputs.query_ids)}
    items = range(inputs.gallery.rows) if inputs.gallery_ids is None else inputs.gallery_ids
    wanted = {name for name, _ in inputs.slices}
    known = {str(each): row for row, each in enumerate(items) if str(each) in wanted}
    if inputs.gallery_ids is None and wanted <= known.keys() and not wanted <= place.keys():
        place = {}
    by_query: dict[int, set[int]] = {}
    for q, row in zip(*relevant.counted_pairs, strict=True):
        by_query.setdefault(int(row), set()).add(at[int(q)])
    out: dict[str, set[int]] = {}
    unknown = both = 0
    for each, label in inputs.slices:
        both += inputs.gallery_ids is not None and each in place and each in known
        if (own := place.get(each)) is not None:
            out.setdefault(label, set()).add(own)
        elif each in known and each not in place:
            out.setdefault(label, set()).update(by_query.get(known[each], ()))
        else:
            unknown += 1
    unknown += sum(not out.get(label, True) for _, label in inputs.slices)  # of no query at all
    return (
        {label: np.array(sorted(rows), np.int64) for label, rows in sorted(out.items()) if rows},
        unknown,
        both,
    )
