"""The details file: what goes in comes out, it stays small, and bad ones are refused."""

from __future__ import annotations

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from support.stored import read_details

from benchmark.errors import BenchError
from benchmark.records import details, limits
from benchmark.records.details import Details, Nearest, Ordering, Picture, QueryResults
from benchmark.records.slim import _xz, pack

MAIN = ("new/old", "new/new", "old/old")


def query_results(values, identity=None) -> QueryResults:
    n = len(values)
    identity = np.arange(n) // 4 if identity is None else identity
    return QueryResults(np.asarray(values, float), identity, np.arange(n), n)


def made(n: int, cases=MAIN, seed: int = 0) -> Details:
    rng = np.random.default_rng(seed)
    found = {}
    for case in cases:
        found[case, "map"] = query_results(rng.beta(0.7, 0.7, n))
        found[case, "cmc_at_1"] = query_results(rng.random(n) < 0.6)
    return Details(found)


@pytest.fixture
def back(tmp_path):
    """Packs and reads back."""

    def through(given: Details, **options) -> Details:
        path = tmp_path / "seed-0.details.gz"
        path.write_bytes(pack(given, MAIN, **options))
        return read_details(path)

    return through


def test_draws_of_a_threshold_come_back(back, tmp_path) -> None:
    """In steps of a 255th of their range; equal ones to the last bit, and gone where rows are."""
    draws = np.random.default_rng(0).normal(0.7, 0.05, 500)
    results = {
        ("new/old", "tar_at_far_1e-3"): replace(query_results(np.ones(40)), draws=draws),
        ("new/new", "tar_at_far_1e-3"): replace(query_results(np.ones(40)), draws=np.full(9, 0.3)),
        ("old/old", "map"): query_results(np.ones(40)),
    }
    got = back(Details(results)).results
    np.testing.assert_allclose(
        got["new/old", "tar_at_far_1e-3"].draws, draws, atol=np.ptp(draws) / 509
    )
    assert (got["new/new", "tar_at_far_1e-3"].draws == 0.3).all()
    assert got["old/old", "map"].draws is None
    rng = np.random.default_rng(1)
    many = replace(query_results(rng.random(60_000)), draws=draws)
    short = back(Details({("new/old", "tar_at_far_1e-3"): many}), limit=20_000).results
    (left,) = short.values()
    assert len(left.rows) < 60_000 and left.draws is None
    for words, damage in {
        "draws0: expected uint8": lambda h, a: a.update(draws0=np.zeros(3, "f4")),
        "draws0: expected draws from low": lambda h, a: h["answers"][0].update(low=1.0),
        "missing array 'draws0'": lambda h, a: a.pop("draws0"),
    }.items():
        path = tmp_path / "seed-1.details.gz"
        path.write_bytes(edited(damage, Details(results)))
        with pytest.raises(BenchError, match=words):
            read_details(path)


def test_what_goes_in_comes_out(back) -> None:
    rng = np.random.default_rng(0)
    picture = Picture(
        "new/old", ("a", "<b>"), np.array([0, 1, 1]), rng.random((3, 2)), np.eye(3, 2)
    )
    order = Ordering(rng.random(5), rng.random(5), -0.25, 100)
    given = made(41)
    some = rng.integers(0, 70_000, (2, 4, 3))
    nearest = Nearest(("old/old", "new/old"), np.array([1, 3, 7, 65_536]), some, some % 2 > 0)
    got = back(Details(given.results, picture, order, nearest, ("something",)))
    assert got.nearest is not None
    assert got.nearest.cases == nearest.cases
    for name in ("queries", "items", "right"):
        assert (getattr(got.nearest, name) == getattr(nearest, name)).all()
    assert got.left_out == ("something",)
    assert got.picture is not None
    assert got.ordering is not None
    assert (got.picture.case, got.picture.classes) == ("new/old", ("a", "<b>"))
    assert got.picture.label.tolist() == [0, 1, 1]
    np.testing.assert_allclose(got.picture.old, picture.old, atol=1e-5)
    np.testing.assert_allclose(got.picture.new, picture.new, atol=1e-5)
    np.testing.assert_allclose(got.ordering.true, order.true, atol=1e-5)
    assert (got.ordering.tau, got.ordering.n_items) == (-0.25, 100)
    assert got.results.keys() == given.results.keys()
    for key, found in got.results.items():
        want = given.results[key]
        assert found.identity.tolist() == want.identity.tolist()
        assert found.rows.tolist() == list(range(41))
        if key[1] == "cmc_at_1":
            assert (found.values.tolist(), found.step) == (want.values.tolist(), 0.0)
        else:
            assert np.abs(found.values - want.values).max() < found.step == 1 / 255


