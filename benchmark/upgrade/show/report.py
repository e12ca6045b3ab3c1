"""The results of a study as one document: for JSON, the terminal and the page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import benchmark
from benchmark.config.files import write_json, write_whole
from benchmark.contract.conversion import Conversion
from benchmark.errors import BenchError
from benchmark.metrics.kept_share import difference, mean
from benchmark.ranking.arrays import Values
from benchmark.upgrade.decide.verdict import Decision, Evidence, serving
from benchmark.upgrade.fit.maps import QUICK
from benchmark.upgrade.measure.evaluation import AGREEMENT, METRICS
from benchmark.upgrade.measure.study import StrategyOutcome, Study
from benchmark.upgrade.read.health import Remark
from benchmark.upgrade.read.inputs import Inputs, shown_id
from benchmark.upgrade.read.request import CONSTRAINTS, KEEP, REEMBED, missing
from benchmark.upgrade.search.strategies import cost_of

FORMAT = 1
WORST = 20
Document = dict[str, Any]


@dataclass(frozen=True)
class UpgradeReport:
    """A report on an upgrade."""

    document: Document  # all of it, of numbers and words
    conversion: Conversion | None  # the recommended strategy's map; None if it uses none

    @property
    def recommended(self) -> str | None:
        """The strategy to take; None if none is left."""
        name: str | None = self.document["verdict"]["strategy"]
        return name

    def __str__(self) -> str:
        """Tables for a terminal."""
        from benchmark.report.renderers.terminal import plain
        from benchmark.upgrade.show.tables import tables

        return plain(tables(self.document))

    def save_json(self, path: str | Path) -> None:
        """Write the document, and its folder; a BenchError if that is not possible."""
        write_json(_placed(path), self.document)

    def save_page(self, path: str | Path) -> None:
        """Write a page, one file that needs nothing else, and its folder; errors as above."""
        from benchmark.upgrade.show.page import render

        write_whole(_placed(path), render(self.document).encode())


def use_of(conversion: Conversion, place: Path) -> str:
    """The command or call that applies a conversion which is saved at a place."""
    call = f'benchmark.Conversion.load("{place}").{conversion.view_call}'
    if "joint_view" in conversion.parts:
        way = f"{conversion.params['share']:g} of the way from the old query to the new one"
        return f"{call}, {way}"
    if "query_view" in conversion.parts:
        return call
    return f"bench convert {place} INPUT OUTPUT"


def make_document(
    study: Study, evidence: Evidence, decision: Decision, findings: Sequence[Remark],
    sections: Mapping[str, Any],
) -> Document:  # fmt: skip
    """Gather everything that a report shows."""
    request = study.inputs.request
    assumed = study.inputs.assumed
    strategies = [_strategy(study, evidence, outcome) for outcome in study.outcomes.values()]
    left_out = dict(study.first.plan.left_out)
    for each in strategies:
        if each["missing"]:
            reasons = (CONSTRAINTS[need].reason for need in each["missing"])
            left_out[each["name"]] = "; ".join(reasons)
    return {
        "format": FORMAT,
        "version": benchmark.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "metric": study.metric,
        "inputs": _inputs(study, decision),
        "vectors": [asdict(each) for each in findings],
        "constraints": asdict(request.constraints),
        "assumed": {
            "items": int(assumed.items), "throughput": assumed.throughput, "price": assumed.price,
            "currency": request.currency,
        },
        "wanted": request.wanted,
        "worthwhile": evidence.least,
        "verdict": {
            "strategy": decision.name, "reason": decision.reason, "share_of": evidence.what,
            "decided": decision.decided, "runner_up": decision.runner_up,
            "meanwhile": serving(evidence, request.constraints),
            "changes": [{"if": words, "strategy": name} for words, name in decision.changes],
        },
        "strategies": strategies,
        "left_out": left_out,
        **{name: _section(each) for name, each in sections.items()},
        "worst": _worst(study, decision),
    }  # fmt: skip


def _section(found: Any) -> Any:
    if isinstance(found, list):
        return [asdict(each) for each in found]
    return None if found is None else asdict(found)


def _inputs(study: Study, decision: Decision) -> Document:
    inputs, gallery, sample = study.inputs, study.inputs.gallery, study.first.sample
    return {
        "gallery": gallery.stored.name, "rows": gallery.rows,
        "dims": [gallery.stored.dim, gallery.new.dim], "embedded": len(gallery.embedded),
        "fitted": min(int(fold.sample.fitted.sum()) for fold in study.folds),
        "saved_on": int(study.saved_on.fitted.sum()), "held": int(sample.held.sum()),
        "nearest": study.first.nearest, "agreement_at": study.first.agreement_at,
        "judged_in": study.n_gallery, "queries": len(inputs.queries),
        "judged_queries": len(study.queries),
        "pairs": inputs.n_pairs, "judged_pairs": int(study.relevant.counted.sum()),
        "judge": inputs.criterion, "distance": inputs.distance, "distance_by": _chosen_by(inputs),
        "complete": gallery.complete, "old_queries": inputs.old_queries is not None,
        "slerp_shares": list(study.first.shares[:2]),
        "slerp_share": next(iter(study.first.shares[2:]), None),
        "told": [*inputs.told, *_quick(study, decision)],
    }  # fmt: skip


def _chosen_by(inputs: Inputs) -> str:
    """The source of the distance."""
    if inputs.request.distance is not None:
        return "request"
    return "file" if inputs.gallery.stored.metric else "default"


def _quick(study: Study, decision: Decision) -> list[str]:
    """A line where maps were trained beside all closed forms, and none of the trained is taken."""
    taken = study.outcomes[decision.name].strategy.fitted if decision.name else None
    labels = [fit.label for fit in study.first.maps]
    trained = [label for label in labels if label not in QUICK]
    known = {*labels, *study.first.plan.left_out}
    if not trained or not {*QUICK} <= known or (taken is not None and taken.label in trained):
        return []
    return [
        f"--maps quick would do: {', '.join(trained)} took training, and what is taken has none"
    ]


def _strategy(study: Study, evidence: Evidence, outcome: StrategyOutcome) -> Document:
    strategy, groups, metric = outcome.strategy, study.groups, study.metric
    old, fit = study.outcomes.get(KEEP), strategy.fitted
    share = evidence.shares[strategy.name]
    broken = fixed = to_keep = None
    if old is not None and evidence.judged:
        broken, fixed = _changed(outcome, old)
        if outcome is not old:
            to_keep = asdict(difference(outcome.scored[metric], old.scored[metric], groups))
    scores = {
        key: asdict(mean(outcome.scored[key], groups))
        for key in (*METRICS, AGREEMENT) if key in outcome.scored
    }  # fmt: skip
    return {
        "name": strategy.name, "title": strategy.title, "effort": strategy.effort,
        "needs": sorted(strategy.needs),
        "missing": missing(strategy.needs, study.inputs.request.constraints),
        "estimated": outcome.estimated, "score": scores[metric], "metrics": scores,
        "kept": None if share is None else asdict(share), "to_keep": to_keep,
        "broken": broken, "fixed": fixed,
        "cost": asdict(cost_of(strategy, study.inputs)),
        "fit_s": None if fit is None else fit.fit_s,
        "rows_per_s": None if fit is None else fit.rows_per_s,
    }  # fmt: skip


def _changed(outcome: StrategyOutcome, old: StrategyOutcome) -> tuple[int, int]:
    """Queries with a relevant item among ten before and none after, and the reverse.

    By classes, of which ten mostly hold an item, the nearest item alone is looked at.
    """
    lost = old.hits * (1 - outcome.hits)
    won = outcome.hits * (1 - old.hits)
    return round(float(lost.sum())), round(float(won.sum()))


def _worst(study: Study, decision: Decision) -> Document:
    """The queries that lose most by the recommended strategy."""
    name = decision.name or REEMBED
    judged = study.metric != AGREEMENT
    against = KEEP if KEEP in study.outcomes and name != KEEP and judged else REEMBED
    if name == against or not {name, against} <= study.outcomes.keys():
        return {"strategy": name, "against": against, "queries": []}
    scores: dict[str, Values] = {
        key: study.outcomes[key].scores[study.metric] for key in (name, against)
    }
    lost = scores[name] - scores[against]
    rows = [int(i) for i in np.argsort(lost, kind="stable")[:WORST] if lost[i] < 0]
    inputs = study.inputs
    queries = []
    for i in rows:
        query = int(study.queries[i])
        key = shown_id(inputs.query_ids, query)
        queries.append({
            "id": key, "text": inputs.texts.get(key, ""),
            "before": float(np.clip(scores[against][i], 0, 1)),
            "after": float(np.clip(scores[name][i], 0, 1)),
            **_best_item(study, query, against, name),
        })  # fmt: skip
    return {"strategy": name, "against": against, "queries": queries}


def _best_item(study: Study, query: int, against: str, name: str) -> Document:
    """The relevant item that stood first before, and its ranks; nothing without judgements."""
    a, b = study.relevant.offset[query : query + 2]
    if a == b:
        return {}
    before, after = study.ranks[against][a:b], study.ranks[name][a:b]
    at = int(np.argmin(np.where(before > 0, before, np.iinfo(np.int64).max)))
    row = int(study.relevant.counted_pairs[1][a + at])
    return {
        "item": shown_id(study.inputs.gallery_ids, row),
        "rank_before": int(before[at]), "rank_after": int(after[at]),
    }  # fmt: skip


def _placed(path: str | Path) -> Path:
    place = Path(path)
    if place.is_dir():
        raise BenchError(f"{place}: there is a folder")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"{place}: {error.strerror}") from error
    return place
