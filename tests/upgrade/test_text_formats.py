"""Vectors in text, as vendors' APIs, search engines and PostgreSQL give them."""

import json
import tracemalloc

import numpy as np
import pytest
from support.vector_files import FILES, ROWS, TEXT, refuses

from benchmark.errors import BenchError
from benchmark.upgrade.formats import open_vectors

LISTS = ROWS.tolist()
FORMS = {
    "openai.json": (
        {"object": "list", "model": "m", "usage": {"total_tokens": 3}, "data": [
            {"object": "embedding", "index": k, "embedding": v} for k, v in enumerate(LISTS)
        ]}, "index", list(range(12)),
    ),
    "elastic.json": (
        {"took": 1, "_shards": {"total": 1}, "hits": {"total": {"value": 12}, "hits": [
            {"_index": "i", "_id": t, "_source": {"title": "x", "body_vector": v}}
            for t, v in zip(TEXT, LISTS, strict=True)
        ]}}, "", TEXT,
    ),
    "pinecone-fetch.json": (
        {"namespace": "", "vectors": {
            t: {"id": t, "values": v, "metadata": {"n": 1}}
            for t, v in zip(TEXT, LISTS, strict=True)
        }}, "", TEXT,
    ),
    "pinecone-query.json": (
        {"matches": [{"id": t, "values": v} for t, v in zip(TEXT, LISTS, strict=True)]}, "", TEXT,
    ),
    "qdrant.json": (
        {"result": {"points": [{"id": k, "payload": None, "vector": v}
                               for k, v in enumerate(LISTS)]}, "status": "ok"}, "", list(range(12)),
    ),
    "plain.json": ([{"key": t, "emb": v} for t, v in zip(TEXT, LISTS, strict=True)], "key", TEXT),
    "pinecone-tags.json": (
        {"vectors": {
            t: {"metadata": {"tags": [1, 2]}, "values": v, "sparseValues": {
                "indices": [0, 4], "values": [0.5, 0.2]}} for t, v in zip(TEXT, LISTS, strict=True)
        }}, "", TEXT,
    ),
    "authors.json": (
        [{"meta": {"author": {"id": 7}}, "docid": t, "v": v}
         for t, v in zip(TEXT, LISTS, strict=True)], "docid", TEXT,
    ),
    "named.json": (
        [{"id": t, "vector": {"default": v, "n": 3}} for t, v in zip(TEXT, LISTS, strict=True)],
        "", TEXT,
    ),
}  # fmt: skip
"""File -> content as the program gives it, the column of ids that is told, the ids."""


def read(path, **options):
    source = open_vectors(path, **options)
    return None if source.ids is None else source.ids.tolist(), source.read(), source.told


@pytest.mark.parametrize("name", FORMS)
def test_what_programs_give(name, tmp_path):
    content, column, ids = FORMS[name]
    (tmp_path / name).write_text(json.dumps(content, indent=1 if "open" in name else None))
    found, rows, told = read(tmp_path / name)
    np.testing.assert_array_equal(rows, ROWS)
    assert found == ids
    assert [line for line in told if "ids are" in line] == (
        [f"{tmp_path / name}: ids are those of '{column}'"] if column else []
    )


def test_json_lines(tmp_path):
    """A document a line; empty lines."""
    path = tmp_path / "a.jsonl"
    lines = []
    for t, v in zip(TEXT, LISTS, strict=True):
        lines += [json.dumps({"doc_id": t, "my_vec": v}), ""]
    path.write_text("\ufeff" + "\n".join(lines))
    ids, rows, told = read(path)
    np.testing.assert_array_equal(rows, ROWS)
    assert ids == TEXT and told == [
        f"{path}: vectors are those of 'my_vec'", f"{path}: ids are those of 'doc_id'",
    ]  # fmt: skip
    assert read(f"{path}:my_vec", id_column="-") == (None, pytest.approx(ROWS), [])
    two = [json.dumps({"id": k, "a": v, "b": v[::-1]}) for k, v in enumerate(LISTS)]
    (tmp_path / "b.ndjson").write_text("\n".join(two))
    with pytest.raises(BenchError, match="got a, b; FILE:FIELD or --vector-column names one"):
        open_vectors(tmp_path / "b.ndjson")
    np.testing.assert_array_equal(read(tmp_path / "b.ndjson", vector_column="b")[1], ROWS[:, ::-1])


