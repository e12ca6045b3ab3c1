"""Errors of the estimates of ``bench upgrade``, beside the truth of embedding everything.

Corpora of which every item has vectors by several real models: a report sees those of a random
sample and of the relevant items, as a user would have them, and is held against the truth. Each
corpus is a file ``vectors/NAME.npz`` with ``MODEL.docs``, ``MODEL.queries``, ``ids.docs`` and
``ids.queries``, beside ``text/NAME/qrels.tsv`` in BEIR's form.
"""

import inspect
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import digest, file_digest, write_json
from benchmark.errors import BenchError
from benchmark.harness.store import default_store
from benchmark.metrics import kept_share
from benchmark.metrics.intervals import mean_difference
from benchmark.metrics.kept_share import Scored, mean
from benchmark.upgrade.decide import verdict
from benchmark.upgrade.decide.verdict import Evidence
from benchmark.upgrade.measure import (
    calibration,
    evaluation,
    list_estimate,
    score_model,
    unseen,
    windows,
)
from benchmark.upgrade.measure import study as studying
from benchmark.upgrade.measure.evaluation import evaluate, scores_of
from benchmark.upgrade.measure.study import StrategyOutcome, Study, joined, study
from benchmark.upgrade.read import sampling
from benchmark.upgrade.read.gallery import GalleryBlock, Whole
from benchmark.upgrade.read.inputs import Inputs, read_inputs
from benchmark.upgrade.read.request import UpgradeRequest
from benchmark.upgrade.search.strategies import KEEP, REEMBED

SIZES = (300, 1000, 3000)
METRICS = ("ndcg_at_10", "recall_at_10", "map")
MAPS = ("procrustes:query",)
"""Enough for every strategy that is estimated."""
_REDRAWN = 20
"""Times that a report's queries are drawn with replacement."""
_SOURCES = (
    calibration, evaluation, studying, list_estimate, sampling, score_model, kept_share, unseen,
    verdict, windows,
)  # fmt: skip

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Corpus:
    """Items and queries by several models, and judgements.

    Attributes:
        name: Of its file.
        models: Name -> vectors of items ``[n, d]`` and queries ``[q, d]``.
        ids: Of items and queries.
        qrels: File of judgements.
        relevant: Rows of the items that are relevant to a query.
    """

    name: str
    models: dict[str, tuple[Vectors, Vectors]]
    ids: tuple[NDArray[np.str_], NDArray[np.str_]]
    qrels: Path
    relevant: NDArray[np.int64]

    @classmethod
    def read(cls, path: Path, qrels: Path) -> "Corpus":
        """Read one."""
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        names = sorted(key.removesuffix(".docs") for key in arrays if key.endswith(".docs"))
        models = {
            name: tuple(arrays[f"{name}.{side}"].astype(np.float32) for side in ("docs", "queries"))
            for name in names if name != "ids"
        }  # fmt: skip
        ids = arrays["ids.docs"], arrays["ids.queries"]
        lines = qrels.read_text(encoding="utf-8").splitlines()[1:]
        judged = [line.split("\t")[1] for line in lines if float(line.split("\t")[2]) > 0]
        return cls(path.stem, models, ids, qrels, np.flatnonzero(np.isin(ids[0], judged)))

    def inputs(self, old: str, new: str, rows: NDArray[np.int64], seed: int = 0) -> Inputs:
        """Inputs of a user who has new vectors of some rows."""
        items, queries = self.ids
        ids = {
            "old_gallery": items, "new_gallery": items[rows], "queries": queries,
            "old_queries": queries,
        }  # fmt: skip
        (a, old_queries), (b, new_queries) = self.models[old], self.models[new]
        return read_inputs(UpgradeRequest(
            a, b[rows], new_queries, old_queries, qrels=self.qrels, ids=ids, seed=seed
        ))  # fmt: skip


def rows(samples: int = 10, data: Path | None = None) -> list[dict[str, Any]]:
    """Reports on every ordered pair of models, beside the truth.

    What has been computed by the same code is taken from the user's cache.

    Args:
        samples: Draws of each sample size; smaller ones than the corpus alone.
        data: Folder with the corpora.

    Returns:
        A row for each pair and size, and one for all: the true ``upgrade``, re-embedding minus
        keeping the old model, and the mean ``predicted`` one, by nDCG@10; of all estimated
        strategies and ``METRICS`` the mean error (``bias``) and its root mean square (``error``);
        the share of intervals that hold the truth, of the sampling error alone for
        ``these_queries``, and whole ones for ``all_queries``, from which a report's are drawn with
        replacement; the share of draws that call an upgrade ``wrong`` which is none.
    """
    found = sorted((data or Path()).glob("vectors/*.npz"))
    if not found:
        raise BenchError(f"perf estimates: {data}: expected --data DIR with vectors/NAME.npz")
    return summary([row for path in found for row in _corpus(path, samples)])


