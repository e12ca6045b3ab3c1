"""The report on an upgrade, from vectors: ``bench upgrade`` as a call."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from benchmark.errors import unknown
from benchmark.ranking.arrays import Ints
from benchmark.upgrade.decide.doubts import doubts
from benchmark.upgrade.decide.gate import Condition, require_known, require_there
from benchmark.upgrade.decide.models import ModelComparison, compare_models
from benchmark.upgrade.decide.verdict import Decision, Evidence, decide
from benchmark.upgrade.fit.maps import chosen_maps, direction_of
from benchmark.upgrade.formats import require_columns
from benchmark.upgrade.measure.backfill_progress import backfill_progress
from benchmark.upgrade.measure.behind_index import behind_index
from benchmark.upgrade.measure.bridge import UNPAIRED, Alignment, bridge, refused_strategies
from benchmark.upgrade.measure.cascade_depth import cascade_depths
from benchmark.upgrade.measure.compressed import compressed
from benchmark.upgrade.measure.pairs_curve import pairs_curve
from benchmark.upgrade.measure.slices import slices
from benchmark.upgrade.measure.study import Study, saved, study
from benchmark.upgrade.measure.thresholds import thresholds
from benchmark.upgrade.read.apart import read_apart
from benchmark.upgrade.read.gallery import Cluster
from benchmark.upgrade.read.health import Remark, look_at
from benchmark.upgrade.read.inputs import Inputs, common_rows, open_rows, query_places, read_inputs
from benchmark.upgrade.read.request import KEEP, Tell, UpgradeRequest, prefixed
from benchmark.upgrade.search.index import Settings
from benchmark.upgrade.search.strategies import BETWEEN, NAMES, VectorFacts
from benchmark.upgrade.show.report import UpgradeReport, make_document

_WARNING = "Warning: "


def upgrade(*arguments: Any, tell: Tell = lambda words: None, **options: Any) -> UpgradeReport:
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
    known = {field.name for field in fields(UpgradeRequest)}
    for name in options.keys() - known:
        raise unknown("option of upgrade", name, known)
    return report_on(UpgradeRequest(*arguments, **options), tell)


def report_on(request: UpgradeRequest, tell: Tell = lambda words: None) -> UpgradeReport:
    """Make the report that a request asks for; as :func:`upgrade`."""
    columns = (request.vector_column, request.id_column)
    require_columns(request.files, *(name for name in columns if isinstance(name, str)))
    if request.approximate is not None:
        Settings(request.approximate).require()
    cluster = Cluster() if request.engine == "ray" else None
    if request.gone:
        return _reported(_bridged(request, cluster, tell), tell)
    if request.models is None:
        return _reported(_judged(_read(request, cluster, tell), tell), tell)
    requests = {name: request.of_model(name) for name in request.models}
    first = next(iter(requests.values()))
    among = common_rows(list(requests.values()))

    # All are read before one is measured: a damaged file is found at once.
    inputs = {
        name: _read(each, cluster, prefixed(tell, name), among) for name, each in requests.items()
    }
    judged = {name: _judged(each, prefixed(tell, name)) for name, each in inputs.items()}
    compared = compare_models(
        {name: each.study for name, each in judged.items()},
        {name: each.decision for name, each in judged.items()},
        {name: query_places(each, first) for name, each in requests.items()},
    )
    taken = judged[compared.taken]
    # Likely is enough for one model; the best of several is better by luck, too.
    if any(each.name == compared.taken and each.sure is False for each in compared.places):
        sure = taken.decision.name == KEEP and taken.decision.decided
        taken = replace(taken, decision=replace(taken.decision, decided=sure))
    return _reported(_warned_of_all(compared.taken, taken, judged), tell, compared)


def strategy_names(request: UpgradeRequest) -> list[str]:
    """Names of all strategies that a report may have, before vectors are read."""
    return [*NAMES, *_map_labels(request)]


def require_figures(request: UpgradeRequest, conditions: Sequence[Condition]) -> None:
    """Raise a BenchError where a condition is of a strategy that the report will not have.

    Its name says so, or what there is of vectors and maps; of several new models one may have it.
    """
    require_known(conditions, strategy_names(request))
    if {each.strategy for each in conditions} & {*NAMES}:
        models = [None] if request.models is None else [*request.models]
        first, *others = (
            _facts(request if name is None else request.of_model(name)).unfit() for name in models
        )
        of_all = {name: why for name, why in first.items() if all(name in its for its in others)}
        require_there(conditions, of_all)


def _map_labels(request: UpgradeRequest) -> list[str]:
    unpaired = request.gone and request.pairs_old is None
    return [UNPAIRED] if unpaired else chosen_maps(request.maps)


def _facts(request: UpgradeRequest) -> VectorFacts:
    """Facts of the vectors of one new model, before they are read."""
    old, new = (
        open_rows(request, side)
        for side in ("old_gallery", "pairs_new" if request.gone else "new_gallery")
    )
    directions = {direction_of(label) for label in _map_labels(request)}
    return VectorFacts(
        old.dim, new.dim, request.distance or old.metric or "cosine",
        old_queries=request.old_queries is not None, embedded=not request.gone,
        paired=not request.gone or request.pairs_old is not None,
        converted="gallery" in directions, mapped="query" in directions,
    )  # fmt: skip


@dataclass(frozen=True)
class _Judged:
    """One new model: what was measured, and what the rule says of it."""

    study: Study
    findings: Sequence[Remark]
    evidence: Evidence
    decision: Decision
    alignment: Sequence[Alignment] | None = None


def _read(
    request: UpgradeRequest, cluster: Cluster | None, tell: Tell, among: Ints | None = None
) -> Inputs:
    """Check the names of maps, and read everything of one new model."""
    chosen_maps(request.maps)
    tell("reading")
    return read_inputs(request, cluster, among)


def _judged(inputs: Inputs, tell: Tell) -> _Judged:
    """Measure all strategies with one new model, and decide."""
    request = inputs.request
    tell("looking at the vectors")
    findings = look_at(inputs)
    return _decided(study(inputs, chosen_maps(request.maps), tell), findings)


def _decided(
    result: Study, findings: Sequence[Remark], alignment: Sequence[Alignment] | None = None,
    refused: Collection[str] = (),
) -> _Judged:  # fmt: skip
    """Tell what is odd, and decide among the strategies that are not refused."""
    inputs, request = result.inputs, result.inputs.request
    result = replace(result, inputs=replace(inputs, told=(*doubts(result), *inputs.told)))
    evidence = Evidence.of(result.outcomes, result.metric, result.groups, request.worthwhile / 100)
    taken = {name: o for name, o in result.outcomes.items() if name not in refused}
    decision = decide(replace(evidence, outcomes=taken), request.constraints, request.wanted)
    if decision.name == KEEP and (better := evidence.above & {*refused}):
        reason = (
            "spaces do not align, so no map is taken; but on these queries "
            f"{max(better, key=evidence.mean)} is measurably better: try it on others"
        )
        decision = replace(decision, reason=reason, decided=False)
    return _Judged(result, findings, evidence, decision, alignment)


def _warned_of_all(name_taken: str, taken: _Judged, judged: Mapping[str, _Judged]) -> _Judged:
    """The model that is taken, with the warnings of each: those of all once, others by name."""
    warnings = {
        name: [line for line in each.study.inputs.told if line.startswith(_WARNING)]
        for name, each in judged.items()
    }
    of_all = [line for line in next(iter(warnings.values()))
              if all(line in its for its in warnings.values())]  # fmt: skip
    told = [
        *of_all,
        *(f"{_WARNING}{name}: {line.removeprefix(_WARNING)}"
          for name, its in warnings.items() for line in its if line not in of_all),
        *(line for line in taken.study.inputs.told if not line.startswith(_WARNING)),
    ]  # fmt: skip
    inputs = replace(taken.study.inputs, told=tuple(told))
    stored = inputs.gallery.stored.name
    odd = [
        replace(found, of=f"{name}: {found.of}")
        for name, each in judged.items() if name != name_taken
        for found in each.findings if found.odd and found.of != stored
    ]  # fmt: skip
    return replace(
        taken, study=replace(taken.study, inputs=inputs), findings=[*taken.findings, *odd]
    )


def _bridged(request: UpgradeRequest, cluster: Cluster | None, tell: Tell) -> _Judged:
    """Measure what maps of other texts do, and decide among those across spaces that align."""
    tell("reading")
    apart = read_apart(request, cluster)
    findings = look_at(apart.inputs)
    result, alignment = bridge(apart, chosen_maps(request.maps), tell)
    refused = refused_strategies(result, alignment)
    result.first.plan.left_out.update(refused)
    return _decided(result, findings, alignment, refused)


def _reported(judged: _Judged, tell: Tell, models: ModelComparison | None = None) -> UpgradeReport:
    """Measure the sections that are asked for, and write the report."""
    result, decision = judged.study, judged.decision
    request = result.inputs.request
    best, approximate = result.first.best, request.approximate
    can_backfill = request.constraints.sources and request.index
    # Section of the document -> is it asked for, what is said meanwhile, and what makes it.
    wanted: dict[str, tuple[object, str, Callable[[], Any]]] = {
        "pairs": (
            result.first.maps and not request.gone and decision.name not in BETWEEN,
            "fitting on fewer pairs",
            lambda: pairs_curve(result, decision.name),
        ),
        "backfilling": (
            can_backfill and (best or request.transition), "backfilling",
            lambda: backfill_progress(result),
        ),
        "cascade": (
            request.transition and request.sources, "rescoring deeper lists",
            lambda: cascade_depths(result, tell),
        ),
        "index": (
            approximate, "building indexes",
            lambda: approximate and behind_index(result, Settings(approximate)),
        ),
        "compressed": (
            request.compressed, "compressing vectors", lambda: compressed(result, tell)
        ),
        "slices": (request.slices, "scoring slices", lambda: slices(result, decision.name)),
        "thresholds": (
            request.threshold, "moving cut-offs", lambda: thresholds(result, request.threshold)
        ),
    }  # fmt: skip
    sections: dict[str, Any] = dict.fromkeys(wanted)
    for name, (asked, said, make) in wanted.items():
        if asked:
            tell(said)
            sections[name] = make()
    sections |= {"models": models, "alignment": judged.alignment}
    document = make_document(result, judged.evidence, decision, judged.findings, sections)
    return UpgradeReport(document, saved(result, decision.name, tell))
