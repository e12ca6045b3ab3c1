"""Slim records: what is written small comes back whole, and bases that do not fit are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.records import make_record
from support.stored import plain

from benchmark.config.reading import build
from benchmark.errors import BenchError
from benchmark.records import layout
from benchmark.records.details import Details, Nearest, Picture, QueryResults
from benchmark.records.details_files import check_digest, details_path, find_details, queries_path
from benchmark.records.files import read_record, write_record
from benchmark.records.pictures import choose_queries
from benchmark.records.record import Record
from benchmark.records.slim import LIMIT, METRIC, bases, pack, write_queries, write_slim

RESULTS = Path(__file__).parents[2] / "results"
CASES = ("old/old", "new/old", "new/new")
ORDER = {
    "area": {"map": 0.123456789012, "cmc_at_1": None}, "worst": {"map": 0.1},
    "share_above": {"map": None},
    "intervals": {"map": [0.1, 0.2], "worst_map": None, "share_above_map": [0.0, 1.0]},
    "curves": {"map": [0.1234, 0.2, 0.1999], "cmc_at_1": [1 / 3, 0.5, 1.0]},
    "flips": {"positive": [0.0, 0.1], "negative": []},
    "groups": {"gap": [], "share_gap": [], "cmc_at_1": [None, 0.5], "share": []},
    "tau": {"true-l2": None, "true-disc": 0.3},
}  # fmt: skip


def record(**fields) -> Record:
    return build(Record, plain() | fields, "record")


def details(n: int = 400, seed: int = 0, own: int = 1) -> Details:
    """Results and drawings; the first cases are those of every method of one seed."""
    rng, mine = np.random.default_rng(seed), np.random.default_rng([seed, own])
    results = {}
    for case in CASES:
        drawn = rng if case == "old/old" else mine
        for metric, values in (("map", drawn.random(n)), (METRIC, drawn.random(n) < 0.5)):
            results[case, metric] = QueryResults(values * 1.0, np.arange(n) // 4, np.arange(n), n)
    items = rng.integers(0, 999, (3, 40, 5))
    nearest = Nearest(CASES, np.arange(40) * 3, items, mine.random((3, 40, 5)) < 0.5)
    picture = Picture("new/old", ("a", "b"), np.array([0, 1]), np.eye(2), np.eye(2))
    return Details(results, picture, None, nearest)


@pytest.mark.parametrize(
    ("fields", "of_base"),
    [
        ({}, {}),
        ({"scores": {}, "intervals": {}, "counts": {}, "over": None}, {"over": {"map": "classes"}}),
        ({"environment": {}, "cost": {"parameters": 3, "bytes_after": 1.0}}, {"cost": {}}),
        ({"recipe": {"epochs": 3}}, {"recipe": {"epochs": 4}}),
        (
            {"backfilling": {"old": "old", "new": "new", "orders": {"random": ORDER}}},
            {"backfilling": {"old": "old", "new": "new", "groups": ["a"], "points": 101}},
        ),
    ],
)
def test_what_is_parted_comes_back(fields, of_base, tmp_path):
    """Whatever the base has more, less or otherwise; intervals to nine decimals."""
    whole, path = record(**fields), tmp_path / "b" / "m" / "seed-0.json"
    base = record(**of_base)
    write_slim(path, whole, base, pack(details()), pack(details(own=2)))
    got = read_record(path)
    expected = whole.as_json()
    for found in expected["intervals"].values():
        for metric, span in found.items():
            found[metric] = span and [round(end, 9) for end in span]
    left_out = {"details", "seal", *layout.VERDICTS}
    for field in expected.keys() - left_out:
        assert got.as_json()[field] == expected[field], field
    assert path.stat().st_size < len(json.dumps(expected))


def test_verdicts_follow_from_the_scores(tmp_path):
    path = tmp_path / "b" / "m" / "seed-0.json"
    whole = make_record("bct", cross=0.6, own=0.95)
    write_slim(path, whole, make_record("independent"), pack(details()), pack(details(own=2)))
    assert not any(name in json.loads(path.read_text()) for name in layout.VERDICTS)
    got = read_record(path)
    assert (got.compatible, got.not_hurting) == ({METRIC: True}, {METRIC: True})
    assert got.update_gain[METRIC] == pytest.approx(0.25)


@pytest.fixture
def slim(tmp_path) -> tuple[Path, Details, Details]:
    """A record of the first seed, its details before, and those of its base."""
    path = tmp_path / "b" / "m" / "seed-0.json"
    own, other = details(), details(own=2)
    write_slim(path, record(), record(method="independent"), pack(own), pack(other))
    return path, own, other


def test_details_keep_the_main_metric_and_what_the_base_has_once(slim):
    path, own, other = slim
    found = find_details(read_record(path), path)
    assert found is not None and set(found.results) == {(case, METRIC) for case in CASES}
    for key, result in found.results.items():
        assert result.values.tolist() == own.results[key].values.tolist()
        assert result.identity.tolist() == own.results[key].identity.tolist()
    assert found.left_out == ("results of other metrics",)
    assert details_path(path).stat().st_size <= LIMIT
    # The same record as its own base writes none of its results.
    same = path.parent.with_name("independent") / path.name
    write_slim(same, record(), record(), pack(other), pack(other))
    assert details_path(same).stat().st_size < details_path(path).stat().st_size
    assert find_details(read_record(same), same).results.keys() == found.results.keys()


def test_the_queries_looked_at_stay_those_that_the_bounds_choose(slim):
    path, own, other = slim
    found = find_details(read_record(path), path, with_results=False)
    chosen = {int(other.nearest.queries[place]) for _, place in choose_queries(other.nearest)}
    assert set(found.nearest.queries.tolist()) == chosen
    for place, query in enumerate(found.nearest.queries.tolist()):
        before = own.nearest.queries.tolist().index(query)
        assert found.nearest.items[:, place].tolist() == own.nearest.items[:, before].tolist()
        assert found.nearest.right[:, place].tolist() == own.nearest.right[:, before].tolist()
    later = path.with_name("seed-1.json")
    write_slim(later, record(seed=1), record(seed=1), pack(own), pack(other))
    found = find_details(read_record(later), later)
    assert (found.nearest, found.picture) == (None, None)


def test_all_results_by_query_are_read_where_they_lie_beside(slim):
    path, own, _ = slim
    packed = pack(own)
    write_slim(path, record(queries=_digest(packed)), record(), packed, pack(details(own=2)))
    assert ("new/old", "map") not in find_details(read_record(path), path).results
    write_queries(path, packed)
    assert find_details(read_record(path), path).results.keys() == own.results.keys()
    queries_path(path).write_bytes(pack(details(own=3)))
    with pytest.raises(BenchError, match="hashes differ"):
        find_details(read_record(path), path)


def _digest(packed: bytes) -> str:
    from benchmark.config.files import bytes_digest

    return bytes_digest(packed)


def test_bases_that_are_missing_or_edited_are_told(slim):
    path, *_ = slim
    base, of_details = bases(path)
    text, packed = base.read_text(), of_details.read_bytes()
    base.write_text(text.replace('"dim":', '"dam":'))
    with pytest.raises(BenchError, match=r"base-.*json: edited since it was written"):
        read_record(path)
    base.unlink()
    with pytest.raises(BenchError, match=r"base-.*json: missing; it lies beside"):
        read_record(path)
    base.write_text(text)
    found = read_record(path)
    of_details.write_bytes(packed[:-4] + b"\0" * 4)
    with pytest.raises(BenchError, match=r"base-.*xz: edited since it was written"):
        find_details(found, path)
    of_details.unlink()
    with pytest.raises(BenchError, match=r"base-.*xz: missing; it lies beside"):
        find_details(found, path)


def test_without_its_details_a_record_has_its_scores_and_no_curves(slim):
    path, *_ = slim
    whole = read_record(path)
    assert whole.run.stages and check_digest(whole, path)
    details_path(path).unlink()
    less = read_record(path)
    assert (less.scores, dict(less.run.stages)) == (whole.scores, {})
    with pytest.raises(BenchError, match="missing, though"):
        check_digest(less, path)


@pytest.mark.parametrize(
    "edit",
    [
        {"base": "x"}, {"base": "../../0123456789"}, {"base": 7}, {"absent": []},
        {"scores": {"new/old": 3}}, {"counts": {"new/old": "old/odd"}}, {"run": None},
        {"upper": "upper-none"}, {"absent": {"bounds": ["lower"]}},
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_one_line(edit, slim):
    path, *_ = slim
    from support.stored import sealed

    path.write_text(json.dumps(sealed(json.loads(path.read_text()) | edit)))
    with pytest.raises(BenchError, match=path.name) as caught:
        read_record(path)
    assert "\n" not in str(caught.value)


def test_a_record_that_says_all_needs_no_base(tmp_path):
    path = tmp_path / "b" / "m" / "seed-0.json"
    write_record(path, record())
    assert bases(path) == [] and read_record(path).scores == record().scores


def test_committed_records_are_small():
    """At most 12 KiB each, and as much of details."""
    records = [*RESULTS.rglob("measured/**/seed-*.json")]
    assert len(records) > 1000
    assert max(path.stat().st_size for path in records) <= LIMIT
    assert max(details_path(path).stat().st_size for path in records) <= LIMIT


def test_small_details_lose_queries_last():
    """Of results that do not fit the same queries stay in every record."""
    many = details(200_000)
    results = {key: result for key, result in many.results.items() if key[1] == METRIC}
    from benchmark.records.details import unpack_details

    packed = pack(replace(many, results=results), CASES, LIMIT, small=True)
    kept = unpack_details(Path("x"), packed).results
    again = pack(Details(kept), CASES, LIMIT // 2, small=True)
    fewer = unpack_details(Path("x"), again).results
    for key in fewer:
        assert set(fewer[key].rows) < set(kept[key].rows)
        places = np.searchsorted(kept[key].rows, fewer[key].rows)
        assert fewer[key].values.tolist() == kept[key].values[places].tolist()
