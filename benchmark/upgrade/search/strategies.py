"""Strategies: their needs and costs, as their methods declare them, and the lists that answer."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from benchmark.config import registry
from benchmark.contract.fusion import RankFusion, RescoredList
from benchmark.contract.lists import TwoLists
from benchmark.ranking.arrays import Floats
from benchmark.upgrade.fit.maps import FittedMap
from benchmark.upgrade.formats.rows import new_number_bytes, number_bytes
from benchmark.upgrade.read.gallery import EmbeddedSample
from benchmark.upgrade.read.inputs import Inputs
from benchmark.upgrade.read.request import KEEP, REEMBED
from benchmark.upgrade.search.lists import CrossFittedList, FoldOf, ResultList

NEW_LISTS = ("new", "short")
"""Lists that need a new vector of every item."""
BETWEEN = ("midpoint", "slerp")
"""Strategies whose queries are between both models'."""
NAMES = (
    KEEP, "naive", "truncate", *BETWEEN, "rrf", "rrf-converted", "cascade",
    "cascade-mapped", REEMBED, "re-embed-short",
)  # fmt: skip
"""Of all strategies but single maps, which have the names of these."""


@dataclass(frozen=True)
class Strategy:
    """One way to go on."""

    name: str  # as tables and JSON have it
    title: str  # in words
    needs: frozenset[str] = frozenset()  # constraints that must hold
    uses: tuple[str, ...] = ()  # the list that answers, or two of them, which ``merge`` makes one
    # 0: one model run a query and no item is embedded; 1: two runs a query; 2: items are
    # embedded while a query waits; 3: every item is embedded
    effort: int = 0
    runs: int = 1  # of models, for a query
    rebuild: bool = False  # the index is built anew, beside the old one, which serves until then
    merge: TwoLists | None = None
    fitted: FittedMap | None = None
    stores: tuple[str, ...] = ("old",)  # indexes kept: of old, new, short, cut vectors

    @classmethod
    def declared(cls, name: str, title: str, label: str, *uses: str, **more: Any) -> "Strategy":
        """Make one of what the method ``label`` declares, for the lists that it uses."""
        method = registry.method(label)
        converts, waits = "gallery" in method.changes, method.new_embeddings > 0
        beside = method.indexes > 1
        every = beside and any(name in NEW_LISTS for name in uses)
        facts = {
            "old_model": method.runs_old_model, "extra_runs": method.model_runs > 1,
            "index": converts or beside, "rescoring": waits, "sources": waits or every,
        }  # fmt: skip
        return cls(
            name, title, frozenset(need for need, holds in facts.items() if holds), uses,
            3 if every else 2 if waits else int(method.model_runs > 1),
            method.model_runs, converts or beside,
            stores=("old", "new") if beside else ("new",) if converts else ("old",), **more,
        )  # fmt: skip

    @property
    def embeds_gallery(self) -> bool:
        """True where new vectors of stored items answer, which only a sample may have."""
        return any(name in NEW_LISTS for name in self.uses)


@dataclass(frozen=True)
class StrategyCost:
    """Cost of a strategy."""

    # until the gallery is ready: items embedded, or stored vectors converted as fast as
    # on this machine
    hours: float
    money: float  # for these hours of one machine
    index_bytes: int  # of all indexes kept, of numbers as long as the stored gallery's
    runs: int  # of models, for a query
    embedded: int  # items, while a query waits
    money_per_1000_queries: float  # for these items
    rebuild: bool
    # of the old index, which is the way back as long as it is kept beside; 0 where it is
    # one of those in use
    old_bytes: int


def cost_of(strategy: Strategy, inputs: Inputs) -> StrategyCost:
    """Count the cost of a strategy for a deployment."""
    assumed, d_old, d_new = inputs.assumed, inputs.gallery.stored.dim, inputs.gallery.new.dim
    hours, fit = 0.0, strategy.fitted
    if strategy.effort == 3 and strategy.embeds_gallery:
        hours = assumed.embedding(assumed.items)
    elif fit is not None and fit.direction == "gallery":
        hours = replace(assumed, map_rate=fit.rows_per_s).converting(1.0)
    stored = inputs.gallery.stored
    old, new = number_bytes(stored), new_number_bytes(stored)
    least = min(d_old, d_new)
    sizes = {"old": old * d_old, "new": new * d_new, "short": new * least, "cut": old * least}
    items = int(assumed.items)
    embedded = strategy.merge.new_embeddings if strategy.merge is not None else 0
    return StrategyCost(
        hours, assumed.money(hours), items * sum(sizes[space] for space in strategy.stores),
        strategy.runs, embedded, assumed.money(assumed.embedding(1000 * embedded)),
        strategy.rebuild, 0 if "old" in strategy.stores else items * sizes["old"],
    )  # fmt: skip


