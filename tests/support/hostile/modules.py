"""Hostile safetensors files of models, and hostile folders of conversions."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from support.hostile import TOKEN, Sample, in_place, values

MODULE = "convert.safetensors"
META = "conversion.json"
DIM = 4


class Opens:
    """Runs a command where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os

        return os.system, (f"touch {TOKEN}",)


def packed(metadata: Mapping[str, Any] | None, arrays: Mapping[str, Any]) -> bytes:
    """A safetensors file of arrays: name -> type, shape, bytes."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, (dtype, shape, raw) in arrays.items():
        begin, data = len(data), data + raw
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    return framed(json.dumps(header).encode(), data)


def framed(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """Length, header, data."""
    size = len(header) if length is None else length
    return struct.pack("<Q", size % 2**64) + header + data


def _headers() -> Iterator[tuple[str, bytes]]:
    """Whatever is in it, the container is wrong."""
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}

    def one(**fields: Any) -> bytes:
        return framed(json.dumps({"a": entry | fields}).encode(), bytes(8))

    for name, length in (
        ("2-to-63", 2**63), ("2-to-64-minus-1", 2**64 - 1), ("4-gib", 2**32), ("zero", 0),
        ("100-mib", 100 * 2**20), ("one-too-many", 9), ("one-too-few", 1),
    ):  # fmt: skip
        yield f"header-length-{name}", framed(b'{"a":1}', b"", length)
    for name, offsets in (
        ("negative", [-8, 0]), ("swapped", [8, 0]), ("beyond", [0, 2**40]), ("gap", [4, 12]),
        ("overflow", [2**64 - 8, 2**64]), ("one", [0]), ("text", "0:8"), ("fraction", [0.0, 8.0]),
    ):  # fmt: skip
        yield f"offsets-{name}", one(data_offsets=offsets)
    for name, shape in (
        ("huge", [2**40, 2**40]), ("negative", [-2]), ("million-of-ones", [1] * 100_000),
        ("overflowing", [2**63, 2]), ("zero", [0]), ("text", ["2"]), ("null", None),
    ):  # fmt: skip
        yield f"shape-{name}", one(shape=shape)
    for dtype in ("F99", "", "O", "object", 7, None, "F64", "BOOL", "F8_E4M3", "\x1b[2J"):
        yield f"type-{dtype!a}", one(dtype=dtype)
    both = {"a": entry, "b": entry}
    yield "overlapping", framed(json.dumps(both).encode(), bytes(8))
    for n in (1000, 200_000):
        yield f"json-{n}-deep", framed(b'{"a":' * n + b"1" + b"}" * n)
        yield f"lists-{n}-deep", framed(b"[" * n + b"]" * n)
    text = json.dumps(entry)
    yield "duplicate-keys", framed(f'{{"a":{text},"a":{text}}}'.encode(), bytes(8))
    yield "nan", framed(b'{"a": NaN}', bytes(8))
    yield "no-json", framed(b"\xff" * 64, bytes(8))
    yield "null-header", framed(b"null")
    yield "list-header", framed(b"[]")
    yield "metadata-is-a-list", framed(b'{"__metadata__": []}')
    yield "metadata-of-numbers", framed(b'{"__metadata__": {"module": 7}}')
    yield "100000-arrays", packed({}, {f"a{i}": ("F32", [0], b"") for i in range(100_000)})
    yield "name-of-a-mib", packed({}, {"n" * 2**20: ("F32", [0], b"")})
    yield "data-behind", packed({}, {}) + bytes(64)
    yield "pickle", pickle.dumps(Opens())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:  # as torch.save writes
        info = zipfile.ZipInfo("archive/data.pkl", (2020, 1, 1, 0, 0, 0))
        archive.writestr(info, pickle.dumps(Opens()))
    yield "torch-save", out.getvalue()


HEADERS: Mapping[str, bytes] = dict(_headers())
"""Files that are safetensors in name alone."""

CLASSES = (
    "os:system", "os:_exit", "os:abort", "posix:_exit", "subprocess:Popen", "builtins:eval",
    "builtins:exec", "builtins:__import__", "planted:Planted", "side_planted:Planted",
    "__main__:Planted", "pickle:loads", "torch:load", "torch.hub:load", "torch.nn:Linear",
    "antigravity:x", "webbrowser:open", "pdb:set_trace", "this:x", "site:main", "code:interact",
    "turtle:mainloop", "idlelib:x", "test.support:x", "pip.__main__:x", "ensurepip.__main__:x",
    "benchmark.errors:BenchError", "benchmark.models.module:Portable", "benchmark.cli.app:main",
    "benchmark.models.module:load_module", "benchmark.contract.conversion:Conversion",
    "tests.conftest:x", "support.jobs:control", ".relative:X", "..:X", ":", "", "a", "a:b:c",
    "planted", "/etc/passwd:x", "planted\x00:Planted", "methods.fct:Fct", "methods.:x",
    "builtins:object", "builtins:type", "builtins:type.__subclasses__", "collections:abc.Mapping",
)  # fmt: skip


def _map(arguments: Any) -> dict[str, Any]:
    """A conversion of vectors by an affine map with these arguments."""
    affine = {"class": "benchmark.models.parts:Affine", "arguments": arguments}
    return {"class": "benchmark.models.parts:KeepSide", "arguments": {"map": {"portable": affine}}}


_SIZES: Mapping[str, Any] = {"dim_in": DIM, "dim_out": DIM}
SOUND: Mapping[str, Any] = _map(_SIZES)
WEIGHTS: Mapping[str, tuple[str, list[int], bytes]] = {
    "map.linear.bias": ("F32", [DIM], bytes(4 * DIM)),
    "map.linear.weight": ("F32", [DIM, DIM], struct.pack("<f", 1.0) * DIM**2),
}
# Ours, with arguments that would take all memory, or time.
COSTLY = (
    ("benchmark.models.backbones:Encoder", {"backbone": "convnet-100000", "dim": 10**6}),
    ("benchmark.models.backbones:Encoder", {"backbone": "vit-4096x100000", "dim": 16}),
    ("benchmark.models.backbones:Encoder", {"backbone": "\x1b[2J", "dim": 16}),
    ("benchmark.models.parts:FirstDims", {"dim": 10**30}),
    ("benchmark.models.parts:Directions", {"map": None, "normalise": True}),
    ("benchmark.models.parts:KeepSide", {"map": 7}),
)


def _modules() -> Iterator[tuple[str, bytes]]:
    description, arrays = dict(SOUND), dict(WEIGHTS)

    def made(said: Any, parts: Mapping[str, Any] = WEIGHTS) -> bytes:
        text = said if isinstance(said, str) else json.dumps(said)
        return packed({"module": text}, parts)

    yield "sound", made(description)
    for cls in CLASSES:
        yield f"class-{cls!a}".replace("/", "|"), made(description | {"class": cls})
        if cls.startswith(("os", "planted", "subprocess", "builtins:e")):
            inner = {"portable": {"class": cls, "arguments": {"command": f"touch {TOKEN}"}}}
            yield f"inner-class-{cls!a}", made(description | {"arguments": {"module": inner}})
    for name, wrong in values.WRONG.items():
        yield f"class-is-{name}", made(description | {"class": wrong})
        yield f"arguments-are-{name}", made(description | {"arguments": wrong})
        yield f"description-is-{name}", made(wrong)
        yield f"dim_in-is-{name}", made(_map({**_SIZES, "dim_in": wrong}))
        yield f"arguments-of-the-map-are-{name}", made(_map(wrong))
    for size in (10**5, 10**6, 10**9, 10**12, -4):
        yield f"size-{size}", made(_map(dict.fromkeys(_SIZES, size)))
    for i, (cls, costly) in enumerate(COSTLY):
        yield f"costly-{i}", made({"class": cls, "arguments": costly})
    for key in ("self", "__class__", "unknown", "\x1b[2J", "arguments"):
        yield f"argument-{key!a}", made(_map({**_SIZES, key: 1}))
    opening = f'{{"class": "{SOUND["class"]}", "arguments": {{"map": {{"portable": '
    inner = json.dumps(description)
    yield "400-modules-in-each-other", made(opening * 400 + inner + "}}}" * 400)
    opening = '{"class": "a:b", "arguments": {"m": {"portable": '
    yield "50000-modules-in-each-other", made(opening * 50_000)
    yield "no-description", packed(None, arrays)
    yield "another-description", packed({"other": "x"}, arrays)
    yield "no-weights", made(description, {})
    yield "more-weights", made(description, arrays | {"planted": ("F32", [1], bytes(4))})
    first = next(iter(arrays))
    dtype, shape, raw = arrays[first]
    yield (
        "weights-of-another-shape",
        made(description, arrays | {first: (dtype, [len(raw) // 4], raw)}),
    )
    nan = struct.pack("<f", float("nan")) * (len(raw) // 4)
    yield "weights-nan", made(description, arrays | {first: (dtype, shape, nan)})
    yield "weights-of-integers", made(description, arrays | {first: ("I32", shape, raw)})
    sound = made(description)
    for share in (0.2, 0.9):
        yield f"cut-at-{share}", sound[: int(len(sound) * share)]


def modules() -> Iterator[Sample]:
    """Stored modules, each as the part of a conversion whose digest fits."""
    for name, raw in [*_modules(), *HEADERS.items()]:
        digest = "sha256:" + hashlib.sha256(raw).hexdigest()
        meta = json.dumps(_meta(digest)).encode()
        yield Sample("module", name, {MODULE: raw, META: meta})
    digest = "sha256:" + hashlib.sha256(b"").hexdigest()
    yield from in_place("module", MODULE, {META: json.dumps(_meta(digest)).encode()})


def _meta(digest: str) -> dict[str, Any]:
    return {
        "format": 1, "method": "linear", "params": {}, "distance": "cosine",
        "dims": {"old": DIM, "new": DIM, "side": 0}, "maps_side": False,
        "parts": {"convert": digest},
    }  # fmt: skip


def conversions() -> Iterator[Sample]:
    """Folders of conversions whose description is wrong."""
    raw = dict(_modules())["sound"]
    meta = _meta("sha256:" + hashlib.sha256(raw).hexdigest())
    for name, content in _descriptions(meta):
        yield Sample("conversion", name, {MODULE: raw, META: content})
    yield from in_place("conversion", META, {MODULE: raw})


def _descriptions(meta: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    for start, path in enumerate(values.paths(meta)):
        for name, wrong in values.rotating(values.WRONG, start, 2):
            made = values.replaced(meta, path, wrong)
            yield f"{values.name(path)}-is-{name}", json.dumps(made).encode()
        yield f"{values.name(path)}-missing", json.dumps(values.removed(meta, path)).encode()
    for name, text in values.TEXTS.items():
        yield f"method-is-{name}", json.dumps(meta | {"method": text}).encode()
    for part in ("../convert", "/etc/passwd", "priority", "query_view", "planted", ""):
        digest = meta["parts"]["convert"]
        made = json.dumps(meta | {"parts": {part: digest}}).encode()
        yield f"part-{part.replace('/', '|') or 'nothing'}", made
    for size in (10**6, 10**9, 10**18, 10**30):
        made = json.dumps(meta | {"dims": {"old": size, "new": size, "side": size}}).encode()
        yield f"dimensions-{size}", made
    raw = json.dumps(meta).encode()
    yield "cut", raw[: len(raw) // 2]
    yield "lists-100000-deep", b"[" * 100_000
    yield "duplicate-keys", b'{"format": 1, ' + raw[1:]
    yield "digits", raw.replace(b'"format": 1', b'"format": ' + b"1" * 10_000)
    yield "latin-1", raw.replace(b'"linear"', b'"lin\xe9ar"')
    yield "20-mib", raw[:-1] + b" " * (20 * 2**20) + b"}"
