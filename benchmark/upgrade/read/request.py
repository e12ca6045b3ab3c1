"""The request of a report: every field is documented here, for Python and the command line alike.

It imports nothing heavy: the command builds its options from it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from benchmark.errors import BenchError, unknown
from benchmark.metrics.cost_model import Assumptions

INPUTS = ("old_gallery", "new_gallery", "queries", "old_queries")
"""Fields that are vectors of items or queries."""
VECTORS = (*INPUTS, "pairs_old", "pairs_new")
"""All fields that are vectors."""
KEEP, REEMBED = "keep-old", "re-embed"
PLAIN, MERGED, SCALED = MIXED = ("new query", "both queries", "both, scaled")
"""Ways to ask a mixed index; a scale makes mean and deviation of both models' scores equal."""
FOUND = {"queries": 0.5, "pairs": 0.95}
"""Share of texts whose own old vector is the nearest of the mapped new one, of aligned spaces.
Pairs are of other texts than the gallery, and easier. Chosen on Cranfield, Banking77 and Grocery as
those that best tell which maps keep half of re-embedding's score; other corpora show how well
(``bench pairs gone``)."""
LIKELY = 0.3
"""Level of the one-sided test whether re-embedding is better at all. At 2.5 % small sets of queries
kept the old model where much was lost by it. It was chosen on one half of the corpora of real
models and held on the other (``bench pairs table --show regret``)."""
SCORE = "re-embedding's score"
"""The whole of the shares where the new model is not likely to be better."""
WANTED = 0.9
"""Share of the upgrade that a strategy must keep."""
WORTHWHILE = 0.02
"""Least upgrade that is worth any work, as a difference of scores."""
_SEVERAL = 2
Tell = Callable[[str], None]
"""Called with what is done next, or, as an :class:`Interim`, with what has been found."""
File = Path | None
Distance = Literal["cosine", "dot", "l2"]
Index = Literal["hnsw", "ivf"]
Engine = Literal["local", "ray"]


class Interim(str):
    """A line of results that are there before the report is."""

    __slots__ = ()


def prefixed(tell: Tell, of: str) -> Tell:
    """A teller whose lines begin with what they are of."""
    return lambda words: tell(type(words)(f"{of}: {words}"))


class Constraint(NamedTuple):
    """A thing that users can do or not, in words."""

    question: str
    reason: str  # against a strategy that needs it
    without: str  # a change of the answer, where it is possible now
    with_it: str  # the same, where it is not


