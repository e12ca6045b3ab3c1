"""A record's work done again from the start, and how far the numbers are apart."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import NormalDist

from benchmark.config import registry
from benchmark.config.files import bytes_digest
from benchmark.config.overrides import known_methods
from benchmark.config.setup import Setup
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute, Reporter
from benchmark.harness.graph import SCORING, data_source, record_key
from benchmark.harness.published_models import PublishedModels, read_published
from benchmark.harness.requests import Request, make_requests
from benchmark.harness.runs import carry_out, execute
from benchmark.harness.store import DETAILS, Store
from benchmark.records.provenance import COMPUTING, PROCESSOR, code_version
from benchmark.records.record import Record
from benchmark.records.verified import TOLERANCE, Verified
from benchmark.training.device import parse_device

_KIND = (*PROCESSOR, "system", "precision", *COMPUTING)
# Details follow from the same embeddings and may since hold more; a track may since say more for
# other protocols. That the work is the same is told by :func:`other_work`.
_ELSEWHERE = frozenset({"environment", "key", "adapter", "parameters", "details", "queries"})
_SEVERAL = re.compile(r"(\d{1,3}) x ")  # devices, before their name
Value = tuple[str, float]


@dataclass(frozen=True)
class Repetition:
    """A record, and the one that the same work gave here."""

    record: Record
    again: Record

    @property
    def differing(self) -> list[str]:
        """Fields that came out otherwise; times, the machine and the details are none of them."""
        first, again = (each.result() for each in (self.record, self.again))
        fields = sorted((first.keys() | again.keys()) - _ELSEWHERE)
        return [name for name in fields if first.get(name) != again.get(name)]

    @property
    def same_kind(self) -> bool:
        """True if both machines are of one kind, and have the same versions of what computes.

        Older records do not say the model of their processor, or how wide its vectors were: theirs
        is another kind.
        """
        first, again = self._kinds()
        return first == again

    @property
    def machines(self) -> str:
        """Both machines in words, by what they do not share."""
        kinds = self._kinds()
        first, again = (
            ", ".join(f"{name} {value}" for name, value in mine.items() if value != its[name])
            for mine, its in (kinds, kinds[::-1])
        )
        return f"the record is of {first}; this is {again}"

    def _kinds(self) -> list[dict[str, str]]:
        return [
            {name: each.environment.get(name, "unknown") for name in _KIND}
            | {"device": ", ".join(sorted(devices(each)))}
            for each in (self.record, self.again)
        ]

    def facts(self) -> dict[str, tuple[object, object]]:
        """Statements that do not depend on the machine: in the record, and here."""
        first, again = self.record, self.again
        found: dict[str, tuple[object, object]] = {
            "config": (first.config, again.config), "upper": (first.upper, again.upper),
            "counts": (_of_data(first), _of_data(again)),
            "models of": (sorted(first.checkpoints), sorted(again.checkpoints)),
            "dataset": (first.dataset.fingerprint, again.dataset.fingerprint),
        }  # fmt: skip
        if first.environment == again.environment:  # trainings come out bit for bit
            for title, weights in first.checkpoints.items():
                found[f"weights of '{title}'"] = weights, again.checkpoints.get(title)
        for name, value in self.record.cost:
            if value is not None:
                found[f"cost.{name}"] = value, getattr(self.again.cost, name)
        return found

    def farthest(self) -> tuple[float, str]:
        """The largest difference of a score in points, and where it is."""
        first, again = dict(numbers(self.record)), dict(numbers(self.again))
        if first.keys() != again.keys():
            one = sorted(first.keys() ^ again.keys())[0]
            return 100.0, f"{one} is in one of them only"
        gaps = {name: 100 * abs(first[name] - again[name]) for name in first}
        worst = max(gaps, key=lambda name: gaps[name], default="")
        if not worst:
            return 0.0, "no score"
        return gaps[worst], f"{worst}: {100 * first[worst]:.4f} in the record, " + (
            f"{100 * again[worst]:.4f} here"
        )

    def outside(self) -> str:
        """The record's first score outside of its interval here, in words; none is empty.

        Intervals are widened until all of them together hold in 95 of 100 cases (Bonferroni): of
        fifty at 95 % each, two or three miss an honest record. The record's own may be wider than
        they should be. Both have to have the same scores.
        """
        first, again = dict(numbers(self.record)), dict(numbers(self.again))
        if first.keys() != again.keys():
            return self.farthest()[1]
        spans = {
            f"{case} {metric}": span
            for case, of_case in self.again.intervals.items()
            for metric, span in of_case.items() if span is not None
        }  # fmt: skip
        wider = _for_all(len(spans))
        for name, span in spans.items():
            low, high = (again[name] + wider * (end - again[name]) for end in span)
            if not low <= first[name] <= high:
                return (
                    f"{name}: {100 * first[name]:.4f} in the record, {100 * low:.4f} to"
                    f" {100 * high:.4f} here"
                )
        return ""

    def verification(self) -> Verified | None:
        """The badge; ``None`` on a machine of another kind with a score outside of the interval.

        Raises:
            BenchError: If the record says something of the work that is not so, or a score or the
                end of an interval is farther apart than the tolerance, on the same kind.
        """
        for name, (said, found) in self.facts().items():
            if said != found:
                raise BenchError(f"{name}: {said!s:.60} in the record, {found!s:.60} here")
        points, where = self.farthest()
        if self.same_kind and points > TOLERANCE:
            raise BenchError(
                f"not what comes out here: {points:.4g} points apart, at most {TOLERANCE:g} allowed"
                f" ({where})"
            )
        if not self.same_kind and self.outside():
            return None
        return Verified(
            record=str(self.record.seal), date=datetime.now(UTC).date().isoformat(),
            machine=dict(self.again.environment), bit_for_bit=not self.differing, points=points,
            elsewhere=not self.same_kind, code=code_version(),
        )  # fmt: skip


def numbers(record: Record) -> Iterator[Value]:
    """Every score of a record by name: cases, bounds, intervals, and curves of backfilling."""
    for part, cases in (("", record.scores), ("bound ", record.bounds)):
        for case, scores in cases.items():
            for metric, value in scores.items():
                yield f"{part}{case} {metric}", -1.0 if value is None else value
    for case, spans in record.intervals.items():
        for metric, span in spans.items():
            for end, value in zip(("low", "high"), span or (-1.0, -1.0), strict=True):
                yield f"interval {case} {metric} {end}", value
    for order, curves in record.orders.items():
        for metric, curve in curves.curves.items():
            for i, value in enumerate(curve):
                yield f"backfilling {order} {metric} [{i}]", value


def _of_data(record: Record) -> dict[str, dict[str, int]]:
    """Counts that the data alone decide; not of pairs accepted at a threshold, which scores decide.

    Tied scores are accepted together or not at all, and the last bits of a machine tie them.
    """
    return {
        case: {name: n for name, n in counts.items() if not name.startswith("n_accepted_")}
        for case, counts in record.counts.items()
    }


def _for_all(n: int) -> float:
    """Times the length of a 95 % interval that ``n`` of them need to hold together."""
    usual = NormalDist().inv_cdf(0.975)
    return NormalDist().inv_cdf(1 - 0.025 / max(n, 1)) / usual


def devices(record: Record) -> set[str]:
    """Devices that its stages ran on."""
    return {stage.device for stage in record.run.stages.values() if stage.device}


def repeat(
    record: Record, *, data_root: Path | None = None, store: Path | None = None,
    reporter: Reporter | None = None,
) -> Repetition:  # fmt: skip
    """Train, embed and score a record's work again, on as many threads as it had.

    ``store`` keeps what is trained for the next verification; by default nothing is kept. A
    BenchError if this code would do other work than the record's.
    """
    request = request_of(record, data_root)
    differences = other_work(record, request)
    if differences:
        raise BenchError(f"this code would do other work than the record's: {differences}")
    with tempfile.TemporaryDirectory(prefix="bench-verify-") as folder, _threads(record):
        again = carry_out(
            [request], store=store or Path(folder, "store"), out=Path(folder, "runs"),
            compute=_compute(record), reporter=reporter, published=_taken(record), queries=False,
        )  # fmt: skip
    return Repetition(record, again[-1])


def results_by_query(
    record: Record, store: Path, *, data_root: Path | None = None, reporter: Reporter | None = None
) -> bytes:
    """All results by query of a record, from its evaluation in a store or computed again.

    Raises:
        BenchError: If the method is not applicable, this code would do other work than the
            record's, or what comes out is not what the record's evaluation gave.
    """
    request = request_of(record, data_root)
    differences = other_work(record, request)
    if record.queries is None or differences:
        raise BenchError(differences or f"not applicable: {record.reason}")
    plan = request.plan([record.method], [record.seed], _taken(record))
    (result,) = (result for result in plan.results if result.label == record.method)
    if result.evaluation is None:
        raise BenchError(f"not applicable: {result.reason}")
    stages = Store(store)
    with _threads(record):
        execute(replace(plan, results=(result,)), stages, _compute(record), reporter)
    packed = (stages.path(result.evaluation.name) / DETAILS).read_bytes()
    if bytes_digest(packed) != record.queries:
        raise BenchError(
            "other results by query than the record's (hashes differ), as from another machine"
        )
    return packed


def _compute(record: Record) -> Compute:
    """Its kind of device, and as many as trained a model together: they see batches otherwise."""
    used = devices(record)
    kind = "cpu" if all(name.endswith("cpu") for name in used) else "cuda"
    n = max((int(found[1]) for name in used if (found := _SEVERAL.match(name))), default=1)
    if n == 1:
        return Compute("cpu" if kind == "cpu" else "auto")
    return Compute(kind, parse_device(f"{kind}:{n}").devices)


def request_of(
    record: Record, data_root: Path | None = None, without_data: bool = False
) -> Request:
    """Request for a run of a record's work; BenchError if a name of it is not known here.

    Trainings have the precision that the record tells, which need not be the recipe's.
    """
    settings = {k: v for k, v in record.changed.items() if k != "first_seed"}
    apart = record.first_seed if "first_seed" in record.changed else None
    # Settings of methods that ran beside it stand in its record, too.
    beside = {key.rpartition(".")[0] for key in settings} & known_methods()
    request = make_requests(
        [record.method, *sorted(beside)], record.protocol, record.track, data_root=data_root,
        seeds=[record.seed], settings=settings, first_seed=apart, without_data=without_data,
        precision="32-true" if record.environment.get("precision") == "32-true" else "recipe",
    )[0]  # fmt: skip
    return replace(request, labels=tuple(dict.fromkeys(("independent", record.method))))


def other_work(record: Record, request: Request) -> str:
    """In words, what of a record's work is another today; empty if it is the same."""
    setup = request.setup
    label, seed = record.method, record.seed
    source = data_source(setup, request.data_root)
    parts = [*request.other_versions(record), *_other_parameters(record, setup)]
    if "first_seed" not in record.changed and record.first_seed != seed:
        parts.append(f"first_seed {record.first_seed}, here {seed}")
    words = "; ".join(parts)
    if words or record_key(setup, source, label, seed, request.first_seed) == record.key:
        return words
    return f"its key is another (scoring version {SCORING} here)"


