"""Do rendered tracks order methods as photographs do? The table of ``results/studies``."""

from collections.abc import Iterator
from pathlib import Path

from benchmark.config.loading import load_track
from benchmark.records.files import find_records
from benchmark.report.transfer.compare import Tau, Transfer, transfers
from benchmark.report.transfer.orders import Order, measured_orders
from benchmark.report.transfer.rules import read_rules

STUDY = Path("results/studies/rendered")
HEADS = "rendered track|protocol|photographs|methods|tau-b, CMC@1|tau-b, mAP"
_METRICS = ("cmc_at_1", "map")  # in the order of HEADS


def agreement() -> Iterator[tuple[str, ...]]:
    """Of each rendered and each photographic track tau-b of their orders and its interval."""
    tracks = ["glyphs", *sorted(map(str, STUDY.glob("*.yaml")))]
    titles = {track.id: track.title for track in map(load_track, tracks)}
    found: dict[tuple[str, str, str], dict[str, Transfer]] = {}
    for each in _transfers():
        names = (each.left.place, each.left.protocol, each.right.place)
        found.setdefault(names, {})[each.left.metric] = each
    for (place, protocol, other), by_metric in sorted(
        found.items(), key=lambda item: ([*titles].index(item[0][0]), item[0])
    ):
        methods = len(next(iter(by_metric.values())).methods)
        taus = (_tau(by_metric[metric].tau) for metric in _METRICS)
        yield titles[place], f"`{protocol}`", f"`{other}`", str(methods), *taus


def verdict() -> str:
    """Which pairs of tracks reach what counts as transfer, and which tracks do in every pair."""
    rules, reached, failed = read_rules(), [], set()
    for each in _transfers():
        tau, place = each.tau, each.left.place
        if tau.value is None or tau.low is None or tau.value < rules.tau or tau.low <= rules.above:
            failed.add(place)
            continue
        metric = "CMC@1" if each.left.metric == "cmc_at_1" else "mAP"
        reached.append((place, f"`{place}` under `{each.left.protocol}` by {metric}"))
    everywhere = {place for place, _ in reached} - failed
    some = "; ".join(words for _, words in reached) or "none"
    every = ", ".join(f"`{place}`" for place in sorted(everywhere)) or "none"
    return f"Reaches it somewhere: {some}. Everywhere: {every}."


def _transfers() -> Iterator[Transfer]:
    """Every pair of a rendered and a photographic track under one protocol."""
    photographs = [each for each in _orders(Path("results")) if each.pictures == "photographs"]
    for rendered in _orders(STUDY / "measured"):
        for other in photographs:
            yield from transfers([rendered, other], [], read_rules())


def _orders(folder: Path) -> list[Order]:
    return measured_orders((stored.record for stored in find_records(folder)), read_rules())


def _tau(tau: Tau) -> str:
    if tau.value is None or tau.low is None or tau.high is None:
        return "-"
    return f"{tau.value:.2f} ({tau.low:.2f} to {tau.high:.2f})"
