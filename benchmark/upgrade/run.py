"""The report on an upgrade, from vectors: ``bench upgrade`` as a call."""

from dataclasses import replace
from typing import Any

from benchmark.upgrade.decide.doubts import doubts
from benchmark.upgrade.decide.verdict import Decision, Evidence, decide
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.measure.backfill_progress import backfill_progress
from benchmark.upgrade.measure.behind_index import behind_index
from benchmark.upgrade.measure.pairs_curve import PairsCurve, pairs_curve
from benchmark.upgrade.measure.study import Study, study
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.health import look_at
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.request import Tell, UpgradeRequest
from benchmark.upgrade.search.index import Settings
from benchmark.upgrade.search.strategies import KEEP, REEMBED
from benchmark.upgrade.show.report import UpgradeReport, make_document


def upgrade(
    *arguments: Any, tell: Tell = lambda words: None, **options: Any
) -> UpgradeReport:  # fmt: skip
    """Evaluate every way from an old embedding model to a new one, on a deployment's own vectors.

    Args:
        arguments: The first fields of :class:`UpgradeRequest`: ``old_gallery``, ``new_gallery``,
            ``queries`` and ``old_queries``, arrays ``[n, dim]`` or files.
        tell: Called with what is done next.
        options: Its other fields by name, each of which has its help text there.

    Returns:
        The report.

    Raises:
        BenchError: If something is missing, damaged or does not fit; in one line.
    """
    return report_on(UpgradeRequest(*arguments, **options), tell)


def report_on(request: UpgradeRequest, tell: Tell = lambda words: None) -> UpgradeReport:
    """Make the report that a request asks for; as :func:`upgrade`."""
    settings = None if request.approximate is None else Settings(request.approximate)
    if settings is not None:
        settings.require()
    labels = chosen_maps(request.maps)
    tell("reading")
    cluster = Cluster() if request.engine == "ray" else None
    inputs = read_inputs(request, cluster)
    tell("looking at the vectors")
    findings = look_at(inputs)
    result = study(inputs, labels, tell)
    told = (*doubts(result), *result.inputs.told)
    result = replace(result, inputs=replace(result.inputs, told=told))
    least = request.worthwhile / 100
    evidence = Evidence.of(result.outcomes, result.metric, result.groups, least)
    decision = decide(evidence, request.constraints, request.wanted)
    tell("fitting on fewer pairs")
    curve = _pairs(result, decision)
    tell("backfilling")
    best, can_backfill = result.first.best, request.sources and request.index
    backfilling = backfill_progress(result, best) if best is not None and can_backfill else []
    found = None
    if settings is not None:
        tell(f"building {settings.kind} indexes")
        found = behind_index(result, settings)
    document = make_document(result, evidence, decision, curve, backfilling, findings, found)
    fit = None if decision.name is None else result.outcomes[decision.name].strategy.fitted
    return UpgradeReport(document, None if fit is None else fit.conversion)


def _pairs(result: Study, decision: Decision) -> PairsCurve | None:
    """The curve of the recommended map, else of the best one; None without maps."""
    labels = [fit.label for fit in result.first.maps]
    if not labels:
        return None
    scores = {name: result.outcomes[name].scores[result.metric].mean() for name in labels}
    name = decision.name if decision.name in scores else max(labels, key=scores.__getitem__)
    return pairs_curve(result, name, [n for n in (KEEP, REEMBED) if n in result.outcomes])
