"""The strategies: what each needs of the user, what it costs, and how it answers a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.contract.lists import TwoLists
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.read.gallery import Gallery
from benchmark.upgrade.search.lists import ResultList

KEEP, REEMBED, BACKFILL = "keep-old", "re-embed", "backfill"
NEW_LISTS = ("new", "short")
"""Lists that need a new vector of every item."""


@dataclass(frozen=True)
class Constraints:
    """What the user can do.

    Attributes:
        old_model: The old model still embeds queries.
        sources: The items themselves are kept, so that they can be embedded again.
        index: Stored vectors may be rewritten, or a new index may be built.
        extra_runs: A second model may run on a query.
        rescoring: Items may be embedded while a query waits.
    """

    old_model: bool = True
    sources: bool = True
    index: bool = True
    extra_runs: bool = True
    rescoring: bool = False


REASONS: Mapping[str, str] = {
    "old_model": "the old model is gone",
    "sources": "the items are not kept",
    "index": "the index stays as it is",
    "extra_runs": "one model run a query, no more",
    "rescoring": "no item is embedded while a query waits",
}
"""Why a user cannot follow a strategy that needs what the constraint denies."""


@dataclass(frozen=True)
class Strategy:
    """One way to go on.

    Attributes:
        name: Short, as tables and JSON have it.
        title: What is done, in words.
        needs: Constraints that must hold.
        uses: The list that answers, of :class:`Plan`; or two of them, which ``merge`` makes one.
        effort: 0: one model run a query and no item is embedded; 1: two runs a query; 2: items are
            embedded while a query waits; 3: every item is embedded.
        runs: Model runs a query, one after the other, with the items embedded meanwhile.
        rebuild: The index is built anew.
        way_back: The old index is there afterwards, so one can return to it at once.
        fitted: The map it uses.
    """

    name: str
    title: str
    needs: frozenset[str] = frozenset()
    uses: tuple[str, ...] = ()
    effort: int = 0
    runs: int = 1
    rebuild: bool = False
    way_back: bool = True
    merge: TwoLists | None = None
    fitted: FittedMap | None = None
    stores: tuple[str, ...] = ("old",)  # indexes kept: of ``old``, ``new``, ``short`` vectors

    def missing(self, constraints: Constraints) -> list[str]:
        """What the user lacks, by name."""
        return [need for need in REASONS if need in self.needs and not getattr(constraints, need)]

    @property
    def embeds_gallery(self) -> bool:
        """Whether new vectors of stored items answer, which only a sample may have."""
        return any(name in NEW_LISTS for name in self.uses)


@dataclass(frozen=True)
class Plan:
    """Strategies and the lists they use; what cannot be judged, and why."""

    strategies: list[Strategy]
    lists: dict[str, ResultList]
    left_out: dict[str, str] = field(default_factory=dict)


def make_plan(
    gallery: Gallery, queries: Floats, old_queries: Floats | None, middle: Floats | None,
    between: Floats | None, maps: Sequence[FittedMap], best: FittedMap | None, distance: str,
) -> Plan:  # fmt: skip
    """All strategies that the vectors allow; constraints come later.

    Args:
        gallery: Stored vectors.
        queries: By the new model.
        old_queries: By the old model; None if there are none.
        middle: Queries half-way between old and new ones.
        between: Queries on the circle between old and new ones, by the share that was chosen.
        maps: That have been fitted.
        best: The map of stored vectors that second indexes are made with.
        distance: ``cosine`` or ``l2``.
    """
    d_old, d_new = gallery.stored.dim, gallery.new.dim
    plan = Plan([], {"new": ResultList(queries, lambda block: block.new)})
    if old_queries is None:
        for name in (KEEP, "midpoint", "slerp", "rrf", "rrf-converted", "cascade"):
            plan.left_out[name] = "there are no queries by the old model"
    else:
        plan.lists["old"] = ResultList(old_queries, lambda block: block.old)
        plan.strategies.append(
            Strategy(KEEP, "keep the old model", frozenset({"old_model"}), ("old",))
        )
    _add_naive(plan, queries, d_old, d_new)
    for each in maps:
        _add_map(plan, each, queries)
    if old_queries is not None and middle is not None and between is not None:
        _add_between(plan, middle, between)
    elif old_queries is not None:
        plan.left_out.update(
            dict.fromkeys(("midpoint", "slerp"), f"only for cosine, not {distance}")
        )
    _add_pairs(plan, best)
    again = Strategy(
        REEMBED, "embed everything again", frozenset({"sources", "index"}), ("new",), effort=3,
        rebuild=True, way_back=False, stores=("new",),
    )  # fmt: skip
    plan.strategies.append(again)
    if d_new > d_old:
        plan.lists["short"] = ResultList(queries[:, :d_old], lambda block: block.new[:, :d_old])
        title = f"re-embed, keep {d_old} numbers"
        short = replace(
            again, name="re-embed-short", title=title, uses=("short",), stores=("short",)
        )
        plan.strategies.append(short)
    return plan


def _add_naive(plan: Plan, queries: Floats, d_old: int, d_new: int) -> None:
    d = min(d_old, d_new)
    plan.lists["naive"] = ResultList(queries[:, :d], lambda block: block.old[:, :d])
    if d_old == d_new:
        naive = Strategy("naive", "new queries, old index as it is", uses=("naive",))
        plan.left_out["truncate"] = "vectors are of equal size"
    else:
        title = f"cut to {d} numbers, old index"
        naive = Strategy("truncate", title, uses=("naive",), rebuild=d < d_old)
        if d < d_old:
            naive = replace(naive, needs=frozenset({"index"}))
        plan.left_out["naive"] = f"vectors have {d_old} and {d_new} numbers"
    plan.strategies.append(naive)


def _add_map(plan: Plan, each: FittedMap, queries: Floats) -> None:
    conversion, label = each.conversion, each.label
    if each.direction == "query":
        plan.lists[label] = ResultList(conversion.view(queries), lambda block: block.old)
        plan.strategies.append(
            Strategy(label, "map the queries, index untouched", uses=(label,), fitted=each)
        )
        return
    plan.lists[label] = ResultList(
        conversion.view(queries), lambda block: block.converted(label, conversion)
    )
    plan.strategies.append(Strategy(
        label, "convert stored vectors", frozenset({"index"}), (label,), rebuild=True,
        way_back=False, fitted=each, stores=("new",),
    ))  # fmt: skip


def _add_between(plan: Plan, middle: Floats, between: Floats) -> None:
    needs = frozenset({"old_model", "extra_runs"})
    for name, title, queries in (
        ("midpoint", "queries between both, half-way", middle),
        ("slerp", "queries between both, best share", between),
    ):
        plan.lists[name] = ResultList(queries, lambda block: block.old)
        plan.strategies.append(Strategy(name, title, needs, (name,), effort=1, runs=2))


def _add_pairs(plan: Plan, best: FittedMap | None) -> None:
    """Strategies of two lists."""
    both, fusion, cascade = frozenset({"extra_runs", "index"}), RankFusion(), RescoredList()
    old_runs = both | {"old_model"}
    if "old" in plan.lists:
        if best is not None:
            plan.strategies.append(Strategy(
                "rrf-converted", f"fuse old and {best.label} index",
                old_runs, ("old", best.label), 1, 2, True, True, fusion, best, ("old", "new"),
            ))  # fmt: skip
        plan.strategies.append(Strategy(
            "rrf", "fuse old and re-embedded index", old_runs | {"sources"},
            ("old", "new"), 3, 2, True, True, fusion, None, ("old", "new"),
        ))  # fmt: skip
    scored = [("cascade", "old", {"old_model", "extra_runs"})] if "old" in plan.lists else []
    query_map = next(
        (s for s in plan.strategies if s.fitted and s.fitted.direction == "query"), None
    )
    if query_map is not None:
        scored.append(("cascade-mapped", query_map.name, set()))
    for name, first, needs in scored:
        of = "old" if first == "old" else "mapped"
        runs = (2 if first == "old" else 1) + cascade.new_embeddings
        plan.strategies.append(Strategy(
            name, f"{of} first {cascade.window} rescored",
            frozenset({"rescoring", "sources", *needs}), (first, "new"), 2, runs, merge=cascade,
            fitted=None if first == "old" else query_map.fitted if query_map else None,
        ))  # fmt: skip
