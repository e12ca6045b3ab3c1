"""Records of boards of every kind, and writing them; words of pages."""

import html
import re
from pathlib import Path

from benchmark.records.files import StoredRecord, write_record
from leaderboard.pages import templates
from leaderboard.rank.boards import make_boards
from leaderboard.read.methods import method_info
from support.records import make_record


def unstored(records):
    """Records that no file holds."""
    return [StoredRecord(record, record.path(Path("no-such-folder"))) for record in records]


def boards_of(records):
    """The boards of records that no file holds."""
    records = list(records)
    return make_boards(unstored(records), {r.method: method_info(r.method) for r in records})


def words(page):
    """Text of a page or of a part, without markup, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def backfilled(scale=1.0, **random):
    """Scores of the task of backfilling for two orders; parts of the random one may be others."""
    curve = [scale * (0.5 + 0.004 * i) for i in range(101)]
    order = {
        "area": {"cmc_at_1": 0.7 * scale}, "intervals": {"cmc_at_1": [0.69 * scale, 0.71 * scale]},
        "curves": {"cmc_at_1": curve},
        "flips": {"positive": [0.01] * 21, "negative": [0.02] * 21},
        "groups": {"gap": [0.1] * 21, "share_gap": [0.1] * 21, "cmc_at_1": [0.5, 0.6],
                   "share": [0.4, 0.6]},
        "tau": {"true-l2": 0.3},
    }  # fmt: skip
    return {
        "old": "old", "new": "new", "points": 101, "every": 5, "groups": ["Greek", "Latin"],
        "counts": {}, "offline": {"cmc_at_1": {"before": 0.5, "after": 0.9, "area": 0.5}},
        "orders": {"random": order | random, "true-l2": {**order, "tau": {}}},
    }  # fmt: skip


def run(seed, training_cost):
    """Provenance of a record, with the cost of its training."""
    return {
        "finished": f"2025-02-0{seed + 1}T00:00:00+00:00", "training_cost": training_cost,
        "code": {"version": "0.1.0", "commit": "abc123", "dirty": True},
        "stages": {"a": {"seconds": 1800.0, "device": "cpu"}},
    }  # fmt: skip


def write(records, root):
    """Write records where they belong."""
    for record in records:
        folder = root if not record.changed else root / "changed" / str(hash(str(record.changed)))
        write_record(record.path(folder), record)
    return root


def sample():
    """Boards of every kind: plain, several old models, settings, sequence, backfilling, changed."""
    make = make_record
    cost = {"parameters": 80_000, "added_parameters": 5_000_000, "bytes_before": 256}
    scores = {"bct": 0.6, "l2": 0.64, "mixbct": 0.605, "fct": 0.7, "fct:simclr": 0.75}
    found = [
        make(m, {"cmc_at_1": v + t, "map": v - 0.2}, {"cmc_at_1": 0.93 - v / 9, "map": 0.7},
             track=track, lower=0.55 + t,
             cost=cost if m.startswith("fct") else {**cost, "added_parameters": 0})
        for track, t in (("glyphs", 0.0), ("glyphs-high", 0.1)) for m, v in scores.items()
    ]  # fmt: skip
    found += [
        make(m, v, 0.9 if m != "l2" else 0.6, seed=s, protocol="extended-data", lower=0.5,
             cost={**cost, "convert_multiply_adds": 20_000 if m == "fct" else 0},
             run=run(s, 1.5 if m == "fct" else 1.25))
        for m, v in (("independent", 0.01), ("l2", 0.75), ("fct", 0.7), ("linear", 0.66),
                     ("linear:query", 0.62), ("bct", 0.72))
        for s in range(3)
    ]  # fmt: skip
    found += [make(m, {"tar_at_far_1e-2": v}, {"tar_at_far_1e-2": 0.9}, protocol="ijbc-1v1")
              for m, v in (("bct", 0.7), ("fct", 0.8))]  # fmt: skip
    # More methods than plots have colours, in a cloud where their names would collide.
    found += [make(f"other-{i}", 0.6 + 0.004 * i, 0.9 - 0.002 * i, protocol="open-data", cost=cost)
              for i in range(12)]  # fmt: skip
    found += [make("independent", {"cmc_at_1": 0.01, "map": 0.01}, {"cmc_at_1": 0.9, "map": 0.7},
                   lower=0.55)]  # fmt: skip
    found += [make("lwf", reason="needs the old classifier"),
              make("keep-old", 0.55, 0.55, lower=0.55)]  # fmt: skip
    found += [
        make(m, 0.6, 0.9, protocol="backfill", backfilling=backfilled(k), cost=cost)
        for m, k in (("fct", 1.0), ("fastfill", 0.9))
    ]
    found += [
        make(m, v + t, protocol=f"loss-change:{setting}", lower=0.5)
        for setting, t in (("softmax-softmax", 0.1), ("relu", -0.2))
        for m, v in (("independent", 0.25), ("bct", 0.5), ("fct", 0.45))
    ]
    names = ["v1", "v2", "v3"]
    steps = {f"{a}/{b}": {"cmc_at_1": 0.5 + 0.1 * i + 0.02 * j}
             for i, a in enumerate(names) for j, b in enumerate(names[: i + 1])}  # fmt: skip
    steps["v3/v1 direct"] = {"cmc_at_1": 0.71}
    models = {name: {"dim": 64} for name in names}
    found += [make("fct", protocol=protocol, scores=steps, intervals={}, models=models, high=0.74)
              for protocol in ("sequential", "sequential-six")]  # fmt: skip
    found += [
        make(m, v + q, 0.9, seed=s, protocol="extended-class", lower=0.5 + q)
        for m, v in (("bct", 0.56), ("l2", 0.54), ("fct", 0.52))
        for s, q in ((0, 0.1), (1, 0.0), (2, 0.05))
        if (m, s) != ("fct", 2)
    ]
    found += [
        make("mixbct", 0.5 + ratio, changed={"mixbct.ratio": ratio}, config={"ratio": ratio})
        for ratio in (0.1, 0.2)
    ]
    return found


def rendered(name, values, **facts):
    """A page by itself, as a site of one record has it."""
    site = {
        "n_records": 1, "newest": make_record(), "kinds": "", "evidence": False, "pairs": False,
        "pays": False, **facts,
    }  # fmt: skip
    return templates.render(name, site=site, root="", folder="assets/figures", **values)