@pytest.mark.parametrize(("own", "ids"), [
    ({}, TEXT), ({"page": "x"}, TEXT), ({"id": None}, TEXT), ({"_id": None}, TEXT[::-1]),
])  # fmt: skip
@pytest.mark.parametrize("action", ["index", "create"])
def test_elastic_s_bulk_form(action, own, ids, tmp_path):
    """A line before each document has its id, which a document's own comes before."""
    lines = []
    for t, back, v in zip(TEXT, TEXT[::-1], LISTS, strict=True):
        mine = {name: each or (t if name == "id" else back) for name, each in own.items()}
        lines += [{action: {"_index": "i", "_id": back if "id" in own else t}}, mine | {"vec": v}]
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, lines)))
    found, rows, _ = read(tmp_path / "a.ndjson")
    np.testing.assert_array_equal(rows, ROWS)
    assert found == ids
    without = [{action: {"_index": "i"}} if action in each else each for each in lines]
    (tmp_path / "b.ndjson").write_text("\n".join(map(json.dumps, without)))
    assert read(tmp_path / "b.ndjson")[0] == (ids if {"id", "_id"} & own.keys() else None)


def test_files_of_postgres():
    """``COPY TO`` of a table of pgvector, with a tab and a backslash in another column."""
    found, rows, _ = read(FILES / "pgvector.copy", id_column="1")
    assert found == TEXT
    np.testing.assert_array_equal(rows, ROWS)
    with pytest.raises(BenchError, match=r"ids: expected one column of them, got 1, 2"):
        read(FILES / "pgvector.copy")
    source = open_vectors(FILES / "pgvector.copy", id_column="2")
    assert source.ids[0] == "tab\there, back\\slash doc-00-of-a-long-name"


def test_null_is_no_id(tmp_path):
    (tmp_path / "a.copy").write_text("a\t[1,2]\n\\N\t[1,2]\n")
    with pytest.raises(BenchError, match=r"expected an id in each row, .* got none in row 1"):
        read(tmp_path / "a.copy", id_column="1")


@pytest.mark.parametrize(("ending", "separator", "form"), [
    (".csv", ",", '"[{}]"'), (".tsv", "\t", "[{}]"), (".tsv", "\t", "{{{}}}"),
])  # fmt: skip
def test_lists_in_cells(ending, separator, form, tmp_path):
    path = tmp_path / f"a{ending}"
    between = " " if ending == ".tsv" and form == "[{}]" else ", "
    lines = [separator.join(["_id", "text", "embedding"])]
    for t, v in zip(TEXT, LISTS, strict=True):
        lines.append(separator.join([t, "a word", form.format(between.join(map(str, v)))]))
    path.write_text("\r\n".join(lines))
    ids, rows, _ = read(path)
    np.testing.assert_array_equal(rows, ROWS)
    assert ids == TEXT
    np.testing.assert_array_equal(np.concatenate(list(open_vectors(path).vectors(5, 3, 11))),
                                  ROWS[3:11])  # fmt: skip


