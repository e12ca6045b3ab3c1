"""Transfer of orders: a copy, permuted methods, one seed, gaps, regret, papers, committed rules."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import yaml
from scipy import stats
from support.records import make_record

from benchmark import BenchError
from benchmark.config.registry import is_control, method_files
from benchmark.records.published import Number, Published, read_published
from benchmark.studies.transfer import (
    MethodOrder,
    TransferRules,
    measured_orders,
    networks,
    published_orders,
    read_rules,
    transfers,
)
from benchmark.studies.transfer.compare import gap_shares, least_gap
from benchmark.studies.transfer.statistics import ceiling, drawn_scores, taus

RULES = read_rules().model_copy(update={"draws": 400})
N = 8


def order(place, means, spread=0.0, n=3, pictures="rendered", lower=None, **more) -> MethodOrder:
    """Methods m0, m1, ... with some means, and seeds around them."""
    around = np.linspace(-spread, spread, n) if n > 1 else np.zeros(1)
    scores = {f"m{i}": np.roll(around, i) + mean for i, mean in enumerate(means)}
    low = None if lower is None else np.full(n, lower)
    seeds = tuple(range(n))
    return MethodOrder("p", place, pictures, "cross-test", "map", scores, low, seeds=seeds, **more)


def one(left, right, rules: TransferRules = RULES):
    (found,) = transfers([(left, right)], rules)
    return found


MEANS = np.linspace(0.2, 0.9, N)


def test_a_copy_transfers() -> None:
    found = one(order("a", MEANS, 0.001), order("b", MEANS, 0.001))
    assert (found.tau.value, found.weighted.value) == pytest.approx((1.0, 1.0))
    assert (found.tau.low, found.tau.high) == pytest.approx((1.0, 1.0))
    assert found.ceiling == pytest.approx(1.0)
    assert (found.verdict, found.reason) == ("transfers", "")
    assert all(same for *_, same in found.gaps())
    assert [r.chosen for r in found.regrets] == [0.0, 0.0]


def test_permuted_methods_have_tau_0_on_average() -> None:
    rng = np.random.default_rng(3)
    found = [
        one(order("a", MEANS), order("b", rng.permutation(MEANS)), RULES.model_copy(
            update={"draws": 100}))
        for _ in range(60)
    ]  # fmt: skip
    # Deviation of tau of 8 items: sqrt(2 (2 n + 5) / (9 n (n - 1))) = 0.29; of 60 means 0.037.
    assert abs(np.mean([t.tau.value for t in found])) < 3 * 0.038
    assert abs(np.mean([t.weighted.value for t in found])) < 0.2
    assert sum(t.verdict == "transfers" for t in found) == 0
    agree = [same for t in found for *_, same in t.gaps()]
    assert abs(np.mean(agree) - 0.5) < 0.06


def test_reversed_order_does_not_transfer() -> None:
    found = one(order("a", MEANS, 0.001), order("b", MEANS[::-1], 0.001))
    assert found.tau.value == pytest.approx(-1.0)
    assert found.verdict == "does not transfer"


@pytest.mark.parametrize(
    ("left", "right", "reason"),
    [
        (order("a", MEANS, n=1), order("b", MEANS), "one seed"),
        (order("a", MEANS, n=2), order("b", MEANS), "2 seeds"),
        (order("a", MEANS[:4]), order("b", MEANS[:4]), "4 methods"),
        (order("a", [0.5] * N), order("b", MEANS), "all methods are alike"),
    ],
)
def test_what_is_too_little_is_open(left, right, reason) -> None:
    found = one(left, right)
    assert (found.verdict, found.reason) == ("open", reason)


def test_seeds_widen_the_interval_and_lower_the_ceiling() -> None:
    close = np.linspace(0.50, 0.52, N)
    calm = one(order("a", close, 0.0001), order("b", close, 0.0001))
    noisy = one(order("a", close, 0.03), order("b", close, 0.03))
    assert calm.ceiling == pytest.approx(1.0)
    assert noisy.ceiling is not None and noisy.ceiling < 0.7
    assert noisy.tau.low is not None and noisy.tau.low < 0.5
    assert one(order("a", close, n=1), order("b", close)).ceiling is None


@pytest.mark.parametrize("weighted", [False, True])
def test_taus_are_those_of_scipy(weighted) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 6, (50, 7)).astype(float) for _ in range(2))
    function = stats.weightedtau if weighted else stats.kendalltau
    expected = [function(a, b).statistic for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(taus(x, y, weighted=weighted), expected, atol=1e-12)


def test_a_method_drawn_twice_counts_as_tied_with_itself() -> None:
    x, y = np.array([[1.0, 2.0, 2.0]]), np.array([[5.0, 4.0, 4.0]])
    assert taus(x, y) == [-1.0]


def test_drawn_seeds_are_shared_by_methods() -> None:
    """A shift that all methods share within a seed moves no order."""
    scores = np.array([[0.1, 0.5, 0.9], [0.2, 0.6, 1.0]])
    drawn = drawn_scores(scores, 50, np.random.default_rng(0))
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 0.1)
    assert ceiling(scores, 50, np.random.default_rng(0)) == pytest.approx(1.0)


def test_gaps_and_the_least_that_transfers() -> None:
    """Methods 0.3 points apart are exchanged on the other track, those far apart are not."""
    left = np.array([0.100, 0.103, 0.300, 0.303, 0.500, 0.503])
    right = left[[1, 0, 3, 2, 5, 4]]
    found = one(order("a", left), order("b", right, pictures="photographs"))
    shares = gap_shares([found], RULES)
    there = [s for s in shares if (s.source, s.target) == ("rendered", "photographs")]
    assert [(s.agree, s.pairs) for s in there] == [(0, 3), (0, 0), (0, 0), (0, 0), (0, 0), (12, 12)]
    assert least_gap(there, RULES) == 0.1
    assert least_gap(gap_shares([one(order("a", left), order("b", left))], RULES), RULES) == 0.0
    backwards = gap_shares([one(order("a", left), order("b", left[::-1]))], RULES)
    assert least_gap(backwards, RULES) is None


def test_one_seed_counts_in_no_gap() -> None:
    assert gap_shares([one(order("a", MEANS, n=1), order("b", MEANS))], RULES) == []


def test_regret() -> None:
    """The winner of the one is second on the other; the baseline is the worst there."""
    rules = RULES.model_copy(update={"baseline": "m0"})
    found = one(order("a", [0.1, 0.2, 0.9]), order("b", [0.1, 0.8, 0.6]), rules)
    first, second = found.regrets
    assert (first.source, first.target, first.winner) == ("a", "b", "m2")
    assert first.chosen == pytest.approx(0.2)
    assert first.random == pytest.approx(0.3)
    assert first.baseline == pytest.approx(0.7)
    assert second.chosen == pytest.approx(0.7)
    assert one(order("a", MEANS), order("b", MEANS)).regrets[0].baseline is None


def test_compatible_or_not() -> None:
    found = one(order("a", [0.1, 0.4, 0.9], lower=0.3), order("b", [0.1, 0.2, 0.9], lower=0.3))
    same, n, chance = found.compatible
    assert (same, n) == (2, 3)
    assert chance == pytest.approx(3 * (2 / 3 * 1 / 3 + 1 / 3 * 2 / 3))
    assert one(order("a", MEANS), order("b", MEANS, lower=0.3)).compatible is None


def board(track, **scores):
    return [
        make_record(m, value + 0.001 * seed, seed=seed, track=track)
        for m, value in scores.items()
        for seed in range(3)
    ]


def test_orders_of_records() -> None:
    records = board("glyphs", bct=0.5, fct=0.6, random=0.01, independent=0.02)
    records += board("omniglot", bct=0.4, fct=0.3)
    records += [make_record("l2", 0.99)]  # lacks two seeds that the others have
    records += [make_record("mixbct", 0.99, changed={"mixbct.ratio": 0.1})]
    records += board("glyphs", oca=0.7)[:2]
    records += [make_record("oca", 0.7, seed=2, diverged={"train": "its loss rises"})]
    orders = {o.place: o for o in measured_orders(records, RULES) if o.metric == "cmc_at_1"}
    assert set(orders["glyphs"].scores) == {"bct", "fct"}  # no control, no loser
    assert orders["glyphs"].scores["bct"] == pytest.approx([0.5, 0.501, 0.502])
    assert orders["glyphs"].lower == pytest.approx([0.5, 0.5, 0.5])
    assert orders["glyphs"].seeds == (0, 1, 2)
    found = one(*orders.values())
    assert (found.tau.value, found.reason) == (-1.0, "2 methods")


def test_where_training_does_not_pay_there_is_no_order() -> None:
    records = board("glyphs", bct=0.5, fct=0.6, independent=0.02)
    raw = [make_record("raw-features", 0.1, own=0.99, seed=s, track="glyphs") for s in range(3)]
    assert {o.place for o in measured_orders(records, RULES)} == {"glyphs"}
    assert measured_orders(records + raw, RULES) == []


def test_areas_are_of_the_own_order() -> None:
    def record(method, **areas):
        orders = {name: {"area": {"map": area}} for name, area in areas.items()}
        return make_record(method, {"map": 0.5}, backfilling={
            "old": "old", "new": "new", "orders": orders})  # fmt: skip

    records = [record("fct", random=0.6), record("fastfill", random=0.5, priority=0.7)]
    (found,) = [o for o in measured_orders(records, RULES) if o.value == "area"]
    assert {m: v.tolist() for m, v in found.scores.items()} == {"fct": [0.6], "fastfill": [0.7]}
    assert found.lower is None


def number(method, value, paper="mixbct", table="Table 2", **more):
    row = {
        "table": table, "protocol": "open-class", "dataset": "ijbc-1v1", "method": method,
        "variant": "", "old_model": "", "new_model": "", "query": "new", "gallery": "old",
        "metric": "map", "value": value, "unit": "fraction", "std": "", "note": "", "paper": paper,
    }  # fmt: skip
    return Number.model_validate(row | more)


def test_published_orders() -> None:
    numbers = [number("bct", "0.6"), number("mixbct", "0.8"), number("independent", "0.1")]
    numbers += [number("ract", "0.9"), number("l2", "0.7"), number("l2", "0.5")]  # not one value
    numbers += [
        number("bct", "0.6", "fct", "Table 1"),
        number("fct:simclr", "0.7", "fct", "Table 1", gallery="h(old,side)"),
    ]
    numbers += [number("bct", "0.6", "bt2"), number("bt2", "0.7", "bt2")]
    published = Published(papers={}, protocols=(), datasets={}, numbers=tuple(numbers))
    orders = published_orders(published, RULES)
    found = {o.place: {m: v.tolist() for m, v in o.scores.items()} for o in orders}
    assert found == {
        "fct: Table 1, ijbc-1v1": {"bct": [0.6], "fct:simclr": [0.7]},
        "mixbct: Table 2, ijbc-1v1": {"bct": [0.6], "mixbct": [0.8]},
    }
    assert [o.lower for o in orders] == [None, None]
    today = number("independent", "0.65", query="old")
    with_today = Published(papers={}, protocols=(), datasets={}, numbers=(*numbers, today))
    _, mixbct = published_orders(with_today, RULES)
    assert mixbct.lower is not None and mixbct.lower.tolist() == [0.65]


def test_both_papers_order_methods() -> None:
    """Those of FCT stand in converted galleries, with side-information or without."""
    orders = published_orders(read_published(), RULES)
    places = {(o.protocol, o.place.partition(",")[0]): set(o.scores) for o in orders}
    assert places["extended-class", "fct: Table 1"] == {"bct", "fct:simclr"}
    assert places["side-information", "fct: Table 6"] > {"fct", "fct:simclr", "fct:autoencoder"}
    assert {"bct", "mixbct", "l2"} < places["open-class", "mixbct: Table 2"]
    assert all(o.lower is not None for o in orders if o.place.startswith("mixbct: Table 2"))


def test_a_paper_needs_no_seeds() -> None:
    printed = order("paper", MEANS, n=1, published=True)
    (found,) = transfers([(printed, order("a", MEANS, 0.001))], RULES)
    assert found.left.published
    assert (found.verdict, found.ceiling) == ("transfers", None)


def test_committed_rules() -> None:
    rules = read_rules()
    assert (rules.tau, rules.above, rules.seeds, rules.baseline) == (0.7, 0.0, 3, "linear")
    assert set(rules.left_out) == {m for m in ("independent", *method_files()) if is_control(m)}
    assert {"keep-old", "random", "class-mean", "linear-500"} < set(rules.left_out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tua": 0.5}, "unknown key 'tua'; did you mean 'tau'?"),
        ({"tau": 1.5}, "tau: expected at most 1"),
        ({"gaps": [0.1, 0.0]}, "gaps: expected rising numbers"),
        ({"baseline": "lineer"}, "unknown method 'lineer'; did you mean 'linear'?"),
        ({"values": ["self-test"]}, "expected 'cross-test' or 'area'"),
    ],
)
def test_refused(tmp_path, changes, message) -> None:
    path = tmp_path / "transfer.yaml"
    path.write_text(yaml.safe_dump(read_rules().model_dump(mode="json") | changes))
    with pytest.raises(BenchError) as error:
        read_rules(path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_tables_and_plots(tmp_path) -> None:
    """Failures stand beside successes, values have every column, plots are written."""
    from benchmark.report.plots import style
    from benchmark.studies.transfer.plot import drawings
    from benchmark.studies.transfer.tables import tables

    orders = [order("glyphs", MEANS, 0.001), order("copy", MEANS, 0.001),
              order("cifar", MEANS[::-1], 0.001, pictures="photographs")]  # fmt: skip
    printed = order("mixbct: Table 2", MEANS, n=1, pictures="photographs", published=True)
    found = transfers([*combinations(orders, 2), *product([printed], orders)], RULES)
    shown = {table.slug: table for table in tables(found, RULES)}
    assert list(shown) == [
        "transfer", "transfer-papers", "transfer-gaps", "transfer-regret", "transfer-papers-regret",
    ]  # fmt: skip
    assert "papers to rendered" in str(shown["transfer-gaps"])
    verdicts = {row.labels[1].text: row.labels[3].text for row in shown["transfer"].rows}
    assert verdicts == {
        "glyphs and copy": "transfers", "glyphs and cifar": "does not transfer",
        "copy and cifar": "does not transfer",
    }  # fmt: skip
    for table in shown.values():
        assert all(len(row) == len(table.columns) for row in table.values)
    notes = shown["transfer-gaps"].notes
    assert "Rendered to rendered: differences from 5 points on transfer" in " ".join(notes)
    assert "Rendered to photographs: no difference that was measured" in " ".join(notes)
    paths = style.save(drawings(found, RULES), tmp_path, ["png"])
    assert [path.name for path in paths] == ["transfer-map.png", "transfer-gaps.png"]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths)


def test_small_networks_beside_frozen_ones() -> None:
    """Places by hand: over two tracks of small networks b, c, a and d; with frozen ones d, c, b, a.

    On the first a to d have the places 1, 3, 2, 4 from below, on the second 2, 4, 3, 1: together
    1.5, 3.5, 2.5, 2.5. Frozen ones have 1, 2, 3, 4.
    """
    rules = RULES.model_copy(update={"methods": 4})
    small = [
        order("a", [0.1, 0.3, 0.2, 0.4], lower=0.25, networks="small"),
        order("b", [0.2, 0.4, 0.3, 0.1], lower=0.35, networks="small"),
    ]
    frozen = order("c", [0.1, 0.2, 0.3, 0.4], lower=0.05, networks="frozen")
    other = order("d", [0.4, 0.3, 0.2, 0.1])
    (found,) = networks.carried(transfers(combinations([*small, frozen, other], 2), rules), rules)
    assert found.tracks == {"small": ("a", "b"), "frozen": ("c",)}
    assert found.moves == {"m0": -0.5, "m1": -1.5, "m2": 0.5, "m3": 1.5}
    assert found.compatible == {"small": (3, 8), "frozen": (4, 4)}
    expected = stats.kendalltau([1.5, 3.5, 2.5, 2.5], [1, 2, 3, 4]).statistic
    assert found.tau.value == pytest.approx(expected)
    told = " ".join(networks.changed_words([found]))
    assert "m3 rises most, by 1.5 places of 4 on average, and m1 falls most, by 1.5." in told
    assert "3 of 8 (38 %) exceed old/old with small networks, and 4 of 4 (100 %)" in told
    assert list(networks.changed_words([])) == []


def test_an_order_of_small_networks_carries_over_by_the_rules() -> None:
    def verdict(means, **more):
        small = order("a", MEANS, 0.001, networks="small")
        frozen = order("b", means, 0.001, networks="frozen", **more)
        (found,) = networks.carried(transfers([(small, frozen)], RULES), RULES)
        words, *_ = networks.changed_words([found])
        assert found.verdict in networks.carried_table([found]).values[0]
        return found.verdict, words.partition("kind of classes, ")[2]

    over = "sure to carry over to those of frozen, pretrained networks"
    told = f"1 is {over}, none are sure not to, and none are open"
    assert verdict(MEANS) == ("transfers", f"{told} (tau-b 1.00 to 1.00).")
    told = f"none are {over}, 1 is sure not to, and none are open"
    assert verdict(MEANS[::-1]) == ("does not transfer", f"{told} (tau-b -1.00 to -1.00).")
    seen = order("b", MEANS, networks="frozen", classes="seen")
    one_seed = order("c", MEANS, n=1, networks="frozen")
    small = order("a", MEANS, networks="small")
    assert networks.carried(transfers(combinations([small, seen, one_seed], 2), RULES), RULES) == []
