"""Records: one schema is read, what is damaged is passed over with one line."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from itertools import product
from pathlib import Path

import jsonschema
import pytest
from support.command import call
from support.stored import plain, sealed, write

from benchmark import BenchError, load
from benchmark.errors import EditedError, PassedOverWarning
from benchmark.records.details_files import details_path
from benchmark.records.files import (
    find_records,
    read_record,
    read_records,
    study_records,
    write_record,
)
from benchmark.records.record import SCHEMA, json_schema, record_path


@pytest.mark.parametrize("schema", range(1, SCHEMA))
def test_an_older_schema_is_one_line_that_says_what_to_do(schema, tmp_path) -> None:
    path = write(tmp_path / "seed-0.json", plain() | {"schema": schema})
    code, out, err = call("table", path)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert f"schema: expected {SCHEMA}, got {schema}, of an earlier version" in line
    assert "`bench run` makes it anew" in line


def test_json_schema_accepts_records_and_refuses_what_reading_refuses(tmp_path) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(plain())
    for field, bad in (("seed", "0"), ("status", "good"), ("scores", {"new/old": {"map": "1"}})):
        value = plain() | {field: bad}
        assert not validator.is_valid(value)
        with pytest.raises(BenchError, match=field):
            read_record(write(tmp_path / "seed-0.json", value))
    assert set(schema["properties"]) == {*plain(), "seal"}
    described = [
        name for name, about in schema["properties"].items()
        if about.get("description") or "$ref" in about or "anyOf" in about
    ]  # fmt: skip
    assert all(part.get("description") for part in schema["$defs"].values() if "properties" in part)
    cost = schema["$defs"]["Cost"]["properties"]
    assert all(about.get("description") for about in cost.values())
    assert {"cost", "details", "parameters", "run", "adapter", "intervals"} <= set(described)


def changed(**fields) -> str:
    return json.dumps(sealed(plain() | fields))


BAD = {
    "{": "not valid JSON",
    "[1, 2]": f"schema: expected {SCHEMA}, got 'list'",
    "\x00\xff": "not valid JSON",
    "[" * 100_000: "not valid JSON",
    '{"schema": 9}': f"schema: expected {SCHEMA}, got 9",
    '{"schema": true}': f"schema: expected {SCHEMA}, got True",
    '{"name": "of another program"}': f"schema: expected {SCHEMA}, got None",
    '{"verdict": {}, "strategies": [], "left_out": {}}': "got a report of `bench upgrade`",
    '{"schema": 1}': f"schema: expected {SCHEMA}, got 1, of an earlier version",
    changed(extra=1): "unknown key 'extra'",
    changed(kind="published"): "kind: expected 'measured'",
    changed(scores={"new/old": {"map": 1.5}}): "scores.new/old.map: expected at most 1",
    changed(bounds={"lower": {"map": -1}}): "bounds.lower.map: expected at least 0",
    json.dumps({"schema": SCHEMA, "seed": float("nan")}): "not valid JSON",
    changed(intervals={"new/old": {"map": [0.5]}}): "new/old.map: expected a list of more than 1",
    changed(intervals={"new/old": {"map": [0.5, 0.4]}}): "expected [low, high]",
    changed(intervals={"new/old": 5}): "intervals.new/old: expected a mapping",
    changed(cost={"parameters": "many"}): "cost.parameters: expected a whole number",
    changed(method="../../etc/passwd"): "method: expected a name",
    changed(method="bct\x1b[2J"): "method: expected text without control characters",
    changed(track=".."): "track: expected a name",
    changed(models={}): "models: expected at least one generation",
    changed(run={"stages": 7}): "run.stages: expected a mapping",
    changed(run={"stages": {"a": 7}}): "run.stages.a: expected a mapping",
    changed(side={"generations": {}}): "side: missing key 'kind'",
    changed(side={"kind": "a", "generations": {"old": []}}): "side.generations.old: expected a map",
    changed(
        backfilling={"old": "old", "new": "new", "orders": {"random": {"area": 3}}}
    ): "backfilling.orders.random.area: expected a mapping",
    changed(cost={"pramaters": 1}): "cost: unknown key 'pramaters'; did you mean 'parameters'",
    changed(parameters={"protocol": {}, "track": {"dataset": "toy"}}): "missing key 'generations'",
    changed(reason="\ud800"): "not valid JSON",
    changed(seed=-1): "seed: expected at least 0",
    json.dumps(sealed(plain()) | {"seed": 7}): "edited since it was written: its seal",
    json.dumps(plain()): "edited since it was written: its seal is missing",
    changed(reason="\x1b[2J"): "reason: expected text without control characters, got '\\x1b[2J'",
    changed(config={"a\nb": 1}): "config: expected a key of at most 200 printable characters",
    changed(config={"a" * 201: 1}): "config: expected a key of at most 200 printable characters",
    changed(config={"a": "b" * 10_001}): "config.a: expected at most 10000 characters",
    changed(config={"a": [1, 10**30]}): "config.a.1: expected a whole number of at most 64 bits",
    changed(config={"a": 1e200}): "config.a: expected a number within ±1e+100",
    '{"schema": 4, "seed": 1e999}': "seed: expected a number within ±1e+100, got inf",
    f'{{"schema": 4, "a": {"[" * 30}{"]" * 30}}}': "nested more than 20 deep at a.0.0",
    f'{{"schema": 4, "a": [{"0," * 40_000}0]}}': "expected at most 40000 values",
    changed(models={str(i): {"backbone": "plain-8", "dim": 8} for i in range(51)}): "models: exp",
    changed(
        scores={f"{i}/old": {} for i in range(2000)}
    ): "scores: expected at most 1500, got 2000",
    changed(method="m" * 300): "method: expected at most 100 characters, got 300",
    changed(scores={"new/old": {" map": 0.5}}): "new/old. map: expected a metric",
    changed(cost={"parameters": -1}): "cost.parameters: expected at least 0",
}


@pytest.mark.parametrize(("text", "said"), BAD.items(), ids=range(len(BAD)))
def test_damaged(tmp_path, text: str, said: str) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text(text)
    with pytest.raises(BenchError) as caught:
        read_record(path)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_not_text_and_not_there(tmp_path) -> None:
    path = tmp_path / "seed-0.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BenchError, match="not valid JSON"):
        read_record(path)
    with pytest.raises(BenchError, match="no records"):
        read_records(tmp_path / "nothing")


@pytest.fixture
def mixed(tmp_path) -> Path:
    """One good record among all the bad ones."""
    for i, text in enumerate(BAD):
        (tmp_path / str(i)).mkdir()
        (tmp_path / str(i) / "seed-0.json").write_text(text)
    write(tmp_path / "good" / "seed-0.json", plain())
    return tmp_path


def test_damaged_ones_are_skipped_with_a_line_each(mixed) -> None:
    lines: list[BenchError] = []
    found = find_records(mixed, lines.append)
    assert [one.record.method for one in found] == ["bct"]
    assert len(lines) == len(BAD)
    for verb in (("table", mixed), ("show", mixed), ("table", mixed, "-f", "latex", "--published")):
        code, out, err = call(*verb)
        assert code == 0
        assert "bct" in out
        told = err.splitlines()
        assert len(told) == len(BAD)
        assert all(line.startswith("bench: skipped ") for line in told)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert set(load(mixed).method) == {"bct"}
    assert len(heard) == len(BAD)


def test_a_folder_that_is_a_link_is_told(tmp_path) -> None:
    write(tmp_path / "here" / "seed-0.json", plain())
    (tmp_path / "linked").symlink_to("here")
    with pytest.warns(PassedOverWarning, match=f"{tmp_path}/linked: a link to a folder"):
        assert len(find_records(tmp_path)) == 1


def test_a_folder_of_studies_counts_where_it_is_named(tmp_path) -> None:
    study = tmp_path / "studies" / "length"
    for place in (tmp_path / "measured", study):
        write(place / "seed-0.json", plain())
    assert [one.path for one in find_records(tmp_path)] == [tmp_path / "measured" / "seed-0.json"]
    for named in (tmp_path / "studies", study):
        assert [one.path for one in find_records(named)] == [study / "seed-0.json"]
    assert study_records([tmp_path], "claims") == []
    write(tmp_path / "studies" / "claims" / "seed-1.json", plain())
    for roots in ([tmp_path, tmp_path / "none"], [tmp_path / "measured"]):
        assert len(study_records(roots, "claims")) == 1


def test_a_damaged_record_of_a_study_is_no_absent_one(tmp_path) -> None:
    good = write(tmp_path / "studies" / "claims" / "seed-1.json", plain())
    bad = good.with_name("seed-2.json")
    bad.write_text("{")
    for kept in ([good], []):
        with pytest.raises(BenchError, match=r"seed-2\.json"):
            study_records([tmp_path], "claims")
        told: list[BenchError] = []
        assert [s.path for s in study_records([tmp_path], "claims", told.append)] == kept
        assert len(told) == 1 and bad.name in str(told[0])
        good.unlink(missing_ok=True)


def test_nothing_but_damaged_ones(mixed) -> None:
    (mixed / "good" / "seed-0.json").unlink()
    code, out, err = call("table", mixed)
    assert (code, out) == (2, "")
    assert f"none of {len(BAD)} files" in err.splitlines()[-1]
    with pytest.raises(BenchError, match=r"seed-0\.json"):
        read_records(mixed)


def test_what_is_written_is_sealed(tmp_path) -> None:
    record = read_record(write(tmp_path / "seed-0.json", plain()))
    path = tmp_path / "a" / "seed-0.json"
    write_record(path, record.model_copy(update={"seal": None, "seed": 5}))
    again = read_record(path)
    assert again.seal not in (None, record.seal)
    assert again.seed == 5
    # Neither the order of keys nor spaces count; any value does.
    value = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(value.items()))))
    assert read_record(path) == again
    value["scores"]["new/old"]["map"] += 1e-16
    path.write_text(json.dumps(value))
    with pytest.raises(EditedError, match="edited since it was written: its seal does not fit"):
        read_record(path)
    # A key that comes twice has the value that is sealed.
    path.write_text(json.dumps(again.as_json()).replace('"seed": 5', '"seed": 6, "seed": 5', 1))
    assert read_record(path).seed == 5


def test_only_regular_files_are_read_and_no_links_to_folders_followed(tmp_path) -> None:
    write(tmp_path / "good" / "seed-0.json", plain())
    (tmp_path / "good" / "again").symlink_to(tmp_path)
    (tmp_path / "seed-1.json").symlink_to("/dev/zero")
    (tmp_path / "seed-2.json").mkdir()
    os.mkfifo(tmp_path / "seed-3.json")
    (tmp_path / "seed-4.json").symlink_to(tmp_path / "seed-4.json")
    code, out, err = call("table", tmp_path)
    assert code == 0
    assert "bct" in out
    *skipped, linked = err.splitlines()
    assert [line.partition("seed-")[2][0] for line in skipped] == list("1234")
    assert linked.endswith("again: a link to a folder")


def test_details_that_are_not_the_records_are_a_line(tmp_path) -> None:
    path = tmp_path / "seed-0.json"
    write(path, plain() | {"details": "sha256:0"})
    for content in (None, b"other"):
        if content is not None:
            details_path(path).write_bytes(content)
        code, out, err = call("show", tmp_path)
        assert (code, len(err.splitlines())) == (0, 1)
        assert "bct" in out
    details_path(path).unlink()
    os.mkfifo(details_path(path))
    assert call("show", tmp_path)[0] == 0


@pytest.fixture
def many(tmp_path) -> Path:
    """Two protocols, two methods, two seeds."""
    for protocol in ("open-class", "open-data"):
        for method in ("bct", "l2"):
            for seed in (0, 1):
                value = plain() | {"protocol": protocol, "method": method, "seed": seed}
                write(tmp_path / protocol / method / f"seed-{seed}.json", value)
    return tmp_path


def test_any_selection(many) -> None:
    words = ("table", many, "-f", "csv", "--cases", "new/old", "--metrics", "map")
    code, out, _ = call(*words, "-m", "l2", "-p", "open-data", "--seeds", "1")
    assert code == 0
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["kind"] == "method"]
    assert [(r["protocol"], r["method"], r["seeds"], r["case"], r["metric"]) for r in rows] == [
        ("open-data", "l2", "1", "new/old", "map")
    ]
    twice = call("table", many, many / "open-data", "-f", "csv", "-p", "open-data")
    assert twice[0] == 0
    assert twice[1] == call("table", many / "open-data", "-f", "csv")[1]
    for option, value, said in (
        ("-m", "l3", "no record of method 'l3'; known: bct, l2"),
        ("-p", "opendata", "did you mean 'open-data'"),
        ("--seeds", "7", "no record of seed '7'"),
        ("--seeds", "x", "--seeds"),
        ("--cases", "new/odl", "new/old"),
        ("--metrics", "mapp", "'map'"),
    ):
        code, out, err = call("table", many, option, value)
        assert (code, out) == (2, "")
        assert said in err
    code, _, err = call("table", many, "-m", "l2", "-p", "open-data", "--seeds", "0-1")
    assert (code, err) == (0, "")


def test_a_selection_reads_the_chosen_folders_alone(tmp_path) -> None:
    for protocol, track, method in product(("open-class", "open-data"), ("a", "b"), ("bct", "l2")):
        value = plain() | {"protocol": protocol, "track": track, "method": method}
        write(record_path(tmp_path, protocol, track, method, 0), value)
    broken = record_path(tmp_path, "open-data", "a", "l2", 1)
    broken.write_text("{")
    elsewhere = tmp_path / "own" / "seed-3.json"  # a place that says nothing of what is in it
    write(elsewhere, plain() | {"protocol": "open-class", "track": "a", "seed": 3})
    chosen = ("table", tmp_path, "-f", "csv", "-p", "open-class", "-t", "a")
    code, out, err = call(*chosen)
    assert (code, err) == (0, "")
    assert {row["seeds"] for row in csv.DictReader(io.StringIO(out))} >= {"0 3"}
    assert "skipped" in call("table", tmp_path, "-p", "open-data", "-t", "a")[2]
    code, _, err = call(*chosen, "-m", "l3")  # names what all records have
    assert code == 2
    assert str(broken) in err
    assert "no record of method 'l3'; known: bct, l2" in err
    elsewhere.unlink()  # paths alone say it
    code, _, err = call(*chosen, "-m", "l3")
    assert (code, err) == (2, "bench: no record of method 'l3'; known: bct, l2\n")
    code, _, err = call("table", tmp_path, "-p", "open-class", "-t", "c")
    assert (code, err) == (2, "bench: no record of track 'c'; known: a, b\n")


def test_a_protocol_with_settings_is_all_of_them(many) -> None:
    for setting in ("home", "away"):
        value = plain() | {"protocol": f"out-of-domain:{setting}", "method": "bct"}
        write(many / f"out-of-domain:{setting}" / "seed-0.json", value)

    def shown(protocol):
        code, out, err = call("table", many, "-f", "csv", "-p", protocol)
        assert code == 0, err
        return {row["protocol"] for row in csv.DictReader(io.StringIO(out))}

    assert shown("out-of-domain") == {"out-of-domain:home", "out-of-domain:away"}
    assert shown("out-of-domain:away") == {"out-of-domain:away"}


def test_load_selects(many) -> None:
    frame = load([many / "open-class", many / "open-data"], metric=["map", "cmc_at_1"], seed=1)
    assert set(frame.metric) == {"map", "cmc_at_1"}
    assert set(frame.protocol) == {"open-class", "open-data"}
    assert set(frame.seed) == {1}
    with pytest.raises(BenchError, match="did you mean 'method'"):
        load(many, methd="bct")
    with pytest.raises(BenchError, match=r"^load: no row has metric 'mapp'; did you mean 'map'"):
        load(many, metric=["map", "mapp"])
