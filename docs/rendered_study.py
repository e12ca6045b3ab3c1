"""Do rendered tracks order methods as photographs do? The table of ``results/studies``."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmark.config.loading import load_track
from benchmark.records.files import find_records
from benchmark.report import numbers, render
from benchmark.report.text_table import simple_table
from benchmark.studies.transfer.compare import Transfer, transfers
from benchmark.studies.transfer.orders import MethodOrder, measured_orders, read_rules

STUDY = Path("results/studies/rendered")
HEADS = ("rendered track", "protocol", "photographs", "methods", "tau-b, CMC@1", "tau-b, mAP")
_METRICS = ("cmc_at_1", "map")  # in the order of HEADS


def lines() -> Iterator[str]:
    """A table of each rendered and each photographic track, and what comes of it."""
    rows, verdict = agreement()
    yield render(simple_table("", "", HEADS, (), rows), "markdown").strip()
    yield f"\n{verdict}"


def agreement() -> tuple[list[tuple[str, ...]], str]:
    """Tau-b of each rendered and each photographic track with its interval; what comes of it.

    Returns:
        Rows below ``HEADS``, and a sentence on which tracks reach what counts as transfer.
    """
    tracks = ["glyphs", *sorted(map(str, STUDY.glob("*.yaml")))]
    titles = {track.id: track.title for track in map(load_track, tracks)}
    found: dict[tuple[str, str, str], dict[str, Transfer]] = {}
    for each in _transfers():
        names = (each.left.place, each.left.protocol, each.right.place)
        found.setdefault(names, {})[each.left.metric] = each
    rows = []
    for names in sorted(found, key=lambda names: ([*titles].index(names[0]), names)):
        (place, protocol, other), by_metric = names, found[names]
        methods = len(next(iter(by_metric.values())).methods)
        few = methods < read_rules().methods
        taus = ("too few" if few else numbers.with_ends(by_metric[key].tau) for key in _METRICS)
        rows.append((titles[place], f"`{protocol}`", f"`{other}`", str(methods), *taus))
    return rows, _verdict([each for of in found.values() for each in of.values()])


def _verdict(compared: Sequence[Transfer]) -> str:
    """Pairs of tracks that reach what counts as transfer, and tracks that do in every pair."""
    rules = read_rules()
    reached = [
        each for each in compared
        if len(each.methods) >= rules.methods
        and each.tau.value is not None and each.tau.low is not None
        and each.tau.value >= rules.tau and each.tau.low > rules.above
    ]  # fmt: skip
    failed = {each.left.place for each in compared if not any(each is other for other in reached)}
    words = (
        f"`{each.left.place}` under `{each.left.protocol}` by "
        f"{numbers.metric(each.left.metric).label}"
        for each in reached
    )
    everywhere = sorted({each.left.place for each in reached} - failed)
    some, every = "; ".join(words) or "none", ", ".join(f"`{p}`" for p in everywhere) or "none"
    return f"Reaches it somewhere: {some}. Everywhere: {every}."


def _transfers() -> Iterator[Transfer]:
    """Every pair of a rendered and a photographic track under one protocol."""
    photographs = [each for each in _orders(Path("results")) if each.pictures == "photographs"]
    for rendered in _orders(STUDY / "measured"):
        for other in photographs:
            yield from transfers([(rendered, other)], read_rules())


def _orders(folder: Path) -> list[MethodOrder]:
    return measured_orders((stored.record for stored in find_records(folder)), read_rules())
