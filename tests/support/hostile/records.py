"""Hostile records and details files.

Records carry the right seal, as anybody can compute it: what is wrong is looked for behind it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.config.files import seal_of
from benchmark.records.record import SCHEMA
from support.hostile import TOKEN, Content, Sample, in_place, values
from support.hostile.modules import HEADERS, packed
from support.records import make_record
from support.sites import backfilled

RECORD = "measured/open-class/glyphs/evil/seed-0.json"
NEIGHBOUR = "measured/open-class/glyphs/l2/seed-0.json"
DETAILS = "measured/open-class/glyphs/evil/seed-0.details.xz"

# Texts that a record may hold freely: every place gets some, all places together get all.
FREE = (
    ("key",), ("method",), ("protocol",), ("track",), ("reason",), ("upper",), ("dataset", "name"),
    ("dataset", "fingerprint"), ("environment", "python"), ("run", "finished"),
    ("run", "code", "commit"), ("run", "code", "version"), ("run", "stages", "a", "device"),
    ("details",), ("backfilling", "old"), ("backfilling", "new"), ("backfilling", "reason"),
    ("backfilling", "groups", 0), ("side", "kind"), ("adapter", "module"), ("adapter", "package"),
    ("adapter", "source"), ("models", "new", "backbone"), ("status",), ("kind",),
)  # fmt: skip
# Mappings whose keys are free.
KEYED = (
    ("scores",), ("scores", "new/old"), ("intervals",), ("counts",), ("bounds",),
    ("bounds", "upper"), ("compatible",), ("update_gain",), ("config",), ("changed",), ("models",),
    ("curves",), ("checkpoints",), ("environment",), ("run", "stages"), ("run", "seconds"),
    ("dataset", "generations"), ("dataset", "facts"), ("backfilling", "orders"),
    ("backfilling", "omitted"), ("backfilling", "counts"), ("side", "generations"),
)  # fmt: skip


def base(method: str = "evil", **fields: Any) -> dict[str, Any]:
    """A record that has everything a record may have."""
    record = make_record(
        method, {"cmc_at_1": 0.6, "map": 0.5}, {"cmc_at_1": 0.8, "map": 0.7},
        backfilling=backfilled() | {"omitted": {"entropy": "no head"}},
        side={"kind": "simclr", "generations": {"old": {"dim": 8, "bytes": 32.0, "cka": 0.5}}},
        adapter={"module": "methods.bct", "package": "compatbench 0.1", "source": "0" * 64},
        cost={"parameters": 1000, "added_parameters": 10, "multiply_adds": 5, "bytes_before": 64.0,
              "bytes_after": 64.0, "bytes_new": 64.0},
        config={"weight": 1.0, "name": "x"}, counts={"new/old": {"n_query": 10}},
        checkpoints={"train bct (seed 0)": "sha256:" + "0" * 64},
        dataset={"name": "glyphs", "fingerprint": "f" * 64, "n_train": 10, "n_test": 5,
                 "n_classes": 3, "facts": {"draws": 2},
                 "generations": {"old": {"images": 5, "classes": 2}}},
    )  # fmt: skip
    return record.as_json() | fields


def sealed(value: Any) -> bytes:
    """A record's file: with the seal that fits, where records have one."""
    if isinstance(value, dict) and value.get("schema") == SCHEMA:
        try:
            value = value | {"seal": seal_of(value)}
        except ValueError:  # NaN and the like have no seal: a wrong one then
            value = value | {"seal": "sha256:" + "0" * 64}
    return json.dumps(value).encode()


def records() -> Iterator[Sample]:
    """Hostile records."""
    for name, content in _contents():
        yield Sample("record", name, {RECORD: content, NEIGHBOUR: sealed(base("l2"))})
    yield from in_place("record", RECORD, {NEIGHBOUR: sealed(base("l2"))})
    for name, folder in {
        "folder-not-utf-8": b"measured/\xff\xfe/glyphs/evil",
        "folder-with-an-escape": b"measured/\x1b[2J/glyphs/evil",
        "folder-with-markup": f"measured/<img src=x{TOKEN}>/glyphs/evil".encode(),
        "folder-with-a-line-break": b"measured/a\nb/glyphs/evil",
    }.items():
        good, bad = sealed(base("l2")), b"{"
        yield Sample("record", name, {folder + b"/seed-0.json": good, NEIGHBOUR: good})
        files = {folder + b"/seed-0.json": bad, NEIGHBOUR: good}
        yield Sample("record", f"{name}-damaged", files)


