"""Two methods compared: intervals over identities and flips of signs, written out by hand."""

from __future__ import annotations

import csv
import io
import itertools
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from support.command import call
from support.stored import plain, read_details, stored, write

from benchmark.errors import BenchError
from benchmark.metrics.estimate import Estimate
from benchmark.records.details_files import details_path
from benchmark.report import paired, render
from benchmark.report.paired import compare, doubts
from benchmark.report.tables.comparison import text_table

CROSS, OWN = "new/old", "new/new"


def drawn(seed: int, shift: float, n: int = 120):
    """Hits and average precisions of queries, six of each identity, which share their luck."""
    rng = np.random.default_rng(seed)
    luck = np.random.default_rng(99).normal(size=n // 6).repeat(6)
    score = 1 / (1 + np.exp(-(luck + shift + rng.normal(size=n))))
    return {
        (case, metric): score > 0.5 if metric == "cmc_at_1" else score
        for case in (CROSS, OWN)
        for metric in ("cmc_at_1", "map")
    }


WHO = np.arange(120) // 6


@pytest.fixture
def pair(tmp_path):
    return (
        stored(tmp_path, "bct", drawn(1, 0.4), WHO), stored(tmp_path, "mixbct", drawn(2, 0.0), WHO),
    )  # fmt: skip


def results(one, case, metric):
    return read_details(details_path(one.path)).results[case, metric]


def by_hand(pair, case, metric, grouped):
    """Differences read from the files, one more identity on each side in plain loops."""
    a, b = (results(each, case, metric) for each in pair)
    assert a.identity.tolist() == b.identity.tolist()
    difference = a.values - b.values
    parts = [difference[a.identity == k] for k in np.unique(a.identity)]
    if not grouped:
        parts = [difference[i : i + 1] for i in range(len(difference))]
    means = np.array([part.mean() for part in parts])
    agreeing = (means == 0).mean()
    step = np.sqrt(((means**2).sum() + agreeing) / ((means != 0).sum() + agreeing))
    size, k = len(difference) / len(parts), len(parts) + 1
    ends, chances = [], []
    for side in (-1, 1):
        sums = np.array([part.sum() for part in parts] + [side * step * size])
        counts = np.array([len(part) for part in parts] + [size])
        mean = sums.sum() / counts.sum()
        rest = ((sums - mean * counts) ** 2).sum()
        deviation = np.sqrt(k / (k - 1) * rest) / counts.sum()
        ends.append(mean + side * student.ppf(0.975, k - 1) * deviation)
        chances.append(student.cdf(side * mean / deviation, k - 1))
    return difference.mean(), *ends, min(1.0, 2 * min(chances))


CONVERTED = "old'/old'"


def width(line) -> float:
    return line.difference.high - line.difference.low


def test_converted_galleries_are_compared_where_both_have_one(tmp_path) -> None:
    values = {case: np.linspace(0, 1, 120) for case in (CROSS, OWN, CONVERTED, "old/old")}
    maps = [
        stored(tmp_path, name, {(case, "map"): x for case, x in values.items()}, WHO)
        for name in ("fct", "linear")
    ]
    assert [line.case for line in compare(maps[:1], maps[1:])] == [CROSS, OWN, CONVERTED]
    trained = stored(tmp_path, "bct", {(c, "map"): values[c] for c in (CROSS, OWN, "old/old")}, WHO)
    assert [line.case for line in compare(maps[:1], [trained])] == [CROSS, OWN]


@pytest.mark.parametrize("by", ["identity", "query"])
def test_agrees_with_intervals_by_hand(pair, by) -> None:
    lines = compare([pair[0]], [pair[1]], by=by)
    assert [(x.case, x.metric) for x in lines] == [
        *itertools.product((CROSS, OWN), ("cmc_at_1", "map"))
    ]
    for line in lines[:2]:
        mean, low, high, p = by_hand(pair, line.case, line.metric, by == "identity")
        assert line.difference.value == pytest.approx(mean, abs=1e-12)
        assert line.left - line.right == pytest.approx(mean, abs=1e-12)
        assert line.difference.low == pytest.approx(low, abs=1e-9)
        assert line.difference.high == pytest.approx(high, abs=1e-9)
        assert line.p_value == pytest.approx(p, abs=1e-9)
        assert (line.n_queries, line.n_identities, line.wins) == (120, 20, 1)


def test_identities_make_intervals_honest(tmp_path) -> None:
    """Queries of an identity that win together are not so many witnesses."""
    wins = np.random.default_rng(0).normal(size=20).repeat(6) > 0
    pair = (
        stored(tmp_path, "bct", {(CROSS, "map"): wins * 1.0}, WHO),
        stored(tmp_path, "l2", {(CROSS, "map"): ~wins * 1.0}, WHO),
    )
    each, whole = (compare([pair[0]], [pair[1]], by=by)[0] for by in ("query", "identity"))
    assert width(whole) > 2 * width(each)


TAR = "tar_at_far_1e-3"


def test_thresholds_are_drawn_for_both(tmp_path) -> None:
    """The same draws of identities for both methods: their difference, draw by draw."""
    rng = np.random.default_rng(0)
    hits = {name: rng.random(120) < share for name, share in (("bct", 0.8), ("l2", 0.6))}
    together = 0.05 * rng.standard_normal(500)
    draws = {n: 0.7 + together + 0.01 * rng.standard_normal(500) for n in hits}
    key = (CROSS, TAR)
    one, other = (
        stored(tmp_path, name, {key: x}, WHO, draws={key: draws[name]}) for name, x in hits.items()
    )
    (line,) = compare([one], [other])
    difference = hits["bct"].mean() - hits["l2"].mean()
    assert line.difference.value == pytest.approx(difference)
    assert line.difference.low < difference < line.difference.high
    assert width(line) < 2 * np.std(draws["bct"])
    assert line.p_value < 0.001 and line.adjusted == line.p_value
    none = stored(tmp_path / "none", "l2", {key: hits["l2"], (CROSS, "map"): hits["l2"]}, WHO)
    both = stored(tmp_path / "b", "bct", {key: hits["bct"], (CROSS, "map"): hits["bct"]}, WHO)
    lines = {x.metric: x for x in compare([both], [none], metrics=[TAR, "map"])}
    assert lines[TAR].difference.low is lines[TAR].p_value is lines[TAR].adjusted is None
    assert lines["map"].adjusted == lines["map"].p_value
    shown = render([text_table([*lines.values()], "bct", "l2", "identity")], "markdown")
    assert "fewer than 30 impostors" in shown and "over identities (or classes)" in shown


def test_holm_over_all_lines(pair) -> None:
    lines = compare([pair[0]], [pair[1]])
    order = sorted(lines, key=lambda x: x.p_value)
    want, last = {}, 0.0
    for i, line in enumerate(order):
        last = max(last, min(1.0, line.p_value * (len(lines) - i)))
        want[line.case, line.metric] = last
    assert {(x.case, x.metric): x.adjusted for x in lines} == pytest.approx(want)


def test_what_one_model_finds_in_both_is_no_test(tmp_path) -> None:
    """Two maps have the new model alone in common: its own search is neither's."""
    shared, models = drawn(5, 0.2), {"train independent new model (seed 0)": "sha256:" + "5" * 64}
    sides = []
    for i, name in enumerate(("linear", "fct")):
        own = drawn(i, 0.4 * i)
        answers = {key: (shared if key[0] == OWN else own)[key] for key in own}
        sides.append([stored(tmp_path, name, answers, WHO, checkpoints=models)])
    cross, other, own, last = compare(*sides)
    assert [x.case for x in (cross, other, own, last)] == [CROSS, CROSS, OWN, OWN]
    for line in (own, last):
        assert line.one_model and line.difference == Estimate(0.0)
        assert line.p_value is line.adjusted is line.seeds_p is None
    assert max(cross.p_value, other.p_value) == max(cross.adjusted, other.adjusted)
    table = text_table([cross, own], "linear", "fct", "identity")
    assert "one model" in render([table], "terminal")
    # Another model that happens to find the same is compared.
    again = [stored(tmp_path / "b", "bct", {k: shared[k] for k in shared if k[0] == OWN}, WHO)]
    (found, _) = compare([sides[0][0]], again)
    assert not found.one_model and found.difference.low < 0 < found.difference.high


def test_a_result_that_two_protocols_share_is_one_test(tmp_path) -> None:
    sides = [
        [
            stored(tmp_path / protocol, name, drawn(i, 0.4 * i), WHO, protocol=protocol)
            for protocol in ("extended-class", "backfill")
        ]
        for i, name in enumerate(("bct", "l2"))
    ]
    lines = compare(*sides, cases=[CROSS])
    assert len(lines) == 4 and len({line.tested for line in lines}) == 2
    alone = compare([sides[0][0]], [sides[1][0]], cases=[CROSS])
    for line in alone:
        assert [x.adjusted for x in lines if x.metric == line.metric] == [line.adjusted] * 2
    notes = "\n".join(text_table(lines, "bct", "l2", "identity").notes)
    assert "corrected for 2 results, which several protocols may share" in notes


def test_seeds_are_averaged_query_by_query(tmp_path) -> None:
    one = {seed: stored(tmp_path, "bct", drawn(seed, 0.5), WHO, seed) for seed in (0, 1, 2)}
    other = {seed: stored(tmp_path, "l2", drawn(7 + seed, 0.0), WHO, seed) for seed in (1, 2, 3)}
    line = compare(list(one.values()), list(other.values()), cases=[CROSS], metrics=["map"])[0]
    assert line.seeds == (1, 2) and line.seeds_p is None
    other[0] = stored(tmp_path, "l2", drawn(7, 0.0), WHO, 0)
    every = compare([*one.values()], [*other.values()])[0]
    means = [
        results(one[s], CROSS, "cmc_at_1").values.mean()
        - results(other[s], CROSS, "cmc_at_1").values.mean() for s in (0, 1, 2)
    ]  # fmt: skip
    assert every.seeds_p == pytest.approx(ttest_1samp(means, 0).pvalue)
    means = [
        np.mean([results(side[s], CROSS, "map").values for s in (1, 2)]) for side in (one, other)
    ]
    assert line.difference.value == pytest.approx(means[0] - means[1])
    assert line.n_queries == 120
    both = [line, replace(line, seeds=(1,), n_queries=60), replace(line, seeds=(1, 2, 3))]
    for lines, words in (
        (both[:1], "120 queries of 20 identities. A query's value is its mean over the 2 seeds"),
        (both, "on the same queries. A query's value is its mean over the 1 to 3 seeds"),
    ):
        assert words in text_table(lines, "bct", "l2", "identity").notes[0]


def test_the_same_twice_does_not_differ(pair) -> None:
    for line in compare([pair[0]], [pair[0]], cases=[CROSS]):
        assert (line.difference.value, line.p_value) == (0, 1)
        assert line.difference.low == -line.difference.high
        assert 0.1 < line.difference.high < 0.3, "20 identities: about 3 of them"


def test_refused(tmp_path, pair) -> None:
    others = stored(tmp_path / "o", "l2", {(CROSS, "map"): np.ones(120)}, WHO[::-1] // 2)
    with pytest.raises(BenchError, match="other queries"):
        compare([pair[0]], [others])
    with pytest.raises(BenchError, match=r"unknown metric .*'mapp'; did you mean 'map'"):
        compare([pair[0]], [pair[1]], metrics=["mapp"])
    with pytest.raises(BenchError, match=r"'eer': these records have none.*; `bench results det"):
        compare([pair[0]], [pair[1]], metrics=["eer"])
    elsewhere = stored(tmp_path, "l2", drawn(1, 0), WHO, protocol="open-data")
    with pytest.raises(BenchError, match="no protocol, track, seed and data that both"):
        compare([pair[0]], [elsewhere])
    twin = stored(tmp_path / "twin", "bct", drawn(1, 0), WHO)
    with pytest.raises(BenchError, match="two records of one seed"):
        compare([pair[0], twin], [pair[1]])


def test_a_protocol_that_one_cannot_do_is_passed_over(tmp_path, pair) -> None:
    write(
        tmp_path / "no" / "seed-0.json",
        plain() | {"method": "mixbct", "protocol": "dimension", "status": "not-applicable",
                   "reason": "needs embeddings of one size", "scores": {}, "intervals": {},
                   "details": None},
    )  # fmt: skip
    stored(tmp_path, "bct", drawn(1, 0.4), WHO, protocol="dimension")
    code, out, err = call("compare", "bct", "mixbct", tmp_path, "--format", "csv")
    assert code == 0, err
    assert {row["protocol"] for row in csv.DictReader(io.StringIO(out))} == {"open-class"}
    assert "mixbct on dimension: not applicable: needs embeddings of one size" in err


def test_other_file_beside_a_record_is_noticed(pair) -> None:
    details_path(pair[0].path).write_bytes(details_path(pair[1].path).read_bytes())
    with pytest.raises(BenchError, match="hashes differ"):
        compare([pair[0]], [pair[1]])
    details_path(pair[0].path).unlink()
    with pytest.raises(BenchError, match="missing, though"):
        compare([pair[0]], [pair[1]])


def test_what_makes_a_difference_doubtful_is_told(tmp_path) -> None:
    """As a table tells it; a difference that rounding alone makes has no sign."""
    values = {(CROSS, "map"): np.full(120, 0.3)}
    kind = {"cpu": "AMD EPYC", "cpu_model": "family 26, model 2", "instructions": "avx512f"}
    here = {"environment": plain()["environment"] | kind}
    fine = stored(tmp_path, "bct", values, WHO, seed=0, **here)
    values = {(CROSS, "map"): np.full(120, 0.1 + 0.2)}
    bad = stored(tmp_path, "l2", values, WHO, seed=0, diverged={"train l2 (seed 0)": "rises"})
    assert doubts([fine], [fine]) == []
    (line,) = doubts([fine], [bad])
    assert "diverged or ended too early, so no ranks: train l2 (seed 0): rises." in line
    code, out, _ = call("compare", " bct", "l2 ", tmp_path)
    assert code == 0 and "diverged" in out and "+0.00" in out and "-0.00 " not in out
    code, out, err = call("compare", "bct", "l2", tmp_path, "--format", "csv")
    assert code == 0 and "diverged" not in out and "diverged" in err
    hashes = dict.fromkeys(fine.record.checkpoints, "sha256:" + "9" * 64)
    other = stored(tmp_path, "fct", values, WHO, seed=0, checkpoints=hashes, **here)
    assert [
        "not of one old model, or not of the same data (seed 0)" in line
        for line in doubts([fine], [other])
    ] == [True]


def test_all_cases_and_metrics(tmp_path, pair) -> None:
    code, out, err = call(
        "compare", "bct", "mixbct", tmp_path, "--cases", "all", "--metrics", "all", "-f", "csv"
    )
    assert (code, err) == (0, "")
    found = {(row["case"], row["metric"]) for row in csv.DictReader(io.StringIO(out))}
    assert found == {(case, metric) for case in (CROSS, OWN) for metric in ("cmc_at_1", "map")}


def test_few_identities_have_no_interval_and_that_is_told(tmp_path) -> None:
    sides = [
        [stored(tmp_path, name, drawn(i, 0.0, n=24), WHO[:24])]
        for i, name in enumerate(("bct", "mixbct"))
    ]
    for by, told in (("identity", True), ("query", False)):
        lines = compare(*sides, by=by)
        assert all((line.p_value is None) == told for line in lines)
        notes = "\n".join(text_table(lines, "bct", "mixbct", by).notes)
        assert ("No interval where there are fewer than 5 identities." in notes) == told
        assert ("Holm: corrected for the 4 lines" in notes) != told


def test_folders_are_chosen_from_as_other_records_are(tmp_path) -> None:
    """By protocol and seed; a folder that holds a run of the other again adds nothing."""
    for seed in (0, 1):
        for i, name in enumerate(("bct", "mixbct")):
            for protocol in ("open-class", "open-data"):
                stored(tmp_path / name, name, drawn(2 * seed + i, 0), WHO, seed, protocol=protocol)
    folders = [tmp_path / name for name in ("bct", "mixbct")]
    words = ("-p", "open-data", "--seeds", "1", "--format", "csv")
    code, out, err = call("compare", *folders, *words)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {(row["protocol"], row["seeds"]) for row in rows} == {("open-data", "1")}
    shutil.copytree(tmp_path / "bct", tmp_path / "again")
    code, out, err = call("table", folders[0], tmp_path / "again", "--format", "csv")
    assert code == 0 and err.count("was read before") == 4
    assert out == call("table", folders[0], "--format", "csv")[1]


def test_a_folder_of_one_name_is_a_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ours", "bct"):
        (tmp_path / name).mkdir()
    assert paired.is_place("ours") and paired.is_place("./bct") and not paired.is_place("bct")
    assert not paired.is_place("bct:old") and not paired.is_place("mixbct")


def test_from_the_command_line(tmp_path, pair) -> None:
    code, out, err = call("compare", "bct", "mixbct", tmp_path, "--format", "csv")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    lines = compare([pair[0]], [pair[1]])
    assert [float(row["difference"]) for row in rows] == [line.difference.value for line in lines]
    assert [float(row["adjusted"]) for row in rows] == [line.adjusted for line in lines]
    files = [f.path for f in pair]
    code, shown, _ = call("compare", *files, "--by", "query", "--metrics", "map")
    assert code == 0
    assert "queries, each by itself" in shown
    assert "CMC@1" not in shown
    assert {f.path.parent.name for f in pair} == {"bct", "mixbct"}
    for side in (0, 1):  # a folder stands for its records
        names = [f.path.parent if i == side else f.path for i, f in enumerate(pair)]
        code, out_of_folder, _ = call("compare", *names, "--metrics", "map", "--format", "csv")
        assert code == 0
        assert [float(row["difference"]) for row in csv.DictReader(io.StringIO(out_of_folder))] == [
            float(row["difference"]) for row in rows if row["metric"] == "map"
        ]
    for form in ("terminal", "markdown", "latex"):
        assert call("compare", *files, "--format", form)[0] == 0
    write(tmp_path / "old" / "seed-0.json", plain())
    code, out, err = call("compare", pair[1].path, tmp_path / "old" / "seed-0.json")
    assert (code, out) == (2, "")
    assert "no results by query" in err
    code, _, err = call("compare", "bct", "mixbtc", tmp_path)
    assert code == 2
    assert "'mixbct'" in err