FIRST = '{"id": 1, "v": [1, 2]}\n'
DAMAGED = {
    "ragged.jsonl": (FIRST + '{"id": 2, "v": [1]}\n', "expected 2 numbers, got 1 in row 1"),
    "missing.jsonl": (FIRST + '{"id": 2}\n', "expected 2 numbers, got none in row 1"),
    "words.jsonl": (FIRST + '{"id": 2, "v": [1, "x"]}\n', "expected numbers, got something"),
    "nulls.jsonl": (FIRST + '{"id": 2, "v": [1, null]}\n', "row 1"),
    "nan.jsonl": (FIRST + '{"id": 2, "v": [1, NaN]}\n', "expected finite numbers"),
    "ids.jsonl": (FIRST + '{"id": null, "v": [1, 2]}\n', "id: expected an id in each row"),
    "kinds.jsonl": (FIRST + '{"id": "x", "v": [1, 2]}\n', "a int as in the first, got 'x'"),
    "cut.jsonl": (FIRST + '{"id": 2, "v": [1', "line 2: expected a JSON object"),
    "deep.jsonl": ("[" * 100_000, "line 1: expected a JSON object"),
    "list.jsonl": ("[1, 2]\n", "expected an object, got list"),
    "empty.jsonl": ("", r"expected vectors \[n, dim\]"),
    "none.jsonl": ('{"id": 1}\n', "expected a field with a list of numbers, got id"),
    "cut.json": ('[{"id": 1, "v": [1, 2]}, {"id": 2', "expected JSON, got what cannot be read"),
    "deep.json": ('{"a":' * 100_000, "expected an array of objects|cannot be read"),
    "number.json": ("3", "expected an array of objects"),
    "latin.csv": (b"id,v\n\xe4,\"[1, 2]\"\n", "cannot be read"),
    "cells.csv": ('id,v\n1,"[1, 2]"\n2\n', "expected 2 cells between commas .*, got 1 in row 1"),
    "semicolons.csv": ('id;v\n1;"[1, 2]"\n', "expected 1 cells between commas .*, got 2 in row 0"),
    "empty.csv": ('id,v\na,"[1]"\n,"[3]"\n', "an id in each row, got empty text in row 1"),
    "quote.csv": ('id,v\n1,"[1, 2]\n', "cannot be read|cells"),
    "plain.csv": ("id,a,b\n1,2,3\n", "expected a field with a list of numbers, got id, a, b; FILE"),
    "wide.csv": ("id,d0,d1,d2\n1,2,3,4\n", "a vector's numbers have to be in one column, as a"),
    "twice.csv": ('id,id,v\n1,2,"[1, 2]"\n', "expected each column once, got 'id' twice"),
    "long.jsonl": (FIRST + '{"id": 18446744073709551615, "v": [1, 2]}\n', "whole numbers below 2"),
    "zero.jsonl": ('{"id": "a\\u0000", "v": [1, 2]}\n', "text without a zero byte, got one"),
    "open.copy": ("a\t[1,2]\nb\t[1,2", "expected 2 numbers, got none in row 1"),
    "nul.tsv": ("id\tv\n1\t[1, 2]\n2\t[1\0, 2]\n", "row 1|cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_text_ends_in_one_line(name, tmp_path):
    content, said = DAMAGED[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refuses(tmp_path / name, f"{name}: .*({said})")


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv"])
def test_memory_does_not_grow_with_the_text(ending, tmp_path):
    peaks = []
    for n in (500, 4000):
        path = tmp_path / f"{n}{ending}"
        rows = np.random.default_rng(0).standard_normal((n, 64)).round(4).tolist()
        if ending == ".json":
            path.write_text(json.dumps([{"id": k, "v": v} for k, v in enumerate(rows)]))
        elif ending == ".jsonl":
            path.write_text(
                "".join(json.dumps({"id": k, "v": v}) + "\n" for k, v in enumerate(rows))
            )
        else:
            lines = (f'{k},"{v}"\n' for k, v in enumerate(rows))
            path.write_text("id,v\n" + "".join(lines))
        source = open_vectors(path)
        sum(len(part) for part in source.vectors(50))  # whatever is loaded once is
        tracemalloc.start()
        assert sum(len(part) for part in source.vectors(50)) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000