CONSTRAINTS: Mapping[str, Constraint] = {
    "old_model": Constraint(
        "Does the old model still embed queries?", "the old model is gone",
        "if the old model were gone", "if the old model still ran",
    ),
    "sources": Constraint(
        "Are the items kept, so that they can be embedded again?", "the items are not kept",
        "if the items were not kept", "if the items were kept",
    ),
    "index": Constraint(
        "May stored vectors be rewritten, or a new index be built?", "the index stays as it is",
        "if the index had to stay as it is", "if the index could be rewritten",
    ),
    "extra_runs": Constraint(
        "May a second model run on a query?", "one model run a query, no more",
        "if only one model may run a query", "if two models may run a query",
    ),
    "rescoring": Constraint(
        "May items be embedded while a query waits?", "no item is embedded while a query waits",
        "if no item may be embedded while a query waits",
        "if items may be embedded while a query waits",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Constraints:
    """Abilities of a user, as :data:`CONSTRAINTS` words them."""

    old_model: bool = True
    sources: bool = True
    index: bool = True
    extra_runs: bool = True
    rescoring: bool = False


class Help(NamedTuple):
    """The help text of a field; names and type on the command line, if it has an option there."""

    text: str
    cli: Any = None
    names: tuple[str, ...] = ()
    more: Mapping[str, Any] = {}


def _ability(name: str, *flags: str) -> Help:
    usual = "yes" if getattr(Constraints, name) else "no"
    shown = {"show_default": f"asked, else {usual}"}
    return Help(CONSTRAINTS[name].question, bool | None, ("/".join(flags),), shown)


@dataclass(frozen=True)
class UpgradeRequest:
    """Vectors and relevance of a deployment, constraints of its owner, and how they are evaluated.

    Vectors are arrays ``[n, dim]`` or files as :func:`benchmark.read_vectors` takes them. Ids of
    files come with them; those of arrays are in ``ids``. The help text of each field says more.

    Raises:
        BenchError: If a number, name or choice is not one that is known.
    """

    # fmt: off
    old_gallery: Annotated[Any, Help(
        "Stored vectors of the old model, as `bench convert` takes them.", str | None
    )]
    new_gallery: Annotated[Any, Help(
        "Vectors by the new model: of all items, or of a sample of some thousands.", str | None,
        ("--new-gallery", "--new-sample"),
    )] = None
    queries: Annotated[Any, Help("Queries by the new model.", str | None)] = None
    old_queries: Annotated[Any, Help("The same queries by the old model.", str | None)] = None
    _: KW_ONLY
    models: Annotated[Mapping[str, tuple[Any, Any]] | None, Help(
        "Several new models in the place of one, each with its vectors of the sample and the "
        "queries: `NAME=SAMPLE,QUERIES`. Repeatable.", list[str] | None, ("--new",)
    )] = None  # ids of arrays are the same for all of them
    pairs_new: Annotated[Any, Help(
        "In the place of a sample, where the items are gone: vectors of other texts by the new "
        "model.", str | None
    )] = None
    pairs_old: Annotated[Any, Help(
        "The same other texts by the old model; without them no pair is known.", str | None
    )] = None
    qrels: Annotated[Any, Help(
        "Relevance judgements in TREC's or BEIR's form; joined by ids.", File
    )] = None  # from Python also query -> item -> gain
    labels: Annotated[tuple[Any, Any] | None, Help(
        "Classes of queries and gallery, arrays or files. Without qrels and labels strategies are "
        "evaluated by their agreement with the new model's first ten."
    )] = None
    ids: Annotated[Mapping[str, Any] | None, Help(
        "Name of a field -> ids of its array, `{'old_gallery': ..., 'queries': ...}`."
    )] = None
    texts: Annotated[str | File, Help(
        "Texts to show: BEIR's `queries.jsonl`, or lines of id and text.", File, ("--query-texts",)
    )] = None
    reads: Annotated[str | File, Help(
        "How often items are read, lines of id and number.", File
    )] = None
    slices: Annotated[str | File, Help(
        "Who gains and loses: lines of an id, of a query or item, and the name of a slice that it "
        "is in.", File
    )] = None
    id_column: Annotated[str | Mapping[str, str], Help(
        "Column or array of ids, where it is not `id`; of one input `queries=qid`; `-` for "
        "row numbers. Repeatable.", list[str] | None,
    )] = ""
    vector_column: Annotated[str | Mapping[str, str], Help(
        "Column or array of vectors; of one input `queries=emb`. Repeatable.", list[str] | None
    )] = ""
    queries_are_items: Annotated[bool, Help(
        "The item of a query's id is the query itself: leave it out.", bool,
        ("--queries-are-items",),
    )] = False
    distance: Annotated[Distance | None, Help(
        "How vectors compare: by default as the stored vectors' file says, else `cosine`.",
        Distance | None,
    )] = None
    threshold: Annotated[Sequence[float], Help(
        "Today's cut-off of scores, by l2 a largest distance: which one keeps the share of "
        "accepted pairs, or of false ones? Repeatable.", list[float] | None,
    )] = ()
    items: Annotated[int | None, Help(
        "Items of the deployment; else those of the gallery.", int | None, more={"min": 1}
    )] = None
    throughput: Annotated[
        float, Help("Items the new model embeds in a second.", float)
    ] = Assumptions.throughput
    price: Annotated[
        float, Help("Money for an hour of the machine that embeds them.", float)
    ] = Assumptions.price
    currency: Annotated[str, Help("Sign of the money, put before it.", str)] = "$"
    old_model: Annotated[bool, _ability("old_model", "--old-model", "--no-old-model")] = True
    sources: Annotated[bool, _ability("sources", "--sources", "--no-sources")] = True
    index: Annotated[bool, _ability("index", "--rewrite", "--no-rewrite")] = True
    extra_runs: Annotated[
        bool, _ability("extra_runs", "--second-model", "--no-second-model")
    ] = True
    rescoring: Annotated[bool, _ability("rescoring", "--rescoring", "--no-rescoring")] = False
    wanted: Annotated[
        float, Help("Share of the upgrade that a strategy must keep to be taken.", float)
    ] = WANTED
    worthwhile: Annotated[float, Help(
        "Least upgrade worth any work, in points of the score in percent.", float
    )] = 100 * WORTHWHILE
    maps: Annotated[str | Iterable[str], Help(
        "`quick` (closed form), `all` (trained ones after them, which takes longer), or methods, "
        "with commas: `linear,procrustes:query`.", str
    )] = "quick"
    compressed: Annotated[bool, Help(
        "Evaluate vectors in float16, int8 and bits, and cut to fewer numbers, too.", bool,
        ("--compressed",),
    )] = False
    transition: Annotated[bool, Help(
        "Evaluate what serves while items are embedded again, too: how deep a cascade must look "
        "and what of it repeats, an index of both models.", bool, ("--transition",),
    )] = False
    approximate: Annotated[Index | None, Help(
        "Evaluate strategies behind an approximate index of faiss, too.", Index | None, ("--index",)
    )] = None
    engine: Annotated[Engine, Help(
        "`ray`: the workers of a Ray cluster read parts of the gallery; same results.", Engine
    )] = "local"
    seed: Annotated[int, Help("Of everything random.", int, more={"min": 0})] = 0
    # fmt: on

    def __post_init__(self) -> None:
        self._check_vectors()
        self._check_kinds()
        self._check_numbers()
        for name, known in (("distance", Distance), ("engine", Engine)):
            value = getattr(self, name)
            if value is not None and value not in get_args(known):
                raise unknown(name, str(value), get_args(known))
        if not (self.currency.isprintable() and len(self.currency) <= 8):
            raise BenchError(f"currency: expected up to 8 letters, got {self.currency[:20]!r}")
        for name in ("ids", "id_column", "vector_column"):
            given = getattr(self, name)
            if isinstance(given, Mapping) and (others := given.keys() - set(VECTORS)):
                raise BenchError(f"{name}: expected names of arguments, got {min(others):.60}")
        if self.qrels is not None and self.labels is not None:
            raise BenchError("qrels, labels: expected one of them, got both")
        if self.transition and not self.sources:
            raise BenchError(
                "transition: expected sources, got none: without items nothing is embedded again"
            )

    def _check_vectors(self) -> None:
        if self.gone:
            self._check_gone()
            return
        if self.pairs_old is not None:
            raise BenchError("pairs_old: expected pairs_new, too: the same texts by the new model")
        if self.models is None:
            if self.new_gallery is None or self.queries is None:
                name = "queries" if self.queries is None else "new_gallery"
                raise BenchError(f"{name}: expected vectors by the new model, got none")
            return
        if self.new_gallery is not None or self.queries is not None:
            raise BenchError("models: expected them alone, got new_gallery or queries, too")
        if len(self.models) < _SEVERAL:
            raise BenchError(f"models: expected two or more, got {len(self.models)}")
        if self.qrels is None and self.labels is None:
            raise BenchError(
                "models: expected qrels or labels: agreement with a model compares no models"
            )

    def _check_gone(self) -> None:
        if self.new_gallery is not None or self.models is not None:
            raise BenchError("pairs_new: expected it without new vectors of items, got both")
        if self.queries is None:
            raise BenchError("queries: expected vectors by the new model, got none")
        if self.qrels is None and self.labels is None:
            raise BenchError(
                "pairs_new: expected qrels or labels: without new vectors of items there is no "
                "agreement to judge by"
            )
        for name in ("threshold", "compressed", "transition", "approximate", "slices", "reads"):
            if getattr(self, name):
                raise BenchError(f"{name}: expected new vectors of items, got pairs_new")

    @property
    def gone(self) -> bool:
        """True where items have no new vectors, and maps are fitted on other texts."""
        return self.pairs_new is not None

    def of_model(self, name: str) -> "UpgradeRequest":
        """The request of one of the models."""
        new, queries = (self.models or {})[name]
        return replace(self, models=None, new_gallery=new, queries=queries)

    def _check_kinds(self) -> None:
        """Raise a BenchError for a value of another kind than its field's, as Python lets through.

        ``index="hnsw"`` would be a true one.
        """
        single = ("wanted", "worthwhile", "throughput", "price", "items", "seed")
        thresholds = self.threshold if isinstance(self.threshold, list | tuple) else ()
        numbers = [(name, getattr(self, name)) for name in single]
        switches = "queries_are_items", "compressed", "transition", *asdict(Constraints())
        whole = isinstance(self.seed, Integral) and self.seed >= 0
        wrong = [
            *((name, "a number", each) for name, each in
              [*numbers, *(("threshold", each) for each in thresholds)]
              if not isinstance(each, Real) and (each is not None or name != "items")),
            *((name, "True or False", getattr(self, name)) for name in switches
              if not isinstance(getattr(self, name), bool)),
            *((name, "a file", getattr(self, name)) for name in ("texts", "reads", "slices")
              if not isinstance(getattr(self, name), str | Path | None)),
            *([] if isinstance(self.threshold, list | tuple | None)
              else [("threshold", "a list of numbers", self.threshold)]),
            *([] if whole else [("seed", "a whole number of 0 or more", self.seed)]),
            *([("old_gallery", "vectors", None)] if self.old_gallery is None else []),
        ]  # fmt: skip
        if wrong:
            name, expected, value = wrong[0]
            raise BenchError(f"{name}: expected {expected}, got {value!r:.60}")

    def _check_numbers(self) -> None:
        if not 0 < self.wanted <= 1:
            raise BenchError(f"wanted: expected a share in (0, 1], got {self.wanted:g}")
        if not (math.isfinite(self.worthwhile) and 0 <= self.worthwhile < 100):
            raise BenchError(
                f"worthwhile: expected 0 to less than 100 points, got {self.worthwhile:g}"
            )
        for name in ("throughput", "price", "items"):
            number = getattr(self, name)
            if number is None:
                continue
            if not math.isfinite(number) or number < 0 or (name != "price" and not number):
                least = "of 0 or more" if name == "price" else "above 0"
                raise BenchError(f"{name}: expected a finite number {least}, got {number:g}")
        if self.threshold and self.old_queries is None:
            raise BenchError("threshold: expected old_queries, too: the cut-off is the old model's")
        for number in self.threshold or ():
            if not math.isfinite(number):
                raise BenchError(f"threshold: expected a finite number, got {number:g}")

    @property
    def constraints(self) -> Constraints:
        """Abilities of the user."""
        able = {each.name: getattr(self, each.name) for each in fields(Constraints)}
        return Constraints(**able | ({"sources": False} if self.gone else {}))

    @property
    def files(self) -> list[str | Path]:
        """Files of vectors, in order."""
        given = [getattr(self, name) for name in VECTORS]
        given += [each for files in (self.models or {}).values() for each in files]
        return [each for each in given if isinstance(each, str | Path)]

    def column(self, of: str, name: str) -> str:
        """The column of ids or vectors (``of``) of one input."""
        columns = getattr(self, of)
        return str(columns if isinstance(columns, str) else columns.get(name, ""))


def missing(needs: Iterable[str], constraints: Constraints) -> list[str]:
    """Names of needs that constraints deny, in their order."""
    needs, able = set(needs), asdict(constraints)
    return [name for name in CONSTRAINTS if name in needs and not able[name]]
