"""The report on an upgrade, from vectors: ``bench upgrade`` as a call."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmark.upgrade.decide.doubts import doubts
from benchmark.upgrade.decide.verdict import Decision, Evidence, decide
from benchmark.upgrade.fit.maps import chosen_maps
from benchmark.upgrade.measure.backfill_progress import backfill_progress
from benchmark.upgrade.measure.behind_index import behind_index
from benchmark.upgrade.measure.compressed import compressed
from benchmark.upgrade.measure.pairs_curve import PairsCurve, pairs_curve
from benchmark.upgrade.measure.slices import slices
from benchmark.upgrade.measure.study import Study, study
from benchmark.upgrade.measure.thresholds import thresholds
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.health import look_at
from benchmark.upgrade.read.inputs import read_inputs
from benchmark.upgrade.read.request import KEEP, REEMBED, Tell, UpgradeRequest
from benchmark.upgrade.search.index import Settings
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
    best, can_backfill = result.first.best, request.sources and request.index
    # Section of the document -> is it asked for, what is said meanwhile, and what makes it.
    wanted: dict[str, tuple[object, str, Callable[[], Any]]] = {
        "pairs": (result.first.maps, "fitting on fewer pairs", lambda: _pairs(result, decision)),
        "backfilling": (
            best and can_backfill, "backfilling",
            lambda: None if best is None else backfill_progress(result, best),
        ),
        "index": (
            settings, "building indexes",
            lambda: None if settings is None else behind_index(result, settings),
        ),
        "compressed": (
            request.compressed, "compressing vectors", lambda: compressed(result)
        ),
        "slices": (request.slices, "scoring slices", lambda: slices(result, decision.name)),
        "thresholds": (
            request.threshold, "moving cut-offs", lambda: thresholds(result, request.threshold)
        ),
    }  # fmt: skip
    sections = dict.fromkeys(wanted)
    for name, (asked, said, make) in wanted.items():
        if asked:
            tell(said)
            sections[name] = make()
    document = make_document(result, evidence, decision, findings, sections)
    fit = None if decision.name is None else result.outcomes[decision.name].strategy.fitted
    return UpgradeReport(document, None if fit is None else fit.conversion)


def _pairs(result: Study, decision: Decision) -> PairsCurve:
    """The curve of the recommended map, else of the best one."""
    labels = [fit.label for fit in result.first.maps]
    scores = {name: result.outcomes[name].scores[result.metric].mean() for name in labels}
    name = decision.name if decision.name in scores else max(labels, key=scores.__getitem__)
    return pairs_curve(result, name, [n for n in (KEEP, REEMBED) if n in result.outcomes])
