"""Hostile records, details files, and the bases of both, made from committed ones.

Records carry the right seal and bases the right name, as anybody can compute them: what is wrong
is looked for behind it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.config.files import seal_of
from benchmark.records.files import read_record
from benchmark.records.layout import base_name
from support.hostile import TOKEN, Files, Sample, in_place
from support.hostile.engine import Form, other_bytes, other_values
from support.hostile.modules import safetensors

BOARD = "measured/backfill/glyphs"
RECORD, NEIGHBOUR = f"{BOARD}/evil/seed-0.json", f"{BOARD}/bct/seed-0.json"
DETAILS = RECORD.replace(".json", ".details.xz")
_OURS = f"{BOARD}/fct+simclr/seed-0"
_RESULTS = Path(__file__).parents[3] / "results"


def sealed(value: Any) -> bytes:
    """A file with the seal that fits; a wrong one where NaN and the like have none."""
    if isinstance(value, dict):
        try:
            value = value | {"seal": seal_of(value)}
        except ValueError:
            value = value | {"seal": "sha256:" + "0" * 64}
    return json.dumps(value).encode()


SEALED = Form(dumps=sealed)


@cache
def complete(name: str = f"{_OURS}.json", **fields: Any) -> bytes:
    """A committed record that says all of itself, without a base."""
    return sealed(read_record(_RESULTS / name).as_json() | {"details": None} | fields)


def _committed(name: str) -> bytes:
    return (_RESULTS / name).read_bytes()


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


@cache
def _parts() -> tuple[Any, bytes, bytes, bytes]:
    """A committed record, its base, its details, and theirs."""
    record, packed = json.loads(_committed(f"{_OURS}.json")), _committed(f"{_OURS}.details.xz")
    name = details_form(packed).loads(packed)["metadata"]["details"]["base"]
    record["method"] = "evil"
    base = _committed(f"{BOARD}/base-{record['base']}.json")
    return record, base, packed, _committed(f"{BOARD}/base-{name}.details.xz")


def packed_record() -> dict[str, bytes]:
    """Files of a committed record, by what they are."""
    record, base, details, base_details = _parts()
    return {"record": json.dumps(record).encode(), "base": base, "details": details,
            "base_details": base_details}  # fmt: skip


def details_form(packed: bytes) -> Form:
    """The format of details files: metadata and arrays, in xz."""
    inner = safetensors(lzma.decompress(packed))
    return Form(
        lambda raw: inner.loads(lzma.decompress(raw)), lambda value: _xz(inner.dumps(value))
    )


def _xz(raw: bytes) -> bytes:
    return lzma.compress(raw, preset=0)


def records() -> Iterator[Sample]:
    """Hostile records that say all of themselves, and such as have a base."""
    neighbour = {NEIGHBOUR: complete(NEIGHBOUR)}
    whole = complete(method="evil")
    for name, raw in (*other_values(whole, SEALED, 110), *other_bytes(whole, most=12)):
        yield Sample("record", name, {RECORD: raw, **neighbour})
    for name, raw in other_values(json.dumps(_parts()[0]).encode(), SEALED, 24):
        yield Sample("record", f"slim-{name}", {**with_parts(), RECORD: raw, **neighbour})
    for name, raw in {
        "digits": b'{"schema": ' + b"9" * 1_000_000 + b"}", "gzip": gzip.compress(whole, mtime=0),
        "larger-than-any": whole[:-1] + b" " * (5 * 2**20) + b"}", "key-of-3-mib": b'{"' + b"k" *
        (3 * 2**20) + b'": 1}', "escapes": whole.replace(b'"glyphs"', b'"\\u001b[2J\\ud800"'),
    }.items():  # fmt: skip
        yield Sample("record", name, {RECORD: raw, **neighbour})
    yield from in_place("record", RECORD, neighbour)
    for name, folder in {
        "not-utf-8": b"\xff\xfe", "escape": b"\x1b[2J", "line-break": b"a\nb",
        "markup": f"<img src=x{TOKEN}>".encode(),
    }.items():  # fmt: skip
        for damaged in (False, True):
            path = b"measured/" + folder + b"/glyphs/evil/seed-0.json"
            files: Files = {path: b"{" if damaged else complete(), **neighbour}
            yield Sample("record", f"folder-{name}{'-damaged' * damaged}", files)


def with_parts(base: bytes | None = None, details: bytes | None = None,
               base_details: bytes | None = None) -> dict[str, bytes]:  # fmt: skip
    """A record and what belongs to it, of which a part is another one and all names fit."""
    record, own_base, own_details, own_base_details = _parts()
    base_details = base_details or own_base_details
    name = _digest(base_details)[:16]
    if details is None:
        form = details_form(own_details)
        value = form.loads(own_details)
        value["metadata"]["details"]["base"] = name
        details = form.dumps(value)
    try:
        base_is = base_name(json.loads(base or own_base))
    except (ValueError, RecursionError, AttributeError, TypeError):
        base_is = record["base"]
    made = record | {"base": base_is, "details": f"sha256:{_digest(details)}"}
    return {
        RECORD: sealed(made), DETAILS: details, f"{BOARD}/base-{base_is}.json": base or own_base,
        f"{BOARD}/base-{name}.details.xz": base_details,
    }  # fmt: skip


def bases() -> Iterator[Sample]:
    """Hostile bases of records, each with the name that its content has."""
    base = _parts()[1]
    form = Form(dumps=lambda value: json.dumps(value, allow_nan=False).encode())
    for name, raw in (*other_values(base, form, 60), *other_bytes(base, most=8)):
        yield Sample("base", name, with_parts(base=raw))
    path = next(name for name in with_parts() if name.endswith(".json") and name != RECORD)
    rest = {name: raw for name, raw in with_parts().items() if name != path}
    yield from in_place("base", path, rest)
    yield Sample("base", "missing", rest)
    yield Sample("base", "of-another", {**rest, path: base.replace(b"0.", b"0.1", 1)})


def details() -> Iterator[Sample]:
    """Hostile details files, each with the hash that its record has."""
    yield from _packed("details", _parts()[2], lambda raw: with_parts(details=raw), DETAILS)


def base_details() -> Iterator[Sample]:
    """Hostile bases of details files, each with the name that its content has."""
    name = next(n for n in with_parts() if n.endswith(".xz") and n != DETAILS)
    yield from _packed("base-details", _parts()[3], lambda raw: with_parts(base_details=raw), name)


def _packed(
    kind: str, packed: bytes, files: Callable[[bytes], dict[str, bytes]], path: str
) -> Iterator[Sample]:
    raw, sound = lzma.decompress(packed), files(packed)
    broken = ((f"inner-{name}", _xz(made)) for name, made in other_bytes(raw, most=16))
    bombs = {
        "bomb": _xz(bytes(40 * 2**20)), "gzip-bomb": gzip.compress(bytes(40 * 2**20), mtime=0),
        "two": packed + packed, "gzip": gzip.compress(raw, mtime=0), "nothing": _xz(b""),
        "too-large": packed + bytes(70_000), "memory": lzma.compress(raw, preset=9),
    }.items()  # fmt: skip
    for name, made in (
        *other_values(packed, details_form(packed), 40), *other_bytes(packed, most=8), *broken,
        *bombs,
    ):  # fmt: skip
        yield Sample(kind, name, files(made))
    rest = {name: made for name, made in sound.items() if name != path}
    yield from in_place(kind, path, rest)
    yield Sample(kind, "missing", rest)
