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

from support.hostile import TOKEN, Sample, in_place
from support.hostile.engine import JSON, Form, other_bytes, other_values

MODULE, META = "convert.safetensors", "conversion.json"
DIM = 4


class Opens:
    """Runs a command where it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import os

        return os.system, (f"touch {TOKEN}",)


def framed(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """Length, header, data."""
    size = len(header) if length is None else length
    return struct.pack("<Q", size % 2**64) + header + data


def safetensors(raw: bytes) -> Form:
    """The format of safetensors with JSON among its metadata; the data are those of ``raw``."""
    size = int.from_bytes(raw[:8], "little")
    data = raw[8 + size :]

    def loads(raw: bytes) -> Any:
        header = json.loads(raw[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
        return {"metadata": {k: json.loads(v) for k, v in metadata.items()}, "arrays": header}

    def dumps(value: Any) -> bytes:
        metadata = value["metadata"]
        if isinstance(metadata, dict):
            metadata = {k: json.dumps(v) for k, v in metadata.items()}
        return framed(json.dumps({"__metadata__": metadata, **value["arrays"]}).encode(), data)

    return Form(loads, dumps)


def _headers() -> Iterator[tuple[str, bytes]]:
    """Whatever is in it, the container is wrong."""
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    for length in (2**63, 2**64 - 1, 2**32, 0, 100 * 2**20, 9, 1):
        yield f"header-length-{length}", framed(b'{"a":1}', b"", length)
    for key, wrong in (
        ("data_offsets", ([-8, 0], [8, 0], [0, 2**40], [4, 12], [2**64 - 8, 2**64], [0], "0:8")),
        ("shape", ([2**40, 2**40], [-2], [1] * 100_000, [2**63, 2], [0], ["2"], None)),
        ("dtype", ("F99", "", "O", 7, None, "F64", "BOOL", "\x1b[2J")),
    ):
        for i, each in enumerate(wrong):
            header = json.dumps({"a": entry | {key: each}}).encode()
            yield f"{key}-{i}", framed(header, bytes(8))
    yield "overlapping", framed(json.dumps({"a": entry, "b": entry}).encode(), bytes(8))
    for n in (1000, 200_000):
        yield f"json-{n}-deep", framed(b'{"a":' * n + b"1" + b"}" * n)
        yield f"lists-{n}-deep", framed(b"[" * n + b"]" * n)
    for name, header in {"null": b"null", "list": b"[]", "no-json": b"\xff" * 64, "metadata-list":
                         b'{"__metadata__": []}', "nan": b'{"a": NaN}'}.items():  # fmt: skip
        yield name, framed(header, bytes(8))
    yield "data-behind", framed(b"{}", bytes(64))
    yield "pickle", pickle.dumps(Opens())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:  # as torch.save writes
        info = zipfile.ZipInfo("archive/data.pkl", (2020, 1, 1, 0, 0, 0))
        archive.writestr(info, pickle.dumps(Opens()))
    yield "torch-save", out.getvalue()


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
# Ours, with arguments that would take all memory, or time.
COSTLY = (
    ("benchmark.models.backbones:Encoder", {"backbone": "convnet-100000", "dim": 10**6}),
    ("benchmark.models.backbones:Encoder", {"backbone": "vit-4096x100000", "dim": 16}),
    ("benchmark.models.backbones:Encoder", {"backbone": "\x1b[2J", "dim": 16}),
    ("benchmark.models.parts:FirstDims", {"dim": 10**30}),
    ("benchmark.models.parts:Directions", {"map": None, "normalise": True}),
    ("benchmark.models.parts:KeepSide", {"map": 7}),
    ("benchmark.models.parts:Affine", {"dim_in": 10**9, "dim_out": 10**9}),
)


def sound_module() -> bytes:
    """A stored conversion of vectors by an affine map."""
    affine = {"class": "benchmark.models.parts:Affine",
              "arguments": {"dim_in": DIM, "dim_out": DIM}}  # fmt: skip
    description = {"class": "benchmark.models.parts:KeepSide",
                   "arguments": {"map": {"portable": affine}}}  # fmt: skip
    header = {
        "__metadata__": {"module": json.dumps(description)},
        "map.linear.bias": {"dtype": "F32", "shape": [DIM], "data_offsets": [0, 16]},
        "map.linear.weight": {"dtype": "F32", "shape": [DIM, DIM], "data_offsets": [16, 80]},
    }
    return framed(json.dumps(header).encode(), bytes(16) + struct.pack("<f", 1.0) * DIM**2)


def sound_meta(module: bytes) -> bytes:
    """The description of a conversion that has this module."""
    return json.dumps({
        "format": 1, "method": "linear", "params": {}, "distance": "cosine",
        "dims": {"old": DIM, "new": DIM, "side": 0}, "maps_side": False,
        "parts": {"convert": "sha256:" + hashlib.sha256(module).hexdigest()},
    }).encode()  # fmt: skip


def _modules() -> Iterator[tuple[str, bytes]]:
    sound = sound_module()
    form = safetensors(sound)
    yield from other_values(sound, form, 80)
    yield from other_bytes(sound, most=20)
    value: Mapping[str, Any] = form.loads(sound)

    def made(description: Any) -> bytes:
        return form.dumps({**value, "metadata": {"module": description}})

    for i, cls in enumerate(CLASSES):
        inner = {"portable": {"class": cls, "arguments": {"command": f"touch {TOKEN}"}}}
        whole = value["metadata"]["module"] | {"class": cls}
        nested = value["metadata"]["module"] | {"arguments": {"map": inner}}
        yield f"class-{cls!a}".replace("/", "|"), made(nested if i % 2 else whole)
    for i, (cls, costly) in enumerate(COSTLY):
        yield f"costly-{i}", made({"class": cls, "arguments": costly})
    nested = value["metadata"]["module"]
    for _ in range(300):
        nested = nested | {"arguments": {"map": {"portable": nested}}}
    yield "300-modules-in-each-other", made(nested)


def modules() -> Iterator[Sample]:
    """Stored modules, each as the part of a conversion whose digest fits."""
    for name, raw in [*_modules(), *_headers()]:
        yield Sample("module", name, {MODULE: raw, META: sound_meta(raw)})
    yield from in_place("module", MODULE, {META: sound_meta(b"")})


def conversions() -> Iterator[Sample]:
    """Folders of conversions whose description is wrong."""
    raw = sound_module()
    meta = sound_meta(raw)
    for name, content in (*other_values(meta, JSON, 60), *other_bytes(meta, most=20)):
        yield Sample("conversion", name, {MODULE: raw, META: content})
    value = json.loads(meta)
    for part in ("../convert", "/etc/passwd", "priority", "query_view", "planted", ""):
        made = json.dumps(value | {"parts": {part: value["parts"]["convert"]}}).encode()
        name = f"part-{part.replace('/', '|') or 'nothing'}"
        yield Sample("conversion", name, {MODULE: raw, META: made})
    yield from in_place("conversion", META, {MODULE: raw})
