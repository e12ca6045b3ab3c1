"""Hostile folders where the store of stage outputs is expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmark.config.files import bytes_digest
from support.hostile import Content, Link, Pipe, Sample, Sparse, in_place
from support.hostile.engine import TEXTS, other_bytes, other_values
from support.hostile.records import SEALED, sealed

STAGE = "store/stages/embed-0123456789abcdef01234567"
META, WORK = f"{STAGE}/stage.json", "store/work"


def sound() -> bytes:
    """Facts of a stage about itself, with a file that is there."""
    files = {"vectors.npy": {"bytes": 1, "digest": bytes_digest(b"x")}}
    return sealed({"name": STAGE.rpartition("/")[2], "title": "embed", "kind": "embed",
                   "facts": {}, "run": {}, "files": files})  # fmt: skip


def stores() -> Iterator[Sample]:
    """Hostile stores: what they name must not be read, changed or freed outside of them."""
    meta, file = sound(), f"{STAGE}/vectors.npy"
    for name, content in (*other_values(meta, SEALED, 50), *other_bytes(meta, most=12),
                          ("65-mib", b'{"a": "' + b"x" * (65 * 2**20) + b'"}')):  # fmt: skip
        yield Sample("store", name, {META: content, file: b"x"})
    yield from in_place("store", META, {file: b"x"})
    outside = "../../../../outside"
    folders: Mapping[str, Mapping[str, Content]] = {
        "file-is-a-link-outside": {file: Link(f"{outside}/keep.txt")}, "file-is-a-pipe":
        {file: Pipe()}, "file-is-sparse": {file: Sparse(2**33)}, "file-is-endless":
        {file: Link("/dev/zero")}, "folder-is-a-link-outside": {f"{STAGE}/deep": Link(outside)},
        "work-is-a-link-outside": {WORK: Link("../../outside")}, "work-has-a-link-outside":
        {f"{WORK}/x": Link("../../../outside")}, "lock-is-a-pipe": {f"{WORK}/x.lock": Pipe()},
        "lock-is-a-link-outside": {f"{WORK}/x.lock": Link("../../../outside/keep.txt")},
        "work-is-a-file": {WORK: b"x"}, "300-folders-deep": {f"{STAGE}/{'d/' * 300}x": b""},
        "1000-stages": {f"store/stages/x-{i}/stage.json": meta for i in range(1000)},
    }  # fmt: skip
    for name, files in folders.items():
        yield Sample("store", name, {META: meta, **files})
    yield Sample("store", "stage-is-a-link-outside", {STAGE: Link("../../../outside")})
    yield Sample("store", "stages-is-a-link-outside", {"store/stages": Link("../../outside")})
    yield Sample("store", "stages-is-a-file", {"store/stages": b"x"})
    names = {name: text.replace("/", "|")[:200].encode("utf-8", "surrogatepass")
             for name, text in TEXTS.items() if text.strip(".") and "\0" not in text}  # fmt: skip
    for i, (name, text) in enumerate((names | {"not-utf-8": b"\xff\xfe"}).items()):
        place = b"store/stages/" if i % 2 else WORK.encode() + b"/"
        files_ = {META: meta, place + text[:200] + b"/stage.json": meta}
        yield Sample("store", f"folder-called-{name}", files_)