def test_steps_are_unbiased_and_keep_ends_and_equals(back) -> None:
    # All at one value that no step meets: plain rounding would be off by up to half a step.
    n = 20_000
    given = Details(
        {
            ("new/old", "map"): query_results(np.full(n, 0.5)),
            ("new/new", "map"): query_results(np.r_[np.full(n - 2, 0.5), 0.0, 1.0]),
        }
    )
    got = back(given).results
    assert abs(got["new/old", "map"].values.mean() - 0.5) < 5e-5
    left, right = got["new/old", "map"].values, got["new/new", "map"].values
    assert (left[:-2] == right[:-2]).all()
    assert right[-2:].tolist() == [0.0, 1.0]


def test_same_bytes_every_time() -> None:
    assert pack(made(300), MAIN) == pack(made(300), MAIN)
    # Two metadata: a hash table's order would be another one in half of the calls.
    with_record = {pack(made(300), MAIN, record='{"run": "ü"}') for _ in range(12)}
    assert len(with_record) == 1
    raw = gzip.decompress(with_record.pop())
    assert [*limits.metadata_of(Path("x"), raw)] == ["details", "record"]


@pytest.mark.parametrize(("n", "cases"), [(7000, 30), (60_000, 3), (200_000, 3)])
def test_stays_small_and_says_what_is_left_out(back, n, cases) -> None:
    names = [*MAIN, *(f"{i}/{j}" for i in range(6) for j in range(5))][:cases]
    got = back(made(n, names))
    assert {case for case, _ in got.results} >= set(MAIN)
    assert got.left_out
    for found in got.results.values():
        assert found.rows.tolist() == details.kept_rows(n, len(found.rows)).tolist()


def test_fewer_queries_are_part_of_more() -> None:
    few, many = details.kept_rows(1000, 100), details.kept_rows(1000, 500)
    assert set(few) <= set(many)
    assert (np.diff(few) > 0).all()


def test_identities_have_one_number_however_many_are_kept(back) -> None:
    n = 60_000
    short = back(made(n)).results["new/old", "map"]
    assert len(short.rows) < n
    assert short.identity.tolist() == (short.rows // 4).tolist()


def test_what_pages_draw_is_left_out_last(back) -> None:
    """As of a record whose curves nearly fill the file."""
    rng = np.random.default_rng(1)
    label, xy = rng.integers(0, 3, 300), rng.random((2, 300, 2))
    drawn = Picture("new/old", ("a", "b", "c"), label, *xy)
    order = Ordering(*rng.random((2, 300)), 0.4, 900)
    left_out = "all queries", "the picture", "the order of items"
    whole = len(pack(Details({}, drawn, order, left_out=left_out[:1]), MAIN))
    part = len(pack(Details({}, None, order, left_out=left_out[:2]), MAIN))
    given = replace(made(400), picture=drawn, ordering=order)
    for limit, n in ((whole, 1), (whole - 1, 2), (part - 1, 3)):
        got = back(given, limit=limit)
        assert not got.results and got.left_out == left_out[:n]
        assert (got.picture is None, got.ordering is None) == (n > 1, n > 2)


def test_cannot_be_made_so_small() -> None:
    with pytest.raises(ValueError, match="10 bytes"):
        pack(made(10), limit=10)


def edited(change, given: Details | None = None) -> bytes:
    """A details file whose header or arrays were changed by hand."""
    raw = gzip.decompress(pack(given or made(20), MAIN))
    from safetensors.numpy import load

    arrays = load(raw)
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["details"])
    change(header, arrays)
    return gzip.compress(save(arrays, {"details": json.dumps(header)}))