def _contents() -> Iterator[tuple[str, bytes]]:
    whole = base()
    for start, path in enumerate(FREE):
        for name, text in values.rotating(values.TEXTS, start, 3):
            made = values.replaced(whole, path, text)
            yield f"{values.name(path)}-is-{name}", sealed(made)
    for start, path in enumerate(KEYED):
        for name, text in values.rotating(values.TEXTS, start + 7, 2):
            content = values.at(whole, path)
            first = next(iter(content.values()), 0)
            made = values.replaced(whole, path, {**content, text: first})
            yield f"{values.name(path)}-has-key-{name}", sealed(made)
    places = [path for path in values.paths(whole) if path not in (("schema",), *FREE)]
    for start, path in enumerate(places[:: max(1, len(places) // 90)]):
        for name, wrong in values.rotating(values.WRONG, start, 1):
            yield f"{values.name(path)}-is-{name}", sealed(values.replaced(whole, path, wrong))
    for path in (("cost", "parameters"), ("cost",), ("scores",), ("seed",), ("run",), ("bounds",)):
        yield f"{values.name(path)}-missing", sealed(values.removed(whole, path))
    yield from _numbers(whole)
    yield from _large(whole)
    yield from _broken(sealed(whole))


def _numbers(whole: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Numbers that are valid one by one."""
    for name, path, number in (
        ("seed-of-20-digits", ("seed",), 10**20), ("seed-of-400-digits", ("seed",), 10**400),
        ("huge-parameters", ("cost", "parameters"), 10**30),
        ("negative-parameters", ("cost", "parameters"), -5),
        ("endless-bytes", ("cost", "bytes_before"), 1e308),
        ("zero-bytes", ("cost", "bytes_before"), 0.0),
        ("no-costs", ("cost",), {}), ("no-bounds", ("bounds",), {}),
        ("no-scores", ("scores",), {}), ("no-run", ("run",), {}),
        ("null-scores", ("scores", "new/old"), {"cmc_at_1": None, "map": None}),
        ("gain-of-1e300", ("update_gain",), {"cmc_at_1": 1e300, "map": -1e300}),
        ("million-points", ("backfilling", "points"), 10**6),
        ("negative-points", ("backfilling", "points"), -1),
        ("every-zero", ("backfilling", "every"), 0),
        ("no-groups", ("backfilling", "groups"), []),
        ("groups-of-another-length", ("backfilling", "groups"), ["a", "b", "c"]),
        ("no-orders", ("backfilling", "orders"), {}),
        ("curve-of-1e308", ("backfilling", "orders", "random", "curves"),
         {"cmc_at_1": [1e308] * 101}),
        ("empty-curve", ("backfilling", "orders", "random", "curves"), {"cmc_at_1": []}),
        ("long-flips", ("backfilling", "orders", "random", "flips", "positive"), [0.1] * 5000),
        ("interval-upside-down", ("intervals", "new/old", "cmc_at_1"), [0.9, 0.1]),
        ("loss-of-1e308", ("curves", "train evil (seed 0)", "model", "loss"), [1e308, -1e308, 0]),
        ("no-loss", ("curves", "train evil (seed 0)", "model", "loss"), []),
        ("null-loss", ("curves", "train evil (seed 0)", "model", "loss"), [None, None]),
        ("steps-of-minus-one", ("curves", "train evil (seed 0)", "model", "steps_an_epoch"), -1),
        ("times-of-1e308", ("run", "stages", "a", "seconds"), 1e308),
        ("finished-in-year-99999", ("run", "finished"), "99999-01-01T00:00:00+00:00"),
        ("finished-never", ("run", "finished"), "tomorrow"),
        ("schema-of-tomorrow", ("schema",), SCHEMA + 1), ("schema-zero", ("schema",), 0),
        ("schema-one", ("schema",), 1), ("schema-as-text", ("schema",), str(SCHEMA)),
        ("schema-true", ("schema",), True), ("version-of-20-digits", ("protocol_version",), 10**20),
        ("dim-of-20-digits", ("models", "new", "dim"), 10**20),
        ("zero-epochs", ("recipe", "epochs"), 0), ("huge-epochs", ("recipe", "epochs"), 10**18),
    ):  # fmt: skip
        yield name, sealed(values.replaced(whole, path, number))


def _large(whole: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Too many of something, within the bytes that a record may have."""
    model = whole["models"]["new"]
    for n in (5000, 20_000):
        models = {f"v{i}": {"backbone": "convnet-4", "dim": 4} for i in range(n)}
        yield f"{n}-generations", sealed(whole | {"models": models})
    names = [f"v{i}" for i in range(150)]
    scores = {f"{a}/{b}": {"m": 0.5} for a in names for b in names}
    yield (
        "all-cases-of-150-generations",
        sealed(whole | {"models": dict.fromkeys(names, model), "scores": scores, "intervals": {}}),
    )
    many = {f"metric_{i}": 0.5 for i in range(20_000)}
    yield "20000-metrics", sealed(whole | {"scores": {"new/old": many, "old/old": many}})
    yield (
        "20000-cases",
        sealed(whole | {"scores": {f"case{i}": {"map": 0.5} for i in range(20_000)}}),
    )
    config = {f"field_{i}": i for i in range(50_000)}
    yield "50000-parameters", sealed(whole | {"config": config, "changed": config})
    stages = {f"stage {i}": {"seconds": 1.0} for i in range(30_000)}
    yield "30000-stages", sealed(whole | {"run": whole["run"] | {"stages": stages}})
    order = whole["backfilling"]["orders"]["random"]
    orders = {f"order{i}": order for i in range(200)}
    yield "200-orders", sealed(whole | {"backfilling": whole["backfilling"] | {"orders": orders}})
    curve = {"loss": [1.0] * 20_000, "lr": [0.1] * 20_000}
    curves = {f"train {i}": {"model": curve} for i in range(10)}
    yield "200000-epochs", sealed(whole | {"curves": curves})
    deep: Any = 1
    for _ in range(900):
        deep = {"a": deep}
    yield "config-900-deep", sealed(whole | {"config": deep})
    yield "argv-of-2-mib", sealed(whole | {"run": whole["run"] | {"argv": ["x" * 2**21]}})


def _broken(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Bytes that are no such JSON."""
    for share in (0.1, 0.5, 0.9):
        yield f"cut-at-{share}", raw[: int(len(raw) * share)]
    yield "without-last-bracket", raw[:-1]
    yield "twice", raw + raw
    yield "trailing-garbage", raw + b"\x00\xff"
    yield "byte-order-mark", b"\xef\xbb\xbf" + raw
    yield "utf-16", raw.decode().encode("utf-16")
    yield "invalid-utf-8", raw.replace(b'"glyphs"', b'"gl\xff\xfephs"')
    yield "duplicate-keys", b'{"schema": 1, "method": "other", ' + raw[1:]
    yield "nan", raw.replace(b'"seed": 0', b'"seed": NaN')
    yield "infinity", raw.replace(b'"seed": 0', b'"seed": -Infinity')
    yield "hexadecimal", raw.replace(b'"seed": 0', b'"seed": 0x0')
    yield "exponent", raw.replace(b'"seed": 0', b'"seed": 1e999999')
    yield "comment", b"// x\n" + raw
    yield "scalar", b"7"
    yield "text", b'"record"'
    yield "list", b"[" + raw + b"]"
    yield "null-value", b"null"
    for n in (1000, 100_000, 1_900_000):
        yield f"lists-{n}-deep", b"[" * n + b"]" * n
        yield f"mappings-{n}-deep", b'{"a":' * n + b"1" + b"}" * n
        yield f"open-{n}-deep", b"[" * n
    yield "number-of-a-million-digits", b'{"schema": ' + b"9" * 1_000_000 + b"}"
    yield "fraction-of-a-million-digits", b'{"schema": 0.' + b"9" * 1_000_000 + b"}"
    yield "key-of-3-mib", b'{"' + b"k" * (3 * 2**20) + b'": 1}'
    yield "200000-keys", json.dumps({str(i): i for i in range(200_000)}).encode()
    yield "escapes", raw.replace(b'"glyphs"', b'"\\u001b[2J\\ud800\\u0000"')
    yield "gzip", gzip.compress(raw, mtime=0)
    yield "larger-than-any", raw[:-1] + b" " * (5 * 2**20) + b"}"


def details() -> Iterator[Sample]:
    """Hostile details files, each with the hash that its record has."""
    for name, content in _details():
        yield _with_details(name, content)
    for sample in in_place("details", DETAILS):
        record = sealed(base(details="sha256:" + hashlib.sha256(b"").hexdigest()))
        yield Sample("details", sample.name, {**sample.files, RECORD: record})
    yield Sample("details", "missing", {RECORD: sealed(base(details="sha256:" + "0" * 64))})


def _with_details(name: str, content: Content) -> Sample:
    assert isinstance(content, bytes)
    record = sealed(base(details="sha256:" + hashlib.sha256(content).hexdigest()))
    return Sample("details", name, {RECORD: record, DETAILS: content})


HEADER: Mapping[str, Any] = {
    "schema": 4,
    "answers": [
        {"case": "new/old", "metric": "cmc_at_1", "array": "a", "queries": "q", "levels": 1,
         "scale": 1.0}
    ],
    "queries": {"q": {"n_queries": 8, "n": 8}},
    "case": "new/old", "classes": ["one", "two"], "tau": 0.5, "n_items": 4, "left_out": [],
}  # fmt: skip
ARRAYS: Mapping[str, tuple[str, list[int], bytes]] = {
    "a": ("U8", [1], b"\xf0"),
    "q": ("U32", [8], b"".join(i.to_bytes(4, "little") for i in range(8))),
    "label": ("U8", [4], bytes([0, 1, 0, 1])),
    "order": ("U16", [4, 2], bytes(16)),
    "xy": ("U16", [4, 4], bytes(32)),
}


def file_of(header: Any = HEADER, arrays: Mapping[str, Any] = ARRAYS) -> bytes:
    """A details file; a text stands for the header as it is."""
    text = header if isinstance(header, str) else json.dumps(header)
    raw = packed({"details": text}, arrays)
    return gzip.compress(raw, mtime=0)


def _details() -> Iterator[tuple[str, bytes]]:
    yield "sound", file_of()
    for start, path in enumerate(values.paths(dict(HEADER))):
        for name, wrong in values.rotating(values.WRONG, start, 1):
            made = values.replaced(dict(HEADER), path, wrong)
            yield f"header-{values.name(path)}-is-{name}", file_of(made)
    for start, (name, text) in enumerate(values.TEXTS.items()):
        path = (("classes", 0), ("case",), ("left_out",), ("answers", 0, "metric"))[start % 4]
        new: Any = [text] if path == ("left_out",) else text
        made = values.replaced(dict(HEADER), path, new)
        yield f"{values.name(path)}-is-{name}", file_of(made)
    for name in ARRAYS:
        rest = {key: value for key, value in ARRAYS.items() if key != name}
        yield f"without-array-{name}", file_of(arrays=rest)
        yield f"array-{name}-empty", file_of(arrays=ARRAYS | {name: (ARRAYS[name][0], [0], b"")})
        yield f"array-{name}-of-floats", file_of(arrays=ARRAYS | {name: ("F32", [8], bytes(32))})
    yield (
        "no-queries-at-all",
        file_of(
            values.replaced(dict(HEADER), ("queries", "q"), {"n_queries": 0, "n": 0}),
            ARRAYS | {"q": ("U32", [0], b""), "a": ("U8", [0], b"")},
        ),
    )
    yield "labels-beyond", file_of(arrays=ARRAYS | {"label": ("U8", [4], bytes([0, 1, 255, 9]))})
    whole = dict(HEADER) | {"queries": {"q": {"n_queries": 10_000_000, "n": 8}}}
    yield "8-of-10-million-queries", file_of(whole)
    for name, raw in HEADERS.items():
        yield f"safetensors-{name}", gzip.compress(raw, mtime=0)
    sound = file_of()
    yield "cut", sound[: len(sound) // 2]
    yield "two-members", sound + sound
    yield "garbage-behind", sound + b"x"
    yield "not-gzip", b"x" * 100
    yield "bomb", gzip.compress(bytes(40 * 2**20), mtime=0)[: 64 * 1024]
    yield "bomb-whole", gzip.compress(bytes(40 * 2**20), mtime=0)
    yield "gzip-of-nothing", gzip.compress(b"", mtime=0)
    yield "gzip-name-with-escapes", sound[:3] + b"\x08" + sound[4:10] + b"\x1b[2J\x00" + sound[10:]
    yield "too-large", sound + bytes(70_000)
    yield "deep-json", file_of("[" * 50_000)
