"""The report on an upgrade, from vectors: what ``bench upgrade`` does, as a call."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from benchmark.errors import BenchError, unknown
from benchmark.metrics.cost_model import Assumptions
from benchmark.upgrade.decide.doubts import doubts
from benchmark.upgrade.decide.verdict import WANTED, Evidence, Verdict, decide
from benchmark.upgrade.fit.maps import FittedMap, chosen_maps
from benchmark.upgrade.measure.behind_index import behind_index
from benchmark.upgrade.measure.pairs_curve import PairsCurve, pairs_curve
from benchmark.upgrade.measure.part_filled import Backfill, backfills
from benchmark.upgrade.measure.study import Study, study
from benchmark.upgrade.read.cluster import Cluster
from benchmark.upgrade.read.reading import Columns, Qrels, Vectors, read_inputs
from benchmark.upgrade.search.index import Kind, Settings
from benchmark.upgrade.search.strategies import KEEP, REEMBED, Constraints
from benchmark.upgrade.show.report import UpgradeReport, make_document

Tell = Callable[[str], None]


def upgrade(
    old_gallery: Vectors, new_gallery: Vectors, queries: Vectors,
    old_queries: Vectors | None = None, *, qrels: Qrels | None = None,
    labels: tuple[Any, Any] | None = None, ids: Mapping[str, Any] | None = None,
    distance: Literal["cosine", "l2"] = "cosine", texts: str | Path | None = None,
    reads: str | Path | None = None, queries_are_items: bool = False, items: int | None = None,
    throughput: float = Assumptions.throughput, price: float = Assumptions.price,
    old_model: bool = True, sources: bool = True, index: bool = True, extra_runs: bool = True,
    rescoring: bool = False, wanted: float = WANTED, maps: str | Iterable[str] = "all",
    seed: int = 0, engine: Literal["local", "ray"] = "local", approximate: Kind | None = None,
    id_column: Columns = "", vector_column: Columns = "",
    tell: Tell = lambda words: None,
) -> UpgradeReport:  # fmt: skip
    """Judge every way from an old embedding model to a new one, on a deployment's own vectors.

    Vectors are arrays ``[n, dim]`` or files as :func:`benchmark.read_vectors` takes them. Ids of
    files come with them; those of arrays are in ``ids``.

    Args:
        old_gallery: Stored vectors of the old model, all or many.
        new_gallery: Vectors by the new model of the same items, or of a sample of some thousands;
            joined by ids, or row by row where there are none and the numbers are equal.
        queries: By the new model.
        old_queries: The same queries by the old model; without them there is no lower bound.
        qrels: Judgements: a file in TREC's or BEIR's form, or query -> item -> gain.
        labels: Classes of queries and gallery, arrays or files. Without qrels and labels,
            strategies are judged by their agreement with the new model's ten nearest.
        ids: Name of an argument -> ids of an array, ``{"old_gallery": ..., "queries": ...}``.
        distance: ``cosine`` or ``l2``, as the deployment compares vectors.
        texts: File of the queries' texts, to show beside them.
        reads: File of how often items are read, for an order of backfilling.
        queries_are_items: Is the item of a query's id the query itself, to be left out for it?
        items: Of the deployed gallery; by default those of ``old_gallery``.
        throughput: Items that the new model embeds in a second.
        price: Money for an hour of the machine that embeds and converts, in any currency.
        old_model: Does the old model still embed queries?
        sources: Are the items kept, so that they can be embedded again?
        index: May stored vectors be rewritten, or a new index be built?
        extra_runs: May a second model run on a query?
        rescoring: May items be embedded while a query waits?
        wanted: Share of the upgrade that a strategy must keep to be taken.
        maps: Labels of maps, ``quick`` for those in closed form, ``all``.
        seed: Of everything random.
        engine: ``ray`` lets the workers of a Ray cluster read parts of the gallery; results are
            the same.
        approximate: An index of faiss, ``hnsw`` or ``ivf``, to judge strategies behind it, too.
        id_column: Column or array of ids in files, of all inputs or by the name of an argument;
            ``-`` for row numbers. By default ``id`` or the like, else the only one that may hold
            some.
        vector_column: As it, of vectors.
        tell: Called with what is done next.

    Returns:
        The report.

    Raises:
        BenchError: If something is missing, damaged or does not fit; in one line.
    """
    if not 0 < wanted <= 1:
        raise BenchError(f"wanted: expected a share in (0, 1], got {wanted:g}")
    sizes = {"throughput": throughput, "price": price, "items": 1 if items is None else items}
    for name, number in sizes.items():
        if not math.isfinite(number) or number < 0 or (name != "price" and not number):
            raise BenchError(f"{name}: expected a finite number above 0, got {number:g}")
    if engine not in ("local", "ray"):
        raise unknown("engine", engine, ("local", "ray"))
    if approximate is not None:
        Settings(approximate).require()
    chosen = chosen_maps(maps)
    tell("reading")
    inputs = read_inputs(
        old_gallery, new_gallery, queries, old_queries, qrels=qrels, labels=labels, ids=ids,
        distance=distance, texts=texts, reads=reads, queries_are_items=queries_are_items,
        id_column=id_column, vector_column=vector_column,
        cluster=Cluster() if engine == "ray" else None,
    )  # fmt: skip
    result = study(inputs, chosen, seed, tell)
    result = replace(result, inputs=replace(inputs, told=(*doubts(result), *inputs.told)))
    evidence = Evidence.of(result.outcomes, result.metric, result.groups)
    constraints = Constraints(old_model, sources, index, extra_runs, rescoring)
    verdict = decide(evidence, constraints, wanted)
    tell("fitting on fewer pairs")
    curve = _pairs(result, verdict, seed)
    tell("backfilling")
    along = _backfills(result, constraints, seed)
    found = None
    if approximate is not None:
        tell(f"building {approximate} indexes")
        found = behind_index(result, Settings(approximate))
    assumed = Assumptions(items or inputs.gallery.rows, throughput, price)
    document = make_document(
        result, evidence, verdict, constraints, assumed, wanted, curve, along, found
    )
    fit = None if verdict.name is None else result.outcomes[verdict.name].strategy.fitted
    return UpgradeReport(document, None if fit is None else fit.conversion)


def _pairs(result: Study, verdict: Verdict, seed: int) -> PairsCurve | None:
    """The curve of the recommended map, else of the best one; None without maps."""
    fits: dict[str, FittedMap] = {fit.label: fit for fit in result.maps}
    name = verdict.name if verdict.name in fits else None
    if name is None and fits:
        name = max(fits, key=lambda f: float(result.outcomes[f].scores[result.metric].mean()))
    if name is None:
        return None
    return pairs_curve(result, name, [n for n in (KEEP, REEMBED) if n in result.outcomes], seed)


def _backfills(result: Study, constraints: Constraints, seed: int) -> list[Backfill]:
    possible = constraints.sources and constraints.index and result.best is not None
    return backfills(result, result.best, seed) if possible and result.best else []