def _other_parameters(record: Record, setup: Setup) -> Iterator[str]:
    """Parameters and module of a method that a record states and this code has otherwise."""
    method = registry.method(record.method, setup.params(record.method))
    here = json.loads(json.dumps(asdict(method)))  # as a record has it
    for name in sorted(here.keys() | record.config.keys()):
        was, now = (each.get(name, "none") for each in (record.config, here))
        if was != now:
            yield f"config.{name} {was!s:.60}, here {now}"
    module = registry.method_file(record.method).module
    if record.adapter is not None and record.adapter.module != module:
        yield f"adapter.module {record.adapter.module:.60}, here {module}"


def _taken(record: Record) -> PublishedModels | None:
    """The published models that a record's work took; others are trained, published or not."""
    titles = [title for title, stage in record.run.stages.items() if stage.published]
    if not titles:
        return None
    published = read_published()
    if published is None:
        raise BenchError("it took published models, which only a checkout has")
    return published.only({t: record.checkpoints.get(t, "none") for t in titles})


@contextmanager
def _threads(record: Record) -> Iterator[None]:
    """As many threads as a record had: sums in another order have other last bits."""
    import torch

    before, wanted = torch.get_num_threads(), record.environment.get("threads", "")
    if wanted.isdecimal() and 0 < int(wanted) <= 1024:
        torch.set_num_threads(int(wanted))
    try:
        yield
    finally:
        torch.set_num_threads(before)