@dataclass(frozen=True)
class VectorFacts:
    """Facts of vectors that say, before one is read, which strategies cannot be evaluated."""

    d_old: int
    d_new: int
    distance: str
    _: KW_ONLY
    old_queries: bool  # the old model's vectors of queries are there
    embedded: bool = True  # items have new vectors
    paired: bool = True  # a rotation between both models can be fitted
    converted: bool = True  # there is a map of stored vectors
    mapped: bool = True  # there is one of queries

    def unfit(self) -> dict[str, str]:
        """Strategies that these vectors do not allow, and why."""
        out: dict[str, str] = {}

        def leave_out(why: str, *names: str) -> None:
            out.update({name: why for name in names if name not in out})

        if not self.old_queries:
            why = "there are no queries by the old model"
            leave_out(why, KEEP, *BETWEEN, "rrf", "rrf-converted", "cascade")
        if not self.embedded:
            why = "no item has a new vector"
            leave_out(why, REEMBED, "re-embed-short", "rrf", "cascade", "cascade-mapped")
        if self.distance != "cosine":
            leave_out(f"only for cosine, not {self.distance}", *BETWEEN)
        if not self.paired:
            leave_out("only with new vectors of stored items, or pairs", *BETWEEN)
        if not self.embedded:
            leave_out("only with new vectors of items", "slerp")
        if not self.converted:
            leave_out("there is no map of stored vectors", "rrf-converted")
        if not self.mapped:
            leave_out("there is no map of queries", "cascade-mapped")
        if self.d_old == self.d_new:
            leave_out("vectors are of equal size", "truncate")
        else:
            leave_out(f"vectors have {self.d_old} and {self.d_new} numbers", "naive")
        if self.d_new <= self.d_old:
            longer = "it needs longer vectors by the new model"
            leave_out(f"{longer}, got {self.d_new} numbers", "re-embed-short")
        return out


@dataclass(frozen=True)
class StrategyPlan:
    """Strategies and the lists they use; those that cannot be evaluated, and why."""

    strategies: list[Strategy]
    lists: dict[str, ResultList]
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_lists(cls, lists: Mapping[str, ResultList]) -> "StrategyPlan":
        """A strategy for each list."""
        return cls([Strategy(name, "", uses=(name,)) for name in lists], dict(lists))

    def add(self, strategy: Strategy, answers: ResultList | None = None) -> None:
        """Add a strategy, and the list that it alone uses."""
        self.strategies.append(strategy)
        if answers is not None:
            self.lists[strategy.uses[0]] = answers


def map_list(each: FittedMap, queries: Floats) -> ResultList:
    """The list of a fitted map, for queries by the new model."""
    conversion = each.conversion
    if each.direction == "query":
        return ResultList(conversion.view(queries), lambda block: block.old, fitted=True)
    return ResultList(
        conversion.view(queries), lambda block: block.converted(conversion), fitted=True
    )


def cross_fitted(
    plan: StrategyPlan, folds: Sequence[StrategyPlan], samples: Sequence[EmbeddedSample]
) -> StrategyPlan:
    """A plan in whose lists each item is scored by maps that have not seen it.

    ``folds`` are the same plan with other maps, ``samples`` those that these were fitted on.
    """
    if len(folds) == 1:
        return plan
    fold_of = FoldOf(samples)
    lists = {
        name: CrossFittedList(
            each.queries, each.items, each.top, True,
            tuple(fold.lists.get(name, each) for fold in folds), fold_of,
        ) if each.fitted else each
        for name, each in plan.lists.items()
    }  # fmt: skip
    return replace(plan, lists=lists)