def _corpus(path: Path, samples: int) -> Iterator[dict[str, Any]]:
    qrels = path.parent.parent / "text" / path.stem / "qrels.tsv"
    corpus = Corpus.read(path, qrels)
    code = digest([inspect.getsource(module) for module in _SOURCES])
    known = [file_digest(path), file_digest(qrels), code]
    n = len(corpus.ids[0])
    for old, new in itertools.permutations(corpus.models, 2):
        for size, draw in itertools.product((s for s in SIZES if s < n), range(samples)):
            place = default_store() / "estimates" / f"{digest([*known, old, new, size, draw])}.json"
            if not place.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                write_json(place, list(_cell(corpus, old, new, size, draw)))
            about = {"corpus": path.stem, "old": old, "new": new, "sample": size, "draw": draw}
            yield from (about | row for row in json.loads(place.read_text()))


def _cell(corpus: Corpus, old: str, new: str, size: int, draw: int) -> Iterator[dict[str, Any]]:
    """One report, held against the truth."""
    n = len(corpus.ids[0])
    rng = np.random.default_rng(draw)
    sample = np.union1d(rng.permutation(n)[:size], corpus.relevant)
    report = study(corpus.inputs(old, new, sample, draw), MAPS)
    truth = _truth(corpus, old, new, report)
    for name, outcome in report.outcomes.items():
        if outcome.estimated:
            for metric in METRICS:
                found = _held(outcome.scored[metric], truth[name][metric], report.groups, rng)
                yield {"strategy": name, "metric": metric} | found
    pair = [_main(report.outcomes[name], report) for name in (REEMBED, KEEP)]
    true = truth[REEMBED][report.metric] - truth[KEEP][report.metric]
    evidence = Evidence.of(report.outcomes, report.metric, report.groups)
    row = _held(pair[0].less(pair[1]), true, report.groups, rng, share=False)
    better = bool(evidence.better and evidence.worthwhile)
    yield {"strategy": "upgrade", "metric": report.metric, "better": better} | row


def _main(outcome: StrategyOutcome, report: Study) -> Scored:
    return outcome.scored[report.metric]


def _truth(corpus: Corpus, old: str, new: str, report: Study) -> dict[str, Any]:
    """Scores of the same strategies where everything is embedded."""
    rows = np.arange(len(corpus.ids[0]))
    whole = Whole(corpus.inputs(old, new, rows).gallery)
    known = GalleryBlock.whole(rows, corpus.models[old][0], corpus.models[new][0])
    by_fold = [
        evaluate(whole, report.relevant, known, f.plan, report.inputs.distance).ranks
        for f in report.folds
    ]
    return {
        each.name: scores_of(joined(each, report.folds, by_fold, report.relevant), report.relevant)
        for each in report.first.plan.strategies
    }


def _held(
    scored: Scored, truth: NDArray[np.float64], groups: Any, rng: np.random.Generator, *,
    share: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """An estimate beside the truth of the same queries, and of those that they are drawn from."""
    off = scored.mean - float(truth.mean())
    covers = []
    for _ in range(_REDRAWN):
        drawn, its = _redrawn(len(truth), groups, rng)
        span = _interval(Scored(scored.values[drawn], scored.noise), its, share=share)
        covers.append(span is not None and span[0] <= truth.mean() <= span[1])
    sampling = scored.sampling or 0.0
    return {
        "estimate": scored.mean, "truth": float(truth.mean()), "sampling": sampling,
        "covered": bool(abs(off) <= sampling), "covers": float(np.mean(covers)),
    }  # fmt: skip


def _interval(scored: Scored, groups: Any, *, share: bool) -> tuple[float, float] | None:
    """Of a mean score, or of a difference."""
    if not share:
        return mean_difference(scored.values, groups, scored.variance).interval()
    return mean(scored, groups).ends


def _redrawn(
    n: int, groups: Any, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Queries drawn with replacement, whole groups of them, and their groups in the draw."""
    codes = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    members = [np.flatnonzero(codes == k) for k in range(codes.max() + 1)]
    chosen = rng.integers(0, len(members), len(members))
    rows = np.concatenate([members[k] for k in chosen])
    return rows, np.repeat(np.arange(len(chosen)), [len(members[k]) for k in chosen])


def summary(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each pair and size, and one for all: bias, coverage, wrong directions."""
    keys = sorted({(r["corpus"], r["old"], r["new"], r["sample"]) for r in found})
    lines = [
        _line(dict(zip(("corpus", "old", "new", "sample"), key, strict=True)), [
            r for r in found if (r["corpus"], r["old"], r["new"], r["sample"]) == key
        ])
        for key in keys
    ]  # fmt: skip
    return [*lines, _line({"corpus": "all", "old": "", "new": "", "sample": None}, found)]


def _line(about: dict[str, Any], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    upgrades = [r for r in found if r["strategy"] == "upgrade"]
    scores = [r for r in found if r["strategy"] != "upgrade"]
    off = np.array([r["estimate"] - r["truth"] for r in scores])
    wrong = [r["better"] and r["truth"] <= 0 for r in upgrades]
    return about | {
        "upgrade": float(np.mean([r["truth"] for r in upgrades])),
        "predicted": float(np.mean([r["estimate"] for r in upgrades])),
        "bias": float(off.mean()), "error": float(np.sqrt((off**2).mean())),
        "these_queries": float(np.mean([r["covered"] for r in scores])),
        "all_queries": float(np.mean([r["covers"] for r in scores])),
        "wrong": float(np.mean(wrong)), "draws": len(upgrades),
    }  # fmt: skip
