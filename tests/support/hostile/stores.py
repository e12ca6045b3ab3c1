"""Hostile folders where the store of stage outputs is expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.config.files import seal_of
from support.hostile import TOKEN, Content, Link, Pipe, Sample, Sparse, in_place, values

STAGE = "store/stages/embed-0123456789abcdef01234567"
META = f"{STAGE}/stage.json"
UNFINISHED = "store/work"


def meta(**fields: Any) -> dict[str, Any]:
    """Facts of a stage about itself, with a file that is there."""
    digest = "sha256:" + "0" * 64
    return {
        "name": STAGE.rpartition("/")[2], "title": "embed", "kind": "embed", "facts": {},
        "run": {}, "files": {"vectors.npy": {"bytes": 1, "digest": digest}}, **fields,
    }  # fmt: skip


def sealed(value: Mapping[str, Any]) -> bytes:
    """A sealed file: anybody can compute a seal."""
    return json.dumps({**value, "seal": seal_of(value)}).encode()


def stores() -> Iterator[Sample]:
    """Hostile stores: what they name must not be read, changed or freed outside of them."""
    for name, content in _metas():
        yield Sample("store", name, {META: content, f"{STAGE}/vectors.npy": b"x"})
    yield from in_place("store", META, {f"{STAGE}/vectors.npy": b"x"})
    sound = sealed(meta())
    for name, files in _folders(sound):
        yield Sample("store", name, files)


def _metas() -> Iterator[tuple[str, bytes]]:
    for key in meta():
        for name in ("null", "minus-one", "list", "nested-list", "2-to-64"):
            yield f"{key}-is-{name}", sealed(meta(**{key: values.WRONG[name]}))
        gone = {k: v for k, v in meta().items() if k != key}
        yield f"{key}-missing", sealed(gone)
    for file in ("../../../../outside/keep.txt", "/etc/passwd", "\x1b[2J", "a" * 5000, "", "."):
        label = f"file-{file[:24]!a}".replace("/", "|")
        yield label, sealed(meta(files={file: {"bytes": 1, "digest": "x"}}))
    yield "100000-files", sealed(meta(files={f"f{i}": {} for i in range(100_000)}))
    for text in ("script", "clear-screen", "right-to-left", "rich-markup"):
        yield f"title-is-{text}", sealed(meta(title=values.TEXTS[text]))
        yield f"name-is-{text}", sealed(meta(name=values.TEXTS[text]))
    yield "lists-100000-deep", b"[" * 100_000
    yield "65-mib", b'{"a": "' + b"x" * (65 * 2**20) + b'"}'
    yield "digits", b'{"name": ' + b"9" * 1_000_000 + b"}"


def _folders(sound: bytes) -> Iterator[tuple[str, Mapping[str | bytes, Content]]]:
    outside = "../../../../outside"
    yield (
        "file-is-a-link-outside",
        {META: sound, f"{STAGE}/vectors.npy": Link(f"{outside}/keep.txt")},
    )
    yield "file-is-a-pipe", {META: sound, f"{STAGE}/vectors.npy": Pipe()}
    yield "file-is-sparse", {META: sound, f"{STAGE}/vectors.npy": Sparse(2**33)}
    yield "file-is-endless", {META: sound, f"{STAGE}/vectors.npy": Link("/dev/zero")}
    yield "folder-is-a-link-outside", {META: sound, f"{STAGE}/deep": Link(outside)}
    yield "stage-is-a-link-outside", {STAGE: Link("../../../outside")}
    yield "stages-is-a-link-outside", {"store/stages": Link("../../outside")}
    yield "work-is-a-link-outside", {META: sound, UNFINISHED: Link("../../outside")}
    yield "work-has-a-link-outside", {META: sound, f"{UNFINISHED}/x": Link("../../../outside")}
    yield (
        "lock-is-a-link-outside",
        {META: sound, f"{UNFINISHED}/x.lock": Link("../../../outside/keep.txt")},
    )
    yield "lock-is-a-pipe", {META: sound, f"{UNFINISHED}/x.lock": Pipe()}
    yield "stages-is-a-file", {"store/stages": b"x"}
    yield "work-is-a-file", {META: sound, UNFINISHED: b"x"}
    for label, name in (
        ("escape", b"\x1b[2J"), ("not-utf-8", b"\xff\xfe"), ("line-break", b"a\nb"),
        ("markup", f"<{TOKEN}>".encode()), ("dash", b"-rf"), ("long", b"n" * 250),
    ):  # fmt: skip
        yield f"stage-called-{label}", {b"store/stages/" + name + b"/stage.json": sound}
        place = UNFINISHED.encode() + b"/" + name
        yield f"work-called-{label}", {place + b"/x": b"", META: sound}
    yield "1000-stages", {f"store/stages/x-{i}/stage.json": sound for i in range(1000)}
    yield "300-folders-deep", {f"{STAGE}/{'d/' * 300}x": b"", META: sound}