def make_plan(
    inputs: Inputs, between: Mapping[str, Floats], maps: Sequence[FittedMap], best: FittedMap | None
) -> StrategyPlan:
    """Plan all strategies that the vectors allow; constraints come later.

    ``between`` are queries between old and new ones, ``midpoint`` and ``slerp``: none but for
    cosine, and with vectors of the same items by both models. Second indexes are made with the
    ``best`` map of stored vectors.
    """
    queries, old_queries = inputs.queries, inputs.old_queries
    d_old, d_new = inputs.gallery.stored.dim, inputs.gallery.new.dim
    facts = VectorFacts(
        d_old, d_new, inputs.distance, old_queries=old_queries is not None,
        embedded=not inputs.request.gone, paired=bool(between) or inputs.distance != "cosine",
        converted=best is not None, mapped=any(each.direction == "query" for each in maps),
    )  # fmt: skip
    plan = StrategyPlan([], {"new": ResultList(queries, lambda block: block.new)}, facts.unfit())
    if old_queries is not None:
        keep = Strategy.declared(KEEP, "keep the old model", KEEP, "old")
        plan.add(keep, ResultList(old_queries, lambda block: block.old))
    _add_naive(plan, queries, d_old, d_new)
    for each in maps:
        title = "map the queries, index untouched"
        title = title if each.direction == "query" else "convert stored vectors"
        fitted = Strategy.declared(each.label, title, each.label, each.label, fitted=each)
        plan.add(fitted, map_list(each, queries))
    for name, title in (("midpoint", "half-way"), ("slerp", "best share")):
        if name in between:
            each_title = f"queries between both, {title}"
            mixed = Strategy.declared(name, each_title, "slerp", name)
            plan.add(mixed, ResultList(between[name], lambda block: block.old, fitted=True))
    _add_merged(plan, best)
    again = Strategy(
        REEMBED, "embed everything again", frozenset({"sources", "index"}), ("new",), effort=3,
        rebuild=True, stores=("new",),
    )  # fmt: skip
    plan.add(again)
    if d_new > d_old:
        title = f"re-embed, keep {d_old} numbers"
        short = ResultList(queries[:, :d_old], lambda block: block.new[:, :d_old])
        named = replace(
            again, name="re-embed-short", title=title, uses=("short",), stores=("short",)
        )
        plan.add(named, short)
    return plan


def _add_naive(plan: StrategyPlan, queries: Floats, d_old: int, d_new: int) -> None:
    d = min(d_old, d_new)
    if d_old == d_new:
        naive = Strategy("naive", "new queries, old index as it is", uses=("naive",))
    else:
        needs = frozenset({"index"} if d < d_old else ())
        title = f"cut to {d} numbers, old index"
        stores = ("cut" if d < d_old else "old",)
        naive = Strategy("truncate", title, needs, ("naive",), rebuild=d < d_old, stores=stores)
    plan.add(naive, ResultList(queries[:, :d], lambda block: block.old[:, :d]))


def _add_merged(plan: StrategyPlan, best: FittedMap | None) -> None:
    """Add strategies of two lists."""
    rrf: Any = registry.method("rrf")
    rescored: Any = registry.method("cascade")
    fusion, cascade = RankFusion(rrf.window, rrf.k), RescoredList(rescored.top)
    mapped = next((s for s in plan.strategies if s.fitted and s.fitted.direction == "query"), None)
    title = f"first {cascade.window} rescored"
    if "old" in plan.lists:
        if best is not None:
            plan.add(Strategy.declared(
                "rrf-converted", f"fuse old and {best.label} index", "rrf", "old", best.label,
                merge=fusion, fitted=best,
            ))  # fmt: skip
        both = "fuse old and re-embedded index"
        plan.add(Strategy.declared("rrf", both, "rrf", "old", "new", merge=fusion))
        plan.add(
            Strategy.declared("cascade", f"old {title}", "cascade", "old", "new", merge=cascade)
        )
    if mapped is not None:
        name, uses = "cascade-mapped", (mapped.name, "new")
        its = Strategy.declared(name, f"mapped {title}", "cascade", *uses, merge=cascade)
        # The new model alone runs on a query.
        plan.add(replace(
            its, needs=its.needs - {"old_model", "extra_runs"}, runs=its.runs - 1,
            fitted=mapped.fitted,
        ))  # fmt: skip
