"""Answers to readers' questions, computed from the committed records by plain formulas."""

from pathlib import Path

import numpy as np
from scipy import stats

from benchmark.records.files import read_selection

RESULTS = Path(__file__).parents[2] / "results"
UNSEEN = ("extended-class", "cifar100-open")
"""Protocol and track with the most methods on photographs of classes never seen."""
MAIN = {"ijbc-1v1": "tar_at_far_1e-4", "ijbc-1vn": "tpir_at_fpir_1e-2"}
"""Metrics of protocols that are not judged by CMC@1."""


def records(protocol, track, *methods):
    found = read_selection([RESULTS / "measured"], protocol=[protocol], track=[track])
    own = [each.record for each in found if each.record.status == "done"]
    return [r for r in own if not methods or r.method in methods]


def shares(protocol, track, method, metric="cmc_at_1"):
    """Seed -> share of the upgrade on the day of the update."""
    found = {}
    for r in records(protocol, track, method):
        low, high = r.bounds["lower"][metric], r.bounds["upper"][metric]
        found[r.seed] = (r.scores["new/old"][metric] - low) / (high - low)
    return found


def interval(values):
    """Mean and Student's half width, in whole percent."""
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
    return round(100 * mean), round(100 * stats.t.ppf(0.975, len(values) - 1) * error)


def half_filled(method, track="grocery"):
    """CMC@1 with half of the gallery backfilled, in the method's own order."""
    values = []
    for r in records("backfill", track, method):
        curves = r.orders.get("priority") or r.orders["random"]
        curve = curves.curves["cmc_at_1"]
        values.append(curve[len(curve) // 2])
    return np.mean(values)