def _looked(header, arrays, shape) -> None:
    header["nearest"] = ["old/old", "new/old"]
    arrays["looked_at"] = np.array([3], np.uint32)
    arrays |= {"nearest": np.ones(shape, np.uint32), "right": np.full(shape, 7, np.uint8)}


def test_refused(tmp_path) -> None:
    good = pack(made(20), MAIN)
    bad = {
        "not xz": b"neither of the two",
        "xz: the file ends before": _xz(b"\0" * 99)[:-9],
        "xz: the file goes on": _xz(b"\0" * 99) + b"\0" * 8,
        "to more than 1048576": _xz(bytes(1 << 24)),
        "not xz: Memory usage limit": lzma.compress(bytes(99), preset=9),
        "not gzip: the file ends before": good[:-20],
        "not gzip: the file goes on": good + good,
        "unpacks to more": gzip.compress(bytes(1 << 24)),
        "not a details file": gzip.compress(b"\x05" + bytes(40)),
        "expected at most": bytes(limits.MOST_PACKED + 1),
        "schema: expected 4, got 9": edited(lambda h, a: h.update(schema=9)),
        "unknown key 'extra'": edited(lambda h, a: h.update(extra=1)),
        "missing array 'answers0'": edited(lambda h, a: a.pop("answers0")),
        "answers0: expected uint8": edited(lambda h, a: a.update(answers0=np.zeros(20, "f4"))),
        "answers0: expected uint8 [20]": edited(lambda h, a: a.update(answers0=np.zeros(3, "u1"))),
        "expected at most 1 queries": edited(
            lambda h, a: h["queries"]["queries0"].update(n_queries=1)
        ),
        "n_queries: expected at most": edited(
            lambda h, a: h["queries"]["queries0"].update(n_queries=10**15)
        ),
        "missing array 'looked_at'": edited(lambda h, a: h.update(nearest=["old/old"])),
        "nearest: expected uint32 [2, 1, None]": edited(lambda h, a: _looked(h, a, (1, 1, 5))),
        "right: expected 0 or 1, got 7": edited(lambda h, a: _looked(h, a, (2, 1, 5))),
        "levels: expected at least 1": edited(lambda h, a: h["answers"][0].update(levels=0)),
        "no 'elsewhere'": edited(lambda h, a: h["answers"][0].update(queries="elsewhere")),
        "an array comes twice": edited(lambda h, a: h["answers"].append(h["answers"][0])),
        "expected at most 20 sets": edited(
            lambda h, a: h["queries"].update(
                dict.fromkeys(map(str, range(20)), h["queries"]["queries0"])
            )
        ),
        "left_out.0: expected text without control": edited(
            lambda h, a: h.update(left_out=["\x1b"])
        ),
        "scale: expected at most": edited(lambda h, a: h["answers"][0].update(scale=1e7)),
        "nested more than": edited(lambda h, a: h.update(left_out=json.loads("[" * 30 + "]" * 30))),
        "value above its scale": edited(lambda h, a: h["answers"][0].update(levels=2)),
        "missing array 'xy'": edited(lambda h, a: h.update(case="new/old")),
        "label: expected below 0": edited(
            lambda h, a: (
                h.update(case="new/old"),
                a.update(xy=np.zeros((2, 4), "u2"), label=np.zeros(2, "u1")),
            )
        ),
    }
    deep = b'{"__metadata__":{"details":"x"},"a":' + b"[" * 100_000
    bad["not a details file"] = gzip.compress(len(deep).to_bytes(8, "little") + deep)
    for words, raw in bad.items():
        path = tmp_path / "seed-0.details.gz"
        path.write_bytes(raw)
        with pytest.raises(BenchError) as caught:
            read_details(path)
        text = str(caught.value)
        assert words in text
        assert text.startswith(str(path))
        assert "\n" not in text
