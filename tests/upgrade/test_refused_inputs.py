"""Numbers and judgements that nobody can mean: one line, from the command and from Python."""

import math
import re

import numpy as np
import pytest
import typer
import typer.main
from support.command import call, verbs
from support.upgrades import planted, write_upgrade

import benchmark
from benchmark.cli.app import app
from benchmark.errors import BenchError
from benchmark.upgrade.formats.rows import ArrayRows


@pytest.fixture(scope="module")
def made():
    return planted(n=200, q=20, dim=8)


def refused(made, said, **changes):
    with pytest.raises(BenchError, match=said) as caught:
        benchmark.upgrade(**made.whole(**changes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["old_gallery", "new_gallery", "queries", "old_queries"])
@pytest.mark.parametrize("length", [1e-14, 1e-30, 1e30])
@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_lengths_whose_squares_float32_cannot_hold(made, name, length, distance):
    vectors = made.whole()[name].copy()
    vectors[3] *= length / np.linalg.norm(vectors[3])
    lengths = rf"1e-12 to 1e\+18 for {distance}"
    said = rf"{name}: vector: expected lengths of {lengths}, got 1e[-+]\d+ in row 3"
    refused(made, said, distance=distance, **{name: vectors})


def test_a_row_of_an_array_is_named_whatever_the_blocks():
    vectors = np.ones((40, 3), np.float32)
    vectors[37, 1] = math.inf
    with pytest.raises(BenchError, match=r"x: expected finite .* in row 37$"):
        list(ArrayRows("x", vectors).vectors(10, 5))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, 0.0])
@pytest.mark.parametrize(("name", "said"), [
    ("throughput", "a finite number above 0, got"), ("price", "a finite number of 0 or more, got"),
    ("wanted", "a"),
])  # fmt: skip
def test_numbers_of_the_call(made, name, said, number):
    if name != "price" or number:
        refused(made, f"{name}: expected {said}", **{name: number})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *((name, "2", "a number, got '2'")
          for name in ("wanted", "worthwhile", "throughput", "price", "items", "seed")),
        ("threshold", ["a"], "a number, got 'a'"), ("threshold", 0.5, "a list of numbers, got 0.5"),
        ("seed", -1, "a whole number of 0 or more, got -1"),
        ("seed", 1.5, "a whole number of 0 or more, got 1.5"),
        ("index", "hnsw", "True or False, got 'hnsw'"),
        ("old_model", "no", "True or False, got 'no'"),
        ("slices", {"a": [1]}, "a file, got {'a': [1]}"),
        ("old_gallery", None, "vectors, got None"),
    ],
)  # fmt: skip
def test_values_of_another_kind_in_the_call(made, name, value, said):
    refused(made, re.escape(f"{name}: expected {said}"), **{name: value})


@pytest.mark.parametrize(
    ("distance", "number", "said"),
    [
        ("l2", -12.0, "a distance of 0 or more, got -12"),
        ("cosine", 5.0, "a cosine in [-1, 1], got 5"),
        (None, -1.5, "a cosine in [-1, 1], got -1.5"),
    ],
)  # fmt: skip
def test_a_cutoff_is_one_of_its_distance(made, distance, number, said):
    refused(made, re.escape(f"threshold: expected {said}"), threshold=[number], distance=distance)


def test_a_cutoff_of_the_command_is_told_by_its_option(made, tmp_path):
    code, _, err = call(*write_upgrade(tmp_path, made), "--threshold=1.5")
    assert (code, err) == (2, "bench: --threshold: expected a cosine in [-1, 1], got 1.5\n")


def test_an_option_that_is_none(made):
    refused(made, "unknown option of upgrade 'qrls'; did you mean 'qrels'", qrls={})


@pytest.mark.parametrize("of", ["vector_column", "id_column"])
def test_a_column_of_a_file_without_any(made, tmp_path, of):
    """Named for this one; a name for all inputs is of those that have columns."""
    np.save(path := tmp_path / "q.npy", made.whole()["queries"])
    said = rf"{of}: .*q\.npy holds one array: expected no 'queries=emb'"
    refused(made, said, queries=path, **{of: {"queries": "emb"}})
    refused(made, r"q\.npy holds one array: expected no column, got 'emb'", queries=path,
            **{of: "emb"})  # fmt: skip


def test_a_column_of_those_files_that_have_one(made, tmp_path):
    given = made.whole()
    np.save(queries := tmp_path / "q.npy", given["queries"])
    np.savez(old := tmp_path / "old.npz", emb=given["old_gallery"], other=given["new_gallery"])
    whole = made.whole(queries=queries, old_gallery=old, maps="procrustes", vector_column="emb")
    benchmark.upgrade(**whole)


@pytest.mark.parametrize("words", ["", "linear,", ["linear", " "]])
def test_maps_have_names(made, words):
    refused(made, "maps: expected quick, all or names with commas, got", maps=words)


FLOATS = [
    (words, max(param.opts, key=len))
    for words, command in verbs(typer.main.get_command(app))
    for param in command.params
    if "float" in str(getattr(param, "annotation", "")) or param.name in
    ("price", "throughput", "wanted", "hours", "older_than")
]  # fmt: skip


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("words", "option"), FLOATS)
def test_numbers_of_every_verb(words, option, text):
    code, out, err = call(*words, f"{option}={text}")
    assert (code, out) == (2, "") and err.count("\n") == 1 and option in err


def test_there_are_such_options():
    assert {option for _, option in FLOATS} >= {"--price", "--throughput", "--wanted", "--hours"}


@pytest.mark.parametrize(
    "gain", [math.inf, -math.inf, math.nan, "x", "2", None, [1], {}, 10**400, 1j],
    ids=lambda gain: repr(gain)[:12],
)  # fmt: skip
def test_gains_that_are_none(made, gain):
    said = "qrels: gain of item 5 for query 0: expected a finite number, got "
    refused(made, said, qrels={**made.qrels, 0: {5: gain}})


def test_judgements_in_other_forms(made):
    said = "expected one gain of item 7 for query 0, got 1 and 2"
    refused(made, said, qrels={**made.qrels, 0: {7: 1.0, "7": 2.0}})
    refused(made, said, qrels={**made.qrels, 0: {7: 1.0}, "0": {7: 2}})
    for value in ([1, 2], None, 3, "ab"):
        refused(made, "query -> item -> gain, got .* for query 0", qrels={0: value})
    refused(made, "qrels: expected a file, or query -> item -> gain, got", qrels=[("0", "5", 1)])
    same = {**made.qrels, 0: {7: np.float32(1), "7": True}}
    assert benchmark.upgrade(**made.whole(qrels=same)).document["inputs"]["pairs"] == 20


@pytest.mark.parametrize(("change", "said"), [
    ({"maps": "bct"}, "bct"), ({"maps": "lce"}, "more than pairs"),
    ({"qrels": {}}, "expected a relevant item"),
    ({"qrels": {0: {10**6: 1.0}}}, "item: expected ids of the vectors, .* but '1000000'"),
    ({"ids": {"galery": [1]}}, "galery"),
    ({"ids": {"queries": ["a"] * 20}}, "^queries: ids: expected each once, got 'a' in rows 0 and"),
])  # fmt: skip
def test_names_and_ids_that_are_unknown(made, change, said):
    refused(made, said, **change)
